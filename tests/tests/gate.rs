//! A gate asks nobody.

#![allow(clippy::unwrap_used, reason = "in the helpers of tests too")]

use std::future::Future;
use std::time::Duration;

use leader_core::store::MemoryStore;
use leader_core::testing::FaultyStore;
use leader_core::{Config, Elector, leader_only};

const CALLS: u32 = 1_000_000;

#[leader_only]
fn gated() -> Option<()> {
    Some(())
}

/// An elector whose next heartbeat is 20 minutes away.
async fn start(store: &FaultyStore) -> Elector {
    Elector::start(Config::with_store(store.clone()).ttl(Duration::from_secs(3600))).await.unwrap()
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(test);
}

/// Calls of the system to read and to write that this thread has made, where the system counts them.
fn reads_and_writes() -> Option<(u64, u64)> {
    let counts = std::fs::read_to_string("/proc/thread-self/io").ok()?;
    let count = |name| counts.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok();
    Some((count("syscr:")?, count("syscw:")?))
}

#[test]
fn a_million_gate_calls_do_no_io() {
    run(async {
        let store = FaultyStore::new(MemoryStore::new());
        let leader = start(&store).await;
        let follower = start(&store).await;
        let asked = store.calls();
        assert!(asked >= 2, "both have asked the store, which counts");
        // What the reading of the counts itself adds.
        let own =
            reads_and_writes().zip(reads_and_writes()).map(|(first, second)| (second.0 - first.0, second.1 - first.1));
        let before = reads_and_writes();
        for (elector, leads) in [(&leader, true), (&follower, false)] {
            let _entered = elector.enter();
            for _ in 0..CALLS {
                assert_eq!(elector.is_leader("default"), leads);
                assert_eq!(gated().is_some(), leads);
            }
        }
        let during = reads_and_writes().zip(before).map(|(after, before)| (after.0 - before.0, after.1 - before.1));
        assert_eq!(during, own);
        assert_eq!(store.calls(), asked);
        follower.shutdown(Duration::ZERO).await.unwrap();
        leader.shutdown(Duration::ZERO).await.unwrap();
        assert!(store.calls() > asked, "the release was counted");
    });
}
