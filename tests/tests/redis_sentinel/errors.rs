//! Passwords, and what somebody reads whose sentinels cannot be used.

use std::net::TcpListener;
use std::time::Duration;

use leader_core::{Config, Elector, Finding, FreshStore, Severity, StartError};
use leader_tests::process::{config_at, eventually};
use leader_tests::redis::{SERVICE, Watched};

fn config(url: &str) -> Config {
    config_at(url).fresh_store(FreshStore::Trust).ttl(Duration::from_secs(10))
}

/// The error of a start at `url`; and neither it nor the configuration shows a password.
async fn refused(url: &str) -> String {
    // A busy machine takes its time to be refused by three.
    let config =
        config(url).ttl(Duration::from_secs(3)).operation_timeout(Duration::from_millis(1500)).require_store(true);
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
async fn servers_and_sentinels_have_passwords_of_their_own_and_each_error_says_whose_is_wrong() {
    let server = [("requirepass", "s3cr3t-of-servers"), ("masterauth", "s3cr3t-of-servers")];
    // No more than is advised.
    let user = "user watcher on >s3cr3t-of-watcher resetchannels -@all +ping +sentinel|get-master-addr-by-name +sentinel|master";
    let blind = "user blind on >s3cr3t-of-blind resetchannels -@all +ping";
    let Some(watched) = Watched::start(&server, &[user, blind], Some("s3cr3t-of-sentinels")) else { return };
    let who = ":s3cr3t-of-servers@";
    for query in [
        "?sentinel_password=s3cr3t-of-sentinels",
        "?sentinel_user=default&sentinel_password=s3cr3t-of-sentinels",
        "?sentinel_user=watcher&sentinel_password=s3cr3t-of-watcher",
    ] {
        let elector = Elector::start(config(&watched.url_as(who, SERVICE, query))).await.unwrap();
        assert!(elector.is_leader("default"), "{query}: {:?}", elector.status());
        elector.shutdown(Duration::ZERO).await.unwrap();
    }
    let right = "?sentinel_password=s3cr3t-of-sentinels";
    let first = watched.sentinels[0].address().to_string();
    for (who, service, query, told) in [
        (who, SERVICE, "", &["NOAUTH", &*first, "sentinel_password=PASSWORD"][..]),
        (who, SERVICE, "?sentinel_password=s3cr3t", &["WRONGPASS", &*first, "`sentinel_password`"]),
        (who, SERVICE, "?sentinel_user=nobody&sentinel_password=s3cr3t", &["WRONGPASS", "`sentinel_user`"]),
        (
            who,
            SERVICE,
            "?sentinel_user=blind&sentinel_password=s3cr3t-of-blind",
            &["NOPERM", "+sentinel|get-master-addr-by-name"],
        ),
        (who, "mymaster", right, &["`mymaster`", &*first, "SENTINEL MASTERS"]),
        ("", SERVICE, right, &["NOAUTH", "before the host"]),
        (":s3cr3t@", SERVICE, right, &["WRONGPASS", "user and password"]),
    ] {
        let text = refused(&watched.url_as(who, service, query)).await;
        assert!(told.iter().all(|part| text.contains(part)), "{service}{query}: {text}");
        let address = format!("redis-sentinel://{}", if who.is_empty() { "" } else { "***@" });
        assert!(text.contains(&address), "{text}");
    }
    let server = watched.servers[0].address();
    let text = refused(&format!("redis-sentinel://{server}/{SERVICE}?sentinel_password=s3cr3t-of-servers")).await;
    assert!(text.contains("no sentinel") && text.contains(&server.to_string()), "{text}");
}

#[tokio::test]
async fn sentinels_that_do_not_answer_are_all_named() {
    let nobody = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let [one, other, quiet] = [nobody(), nobody(), silent.local_addr().unwrap()];
    let text = refused(&format!("redis-sentinel://:s3cr3t@{one},{other}/jobs")).await;
    let told = [
        format!("connection refused by {one}; connection refused by {other}"),
        format!("redis-sentinel://***@{one},{other}/jobs/0"),
        "where the primary of `jobs` is".to_owned(),
    ];
    assert!(told.iter().all(|part| text.contains(part)), "{text}");
    let text = refused(&format!("redis-sentinel://:s3cr3t@{one},{quiet}/jobs")).await;
    assert!(text.contains(&format!("connect to redis-sentinel://***@{one},{quiet}/jobs/0")), "{text}");
}

#[tokio::test]
async fn a_primary_whose_replicas_are_gone_is_found() {
    let Some(mut watched) = Watched::start(&[], &[], None) else { return };
    let elector = Elector::start(config(&watched.url())).await.unwrap();
    let found = elector.doctor().await.unwrap();
    assert!(found.iter().any(|finding| finding.to_string().contains("min-replicas-to-write")), "{found:?}");
    assert!(!found.iter().any(|finding| finding.to_string().contains("no replica")), "{found:?}");
    watched.servers[1].kill();
    watched.servers[2].kill();
    eventually("the primary has noticed", || {
        let info: String = watched.servers[0].command(&["INFO", "replication"]);
        info.contains("connected_slaves:0").then_some(())
    });
    let found = elector.doctor().await.unwrap();
    let is_told = |finding: &Finding| {
        finding.severity == Severity::Warning && finding.to_string().contains("no replica is connected")
    };
    assert!(found.iter().any(is_told), "{found:?}");
    elector.shutdown(Duration::ZERO).await.unwrap();
}
