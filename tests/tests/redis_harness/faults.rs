//! Each fault of a server is one.

use std::time::{Duration, Instant};

use leader_tests::process::{Mount, eventually};
use leader_tests::redis::RedisServer;

use crate::{error, guest};

const A_WHILE: Duration = Duration::from_millis(300);

#[test]
fn clients_are_paused_and_killed() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let mut client = guest(&redis);
    assert_eq!(redis.connections(), 1);
    let paused = Instant::now();
    redis.pause_clients(A_WHILE);
    client.command::<()>(&["PING"]).unwrap();
    // The server's clock counts in whole milliseconds, and began a little before this one's.
    assert!(paused.elapsed() > A_WHILE / 2, "{:?}", paused.elapsed());
    assert_eq!(redis.kill_clients(), 1);
    assert!(client.command::<()>(&["PING"]).is_err());
    eventually("the connection is gone", || (redis.connections() == 0).then_some(()));
}

#[test]
fn a_busy_server_answers_nobody_and_then_all() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let mut client = guest(&redis);
    let busy = redis.busy_script(A_WHILE, A_WHILE);
    let refused = eventually("the server refuses", || client.command::<()>(&["PING"]).err());
    assert_eq!(refused.code(), Some("BUSY"));
    busy.wait();
    client.command::<()>(&["PING"]).unwrap();

    let began = Instant::now();
    let busy = redis.sleep(A_WHILE);
    busy.wait();
    assert!(began.elapsed() >= A_WHILE);
    assert_eq!(redis.calls("debug"), 1);
}

#[test]
fn what_a_server_holds_is_forgotten() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let mut client = guest(&redis);
    let sha: String = client.command(&["SCRIPT", "LOAD", "return 1"]).unwrap();
    client.command::<()>(&["EVALSHA", &sha, "0"]).unwrap();
    redis.flush_scripts();
    assert_eq!(error(&mut client, &["EVALSHA", &sha, "0"]), "NOSCRIPT");
    client.command::<()>(&["SET", "key", "value"]).unwrap();
    redis.flush_all();
    assert!(!redis.delete("key"));
    client.command::<()>(&["SET", "key", "value"]).unwrap();
    assert!(redis.delete("key"));
}

#[test]
fn rights_are_revoked_live_and_given_back() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let mut client = guest(&redis);
    let eval = ["EVAL", "return 1", "0"];
    client.command::<()>(&eval).unwrap();
    redis.permit(&["-eval"]);
    assert_eq!(error(&mut client, &eval), "NOPERM");
    redis.command::<()>(&eval);
    redis.permit(&["+eval"]);
    client.command::<()>(&eval).unwrap();
}

#[test]
fn writes_are_refused_for_each_of_three_reasons() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let mut client = guest(&redis);
    let write = ["SET", "key", "value"];
    redis.become_replica();
    assert_eq!(error(&mut client, &write), "READONLY");
    redis.become_primary();
    client.command::<()>(&write).unwrap();
    redis.exhaust_memory();
    assert_eq!(error(&mut client, &write), "OOM");
    client.command::<()>(&["PEXPIRE", "key", "60000"]).unwrap();
    redis.relieve_memory();
    client.command::<()>(&write).unwrap();

    let Some(disk) = Mount::new("64k") else { return };
    let redis = RedisServer::start_on(disk.path(), &[("save", "3600 1")]).unwrap();
    let mut client = guest(&redis);
    client.command::<()>(&write).unwrap();
    redis.fill_disk(200_000);
    assert_eq!(error(&mut client, &write), "MISCONF");
    redis.clear_disk();
    client.command::<()>(&write).unwrap();
}
