//! What becomes of work with `#[run_once]`: done, busy, failed, panicked, forgotten, waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use leader_core::testing::Fault;
use leader_core::{Elector, LockError, held_lock, run_once};
use leader_tests::future::send;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::Error;
use super::stage::{Stage, TTL, acquires, plug_pulled, renews, within};

/// What work is to end in.
#[derive(Clone, Copy)]
enum End {
    Good,
    Failed,
    Panic,
}

impl End {
    fn result<T>(self, value: T) -> Result<T, Error> {
        match self {
            Self::Good => Ok(value),
            Self::Failed => Err(Error::Own("failed")),
            Self::Panic => panic!("as it should"),
        }
    }
}

#[run_once(key = "migrate:{version}")]
async fn migrate(version: u32, end: End) -> Result<Option<u32>, Error> {
    tokio::task::yield_now().await;
    assert!(held_lock().is_some_and(|claim| claim.is_held() && claim.token().get() > 0));
    end.result(Some(version))
}
#[run_once(key = "migrate:{version}")]
fn migrate_sync(version: u32, end: End) -> Result<Option<u32>, Error> {
    assert!(held_lock().is_some_and(|claim| claim.is_held()));
    end.result(Some(version))
}
#[run_once(key = "unit", on_busy = "skip", lost = ())]
async fn unit(ran: &AtomicU32) {
    ran.fetch_add(1, SeqCst);
}

#[tokio::test]
async fn what_has_succeeded_is_skipped_from_then_on_everywhere() {
    let stage = Stage::set().await;
    let other = stage.another().await;
    assert_eq!(stage.scope(send(migrate(3, End::Good))).await, Ok(Some(3)));
    assert_eq!(stage.scope(migrate(3, End::Panic)).await, Ok(None));
    assert_eq!(other.scope(migrate(3, End::Panic)).await, Ok(None));
    other.scope(async { assert_eq!(migrate_sync(3, End::Panic), Ok(None)) }).await;
    // Another key is another work.
    other.scope(async { assert_eq!(migrate_sync(4, End::Good), Ok(Some(4))) }).await;
    assert_eq!(stage.scope(migrate(4, End::Panic)).await, Ok(None));
    let ran = AtomicU32::new(0);
    stage.scope(unit(&ran)).await;
    other.scope(unit(&ran)).await;
    assert_eq!(ran.load(SeqCst), 1);
    assert_eq!(stage.elector.forget("migrate:3").await, Ok(true));
    assert_eq!(other.scope(migrate(3, End::Good)).await, Ok(Some(3)));
}

#[tokio::test]
async fn what_has_failed_or_panicked_is_undone() {
    let stage = Stage::set().await;
    let other = stage.another().await;
    assert_eq!(stage.scope(migrate(3, End::Failed)).await, Err(Error::Own("failed")));
    other.scope(async { assert_eq!(migrate_sync(3, End::Failed), Err(Error::Own("failed"))) }).await;
    let elector = stage.elector.clone();
    let panicked = tokio::spawn(async move { elector.scope(migrate(3, End::Panic)).await });
    assert!(panicked.await.unwrap_err().is_panic());
    stage.until_free("once:migrate:3").await;
    assert_eq!(other.scope(migrate(3, End::Good)).await, Ok(Some(3)));
}

/// Work that lasts until it is told to end.
#[run_once(key = "long")]
async fn long(begun: Arc<Notify>, end: Arc<Notify>, how: End) -> Result<Option<u8>, Error> {
    begun.notify_one();
    end.notified().await;
    how.result(Some(1))
}

/// Has an elector begin it; what tells it to end, and what it ends in.
async fn begin(elector: &Elector, how: End) -> (Arc<Notify>, JoinHandle<Result<Option<u8>, Error>>) {
    let (begun, end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (elector, begins, ends) = (elector.clone(), Arc::clone(&begun), Arc::clone(&end));
    let work = tokio::spawn(async move { elector.scope(long(begins, ends, how)).await });
    within(begun.notified()).await;
    (end, work)
}

#[run_once(key = "long")]
async fn busy() -> Result<Option<u8>, Error> {
    panic!("another one is at it")
}
#[run_once(key = "long", on_busy = "skip", skipped = Ok(99))]
async fn busy_is_skipped(ran: &AtomicU32) -> Result<u8, Error> {
    ran.fetch_add(1, SeqCst);
    Ok(1)
}
#[run_once(key = "long", wait = "1h")]
async fn patient(ran: &AtomicU32) -> Result<Option<u8>, Error> {
    ran.fetch_add(1, SeqCst);
    Ok(Some(2))
}

#[tokio::test]
async fn while_one_is_at_it_others_are_busy() {
    let stage = Stage::set().await;
    let other = stage.another().await;
    let (end, work) = begin(&stage.elector, End::Good).await;
    let error = other.scope(busy()).await;
    assert!(matches!(&error, Err(Error::Lock(error)) if error.is_busy()), "{error:?}");
    let ran = AtomicU32::new(0);
    assert_eq!((other.scope(busy_is_skipped(&ran)).await, ran.load(SeqCst)), (Ok(99), 0));
    end.notify_one();
    assert_eq!(within(work).await.unwrap(), Ok(Some(1)));
    assert_eq!(other.scope(busy()).await, Ok(None));
}

#[tokio::test]
async fn who_waits_hears_of_the_end_or_takes_over() {
    for (how, runs) in [(End::Good, 0), (End::Failed, 1), (End::Panic, 1)] {
        let stage = Stage::set().await;
        let other = stage.another().await;
        let (end, work) = begin(&stage.elector, how).await;
        let ran = AtomicU32::new(0);
        let waiting = other.scope(patient(&ran));
        let go = async {
            while other.status().locks.waiting == 0 {
                tokio::task::yield_now().await;
            }
            end.notify_one();
        };
        let (waited, ()) = within(async { tokio::join!(waiting, go) }).await;
        assert_eq!(waited, Ok((runs == 1).then_some(2)));
        assert_eq!(ran.load(SeqCst), runs);
        let _ = within(work).await;
    }
}

#[tokio::test]
async fn what_was_dropped_half_way_is_taken_over() {
    let stage = Stage::set().await;
    let other = stage.another().await;
    let (_end, work) = begin(&stage.elector, End::Good).await;
    work.abort();
    let ran = AtomicU32::new(0);
    assert_eq!(within(other.scope(patient(&ran))).await, Ok(Some(2)));
}

#[tokio::test]
async fn a_note_ends_when_it_is_to_end() {
    #[run_once(key = "daily", keep = "1day")]
    async fn daily() -> Result<Option<u8>, Error> {
        Ok(Some(1))
    }
    let stage = Stage::set().await;
    assert_eq!(stage.scope(daily()).await, Ok(Some(1)));
    stage.advance(Duration::from_secs(86_399));
    assert_eq!(stage.scope(daily()).await, Ok(None));
    stage.advance(Duration::from_secs(1));
    assert_eq!(stage.scope(daily()).await, Ok(Some(1)));
}

#[run_once(key = "lost")]
async fn lost(stage: &Stage, pause: bool, how: End) -> Result<Option<u8>, Error> {
    lose(stage);
    if pause {
        tokio::task::yield_now().await;
        panic!("a step without the claim");
    }
    how.result(Some(1))
}
#[run_once(key = "lost")]
fn lost_sync(stage: &Stage) -> Result<Option<u8>, Error> {
    lose(stage);
    Ok(Some(1))
}
#[run_once(key = "lost", on_busy = "skip", lost = lost.store(1, SeqCst))]
async fn lost_unit(stage: &Stage, lost: &AtomicU32) {
    lose(stage);
    tokio::task::yield_now().await;
}
#[run_once(key = "lost")]
async fn not_noted(stage: &Stage) -> Result<Option<u8>, Error> {
    stage.store.inject_for_locks(Fault::Fail(plug_pulled()), |_| true);
    Ok(Some(1))
}

fn lose(stage: &Stage) {
    stage.store.inject_for_locks(Fault::Fail(plug_pulled()), renews);
    stage.clock.advance(TTL);
}

#[tokio::test]
async fn a_claim_that_was_lost_is_never_a_success_and_leaves_it_undone() {
    for case in 0..4 {
        let stage = Stage::set().await;
        let result = stage
            .scope(async {
                match case {
                    0 => lost(&stage, true, End::Good).await,
                    1 => lost(&stage, false, End::Good).await,
                    2 => lost(&stage, false, End::Failed).await,
                    _ => lost_sync(&stage),
                }
            })
            .await;
        if case == 2 {
            assert_eq!(result, Err(Error::Own("failed")));
        } else {
            assert!(matches!(&result, Err(Error::Lock(error)) if error.is_lost()), "case {case}: {result:?}");
        }
        stage.store.heal();
        stage.advance(TTL);
        assert_eq!(stage.scope(lost_again()).await, Ok(Some(1)), "case {case}");
    }
    let stage = Stage::set().await;
    let told = AtomicU32::new(0);
    stage.scope(lost_unit(&stage, &told)).await;
    assert_eq!(told.load(SeqCst), 1);
}

#[run_once(key = "lost")]
async fn lost_again() -> Result<Option<u8>, Error> {
    Ok(Some(1))
}

#[tokio::test]
async fn what_could_not_be_noted_is_no_success() {
    let stage = Stage::set().await;
    let work = stage.scope(not_noted(&stage));
    let time = async {
        // The claim, and the first attempt to note that it is done; that is tried until the claim is over.
        stage.store.locks_called(2).await;
        loop {
            stage.clock.advance(TTL / 10);
            tokio::task::yield_now().await;
        }
    };
    let result = within(async {
        tokio::select! {
            result = work => result,
            () = time => unreachable!("time goes on"),
        }
    })
    .await;
    let Err(Error::Lock(error)) = &result else { panic!("{result:?}") };
    assert!(error.is_unconfirmed() && error.to_string().starts_with("the work `lost` has run"), "{error}");
}

#[tokio::test]
async fn where_nobody_can_be_asked_nothing_runs() {
    let error = busy().await;
    assert!(matches!(&error, Err(Error::Lock(LockError::NotStarted { .. }))), "{error:?}");
    let ran = AtomicU32::new(0);
    assert_eq!(busy_is_skipped(&ran).await, Ok(99));
    let stage = Stage::set().await;
    stage.store.inject_for_locks(Fault::Fail(plug_pulled()), acquires);
    let error = stage.scope(busy()).await;
    assert!(matches!(&error, Err(Error::Lock(LockError::Store { .. }))), "{error:?}");
    assert_eq!(ran.load(SeqCst), 0);
}

/// The side effect has no rule of its own against being done twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_that_start_at_once_do_it_once_also_if_some_fail_half_way() {
    #[run_once(key = "rows", wait = "1h")]
    async fn insert(rows: &AtomicU32, begun: &AtomicU32) -> Result<(), Error> {
        match begun.fetch_add(1, SeqCst) {
            0 => return Err(Error::Own("failed")),
            1 => panic!("as it should"),
            _ => {}
        }
        tokio::task::yield_now().await;
        rows.fetch_add(1, SeqCst);
        Ok(())
    }
    let stage = Stage::set().await;
    let (rows, begun) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let elector = stage.another().await;
        let (rows, begun) = (Arc::clone(&rows), Arc::clone(&begun));
        all.spawn(async move { elector.scope(insert(&rows, &begun)).await });
    }
    let mut fine = 0;
    while let Some(ended) = within(all.join_next()).await {
        fine += u32::from(matches!(ended, Ok(Ok(()))));
    }
    assert_eq!((rows.load(SeqCst), begun.load(SeqCst), fine), (1, 3, 18));
}
