//! A lease that ends between the claim of a tick and the first step of its body: the body does not begin, and the tick is run
//! later.
#![expect(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use common::{EVERY_SECOND, in_time, next, until};
use leader_core::leader_only;
use leader_core::store::{HistoryEvent, RunOutcome};
use leader_core::testing::FixedElector;
use leader_cron::{Explanation, Job, Missed, Scheduler, Tick, cron};
use tokio::sync::{mpsc, oneshot};
use tracing::span;

/// The moments between the last look at the lease before a body and the body, or its own gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// The span of the run is made.
    Made,
    /// It is entered.
    Entered,
}

type Hook = (Moment, Box<dyn FnOnce() + Send>);
static HOOK: Mutex<Option<Hook>> = Mutex::new(None);

fn comes(moment: Moment) {
    let hook = HOOK.lock().unwrap().take_if(|(at, _)| *at == moment);
    if let Some((_, hook)) = hook {
        hook();
    }
}

/// Calls the hook where a run has a span.
#[derive(Default)]
struct Spans(AtomicU64);

impl tracing::Subscriber for Spans {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.name() == "leader.cron.tick"
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        comes(Moment::Made);
        span::Id::from_u64(self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn enter(&self, _: &span::Id) {
        comes(Moment::Entered);
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {}
    fn exit(&self, _: &span::Id) {}
}

#[derive(Clone)]
struct Ran(mpsc::UnboundedSender<i64>);

impl Ran {
    fn tell(&self, tick: &Tick) {
        // The test may have seen enough.
        let _ = self.0.send(tick.unix_seconds());
    }
}

#[cron("* * * * * *", missed = "all")]
#[leader_only(group = "declared-async")]
async fn declared_async(ran: &Ran, tick: Tick) {
    ran.tell(&tick);
}

#[cron("* * * * * *", missed = "all")]
#[leader_only(group = "declared-sync")]
fn declared_sync(ran: &Ran, tick: Tick) {
    ran.tell(&tick);
}

#[tokio::test]
async fn a_tick_whose_body_never_began_is_run_later() {
    tracing::subscriber::set_global_default(Spans::default()).unwrap();
    for (job, moment) in [
        ("finishes", Moment::Made),
        ("is-cancelled", Moment::Made),
        ("blocks", Moment::Made),
        ("declared_async", Moment::Made),
        ("declared_sync", Moment::Made),
        // The gate of the function itself finds it.
        ("declared_async", Moment::Entered),
        ("declared_sync", Moment::Entered),
    ] {
        let group = job.replace('_', "-");
        let (sender, mut runs) = mpsc::unbounded_channel();
        let ran = Ran(sender);
        let spawned = |name: &str| {
            let ran = ran.clone();
            let job = Job::new(name, EVERY_SECOND, move |tick| {
                let ran = ran.clone();
                async move { ran.tell(&tick) }
            });
            job.group(name).missed(Missed::All)
        };
        let blocking = {
            let ran = ran.clone();
            Job::blocking("blocks", EVERY_SECOND, move |tick| ran.tell(&tick)).group("blocks").missed(Missed::All)
        };
        let elector = Arc::new(FixedElector::following(["finishes", "is-cancelled", "blocks"]));
        let jobs = Scheduler::new(&elector)
            .data(ran.clone())
            .job(spawned("finishes"))
            .job(spawned("is-cancelled").cancel_on_loss())
            .job(blocking)
            .start()
            .unwrap();

        let (lost, is_lost) = oneshot::channel();
        let ends_the_lease = {
            let (elector, group) = (Arc::clone(&elector), group.clone());
            move || {
                elector.follow(&group);
                lost.send(()).unwrap();
            }
        };
        *HOOK.lock().unwrap() = Some((moment, Box::new(ends_the_lease)));
        elector.lead(&group);
        in_time(is_lost).await.unwrap();
        let status = until(&jobs, job, |status| !status.running).await;
        assert_eq!((status.runs, status.cancelled, runs.is_empty()), (0, 0, true), "{job}, {moment:?}");

        elector.lead(&group);
        let tick = next(&mut runs).await;
        until(&jobs, job, |status| status.last_run.is_some()).await;
        let history = jobs.history(job).await.unwrap();
        let claimed =
            |event: &HistoryEvent| matches!(event, HistoryEvent::Claimed { tick: of, attempt: 1, .. } if *of == tick);
        assert!(claimed(&history[0].event) && claimed(&history[1].event), "{job}, {moment:?}: {history:?}");
        let all_well = history.iter().all(|entry| match &entry.event {
            HistoryEvent::Ended { end, .. } => end.outcome == RunOutcome::Succeeded,
            event => matches!(event, HistoryEvent::Claimed { .. }),
        });
        assert!(all_well, "{job}, {moment:?}: {history:?}");
        let why =
            jobs.explain(job, Tick::at(std::time::UNIX_EPOCH + std::time::Duration::from_secs(tick as u64)).intended());
        let why = why.await.unwrap();
        assert!(matches!(&why, Explanation::Ran { attempt: 1, earlier, .. } if earlier.is_empty()), "{why:?}");
    }
}
