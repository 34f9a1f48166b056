//! What the records say about what their leaders do, so that other instances can tell what nobody does for them.
//!
//! It is written with each acquisition; and, once it has changed, with the next renewal that is answered.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::doctor::describe;
use crate::group::GroupName;
use crate::store::{Answer, Command, Op};

/// Of one elector.
#[derive(Debug)]
pub(super) struct Told {
    program: String,
    groups: Mutex<HashMap<GroupName, Description>>,
}

#[derive(Debug)]
struct Description {
    text: Arc<str>,
    /// The record of the lease that is held says something else.
    is_news: bool,
}

impl Told {
    pub(super) fn new(program: &str, groups: &BTreeMap<GroupName, Vec<String>>) -> Self {
        let told = Self { program: program.to_owned(), groups: Mutex::default() };
        told.change(groups);
        told
    }

    /// From now on that is what is done for these groups.
    pub(super) fn change(&self, groups: &BTreeMap<GroupName, Vec<String>>) {
        let mut known = self.groups();
        for (group, lines) in groups {
            let text = describe(&self.program, lines);
            if known.get(group).is_none_or(|description| *description.text != *text) {
                known.insert(group.clone(), Description { text: text.into(), is_news: true });
            }
        }
    }

    /// What goes out with these commands.
    pub(super) fn with(&self, commands: &[Command]) -> HashMap<GroupName, Arc<str>> {
        let known = self.groups();
        let description = |command: &Command| {
            let description = known.get(&command.group)?;
            let goes = match command.op {
                Op::Acquire { .. } => true,
                Op::Renew { .. } => description.is_news,
                _ => false,
            };
            goes.then(|| (command.group.clone(), Arc::clone(&description.text)))
        };
        commands.iter().filter_map(description).collect()
    }

    /// It went out with a command, which was answered so.
    pub(super) fn answered(&self, group: &GroupName, sent: &Arc<str>, answer: &Answer) {
        if let (Answer::Won(_) | Answer::Renewed, Some(description)) = (answer, self.groups().get_mut(group)) {
            // Unless it has changed meanwhile.
            description.is_news &= !Arc::ptr_eq(&description.text, sent);
        }
    }

    fn groups(&self) -> MutexGuard<'_, HashMap<GroupName, Description>> {
        // Held for a look or an assignment only: a poisoned one is whole.
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::identity::{Candidate, Incarnation, InstanceId};
    use crate::lease::Term;
    use crate::store::SameId;

    fn command(op: Op) -> [Command; 1] {
        let candidate = Candidate { id: InstanceId::new("a").unwrap(), incarnation: Incarnation::from_u128(1) };
        [Command { group: GroupName::new("g").unwrap(), candidate, ttl: Duration::from_secs(1), op }]
    }

    #[test]
    fn a_description_goes_out_with_each_acquire_and_after_a_change_with_renewals_until_one_is_answered() {
        let group = GroupName::new("g").unwrap();
        let lines = |line: &str| BTreeMap::from([(group.clone(), vec![line.to_owned()])]);
        let told = Told::new("billing", &lines("m::a"));
        let acquire = command(Op::Acquire { floor: Term::default(), continues: false, same_id: SameId::Leave });
        let renew = command(Op::Renew { term: Term::new(1) });
        let sent = told.with(&acquire).remove(&group).unwrap();
        assert_eq!(&*sent, "billing\nm::a");
        told.answered(&group, &sent, &Answer::Lost { duplicate: false });
        assert_eq!(told.with(&renew).len(), 1);
        told.answered(&group, &sent, &Answer::Renewed);
        assert!(told.with(&renew).is_empty() && told.with(&command(Op::Inspect)).is_empty());
        assert_eq!(told.with(&acquire).len(), 1);

        told.change(&lines("m::a"));
        assert!(told.with(&renew).is_empty(), "it is the same");
        told.change(&lines("m::b"));
        told.answered(&group, &sent, &Answer::Renewed);
        let sent = told.with(&renew).remove(&group).expect("that was an answer to the older one");
        assert_eq!(&*sent, "billing\nm::b");
        told.answered(&group, &sent, &Answer::Renewed);
        assert!(told.with(&renew).is_empty());
    }
}
