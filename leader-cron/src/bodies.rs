//! Which bodies run, and whether another one may begin. One lock over both, so that none begins after a stop was told that
//! none runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::live_job::LiveJob;

/// The bodies of one scheduler.
#[derive(Debug, Default)]
pub(crate) struct Bodies(watch::Sender<State>);

#[derive(Debug, Default)]
struct State {
    closed: bool,
    last: u64,
    /// By number, as the next run of a job may begin before the one before it is taken out: the job, and since when.
    running: BTreeMap<u64, (Arc<LiveJob>, Instant)>,
}

/// A body that runs; it has ended when this is dropped.
#[derive(Debug)]
pub(crate) struct Begun {
    bodies: Arc<Bodies>,
    number: u64,
}

impl Bodies {
    /// `None` once no new body may begin.
    pub(crate) fn begin(self: &Arc<Self>, job: &Arc<LiveJob>) -> Option<Begun> {
        let mut begun = None;
        self.0.send_if_modified(|state| {
            if !state.closed {
                state.last += 1;
                begun = Some(state.last);
                state.running.insert(state.last, (Arc::clone(job), Instant::now()));
            }
            // Nobody waits for this. And the body runs next on this thread: if it blocks, who is woken here waits for it.
            false
        });
        begun.map(|number| Begun { bodies: Arc::clone(self), number })
    }

    /// From here on no body begins.
    pub(crate) fn close(&self) {
        self.0.send_modify(|state| state.closed = true);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.borrow().closed
    }

    pub(crate) async fn closed(&self) {
        self.wait_for(|state| state.closed).await;
    }

    /// Resolves when no body runs.
    pub(crate) async fn idle(&self) {
        self.wait_for(|state| state.running.is_empty()).await;
    }

    async fn wait_for(&self, reached: impl FnMut(&State) -> bool) {
        // The sender lives as long as this future borrows it, so there is no error to meet.
        let _ = self.0.subscribe().wait_for(reached).await;
    }

    /// The jobs whose bodies run, and for how long.
    pub(crate) fn running(&self) -> Vec<(Arc<LiveJob>, Duration)> {
        self.0.borrow().running.values().map(|(job, since)| (Arc::clone(job), since.elapsed())).collect()
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.bodies.0.send_modify(|state| {
            state.running.remove(&self.number);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake, Waker};

    use super::*;
    use crate::job::Job;
    use crate::schedule::Schedule;
    use crate::scheduler::live;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn job() -> Arc<LiveJob> {
        let schedule = Schedule::parse("@daily", None).unwrap();
        Arc::new(live(7, Job::new("work", "@daily", |_| async {}), schedule))
    }

    /// Else that would be the next task of a thread that the body may block, where no other thread takes it from.
    #[test]
    fn a_body_that_begins_wakes_nobody() {
        let (bodies, wakes) = (Arc::new(Bodies::default()), Arc::new(Wakes::default()));
        let waker = Waker::from(Arc::clone(&wakes));
        let mut closed = pin!(bodies.closed());
        assert!(closed.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        let begun = bodies.begin(&job()).unwrap();
        assert_eq!(wakes.0.load(Ordering::SeqCst), 0);
        bodies.close();
        assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
        assert!(bodies.begin(&job()).is_none());
        assert_eq!(bodies.running().len(), 1);
        drop(begun);
    }

    #[test]
    fn a_run_that_begins_as_the_one_before_it_ends_is_waited_for() {
        let job = job();
        let bodies = Arc::new(Bodies::default());
        let first = bodies.begin(&job).unwrap();
        let second = bodies.begin(&job).unwrap();
        drop(first);
        assert_eq!(bodies.running().iter().map(|(job, _)| job.id).collect::<Vec<_>>(), [7]);
        drop(second);
        assert!(bodies.running().is_empty());
    }
}
