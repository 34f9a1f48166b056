//! What a user of the server must be allowed to, as `ACL SETUSER` has it.

use super::failure::Denied;

/// What some calls need, by the kind of thing that is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rights {
    /// Patterns: `~leader:*`.
    pub(super) keys: String,
    /// Patterns: `&leader:*`.
    pub(super) channels: String,
    /// `+get`.
    pub(super) commands: String,
}

impl Rights {
    /// The same, and these commands.
    pub(super) fn with(mut self, commands: &str) -> Self {
        self.commands = format!("{} {commands}", self.commands);
        self
    }

    /// What to do where something of this kind is not allowed. It takes nothing away that other calls need; and it has patterns
    /// only of the kind that is lacking, since to add one to `~*` or `&*` is an error.
    pub(super) fn advice(&self, denied: Denied) -> String {
        let commands = &self.commands;
        let patterns = match denied {
            Denied::Key => &self.keys,
            Denied::Channel => &self.channels,
            Denied::Command => return format!("allow it: ACL SETUSER <user> {commands}"),
        };
        format!("allow it: ACL SETUSER <user> {patterns} {commands}")
    }

    /// All of it, and nothing else: the rules for a user after name and password.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn rules(&self) -> String {
        format!("{} resetchannels {} -@all {}", self.keys, self.channels, self.commands)
    }
}
