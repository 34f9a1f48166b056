//! Names of groups, and the registry that `#[leader_only]` fills at link time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The name of one independent election: `[A-Za-z0-9._-]{1,64}`.
///
/// The same rule is checked by the macro when the program is compiled and here when it runs. Its limits come from the
/// store: a name is part of a key, and braces, colons and globs mean something there.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupName(Arc<str>);

impl GroupName {
    /// The group that is always elected.
    pub const DEFAULT: &'static str = "default";

    /// Checks `name` and takes it.
    ///
    /// # Errors
    /// [`InvalidGroupName`] with the reason.
    pub fn new(name: impl AsRef<str>) -> Result<Self, InvalidGroupName> {
        let name = name.as_ref();
        match why_invalid(name) {
            None => Ok(Self(name.into())),
            Some(reason) => Err(InvalidGroupName { name: name.chars().take(80).collect(), reason }),
        }
    }

    /// The text of the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The rule of names, as it can be asked while a program is compiled.
pub(crate) const fn is_valid(name: &str) -> bool {
    let mut rest = name.as_bytes();
    if rest.is_empty() || rest.len() > 64 {
        return false;
    }
    while let [first, others @ ..] = rest {
        if !matches!(first, b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-') {
            return false;
        }
        rest = others;
    }
    true
}

pub(crate) fn why_invalid(name: &str) -> Option<String> {
    if name.is_empty() {
        Some("it is empty".to_owned())
    } else if name.len() > 64 {
        Some(format!("it has {} characters", name.chars().count()))
    } else {
        let strange = name.chars().find(|c| !(c.is_ascii_alphanumeric() || "._-".contains(*c)))?;
        Some(format!("it contains `{}`", strange.escape_default()))
    }
}

impl std::borrow::Borrow<str> for GroupName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for GroupName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Why a text is not a [`GroupName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{name}` cannot be a group: {reason}; use 1 to 64 ASCII letters, digits, `.`, `_` or `-`, such as `nightly-cleanup`"
)]
pub struct InvalidGroupName {
    name: String,
    reason: String,
}

/// Where an attribute stands. Equal for all attributes on one function, so that a job and its group find each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site {
    /// `module_path!()` of the function.
    pub module: &'static str,
    /// The function's name.
    pub function: &'static str,
    /// The source file.
    pub file: &'static str,
    /// The line of the function's name, from 1.
    pub line: u32,
    /// The column of the function's name, from 1.
    pub column: u32,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{} ({}:{})", self.module, self.function, self.file, self.line)
    }
}

/// One use of `#[leader_only]`, collected at link time.
#[derive(Debug)]
pub struct GroupRegistration {
    /// The group's name, checked by the macro or, if it is a constant, at start.
    pub group: &'static str,
    /// The place of the attribute.
    pub site: Site,
}

inventory::collect!(GroupRegistration);

/// Every group that this program declares by `#[leader_only]`, with the places that do, both sorted.
///
/// Only what the linker kept is here: a library that nothing in the program mentions is not loaded at all
/// (`use the_library as _;` is enough to mention it).
///
/// ```
/// for (group, sites) in leader_core::declared_groups() {
///     println!("{group} is declared {} times, first by {}", sites.len(), sites[0]);
/// }
/// ```
#[must_use]
pub fn declared_groups() -> BTreeMap<&'static str, Vec<Site>> {
    let mut groups: BTreeMap<_, Vec<Site>> = BTreeMap::new();
    for registration in inventory::iter::<GroupRegistration> {
        groups.entry(registration.group).or_default().push(registration.site);
    }
    for sites in groups.values_mut() {
        sites.sort_unstable();
        sites.dedup();
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_to_the_alphabet_of_keys() {
        for bad in ["", "a:b", "{x}", "a b", "é", "a*", &"x".repeat(65)] {
            assert!(GroupName::new(bad).is_err() && !is_valid(bad), "{bad:?}");
        }
        for good in ["default", "a.B_c-9", &"x".repeat(64)] {
            assert!(GroupName::new(good).is_ok() && is_valid(good), "{good:?}");
        }
    }

    #[test]
    fn the_error_says_what_would_do() {
        let text = GroupName::new("a:b").unwrap_err().to_string();
        assert!(text.contains("`a:b`") && text.contains("contains `:`") && text.contains("1 to 64"), "{text}");
    }
}
