//! Servers start, remember what they are to remember, and are gone in the end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use leader_tests::redis::{Client, RedisServer};

use crate::{error, guest};

fn get(redis: &RedisServer, key: &str) -> Option<String> {
    redis.command(&["GET", key])
}

fn set(redis: &RedisServer, key: &str, value: &str) {
    redis.command::<()>(&["SET", key, value]);
}

#[test]
fn a_server_remembers_over_a_restart_only_if_it_is_to() {
    let Some(mut redis) = RedisServer::start(&[]) else { return };
    let address = redis.address();
    set(&redis, "key", "value");
    redis.restart_with_data();
    assert_eq!(get(&redis, "key").as_deref(), Some("value"));
    redis.restart_empty();
    assert_eq!(get(&redis, "key"), None);
    set(&redis, "key", "value");
    redis.kill();
    assert!(redis.client().is_err(), "it does not run");
    redis.start_again();
    assert_eq!(get(&redis, "key"), None, "nothing was saved");
    assert_eq!(redis.address(), address);
}

#[test]
fn a_server_with_an_append_only_file_remembers_when_it_was_killed_and_can_be_emptied() {
    let Some(mut redis) = RedisServer::start(&[("appendonly", "yes")]) else { return };
    set(&redis, "key", "value");
    redis.kill();
    redis.start_again();
    assert_eq!(get(&redis, "key").as_deref(), Some("value"));
    redis.restart_empty();
    assert_eq!(get(&redis, "key"), None);
}

#[test]
fn a_server_is_rolled_back_to_its_snapshot() {
    let Some(mut redis) = RedisServer::start(&[]) else { return };
    set(&redis, "key", "old");
    redis.snapshot();
    for value in ["new", "newer"] {
        set(&redis, "key", value);
        set(&redis, value, value);
        redis.roll_back();
        assert_eq!(get(&redis, "key").as_deref(), Some("old"));
        assert_eq!(get(&redis, value), None);
    }
}

#[test]
fn a_stopped_server_answers_when_it_goes_on() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let mut client = redis.client().unwrap();
    redis.stop();
    let asked = std::thread::spawn(move || client.command::<String>(&["PING"]));
    // Nothing is to be waited for here: that it is stopped is what the system says.
    assert!(!asked.is_finished());
    redis.cont();
    assert_eq!(asked.join().unwrap().unwrap(), "PONG");
}

#[test]
fn a_server_and_its_files_are_gone_when_a_test_fails() {
    let mut seen = None;
    let failed = catch_unwind(AssertUnwindSafe(|| {
        let Some(redis) = RedisServer::start(&[]) else { return };
        let info: String = redis.command(&["INFO", "server"]);
        let pid = info.lines().find_map(|line| line.strip_prefix("process_id:")).unwrap().to_owned();
        assert!(Path::new("/proc").join(&pid).exists());
        redis.stop();
        seen = Some((pid, redis.data().to_owned()));
        panic!("on purpose");
    }));
    let Some((pid, data)) = seen else { return };
    assert!(failed.is_err());
    assert!(!Path::new("/proc").join(pid).exists(), "it runs on");
    assert!(!data.exists() && !data.parent().unwrap().exists(), "its files are left");
}

#[test]
fn a_password_and_users_are_for_others_than_the_test() {
    let users = [("requirepass", "secret"), ("user", "app on >word ~leader:* -@all +get")];
    let Some(redis) = RedisServer::start(&users) else { return };
    assert_eq!(error(&mut guest(&redis), &["GET", "leader:a"]), "NOAUTH");
    let mut known = Client::open(redis.address(), Some(("default", "secret"))).unwrap();
    known.command::<()>(&["SET", "leader:a", "1"]).unwrap();
    let mut app = Client::open(redis.address(), Some(("app", "word"))).unwrap();
    assert_eq!(app.command::<String>(&["GET", "leader:a"]).unwrap(), "1");
    assert_eq!(error(&mut app, &["SET", "leader:a", "1"]), "NOPERM");
    assert_eq!(get(&redis, "leader:a").as_deref(), Some("1"), "the test itself may do everything");
}
