//! What handles ask of the driver.

use std::time::Duration;

use tokio::sync::oneshot;

use super::Driver;
use super::drain::{Drain, Then};
use crate::error::{DrainError, InspectError};
use crate::identity::InstanceId;

/// What a handle asks of the driver.
#[derive(Debug)]
pub(crate) enum Control {
    /// Release one group and abstain for a ttl. Answers whether it was led.
    StepDown {
        group: usize,
        grace: Duration,
        reply: oneshot::Sender<Result<bool, DrainError>>,
    },
    /// Release all groups and stay out until resumed.
    Drain {
        grace: Duration,
        reply: oneshot::Sender<Result<bool, DrainError>>,
    },
    Resume,
    /// Ask the store who leads.
    Inspect {
        group: usize,
        reply: oneshot::Sender<Result<Option<InstanceId>, InspectError>>,
    },
    Shutdown {
        grace: Duration,
        reply: oneshot::Sender<Result<bool, DrainError>>,
    },
    /// Dies, to see what becomes of the views.
    #[cfg(test)]
    Panic,
}

impl Driver {
    pub(super) fn control(&mut self, control: Control) {
        let now = self.shared.clock.now();
        match control {
            Control::StepDown { group, grace, reply } => {
                self.begin_drain(Drain::new(vec![group], Then::StepDown, now.saturating_add(grace), Some(reply)));
            }
            Control::Drain { grace, reply } => {
                let all = (0..self.groups.len()).collect();
                self.begin_drain(Drain::new(all, Then::StandAside, now.saturating_add(grace), Some(reply)));
            }
            Control::Shutdown { grace, reply } => self.begin_shutdown(grace, Some(reply)),
            Control::Resume => self.resume(now),
            Control::Inspect { group, reply } => self.inspect(group, reply),
            #[cfg(test)]
            Control::Panic => panic!("as the test asked"),
        }
    }
}
