//! A server that lost its memory, or a part of it: a tick may be lost then, and never doubled.

use super::*;

/// What one who does not vouch is answered.
async fn stranger(party: &Party, term: Term, tick: i64) -> TickReply {
    party.ask(ask(&TickClaim { vouch: false, nonce: 77, ..claim(term, tick) })).await
}

#[tokio::test]
async fn a_server_that_was_emptied_lets_only_who_vouches_go_on_where_it_was() {
    let Some(server) = Server::start(&[]) else { return };
    let party = Party::join(&server, "us").await;
    let now = party.now().await;
    let term = party.begin(now - 100).await;
    server.ask(&["FLUSHALL"]);
    assert_eq!(party.ask(ask(&claim(term, now - 90))).await, TickReply::Fenced, "the lease is gone, too");
    let term = party.win().await;
    assert_eq!(party.ask(ask(&claim(term, now - 90))).await, TickReply::Unknown);
    assert_eq!(party.ask(end(1)).await, TickReply::Other);
    party.ask(TickOp::Register { schedule: "s".to_owned(), known: Some(now - 99) }).await;
    let floor = party.record().await.floor;
    assert!(floor >= now, "{floor}");
    assert_eq!(stranger(&party, term, now - 90).await, TickReply::Already { last: now - 91, floor });
    assert_eq!(party.ask(ask(&claim(term, now - 90))).await, run(now - 90));
    assert_eq!(party.record().await.floor, 0);
}

#[tokio::test]
async fn a_server_that_started_again_without_its_data_has_forgotten_all() {
    let Some(mut server) = Server::start(&[]) else { return };
    let party = Party::join(&server, "us").await;
    let now = party.now().await;
    party.begin(now - 100).await;
    server.restart();
    let next = Party::join(&server, "next").await;
    let term = next.win().await;
    let TickReply::Registered(record) = next.ask(TickOp::Register { schedule: "s".to_owned(), known: None }).await
    else {
        panic!()
    };
    assert!(record.last >= now && record.floor == 0, "{record:?}");
    assert!(matches!(stranger(&next, term, now - 50).await, TickReply::Already { .. } | TickReply::Moved { .. }));
}

#[tokio::test]
async fn a_server_that_was_rolled_back_runs_nothing_that_it_may_have_forgotten() {
    let Some(mut server) = Server::start(&[]) else { return };
    let party = Party::join(&server, "us").await;
    let now = party.now().await;
    let term = party.begin(now - 100).await;
    // In the snapshot there is a tick that was given back; then it was run, and another one.
    party.ask(ask(&TickClaim { nonce: 2, ..claim(term, now - 90) })).await;
    party.ask(give_back(2)).await;
    server.ask(&["SAVE"]);
    for (nonce, tick) in [(3, now - 90), (4, now - 80)] {
        assert_eq!(party.ask(ask(&TickClaim { nonce, ..claim(term, tick) })).await, run(tick));
        party.ask(end(nonce)).await;
    }
    server.restart();
    let next = Party::join(&server, "us").await;
    // Another incarnation, which takes the seat of its id: the snapshot holds the lease, too.
    let take = Op::Acquire { floor: Term::default(), continues: true, same_id: SameId::Take };
    let Answer::Won(won) = next.lease(take).await else { panic!() };
    let record = next.record().await;
    assert_eq!((record.last, record.returned.len()), (now - 90, 1));
    assert!(record.floor >= now, "{record:?}");
    for tick in [now - 80, now] {
        assert!(matches!(stranger(&next, won.term, tick).await, TickReply::Already { .. }));
    }
    // At least once, it is run again.
    let again = TickClaim { at_least_once: true, nonce: 5, ..claim(won.term, now - 80) };
    assert_eq!(next.ask(ask(&again)).await, TickReply::Take { tick: now - 90, attempts: 0 });
    // Who has led all the time goes on; what was given back before is given up, and that is told.
    let vouches = TickClaim { nonce: 6, ..claim(won.term, now - 70) };
    assert_eq!(next.ask(ask(&vouches)).await, run(now - 70));
    assert!(next.record().await.returned.is_empty());
    let given_up = |event: &HistoryEvent| matches!(event, HistoryEvent::Missed(missed) if missed.from == now - 90);
    assert_eq!(next.history().await.iter().filter(|event| given_up(event)).count(), 1);
}

#[tokio::test]
async fn a_server_that_started_again_with_its_data_is_told_apart_once() {
    let Some(mut server) = Server::start(&[]) else { return };
    let party = Party::join(&server, "us").await;
    let now = party.now().await;
    let term = party.begin(now - 100).await;
    server.ask(&["SAVE"]);
    server.restart();
    let party = Party { candidate: party.candidate.clone(), store: Party::join(&server, "other").await.store };
    let (session, _) = Listener::new(party.candidate.clone(), []);
    party.store.connect(session).await.unwrap();
    // Before any script for leases has noticed it: the first claim writes down since when.
    let floor = match stranger(&party, term, now - 90).await {
        TickReply::Already { floor, .. } => floor,
        other => panic!("{other:?}"),
    };
    assert!(floor >= now);
    assert_eq!(stranger(&party, term, now - 90).await, TickReply::Already { last: now - 91, floor });
    let term = party.win().await;
    // The lease's script has found it, too; the later instant counts.
    let later = party.record().await.floor;
    assert!(later >= floor);
    while party.now().await <= later {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(stranger(&party, term, later + 1).await, run(later + 1));
    assert_eq!(party.record().await.floor, 0);
}

#[tokio::test]
async fn a_record_that_was_deleted_is_not_trusted_again_without_a_voucher() {
    let Some(server) = Server::start(&[]) else { return };
    let (party, stale) = (Party::join(&server, "us").await, Party::join(&server, "stale").await);
    let now = party.now().await;
    let term = party.begin(now - 100).await;
    party.ask(ask(&TickClaim { nonce: 2, ..claim(term, now - 50) })).await;
    server.ask(&["DEL", RECORD]);
    // An instance that knows less than the leader registers first.
    stale.ask(TickOp::Register { schedule: "s".to_owned(), known: Some(now - 99) }).await;
    assert!(matches!(stranger(&party, term, now - 50).await, TickReply::Already { .. }));
    let leader = |tick| ask(&TickClaim { expect: now - 50, nonce: 3, ..claim(term, tick) });
    assert!(matches!(party.ask(leader(now - 50)).await, TickReply::Already { .. }));
    assert_eq!(party.ask(leader(now - 40)).await, run(now - 40));
}
