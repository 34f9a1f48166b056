//! Electors and their locks on a server that stands still, dies or forgets.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinSet;

use super::*;
use crate::{Config, Elector, LockError, Once};

async fn start(server: &Server) -> Elector {
    Elector::start(Config::new(server.url()).redis_client(chosen()).fresh_store(FreshStore::Trust).ttl(TTL))
        .await
        .unwrap()
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let waits = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(AMPLE, waits).await.unwrap_or_else(|_| panic!("it did not happen: {what}"));
}

fn is_taken(server: &Server, key: &str) -> bool {
    server.ask(&["EXISTS", key]) == Reply::Integer(1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_at_a_time_works_and_all_get_their_turn() {
    const WORKERS: usize = 24;
    let Some(server) = Server::start(&[]) else { return };
    let electors = [start(&server).await, start(&server).await, start(&server).await];
    let inside = Arc::new(AtomicUsize::new(0));
    let mut working = JoinSet::new();
    for n in 0..WORKERS {
        let (elector, inside) = (electors[n % 3].clone(), Arc::clone(&inside));
        working.spawn(async move {
            for _ in 0..5 {
                let work = |_| async {
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two at once");
                    tokio::task::yield_now().await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                };
                elector.lock("k").wait(AMPLE).run(work).await.unwrap();
            }
        });
    }
    working.join_all().await;
    assert!(!is_taken(&server, "_lock:k") && !is_taken(&server, "{_lock:k}:queue"));
}

#[tokio::test]
async fn what_was_given_up_while_the_server_stood_still_is_free_when_it_goes_on() {
    let Some(server) = Server::start(&[]) else { return };
    let elector = start(&server).await;
    // Its connections are open.
    elector.lock("k").acquire().await.unwrap().release().await.unwrap();
    server.stop();
    for wait in [Duration::ZERO, AMPLE] {
        let attempt = elector.lock("k").wait(wait).acquire();
        assert!(tokio::time::timeout(Duration::from_millis(300), attempt).await.is_err());
    }
    server.resume();
    // It may be taken by what the server finds in its sockets. Long before its ttl is over, it is free.
    until("the lock can be had", || !is_taken(&server, "_lock:k") && !is_taken(&server, "{_lock:k}:queue")).await;
    let guard = elector.lock("k").wait(AMPLE).acquire().await.unwrap();
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_lock_outlasts_a_short_stall_and_is_lost_with_the_servers_memory() {
    const LOCK: Duration = Duration::from_secs(15);
    let Some(mut server) = Server::start(&[]) else { return };
    let elector = start(&server).await;
    let guard = elector.lock("k").ttl(LOCK).acquire().await.unwrap();
    let before = guard.deadline();
    server.stop();
    // It is renewed after a third, and a call has a second.
    until("a renewal has failed", || guard.remaining() < LOCK * 2 / 3 - Duration::from_secs(1)).await;
    assert!(guard.is_held());
    server.resume();
    until("it is renewed", || guard.deadline() > before).await;
    server.restart();
    tokio::time::timeout(AMPLE, guard.lost()).await.unwrap();
    assert!(matches!(guard.release().await, Err(LockError::Lost { .. })));
    elector.lock("k").wait(AMPLE).acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn ten_thousand_locks_that_come_and_go_leave_as_many_keys_as_before() {
    let Some(server) = Server::start(&[]) else { return };
    let elector = start(&server).await;
    let before = keys(&server);
    for _ in 0..2 {
        let mut asking = JoinSet::new();
        for n in 0..5_000 {
            let elector = elector.clone();
            asking.spawn(async move { elector.lock(format!("account:{n}")).wait(AMPLE).acquire().await.unwrap() });
        }
        let guards = asking.join_all().await;
        assert_eq!(keys(&server), before + guards.len());
        drop(guards);
        until("all are free", || keys(&server) == before).await;
    }
}

#[tokio::test]
async fn a_lock_that_the_leases_server_does_not_know_costs_no_lease() {
    let Some(server) = Server::start(&[]) else { return };
    let elector = start(&server).await;
    let lease = elector.lease("default").unwrap();
    server.ask(&["LPUSH", "_lock:bad", "x"]);
    let error = elector.lock("bad").wait(AMPLE).acquire().await.unwrap_err();
    assert!(error.to_string().contains("WRONGTYPE"), "{error}");
    assert!(lease.is_held());
}

#[tokio::test]
async fn work_is_done_once_and_that_is_kept() {
    let Some(server) = Server::start(&[]) else { return };
    let (a, b) = (start(&server).await, start(&server).await);
    let work = || async { Ok::<_, LockError>(7) };
    assert_eq!(a.once("migrate:3").run(work).await.unwrap(), Once::Ran(7));
    assert_eq!(pttl(&server, "{_lock:once:migrate:3}:done"), -1);
    assert_eq!(b.once("migrate:3").run(work).await.unwrap(), Once::Done);
    assert!(b.forget("migrate:3").await.unwrap());
    let kept = b.once("migrate:3").keep(TTL).run(work).await.unwrap();
    assert_eq!(kept, Once::Ran(7));
    assert!((1..=60_000).contains(&pttl(&server, "{_lock:once:migrate:3}:done")));
    let longest = b.once("migrate:4").keep(Duration::MAX).run(work).await.unwrap();
    assert_eq!((longest, pttl(&server, "{_lock:once:migrate:4}:done")), (Once::Ran(7), -1));
}
