//! What became of each attempt to get a lock, as its member logged it.

use std::collections::{BTreeMap, HashMap};

use crate::chaos::log::{How, Line};

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Whose.
    pub member: String,
    /// The member's number of it.
    pub number: u64,
    /// Of which lock.
    pub key: String,
    /// Before it was asked for.
    pub asked_ns: u64,
    /// How long it was to wait.
    pub wait_ns: u64,
    /// It had to get the lock.
    pub must: bool,
    /// What ran under the lock.
    pub body: Option<Body>,
    /// When it was known to be over, and how it ended.
    pub left: Option<(u64, How)>,
}

/// What ran under a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Body {
    /// The number of the acquisition.
    pub token: u64,
    /// Before the library looked at the lock for the first time and let it begin.
    pub since_ns: u64,
    /// It has begun.
    pub at_ns: u64,
    /// Before the library looked at the lock for the last time and let it go on.
    pub last_ns: u64,
}

impl Attempt {
    /// When the waiting was over: the body began, or the attempt ended.
    #[must_use]
    pub fn answered_ns(&self) -> Option<u64> {
        self.body.map(|body| body.at_ns).or(self.left.as_ref().map(|(at, _)| *at))
    }

    /// How it ended.
    #[must_use]
    pub fn how(&self) -> Option<&How> {
        self.left.as_ref().map(|(_, how)| how)
    }

    /// For a message.
    pub(crate) fn name(&self) -> String {
        format!("attempt {} of {} on {}", self.number, self.member, self.key)
    }
}

/// All attempts, by the lock, in the order in which they asked.
#[must_use]
pub fn attempts(members: &BTreeMap<String, Vec<Line>>) -> BTreeMap<String, Vec<Attempt>> {
    let mut by_key: BTreeMap<String, Vec<Attempt>> = BTreeMap::new();
    for (member, lines) in members {
        let mut all: HashMap<u64, Attempt> = HashMap::new();
        for line in lines {
            match line {
                Line::Asked { attempt, key, at_ns, wait_ns, must } => {
                    let asked = Attempt {
                        member: member.clone(),
                        number: *attempt,
                        key: key.clone(),
                        asked_ns: *at_ns,
                        wait_ns: *wait_ns,
                        must: *must,
                        body: None,
                        left: None,
                    };
                    all.insert(*attempt, asked);
                }
                Line::Began { attempt, token, since_ns, at_ns } => {
                    let body = Body { token: *token, since_ns: *since_ns, at_ns: *at_ns, last_ns: *since_ns };
                    all.entry(*attempt).and_modify(|attempt| attempt.body = Some(body));
                }
                Line::Step { attempt, since_ns } => {
                    let body = all.get_mut(attempt).and_then(|attempt| attempt.body.as_mut());
                    body.into_iter().for_each(|body| body.last_ns = body.last_ns.max(*since_ns));
                }
                Line::Left { attempt, at_ns, how } => {
                    all.entry(*attempt).and_modify(|attempt| attempt.left = Some((*at_ns, how.clone())));
                }
                Line::Started { .. } | Line::Stalled { .. } => {}
            }
        }
        for attempt in all.into_values() {
            by_key.entry(attempt.key.clone()).or_default().push(attempt);
        }
    }
    for all in by_key.values_mut() {
        all.sort_by(|a, b| (a.asked_ns, &a.member, a.number).cmp(&(b.asked_ns, &b.member, b.number)));
    }
    by_key
}
