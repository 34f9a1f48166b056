//! What there is to say of locks in the log.

use std::time::Duration;

use tracing::level_filters::LevelFilter;

use crate::error::StoreError;
use crate::identity::InstanceId;
use crate::lease::Term;
use crate::lock::machine::Loss;
use crate::lock::name::{is_work, plain};
use crate::store::{Busy, LockKey};

#[derive(Debug)]
pub(crate) enum LockReport {
    /// It has been waited for, for some time: who had it last, or why that cannot be asked.
    Waiting {
        key: LockKey,
        busy: Option<Busy>,
        error: Option<StoreError>,
    },
    Taken {
        key: LockKey,
        token: Term,
        waited: Duration,
    },
    Released {
        key: LockKey,
        token: Term,
    },
    /// The work was noted as done.
    Completed {
        key: LockKey,
        token: Term,
    },
    Lost {
        key: LockKey,
        token: Term,
        why: Loss,
    },
    /// Of one lock, or of all.
    Failed {
        key: Option<LockKey>,
        error: StoreError,
    },
    Recovered,
}

impl LockReport {
    /// The level of what there can be very much of.
    pub(crate) fn detail(&self) -> Option<LevelFilter> {
        match self {
            Self::Waiting { .. } => Some(LevelFilter::INFO),
            Self::Taken { .. } | Self::Released { .. } | Self::Completed { .. } => Some(LevelFilter::DEBUG),
            Self::Lost { .. } | Self::Failed { .. } | Self::Recovered => None,
        }
    }
}

pub(crate) fn log(report: &LockReport, instance: &InstanceId) {
    match report {
        LockReport::Waiting { key, busy, error } => {
            let why = why_waiting(busy.as_ref(), error.as_ref(), instance);
            tracing::info!(target: "leader", %instance, %key, "waiting for {}{why}", plain(key));
        }
        LockReport::Taken { key, token, waited } => {
            let waited = waited.as_secs_f64();
            tracing::debug!(target: "leader", %instance, %key, %token, "took {} after {waited:.1} s", plain(key));
        }
        LockReport::Released { key, token } => {
            tracing::debug!(target: "leader", %instance, %key, %token, "gave back {}", plain(key));
        }
        LockReport::Completed { key, token } => {
            tracing::debug!(target: "leader", %instance, %key, %token, "{} was noted as done", plain(key));
        }
        LockReport::Lost { key, token, why } => {
            let why = match why {
                Loss::Expired => "no renewal was confirmed before the deadline",
                Loss::Refused => "it had ended, or was taken",
            };
            let claim = if is_work(key) { "the claim on " } else { "" };
            tracing::warn!(target: "leader", %instance, %key, %token, "{claim}{} was lost: {why}", plain(key));
        }
        LockReport::Failed { key, error } => {
            let about = key.as_ref().map_or_else(|| "locks".to_owned(), |key| plain(key).to_string());
            if error.is_permanent() {
                tracing::error!(target: "leader", %instance, "{about}: {error}");
            } else {
                tracing::warn!(target: "leader", %instance, "{about}: {error}");
            }
        }
        LockReport::Recovered => tracing::info!(target: "leader", %instance, "the store answers again for locks"),
    }
}

fn why_waiting(busy: Option<&Busy>, error: Option<&StoreError>, instance: &InstanceId) -> String {
    match (error, busy) {
        (Some(error), _) => format!(": {error}"),
        (None, Some(Busy { holder: Some(holder), ahead, .. })) if holder == instance => {
            format!(", held by {holder}, which is this instance, {ahead} ahead")
        }
        (None, Some(Busy { holder: Some(holder), ahead, .. })) => format!(", held by {holder}, {ahead} ahead"),
        (None, Some(Busy { holder: None, ahead: 0, .. })) => ", held by an unknown holder".to_owned(),
        (None, Some(Busy { holder: None, ahead, .. })) => format!(", {ahead} ahead"),
        (None, None) => String::new(),
    }
}
