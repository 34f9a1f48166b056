//! Findings about many groups, told as one.

use super::Finding;
use crate::group::GroupName;

/// So many things are named in one finding; of the others there is only the number.
pub(crate) const NAMED: usize = 3;

/// `a, b, c and 9997 more`
pub(crate) fn some_of(all: &[String]) -> String {
    let named = all[..all.len().min(NAMED)].join(", ");
    match all.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// What is to be said of some groups, one text for each thing that was found.
#[derive(Debug, Default)]
pub(crate) struct Several {
    groups: Vec<GroupName>,
    texts: Vec<String>,
}

impl Several {
    /// Texts about one group come one after another.
    pub(crate) fn add(&mut self, group: &GroupName, text: String) {
        if self.groups.last() != Some(group) {
            self.groups.push(group.clone());
        }
        self.texts.push(text);
    }

    /// The finding with these texts, if there are any; about the group, if it is one.
    pub(crate) fn judge(&self, finding: impl FnOnce(&str) -> Finding) -> Option<Finding> {
        let finding = (!self.texts.is_empty()).then(|| finding(&some_of(&self.texts)))?;
        Some(match &self.groups[..] {
            [one] => finding.about(one.clone()),
            _ => finding,
        })
    }
}
