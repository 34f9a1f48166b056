//! Locks on methods that are jobs, with the elector of the whole program.
#![expect(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

mod common;

use std::time::Duration;

use common::{PATIENCE, in_time, next, status, until};
use leader_core::{Config, LockError, bootstrap, leader_only, run_once, with_lock};
use leader_cron::{Scheduler, cron_jobs, every};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

struct Reports(UnboundedSender<(&'static str, bool)>);

impl Reports {
    fn write(&self, job: &'static str) {
        // The test may have seen enough.
        let _ = self.0.send((job, leader_core::held_lock().is_some()));
    }
}

#[cron_jobs]
impl Reports {
    #[every("1s")]
    #[leader_only(group = "locked")]
    #[with_lock(key = "reports:locked")]
    async fn locked(&self) -> Result<(), LockError> {
        self.write("locked");
        Ok(())
    }

    #[run_once(key = "reports:once")]
    #[leader_only(group = "locked")]
    #[every("1s")]
    fn once(&self) -> Result<(), LockError> {
        self.write("once");
        Ok(())
    }
}

#[tokio::test]
async fn a_lock_and_a_run_once_on_a_method_take_effect() {
    let leader = bootstrap(Config::new("memory:").ttl(Duration::from_secs(60))).await.unwrap();
    let (sender, mut lines) = unbounded_channel();
    let running = Scheduler::new(&leader).data(Reports(sender)).start().unwrap();
    let mut seen = Vec::new();
    while seen.iter().filter(|(job, _)| *job == "locked").count() < 2 {
        seen.push(next(&mut lines).await);
    }
    until(&running, "once", |status| status.runs >= 2).await;
    in_time(leader.shutdown(PATIENCE)).await.unwrap();
    seen.extend(std::iter::from_fn(|| lines.try_recv().ok()));
    assert!(seen.iter().all(|(_, under_lock)| *under_lock), "{seen:?}");
    assert_eq!(seen.iter().filter(|(job, _)| *job == "once").count(), 1, "{seen:?}");
    assert_eq!((status(&running, "locked").failures, status(&running, "once").failures), (0, 0));
}
