//! The script of the locks with a rule left out on purpose.

/// A rule of the script that is broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum LockFlaw {
    /// A release ends the lock, whoever holds it by now.
    ReleaseByKey,
    /// A free lock is given to whoever asks, though others wait.
    NoQueue,
    /// Every acquisition has the same token.
    OneToken,
}

impl LockFlaw {
    /// All.
    pub const ALL: [Self; 3] = [Self::ReleaseByKey, Self::NoQueue, Self::OneToken];

    /// `script` with this rule broken.
    ///
    /// # Panics
    /// If the line that the rule is in does not stand in it, exactly once.
    #[must_use]
    pub fn in_script(self, script: &str) -> String {
        let (rule, broken) = match self {
            Self::ReleaseByKey => (
                "if lock.nonce == command.nonce and (command.token == '' or lock.token == command.token) then",
                "if lock.value and command.token ~= '' then",
            ),
            Self::NoQueue => ("if not lock.value and ahead == 0 then", "if not lock.value then"),
            Self::OneToken => ("text(math.max(command.floor + 1, now_us))", "'7'"),
        };
        assert_eq!(script.matches(rule).count(), 1, "{self:?}: `{rule}` must be in the script, once");
        script.replacen(rule, broken, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::locks::TEXT;
    use super::*;

    #[test]
    fn each_flaw_hits_a_line_of_its_own_rule() {
        for flaw in LockFlaw::ALL {
            assert_ne!(flaw.in_script(TEXT), TEXT, "{flaw:?}");
        }
    }
}
