//! Who takes part: an instance id that people read, and an incarnation that no two started electors share.

use std::fmt;
use std::sync::Arc;

/// What the store holds as the leader of a group: 1 to 256 printable ASCII characters without blanks.
///
/// By default made from `LEADER_INSTANCE_ID`, else `POD_NAME`, else the host's name, and always a random suffix. A stable
/// id, by [`Config::instance_id`](crate::Config::instance_id), is a promise that no two live processes have it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId(Arc<str>);

impl InstanceId {
    /// Checks `id` and takes it as it is.
    ///
    /// # Errors
    /// [`InvalidInstanceId`] with the reason: empty, too long, or a character that is not printable ASCII.
    pub fn new(id: impl AsRef<str>) -> Result<Self, InvalidInstanceId> {
        let id = id.as_ref();
        let reason = if id.is_empty() {
            "it is empty".to_owned()
        } else if id.len() > 256 {
            format!("it has {} characters", id.len())
        } else if let Some(c) = id.chars().find(|c| !c.is_ascii_graphic()) {
            format!("it contains `{}`", c.escape_default())
        } else {
            return Ok(Self(id.into()));
        };
        Err(InvalidInstanceId { id: id.chars().take(80).collect(), reason })
    }

    /// The id that a process has when none is chosen: `name`, a dash and eight random hexadecimal digits.
    pub(crate) fn with_random_suffix(name: &str) -> Self {
        let clean: String = name.chars().filter(char::is_ascii_graphic).take(200).collect();
        let name = if clean.is_empty() { "instance" } else { &clean };
        Self(format!("{name}-{:08x}", random() as u32).into())
    }

    /// Whatever another application wrote into a lease, so that it can be shown.
    #[cfg(any(feature = "redis-fred", feature = "redis-rs"))]
    pub(crate) fn of_stranger(text: &str) -> Self {
        let shown: String = text.chars().take(256).map(|c| if c.is_ascii_graphic() { c } else { '?' }).collect();
        Self(if shown.is_empty() { "(empty)".into() } else { shown.into() })
    }

    /// The text of the id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for InstanceId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Why a text is not an [`InstanceId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{id}` cannot be an instance id: {reason}; use 1 to 256 printable ASCII characters without blanks, such as `worker-3`"
)]
pub struct InvalidInstanceId {
    id: String,
    reason: String,
}

/// Random for each started elector, so that two processes with one instance id, or one process before and after a
/// restart, are never taken for each other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Incarnation(u128);

impl Incarnation {
    /// A new one; no two are equal.
    #[must_use]
    pub fn random() -> Self {
        Self(random())
    }

    /// The incarnation with this number: for tests, and for stores that read one back.
    #[must_use]
    pub const fn from_u128(number: u128) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn as_u128(self) -> u128 {
        self.0
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One elector as the store sees it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Candidate {
    /// What stands in the lease.
    pub id: InstanceId,
    /// Which start of that instance.
    pub incarnation: Incarnation,
}

/// 128 random bits from the operating system; if it gives none, from the clock, the process id and an address, which
/// still differ between processes of one host.
pub fn random() -> u128 {
    let mut bytes = [0; 16];
    if getrandom::fill(&mut bytes).is_ok() {
        return u128::from_le_bytes(bytes);
    }
    let mut rng = fastrand::Rng::new();
    u128::from(rng.u64(..)) << 64 | u128::from(rng.u64(..) ^ u64::from(std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_printable_ascii_without_blanks() {
        for bad in ["", "a b", "a\n", "é", &"x".repeat(257)] {
            assert!(InstanceId::new(bad).is_err(), "{bad:?}");
        }
        assert_eq!(InstanceId::new("pod-1.eu:8080").unwrap().as_str(), "pod-1.eu:8080");
    }

    #[test]
    fn default_ids_of_one_host_differ() {
        assert_ne!(InstanceId::with_random_suffix("host"), InstanceId::with_random_suffix("host"));
        assert!(InstanceId::new(InstanceId::with_random_suffix("mÿ host").as_str()).is_ok());
    }
}
