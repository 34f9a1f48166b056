//! The attributes take effect in one order, whatever the order they are written in: gate, then lock, then run-once, then the
//! body.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, SystemTime};

use leader_core::store::MemoryStore;
use leader_core::testing::FaultyStore;
use leader_core::{Config, Elector, LockError, held_lock, leader_only, lease, run_once, with_lock};
use leader_cron::__private::{Context, Data, JobRegistration, Run, inventory};
use leader_cron::{Tick, cron};
use leader_tests::future::send;

/// No view runs out during a test.
const TTL: Duration = Duration::from_secs(60);
const EVERY_HOUR: &str = "@hourly";

static RAN: AtomicU32 = AtomicU32::new(0);

/// What all functions here do.
async fn body() -> Result<(), LockError> {
    tokio::task::yield_now().await;
    let lease = lease().expect("a body without a lease");
    let claim = held_lock().expect("a body without a claim");
    assert!(lease.is_held() && claim.is_held());
    assert!(claim.key().as_str().starts_with("once:"), "run-once is next to the body: {claim:?}");
    // The lock is around that.
    let key = claim.key().as_str().replace("once:", "lock:");
    let busy = leader_core::lock(&key).acquire().await.expect_err("a body without its lock");
    assert!(busy.is_busy(), "{busy}");
    RAN.fetch_add(1, SeqCst);
    Ok(())
}

/// Puts attributes on a function in the order of the letters.
macro_rules! function {
    ($name:ident: $($letter:ident)*) => { function!(@ $name [$($letter)*]); };
    (@ $name:ident [L $($rest:ident)*] $($done:tt)*) => {
        function!(@ $name [$($rest)*] $($done)* #[leader_only]);
    };
    (@ $name:ident [W $($rest:ident)*] $($done:tt)*) => {
        function!(@ $name [$($rest)*] $($done)* #[with_lock(key = concat!("lock:", stringify!($name)))]);
    };
    (@ $name:ident [O $($rest:ident)*] $($done:tt)*) => {
        function!(@ $name [$($rest)*] $($done)* #[run_once(key = concat!("", stringify!($name)))]);
    };
    (@ $name:ident [C $($rest:ident)*] $($done:tt)*) => {
        function!(@ $name [$($rest)*] $($done)* #[cron(EVERY_HOUR)]);
    };
    (@ $name:ident [] $($done:tt)*) => {
        $($done)*
        async fn $name() -> Result<(), LockError> {
            body().await
        }
    };
}

macro_rules! functions {
    ($($name:ident: $($letter:ident)*;)*) => {
        $(function!($name: $($letter)*);)*
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

functions! {
    lwoc: L W O C; lwco: L W C O; lowc: L O W C; locw: L O C W; lcwo: L C W O; lcow: L C O W;
    wloc: W L O C; wlco: W L C O; wolc: W O L C; wocl: W O C L; wclo: W C L O; wcol: W C O L;
    olwc: O L W C; olcw: O L C W; owlc: O W L C; owcl: O W C L; oclw: O C L W; ocwl: O C W L;
    clwo: C L W O; clow: C L O W; cwlo: C W L O; cwol: C W O L; colw: C O L W; cowl: C O W L;
}

/// Runs one of them as the scheduler does.
async fn run(name: &str) {
    let job = inventory::iter::<JobRegistration>.into_iter().find(|job| job.site.function == name).unwrap();
    let Run::Async(run) = job.run else { panic!("{name} is async") };
    let context = Context::new(Data::default().into(), Tick::at(SystemTime::UNIX_EPOCH));
    send(run(&context)).await.unwrap_or_else(|error| panic!("{name}: {error:?}"));
}

async fn start(memory: &MemoryStore) -> (Elector, FaultyStore) {
    let store = FaultyStore::new(memory.clone());
    (Elector::start(Config::with_store(store.clone()).ttl(TTL)).await.unwrap(), store)
}

#[tokio::test]
async fn in_all_orders_a_follower_asks_for_no_lock_and_the_leader_runs_once_under_one() {
    let memory = MemoryStore::new();
    let (leader, leaders_store) = start(&memory).await;
    let (follower, followers_store) = start(&memory).await;
    assert_eq!(NAMES.len(), 24);
    for (n, name) in (1..).zip(NAMES) {
        follower.scope(run(name)).await;
        assert_eq!((followers_store.lock_calls(), RAN.load(SeqCst)), (0, n - 1), "{name} on a follower");
        leader.scope(run(name)).await;
        assert_eq!(RAN.load(SeqCst), n, "{name} on the leader");
        // It is done, and only the leader asks.
        leader.scope(run(name)).await;
        assert_eq!(RAN.load(SeqCst), n, "{name} on the leader again");
    }
    assert!(leaders_store.lock_calls() > 0);
}

mod with_others {
    use super::*;

    pub(super) struct Service;

    #[async_trait::async_trait]
    pub(super) trait Work {
        async fn work(&self, ran: &AtomicU32) -> Result<(), LockError>;
    }
    #[async_trait::async_trait]
    impl Work for Service {
        #[leader_only]
        #[tracing::instrument(skip_all)]
        #[with_lock(key = "others:method")]
        async fn work(&self, ran: &AtomicU32) -> Result<(), LockError> {
            tokio::task::yield_now().await;
            ran.fetch_add(1, SeqCst);
            Ok(())
        }
    }

    /// Not known before it is expanded itself.
    #[leader_only]
    #[cfg_attr(all(), with_lock(key = "others:conditional"))]
    #[cfg_attr(any(), run_once(key = "others:never"))]
    pub(super) async fn conditional(ran: &AtomicU32) -> Result<(), LockError> {
        assert!(held_lock().is_some());
        ran.fetch_add(1, SeqCst);
        Ok(())
    }

    #[leader_only(skipped = ())]
    #[leader_core::with_lock(key = "others:sync", on_busy = "skip", lost = ())]
    pub(super) fn sync(ran: &AtomicU32) {
        assert!(held_lock().is_some() && lease().is_some());
        ran.fetch_add(1, SeqCst);
    }

    /// A name that tells no macro what it is: such a one is written above.
    use leader_core::with_lock as exclusively;
    #[exclusively(key = "others:renamed")]
    #[leader_only]
    pub(super) async fn renamed(ran: &AtomicU32) -> Result<(), LockError> {
        ran.fetch_add(1, SeqCst);
        Ok(())
    }
}

#[tokio::test]
async fn a_follower_asks_for_no_lock_with_other_attributes_around() {
    use with_others::{Service, Work, conditional, renamed, sync};
    let memory = MemoryStore::new();
    let (leader, _) = start(&memory).await;
    let (follower, store) = start(&memory).await;
    let ran = AtomicU32::new(0);
    let all = || async {
        send(Service.work(&ran)).await.unwrap();
        send(conditional(&ran)).await.unwrap();
        sync(&ran);
        send(renamed(&ran)).await.unwrap();
    };
    follower.scope(all()).await;
    assert_eq!((store.lock_calls(), ran.load(SeqCst)), (0, 0));
    leader.scope(all()).await;
    assert_eq!(ran.load(SeqCst), 4);
}
