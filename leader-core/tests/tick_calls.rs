//! Calls of the ledger: what waits for one goes out together.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::time::Duration;

use leader_core::store::{
    Answers, Batch, Guarantees, JobName, LeaseStore, MemoryStore, Session, StoreFuture, TickAnswers, TickBatch,
    TickCommand, TickOp, TickReply,
};
use leader_core::{Config, Elector, GroupName, Incarnation};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

/// Long enough for a machine that stands still for a while.
const TTL: Duration = Duration::from_secs(600);

/// A store in memory that tells how long each call of its ledger is, and holds it until it may go on.
struct Held {
    store: MemoryStore,
    calls: mpsc::UnboundedSender<usize>,
    goes_on: Arc<Semaphore>,
}

impl LeaseStore for Held {
    fn address(&self) -> String {
        self.store.address()
    }

    fn guarantees(&self) -> Guarantees {
        self.store.guarantees()
    }

    fn connect(&self, session: Session) -> StoreFuture<'_, ()> {
        self.store.connect(session)
    }

    fn execute(&self, batch: Batch) -> StoreFuture<'_, Answers> {
        self.store.execute(batch)
    }

    fn execute_ticks(&self, batch: TickBatch) -> StoreFuture<'_, TickAnswers> {
        Box::pin(async move {
            self.calls.send(batch.commands.len()).unwrap();
            self.goes_on.acquire().await.unwrap().forget();
            self.store.execute_ticks(batch).await
        })
    }

    fn disconnect(&self, incarnation: Incarnation) -> StoreFuture<'_, ()> {
        self.store.disconnect(incarnation)
    }
}

/// A command whose answer tells which one it was.
fn register(elector: &Elector, number: usize) -> TickCommand {
    TickCommand {
        group: GroupName::new("default").unwrap(),
        job: JobName::new(format!("job-{number}")).unwrap(),
        candidate: elector.__candidate().clone(),
        op: TickOp::Register { schedule: format!("schedule {number}"), known: None },
    }
}

#[tokio::test]
async fn what_waits_for_a_call_goes_out_together_and_each_asker_gets_its_own_answers() {
    let (calls, mut began) = mpsc::unbounded_channel();
    let goes_on = Arc::new(Semaphore::new(0));
    let store = Held { store: MemoryStore::new(), calls, goes_on: Arc::clone(&goes_on) };
    let elector = Elector::start(Config::with_store(store).ttl(TTL).operation_timeout(TTL / 10)).await.unwrap();
    let mut askers = JoinSet::new();
    let mut ask = |numbers: std::ops::Range<usize>| {
        let answer = elector.__ask_ledger(numbers.clone().map(|number| register(&elector, number)).collect());
        askers.spawn(async move { (numbers, answer.await.unwrap()) });
    };
    // As many calls as may be under way.
    for number in 0..4 {
        ask(number..number + 1);
        assert_eq!(began.recv().await, Some(1));
    }
    // These wait: one by one, then some that come together, of which one alone is longer than what else goes out at once.
    (4..94).for_each(|number| ask(number..number + 1));
    ask(94..104);
    ask(104..224);
    ask(224..226);
    goes_on.add_permits(1_000);
    // The last 10 + 90 are as many as go out together; what is longer goes alone.
    let mut lengths = Vec::new();
    for _ in 0..3 {
        lengths.push(began.recv().await.unwrap());
    }
    assert_eq!(lengths, [100, 120, 2]);
    while let Some(asked) = askers.join_next().await {
        let (numbers, answers) = asked.unwrap();
        assert_eq!(answers.len(), numbers.len());
        for (number, answer) in numbers.zip(answers) {
            let TickReply::Registered(record) = answer.unwrap().reply else { panic!("it was not registered") };
            assert_eq!(record.schedule, format!("schedule {number}"));
        }
    }
}

#[tokio::test]
async fn who_asked_a_moment_ago_does_not_go_out_with_one_whose_time_is_over() {
    let (calls, mut began) = mpsc::unbounded_channel();
    let goes_on = Arc::new(Semaphore::new(0));
    let store = Held { store: MemoryStore::new(), calls, goes_on: Arc::clone(&goes_on) };
    let timeout = Duration::from_secs(4);
    let elector = Elector::start(Config::with_store(store).ttl(TTL).operation_timeout(timeout)).await.unwrap();
    let ask = |number| tokio::spawn(elector.__ask_ledger(vec![register(&elector, number)]));
    // They hang, and the one that waits behind them has their age.
    let mut hang = Vec::new();
    for number in 0..4 {
        hang.push(ask(number));
        assert_eq!(began.recv().await, Some(1));
    }
    hang.push(ask(4));
    tokio::time::sleep(timeout * 3 / 4).await;
    let young = ask(5);
    for old in hang {
        assert!(old.await.unwrap().is_err());
    }
    goes_on.add_permits(10);
    assert!(young.await.unwrap().is_ok(), "it had three quarters of its time left");
}

#[tokio::test]
async fn an_elector_that_has_ended_keeps_nobody_waiting_though_its_lease_runs_on() {
    let elector = Elector::start(Config::with_store(MemoryStore::new())).await.unwrap();
    // Work that outlives the grace keeps the lease.
    let work = elector.__enter("default", &Arc::from("work"), leader_core::__private::OnLoss::Finish).unwrap();
    assert!(elector.shutdown(Duration::ZERO).await.is_err());
    assert!(work.lease().is_held());
    assert!(elector.__ask_ledger(vec![register(&elector, 0)]).await.is_err());
    assert!(work.lease().is_held(), "it was not the end of the lease that answered");
}
