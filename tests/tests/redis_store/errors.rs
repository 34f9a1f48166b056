//! What somebody reads whose server cannot be used.

use std::net::TcpListener;
use std::time::Duration;

use leader_core::{Elector, StartError};
use leader_tests::redis::RedisServer;

use crate::config;

/// The error of a start at `url`; and neither it nor the configuration shows a password.
async fn refused(url: &str) -> String {
    let config = config(url).ttl(Duration::from_secs(1)).require_store(true);
    let shown = format!("{config:?}");
    let error: StartError = match Elector::start(config).await {
        Ok(_) => panic!("an elector started on {url}"),
        Err(error) => error,
    };
    let text = format!("{error} {error:?} {shown}");
    assert!(!text.contains("s3cr3t"), "{text}");
    error.to_string()
}

#[tokio::test]
async fn each_error_says_what_was_tried_and_what_to_do() {
    let Some(redis) = RedisServer::start(&[("requirepass", "s3cr3t-of-the-server")]) else { return };
    let host = redis.address().to_string();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let quiet = silent.local_addr().unwrap();
    let nobody = {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap();
        closed.local_addr().unwrap()
    };
    for (url, told) in [
        (format!("redis://{nobody}"), &["refused", "see that it runs"][..]),
        (format!("redis://{quiet}"), &["was not reached within", "see that it runs"]),
        (format!("redis://{host}"), &["NOAUTH", "redis://:PASSWORD@host"]),
        (format!("redis://:s3cr3t@{host}"), &["WRONGPASS", "percent-encoded"]),
        (format!("redis://nobody:s3cr3t@{host}"), &["WRONGPASS", "user and password"]),
        (format!("redis://:s3cr3t-of-the-server@{host}/99"), &["DB index", "redis://host:6379/0"]),
        (format!("http://:s3cr3t@{host}"), &["`http`", "`redis://"]),
        ("redis://no-such-host.invalid".to_owned(), &["no-such-host.invalid", "see that it runs"]),
        (format!("redis://:s3cr3t@{host}?passwort=s3cr3t"), &["`ca`"]),
    ] {
        let text = refused(&url).await;
        assert!(told.iter().all(|part| text.contains(part)), "{url}: {text}");
        let address = ["127.0.0.1", "no-such-host", "`http`", "`ca`"];
        assert!(address.iter().any(|part| text.contains(part)), "{text}");
    }
}

#[tokio::test]
async fn a_key_of_the_wrong_type_fails_its_group_alone_and_is_named() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    redis.command::<()>(&["LPUSH", "leader:reports", "x"]);
    let elector = Elector::start(config(&redis.url()).groups(["reports"])).await.unwrap();
    assert!(elector.is_leader("default") && !elector.is_leader("reports"));
    let status = elector.status();
    let problems: Vec<_> = status.problems.iter().map(|problem| problem.text.clone()).collect();
    assert!(problems.iter().any(|text| text.contains("WRONGTYPE") && text.contains("LEADER_PREFIX")), "{problems:?}");
    redis.delete("leader:reports");
    elector.shutdown(Duration::ZERO).await.unwrap();
}
