//! What an instance tells the others of this host about itself, in its life file, for as long as it lives.

use std::collections::BTreeMap;

use crate::doctor::{describe, shown, this_process};
use crate::group::GroupName;
use crate::identity::{Candidate, InstanceId};

/// So many bytes about its groups at most.
const MOST: usize = 64 * 1024;

/// Stands between two groups.
const BETWEEN: char = '\u{1e}';

/// Who it is, and what it does for its groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Card {
    pub(super) id: InstanceId,
    /// Where to look for it.
    pub(super) place: String,
    /// A description of what it does for each of its groups; nothing, if they are too many.
    pub(super) work: BTreeMap<GroupName, String>,
}

impl Card {
    pub(super) fn new(candidate: &Candidate, program: &str, groups: &BTreeMap<GroupName, Vec<String>>) -> Self {
        let work = groups.iter().map(|(group, lines)| (group.clone(), describe(program, lines))).collect();
        Self { id: candidate.id.clone(), place: this_process(), work }
    }

    /// As it stands in the file: who it is, the length of the rest, and that.
    pub(super) fn text(&self) -> String {
        let parts: Vec<String> = self.work.iter().map(|(group, work)| format!("{group}\n{work}")).collect();
        let mut work = parts.join(&BETWEEN.to_string());
        if work.len() > MOST {
            work.clear();
        }
        format!("{}\n{}\n{}\n{work}", self.id, self.place, work.len())
    }

    /// Nothing, if it is none, or is being written.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut lines = text.splitn(4, '\n');
        let (id, place) = (InstanceId::new(lines.next()?).ok()?, shown(lines.next()?));
        let (length, work) = (lines.next()?.parse::<usize>().ok()?, lines.next()?);
        let part = |part: &str| {
            let (group, work) = part.split_once('\n')?;
            Some((GroupName::new(group).ok()?, work.to_owned()))
        };
        (work.len() == length).then(|| Self { id, place, work: work.split(BETWEEN).filter_map(part).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Incarnation;

    fn card(groups: usize) -> Card {
        let candidate = Candidate { id: InstanceId::new("a").unwrap(), incarnation: Incarnation::from_u128(1) };
        let group = |n| (GroupName::new(format!("g{n}")).unwrap(), vec![format!("m::f{n}"), "@".to_owned()]);
        Card::new(&candidate, "billing", &(0..groups).map(group).collect())
    }

    #[test]
    fn a_card_comes_back_as_it_was_written_and_one_that_is_being_written_is_none() {
        for groups in [0, 1, 3] {
            let card = card(groups);
            let text = card.text();
            assert_eq!(Card::read(&text), Some(card));
            assert_eq!(Card::read(&text[..text.len() - 1]), None);
            assert_eq!(Card::read(&(text + "x")), None);
        }
        assert_eq!(Card::read(""), None);
        assert_eq!(card(1).work[&GroupName::new("g0").unwrap()], "billing\nm::f0\n@");
    }

    #[test]
    fn of_very_many_groups_nothing_is_told() {
        let read = Card::read(&card(10_000).text()).unwrap();
        assert!(read.work.is_empty() && read.id.as_str() == "a");
    }
}
