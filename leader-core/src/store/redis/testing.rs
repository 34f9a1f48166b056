//! The scripts by themselves, and that of leases with a rule left out on purpose, for simulations and models.

mod foreign;
mod locks;

use std::collections::HashMap;
use std::time::Duration;

use super::keys::Keys;
use super::locks::LockKeys;
use super::script::Common;
use super::ticks::script as ticks;
use crate::group::GroupName;
use crate::store::{Answer, Command, JobName, LockAnswer, LockCommand, TickAnswer, TickCommand};

pub use self::foreign::{Named, credentials, described, error, findings, guarded, lack, owners, primary, redirected};
pub use self::locks::LockFlaw;
pub use super::connection::Reply;

/// The script that executes a batch.
pub const TEXT: &str = super::script::TEXT;

/// What follows the script's name in a call: the number of keys, the keys, the arguments.
#[must_use]
pub fn arguments(commands: &[Command], prefix: &str, shortest: Duration, trusts_fresh: bool) -> Vec<String> {
    let (keys, told) = (&Keys::new(prefix), &HashMap::new());
    super::script::arguments(commands, Common { keys, shortest_quarantine: shortest, trusts_fresh, told })
}

/// The answers of a call; each is one, or an error for that command alone.
#[must_use]
pub fn answers(reply: Reply, commands: usize) -> Vec<Result<Answer, String>> {
    super::script::answers(reply, commands)
}

/// The script that executes a batch of commands to the ledger.
pub const TICK_TEXT: &str = ticks::TEXT;

/// What follows that script's name in a call.
#[must_use]
pub fn tick_arguments(commands: &[TickCommand], prefix: &str) -> Vec<String> {
    ticks::arguments(commands, &Keys::new(prefix))
}

/// The answers of a call of it; each is one, or an error for that command alone.
#[must_use]
pub fn tick_answers(reply: Reply, commands: usize) -> Vec<Result<TickAnswer, String>> {
    ticks::answers(reply, commands)
}

/// What a user must be allowed to on each node of a cluster, on top of what it is on a server.
pub const CLUSTER_PERMISSIONS: &str = super::keys::CLUSTER_PERMISSIONS;

/// What a user must be allowed to where replicas are waited for, on top.
pub const REPLICA_PERMISSIONS: &str = super::replicas::PERMISSION;

/// The keys of a job's record and of its history.
#[must_use]
pub fn job_keys(group: &GroupName, job: &JobName, prefix: &str) -> [String; 2] {
    let keys = Keys::new(prefix);
    [keys.job(group, job), keys.runs(group, job)]
}

/// The script that executes a batch of lock commands.
pub const LOCK_TEXT: &str = super::locks::TEXT;

/// What follows that script's name in a call. `prefix`: of the keys of leases, and so of the channels.
#[must_use]
pub fn lock_arguments(commands: &[LockCommand], lock_prefix: &str, prefix: &str) -> Vec<String> {
    super::locks::arguments(commands, &LockKeys::new(lock_prefix), &Keys::new(prefix).wake_channels())
}

/// The answers of such a call; each is one, or an error for that command alone.
#[must_use]
pub fn lock_answers(reply: Reply, commands: usize) -> Vec<Result<LockAnswer, String>> {
    super::locks::answers(reply, commands)
}

/// What a quarantine's reason means that the script calls `server`, `record` or `lease`.
#[must_use]
pub fn reason(code: &str) -> &'static str {
    super::script::reason(code)
}

/// What a user of the server must be allowed to.
#[must_use]
pub fn permissions(prefix: &str) -> String {
    Keys::new(prefix).rights().rules()
}

/// What it must be allowed to for the ledger, on top.
#[must_use]
pub fn tick_permissions() -> &'static str {
    super::ticks::COMMANDS
}

/// A rule of the script that is broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Flaw {
    /// Renew and release look at the instance id alone.
    ByValue,
    /// A server that may have lost its memory gives leases at once.
    NoQuarantine,
    /// A quarantine that is on is not begun anew when the server's identity changes again.
    OneQuarantine,
    /// It is forgotten that an older incarnation may still believe in the lease that was taken over from it.
    ForgetOlder,
    /// A lease that is gone before its recorded end, without a release, is not waited for.
    NoUntil,
}

impl Flaw {
    /// All.
    pub const ALL: [Self; 5] =
        [Self::ByValue, Self::NoQuarantine, Self::OneQuarantine, Self::ForgetOlder, Self::NoUntil];

    /// `script` with this rule broken.
    ///
    /// # Panics
    /// If the line that the rule is in does not stand in it, exactly once.
    #[must_use]
    pub fn in_script(self, script: &str) -> String {
        let (rule, broken) = match self {
            Self::ByValue => (
                "return group.own and (not command.term or group.term == command.term)",
                "return group.value == command.id",
            ),
            Self::NoQuarantine => ("if group.server or not trusts_fresh then", "if false then"),
            Self::OneQuarantine => (
                "if group.server or not trusts_fresh then",
                "if (group.server or not trusts_fresh) and group.quarantine <= now then",
            ),
            Self::ForgetOlder => (
                "if group.value == command.id and not group.own and",
                "group.older = 0 if group.value == command.id and not group.own and",
            ),
            Self::NoUntil => ("gone = math.max(group.ends - now, 0)", "gone = 0"),
        };
        assert_eq!(script.matches(rule).count(), 1, "{self:?}: `{rule}` must be in the script, once");
        script.replacen(rule, broken, 1)
    }
}

/// A rule of the ledger's script that is broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum TickFlaw {
    /// A claim whose answer was lost is another claim when it is repeated.
    NoNonce,
    /// A claim that comes late acts all the same.
    NoNotAfter,
    /// Whoever holds the lease under any term claims.
    AnyTerm,
    /// A run holds nobody, unless it is taken over.
    NoSlot,
    /// A slow walker runs what another one has passed by.
    NoExpect,
    /// A tick is claimed two seconds before it is due.
    Tolerance,
    /// What may have been forgotten is run.
    NoFloor,
    /// What was given back before the memory was lost is run.
    OldReturns,
}

impl TickFlaw {
    /// All.
    pub const ALL: [Self; 8] = [
        Self::NoNonce,
        Self::NoNotAfter,
        Self::AnyTerm,
        Self::NoSlot,
        Self::NoExpect,
        Self::Tolerance,
        Self::NoFloor,
        Self::OldReturns,
    ];

    /// `script` with this rule broken.
    ///
    /// # Panics
    /// If the line that the rule is in does not stand in it, exactly once.
    #[must_use]
    pub fn in_script(self, script: &str) -> String {
        let (rule, broken) = match self {
            Self::NoNonce => ("if open and open.nonce == command.nonce then", "if false then"),
            Self::NoNotAfter => ("if now_us > command.not_after then", "if false then"),
            Self::AnyTerm => ("or group[1] ~= command.term or group[2] ~= command.incarnation then", "then"),
            Self::NoSlot => ("if open and exclusive then", "if open and command.at_least_once then"),
            Self::NoExpect => ("if job.last > command.expect then", "if false then"),
            Self::Tolerance => ("return left > 0 and", "return left > 2000000 and"),
            Self::NoFloor => ("floor = math.max(job.since, lost)", "floor = 0"),
            Self::OldReturns => ("if job.server == name or command.at_least_once then", "if true then"),
        };
        assert_eq!(script.matches(rule).count(), 1, "{self:?}: `{rule}` must be in the script, once");
        script.replacen(rule, broken, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flaw_hits_a_line_of_its_own_rule() {
        for flaw in Flaw::ALL {
            assert_ne!(flaw.in_script(TEXT), TEXT, "{flaw:?}");
        }
        for flaw in TickFlaw::ALL {
            assert_ne!(flaw.in_script(TICK_TEXT), TICK_TEXT, "{flaw:?}");
        }
    }
}
