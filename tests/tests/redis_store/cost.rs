//! What a lock costs, in what can be counted.

use std::collections::BTreeMap;
use std::time::Duration;

use leader_core::{Elector, FreshStore};
use leader_tests::process::config_at;
use leader_tests::redis::{Client, RedisServer};

const LOCKS: u64 = 200;

/// What the scripts of the locks call.
const INSIDE: &[&str] = &["time", "get", "set", "del", "pttl", "pexpire", "exists", "publish"];

/// How often each command was called since the server began, and how often it has read something from a connection.
fn counts(client: &mut Client) -> (BTreeMap<String, u64>, u64) {
    let stats: String = client.command(&["INFO", "commandstats"]).unwrap();
    let calls = stats.lines().filter_map(|line| {
        // `cmdstat_get:calls=21,usec=175,…`
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        Some((name.to_owned(), rest.split_once(',')?.0.parse().unwrap()))
    });
    let calls = calls.collect();
    let stats: String = client.command(&["INFO", "stats"]).unwrap();
    let reads = stats.lines().find_map(|line| line.strip_prefix("total_reads_processed:")).unwrap();
    (calls, reads.parse().unwrap())
}

#[tokio::test]
async fn a_lock_that_nobody_else_wants_is_taken_and_given_back_by_two_calls_of_its_script_and_nothing_else() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    // No heartbeat falls into the test.
    let config = config_at(redis.url()).fresh_store(FreshStore::Trust).ttl(Duration::from_secs(3600));
    let elector = Elector::start(config).await.unwrap();
    // What is done once: the doctor's examination, and the first connection for locks.
    elector.doctor().await.unwrap();
    elector.lock("first").acquire().await.unwrap().release().await.unwrap();
    let mut client = redis.client().unwrap();
    let (calls_before, reads_before) = counts(&mut client);
    for n in 0..LOCKS {
        elector.lock(format!("lock-{n}")).acquire().await.unwrap().release().await.unwrap();
    }
    let (calls, reads) = counts(&mut client);
    let calls: BTreeMap<&str, u64> = calls
        .iter()
        .map(|(name, after)| (name.as_str(), after - calls_before.get(name).unwrap_or(&0)))
        .filter(|(_, calls)| *calls > 0)
        .collect();
    let of = |name| calls.get(name).copied().unwrap_or(0);
    assert_eq!(of("evalsha"), 2 * LOCKS, "{calls:?}");
    // The subscription asks now and then whether the server is there, whatever becomes of locks; `INFO` is the test's.
    let known =
        |name: &str| INSIDE.contains(&name) || name.starts_with('z') || ["evalsha", "ping", "info"].contains(&name);
    assert!(calls.keys().all(|name| known(name)), "{calls:?}");
    // Each round trip is read by the server: what the scripts call themselves is not.
    assert!(reads - reads_before <= 2 * LOCKS + of("ping") + of("info"), "{calls:?}, read {}", reads - reads_before);
    elector.shutdown(Duration::ZERO).await.unwrap();
}
