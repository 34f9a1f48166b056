//! The names of a group's keys, and of its channel.

use super::replicas::PERMISSION;
use super::rights::Rights;
use crate::group::GroupName;
use crate::identity::{Incarnation, InstanceId};
use crate::store::JobName;

/// What a user must be allowed to on each node of a cluster, on top: to ask who has which slot, and to speak to the node to
/// which one is about to move.
pub(super) const CLUSTER_PERMISSIONS: &str = "+cluster|slots +asking";

/// What the names begin with.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    prefix: Box<str>,
    /// They are spread over the nodes of a cluster.
    spread: bool,
    /// Replicas are waited for.
    waiting: bool,
}

impl Keys {
    pub(super) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.into(), spread: false, waiting: false }
    }

    /// In a cluster, if so.
    pub(super) fn spread(self, spread: bool) -> Self {
        Self { spread, ..self }
    }

    /// With replicas that have to confirm what is written there, if so.
    pub(super) fn waiting(self, waiting: bool) -> Self {
        Self { waiting, ..self }
    }

    /// The same, but they begin with this.
    pub(super) fn renamed(&self, prefix: &str) -> Self {
        Self { prefix: prefix.into(), ..self.clone() }
    }

    /// The lease: the leader's instance id, until it expires. Other implementations of the same election know it, too.
    pub(super) fn lease(&self, group: &GroupName) -> String {
        format!("{}{group}", self.prefix)
    }

    /// The record beside the lease, in the same slot of a cluster: the braces are what that is computed from.
    pub(super) fn record(&self, group: &GroupName) -> String {
        format!("{{{}{group}}}:term", self.prefix)
    }

    /// The record of a job, in the slot of its group's lease. Names have neither colons nor braces: it is no other's.
    pub(super) fn job(&self, group: &GroupName, job: &JobName) -> String {
        format!("{{{}{group}}}:job:{job}", self.prefix)
    }

    /// The history of a job.
    pub(super) fn runs(&self, group: &GroupName, job: &JobName) -> String {
        format!("{{{}{group}}}:runs:{job}", self.prefix)
    }

    /// Where releases are announced.
    pub(super) fn channel(&self, group: &GroupName) -> String {
        self.lease(group)
    }

    /// Where this elector is told that a lock is free. No group has such a name.
    pub(super) fn wake_channel(&self, elector: Incarnation) -> String {
        format!("{}{elector}", self.wake_channels())
    }

    /// What all such channels begin with.
    pub(super) fn wake_channels(&self) -> String {
        format!("{}wake:", self.prefix)
    }

    /// Where electors with this instance id find each other. No group has such a name.
    pub(super) fn id_channel(&self, id: &InstanceId) -> String {
        format!("{}id:{id}", self.prefix)
    }

    /// What permits the leases, as in `ACL SETUSER`.
    pub(super) fn lease_pattern(&self) -> String {
        format!("~{}*", self.prefix)
    }

    /// What permits the records.
    pub(super) fn record_pattern(&self) -> String {
        format!("~{{{}*", self.prefix)
    }

    /// What permits the channels.
    pub(super) fn channel_pattern(&self) -> String {
        format!("&{}*", self.prefix)
    }

    /// What the leases need.
    pub(super) fn rights(&self) -> Rights {
        Rights {
            keys: format!("{} {}", self.lease_pattern(), self.record_pattern()),
            channels: self.channel_pattern(),
            commands: format!(
                "+eval +evalsha +script|load +get +set +pexpire +persist +del +hset +hmget +pttl +time +info +ping \
                 +client|id +select +publish +subscribe{}{}",
                if self.spread { format!(" {CLUSTER_PERMISSIONS}") } else { String::new() },
                if self.waiting { format!(" {PERMISSION}") } else { String::new() }
            ),
        }
    }
}
