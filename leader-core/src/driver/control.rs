//! What handles ask of the driver.

use std::time::Duration;

use tokio::sync::oneshot;

use super::Driver;
use super::drain::{Drain, Then};
use crate::doctor::Finding;
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
    /// Examine the store.
    Doctor {
        reply: oneshot::Sender<Vec<Finding>>,
    },
    /// End; how it went is told to all who wait for the end.
    Shutdown {
        grace: Duration,
    },
    /// Dies, to see what becomes of the views.
    #[cfg(test)]
    Panic,
}

impl Driver {
    pub(super) fn control(&mut self, control: Control) {
        let now = self.shared.clock.now();
        match control {
            // Work of a lease that was lost may still run; there is nothing to wait for.
            Control::StepDown { group, reply, .. } if self.groups[group].election.view(now).is_none() => {
                // The asker may have gone.
                let _ = reply.send(Ok(false));
            }
            Control::StepDown { group, grace, reply } => {
                self.begin_drain(Drain::new(vec![group], Then::StepDown, now.saturating_add(grace), Some(reply)));
            }
            Control::Drain { grace, reply } => {
                let all = (0..self.groups.len()).collect();
                self.begin_drain(Drain::new(all, Then::StandAside, now.saturating_add(grace), Some(reply)));
            }
            Control::Shutdown { grace } => self.begin_shutdown(grace),
            Control::Resume => self.resume(now),
            Control::Inspect { group, reply } => self.inspect(group, reply),
            Control::Doctor { reply } => self.doctor(now, reply),
            #[cfg(test)]
            Control::Panic => panic!("as the test asked"),
        }
    }
}
