//! What is unsafe or broken about a store, or about how it is used: what, why it matters, what to do.

use std::fmt;

use crate::error::StoreError;
use crate::group::GroupName;
use crate::shared::Shared;
use crate::store::Guarantees;

/// Something that somebody should change about the store, or about how it is used.
///
/// [`Elector::doctor`](crate::Elector::doctor) looks for them, and a [store](crate::store::LeaseStore::examine) finds them.
/// Its `Display` is one line with all of it, as it stands in the log.
///
/// ```
/// use leader_core::{Finding, GroupName};
///
/// let finding = Finding::error(
///     "the key `leader:reports` never expires",
///     "whoever holds it holds it for ever",
///     "see that nobody runs under that id, and delete the key",
/// )
/// .about(GroupName::new("reports")?);
/// assert_eq!(
///     finding.to_string(),
///     "group reports: the key `leader:reports` never expires: whoever holds it holds it for ever; see that nobody runs \
///      under that id, and delete the key"
/// );
/// # Ok::<_, leader_core::InvalidGroupName>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The group, if it is about one only.
    pub group: Option<GroupName>,
    /// What was found, and on what.
    pub what: String,
    /// Why it matters.
    pub why: String,
    /// What to do.
    pub advice: String,
}

/// How bad a [`Finding`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Severity {
    /// Elections do not work, or a promise does not hold.
    Error,
    /// They work now, and may not later; or a promise is weaker than it could be; or something could not be checked.
    Warning,
}

impl Finding {
    /// A finding of [`Severity::Error`], about no group in particular. The three parts are read in this order, as one
    /// sentence: `what: why; advice`.
    #[must_use]
    pub fn error(what: impl Into<String>, why: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { severity: Severity::Error, group: None, what: what.into(), why: why.into(), advice: advice.into() }
    }

    /// A finding of [`Severity::Warning`], like [`error`](Self::error).
    #[must_use]
    pub fn warning(what: impl Into<String>, why: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(what, why, advice) }
    }

    /// The same, about this group.
    #[must_use]
    pub fn about(self, group: GroupName) -> Self {
        Self { group: Some(group), ..self }
    }

    /// All of it but the group.
    pub(crate) fn text(&self) -> String {
        format!("{}: {}; {}", self.what, self.why, self.advice)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(group) = &self.group {
            write!(f, "group {group}: ")?;
        }
        f.write_str(&self.text())
    }
}

/// What is unsafe in this place, whatever state the store is in.
pub(crate) fn of_the_place(shared: &Shared) -> Vec<Finding> {
    let kubernetes = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
    not_shared(kubernetes, shared.store.guarantees(), &shared.address).into_iter().collect()
}

fn not_shared(kubernetes: bool, guarantees: Guarantees, address: &str) -> Option<Finding> {
    (kubernetes && !guarantees.between_hosts).then(|| {
        Finding::error(
            format!("this looks like Kubernetes, but the instances of different pods cannot share `{address}`"),
            "each may lead",
            "use a store that hosts share",
        )
    })
}

/// The store was not examined: the last error says why, if there was one.
pub(crate) fn not_examined(address: &str, error: Option<&StoreError>) -> Finding {
    let again = || "see that it answers; it is then examined by itself".to_owned();
    let (cause, advice) = match error {
        None => ("it was not reached yet".to_owned(), again()),
        Some(StoreError::Unavailable { cause, .. }) => (cause.clone(), again()),
        Some(StoreError::TimedOut { after, .. }) => (format!("no answer within {after:?}"), again()),
        Some(StoreError::Refused { cause, advice, .. }) => {
            (cause.clone(), format!("{advice}; then ask again by Elector::doctor"))
        }
    };
    Finding::warning(
        format!("the store {address} could not be checked ({cause})"),
        "what may be unsafe about it stays unknown",
        advice,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{LeaseStore, MemoryStore};

    #[test]
    fn only_pods_that_cannot_share_their_store_are_warned_about() {
        let alone = MemoryStore::new().guarantees();
        let shared = Guarantees { between_processes: true, between_hosts: true, ..alone };
        let finding = not_shared(true, alone, "memory:").unwrap();
        assert!(finding.severity == Severity::Error && finding.to_string().contains("`memory:`: each may lead; use"));
        assert_eq!(not_shared(false, alone, "memory:"), None);
        assert_eq!(not_shared(true, shared, "redis://host"), None);
    }
}
