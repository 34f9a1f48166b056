//! What there is to say of locks in the log. No word of the many that are taken and given back.

use crate::error::StoreError;
use crate::identity::InstanceId;
use crate::lease::Term;
use crate::lock::machine::Loss;
use crate::store::LockKey;

#[derive(Debug)]
pub(crate) enum LockReport {
    Lost { key: LockKey, token: Term, why: Loss },
    Failed { commands: usize, error: StoreError },
    Recovered,
}

pub(crate) fn log(report: &LockReport, instance: &InstanceId) {
    match report {
        LockReport::Lost { key, token, why } => {
            let why = match why {
                Loss::Expired => "no renewal was confirmed before the deadline",
                Loss::Refused => "it had ended, or was taken",
            };
            tracing::warn!(target: "leader", %instance, %key, %token, "the lock {key} was lost: {why}");
        }
        LockReport::Failed { commands, error } if error.is_permanent() => {
            tracing::error!(target: "leader", %instance, "{commands} lock command(s): {error}");
        }
        LockReport::Failed { commands, error } => {
            tracing::warn!(target: "leader", %instance, "{commands} lock command(s): {error}");
        }
        LockReport::Recovered => tracing::info!(target: "leader", %instance, "the store answers again for locks"),
    }
}
