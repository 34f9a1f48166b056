//! Those who wait for a lock on a server, and those who have ended and do not.

use super::*;

/// Its subscription has ended with its connection; the server tells nobody of that.
async fn until_nobody_listens_for(server: &Server, party: &Party) {
    let channel = format!("leader:wake:{}", party.candidate.incarnation);
    while server.ask(&["PUBSUB", "CHANNELS", &channel]) != Reply::List(vec![]) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// How often the server has executed this command.
fn executed(server: &Server, command: &str) -> u64 {
    let Reply::Text(stats) = server.ask(&["INFO", "commandstats"]) else { panic!() };
    let line = format!("cmdstat_{command}:calls=");
    let calls = stats.lines().find_map(|known| known.strip_prefix(&line)).map(|calls| calls.split(',').next());
    calls.flatten().map_or(0, |calls| calls.parse().unwrap())
}

#[tokio::test]
async fn only_the_first_who_waits_is_told_of_a_release() {
    let Some(server) = Server::start(&[]) else { return };
    let (mut a, mut b) = (Party::join(store(&server), "a").await, Party::join(store(&server), "b").await);
    let (holder, first, second) = (a.owner(), b.owner(), a.owner());
    let token = a.win(&holder, "k").await;
    b.busy(&first, "k", Some(PLACE)).await;
    a.busy(&second, "k", Some(PLACE)).await;
    a.ask(&holder, "k", LockOp::Release { token: Some(token) }).await;
    assert_eq!(b.told().await, first.nonce);
    b.win(&first, "k").await;
    b.ask(&first, "k", LockOp::Release { token: None }).await;
    assert_eq!(a.told().await, second.nonce, "and of no other one before");
}

#[tokio::test]
async fn who_waits_is_told_whatever_prefix_its_leases_have() {
    let Some(server) = Server::start(&[]) else { return };
    let a = Party::join(store(&server), "a").await;
    let mut b = Party::join(store(&server).prefix("other:").unwrap(), "b").await;
    let (holder, waits) = (a.owner(), b.owner());
    a.win(&holder, "k").await;
    b.busy(&waits, "k", Some(PLACE)).await;
    a.ask(&holder, "k", LockOp::Release { token: None }).await;
    assert_eq!(b.told().await, waits.nonce);
    b.win(&waits, "k").await;
}

#[tokio::test]
async fn of_a_long_queue_of_one_that_has_ended_each_place_is_looked_at_once() {
    const PLACES: usize = 300;
    let Some(server) = Server::start(&[]) else { return };
    let (a, gone) = (Party::join(store(&server), "a").await, Party::join(store(&server), "b").await);
    let runner = a.owner();
    let token = a.win(&runner, "k").await;
    let owners: Vec<_> = (0..PLACES).map(|_| gone.owner()).collect();
    let asks = owners.iter().map(|owner| (owner, "k", acquire(Some(10 * PLACE)))).collect();
    assert_eq!(gone.ask_all(asks).await.unwrap().len(), PLACES);
    gone.store.disconnect(gone.candidate.incarnation).await.unwrap();
    until_nobody_listens_for(&server, &gone).await;
    let before = executed(&server, "zrange");
    assert_eq!(a.ask(&runner, "k", LockOp::Complete { token, keep: None }).await, LockAnswer::Completed);
    for _ in 0..10 {
        assert!(a.busy(&a.owner(), "k", None).await.ahead > 0);
    }
    let looked = executed(&server, "zrange") - before;
    assert!(looked < 100, "{looked} times, for {PLACES} places");
}

#[tokio::test]
async fn those_of_an_elector_that_has_ended_do_not_keep_others_waiting_for_long() {
    let Some(server) = Server::start(&[]) else { return };
    let long = 10 * PLACE;
    let (a, b) = (Party::join(store(&server), "a").await, Party::join(store(&server), "b").await);
    let (holder, lives) = (a.owner(), a.owner());
    let token = a.win(&holder, "k").await;
    for gone in [b.owner(), b.owner()] {
        b.busy(&gone, "k", Some(long)).await;
    }
    a.busy(&lives, "k", Some(long)).await;
    // As a process ends: nothing is given back.
    b.store.disconnect(b.candidate.incarnation).await.unwrap();
    until_nobody_listens_for(&server, &b).await;
    a.ask(&holder, "k", LockOp::Release { token: Some(token) }).await;
    let busy = a.busy(&lives, "k", Some(long)).await;
    assert!(busy.ahead == 2 && busy.remaining <= Duration::from_millis(1_500), "{busy:?}");
    tokio::time::sleep(busy.remaining).await;
    a.win(&lives, "k").await;
}

#[tokio::test]
async fn places_that_a_clock_set_back_would_make_last_are_cut() {
    let Some(server) = Server::start(&[]) else { return };
    let party = Party::join(store(&server), "a").await;
    let (held, gone, waits) = (party.owner(), party.owner(), party.owner());
    party.win(&held, "k").await;
    party.busy(&gone, "k", Some(PLACE)).await;
    let member = format!("{:032x}:leader:wake:{}", gone.nonce, party.candidate.incarnation);
    server.ask(&["ZADD", "{_lock:k}:waiting", "XX", "99999999999999", &member]);
    server.ask(&["PEXPIRE", "{_lock:k}:waiting", "9000000"]);
    party.ask(&held, "k", LockOp::Release { token: None }).await;
    let busy = party.busy(&waits, "k", Some(PLACE)).await;
    assert!(busy.ahead == 1 && busy.remaining <= Duration::from_secs(10), "{busy:?}");
    assert!(pttl(&server, "{_lock:k}:waiting") <= 10_000);
}

#[tokio::test]
async fn a_place_whose_end_is_not_known_any_more_is_none() {
    let Some(server) = Server::start(&[]) else { return };
    for evicted in ["{_lock:k}:waiting", "{_lock:k}:queue"] {
        let party = Party::join(store(&server), "a").await;
        let (held, first, second) = (party.owner(), party.owner(), party.owner());
        party.win(&held, "k").await;
        party.busy(&first, "k", Some(PLACE)).await;
        server.ask(&["DEL", evicted]);
        let busy = party.busy(&second, "k", Some(PLACE)).await;
        assert_eq!(busy.ahead, 0, "without {evicted}");
        assert_eq!(party.busy(&first, "k", Some(PLACE)).await.ahead, 1);
        party.ask(&held, "k", LockOp::Release { token: None }).await;
        party.win(&second, "k").await;
        server.ask(&["FLUSHALL"]);
    }
}
