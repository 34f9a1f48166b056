//! The script that executes a batch: its text, its arguments, its answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::connection::Reply;
use super::keys::Keys;
use crate::group::GroupName;
use crate::identity::InstanceId;
use crate::lease::Term;
use crate::store::{Answer, Command, Held, Op, SameId, Won};

/// One text, so that a batch of several kinds of commands is one round trip.
pub(super) const TEXT: &str = concat!(
    include_str!("scripts/identity.lua"),
    include_str!("scripts/begin.lua"),
    include_str!("scripts/acquire.lua"),
    include_str!("scripts/renew.lua"),
    include_str!("scripts/release.lua"),
    include_str!("scripts/inspect.lua"),
    include_str!("scripts/end.lua"),
);

/// What all commands of a call have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Common<'a> {
    pub(super) keys: &'a Keys,
    pub(super) shortest_quarantine: Duration,
    pub(super) trusts_fresh: bool,
    /// What is to be written into the record of a group about what its leader does.
    pub(super) told: &'a HashMap<GroupName, Arc<str>>,
}

/// What follows the script in a call: the number of keys, the keys, and the arguments that `begin.lua` and `end.lua` read.
pub(super) fn arguments(commands: &[Command], common: Common<'_>) -> Vec<String> {
    let Common { keys, shortest_quarantine, trusts_fresh, told } = common;
    let mut all = Vec::with_capacity(3 + 11 * commands.len());
    all.push((2 * commands.len()).to_string());
    for command in commands {
        all.extend([keys.lease(&command.group), keys.record(&command.group)]);
    }
    all.extend([millis(shortest_quarantine), if trusts_fresh { "trust" } else { "wait" }.to_owned()]);
    for command in commands {
        let (mut floor, mut term, mut continues, mut take) = (None, None, false, false);
        match command.op {
            Op::Acquire { floor: seen, continues: still_leads, same_id } => {
                floor = Some(seen);
                continues = still_leads;
                take = same_id == SameId::Take;
            }
            Op::Renew { term: named } => term = Some(named),
            Op::Release { term: named } => term = named,
            Op::Inspect => {}
        }
        let number = |term: Option<Term>| term.map_or_else(String::new, |term| term.get().to_string());
        let flag = |flag: bool| if flag { "1" } else { "0" }.to_owned();
        let candidate = &command.candidate;
        all.push(command.op.name().to_owned());
        all.push(candidate.id.to_string());
        all.push(candidate.incarnation.to_string());
        all.push(millis(command.ttl));
        all.extend([number(floor), number(term), flag(continues), flag(take)]);
        all.push(told.get(&command.group).map(ToString::to_string).unwrap_or_default());
    }
    all
}

/// Milliseconds, rounded up: a lease must not end before its holder believes it does.
pub(super) fn millis(duration: Duration) -> String {
    duration.as_nanos().div_ceil(1_000_000).to_string()
}

/// The answers of a call; each is one, or an error for that command alone.
pub(super) fn answers(reply: Reply, commands: usize) -> Vec<Result<Answer, String>> {
    let strange = || Err("ERR the script's answer is none that it gives".to_owned());
    match reply {
        Reply::List(answers) if answers.len() == commands => {
            answers.into_iter().map(|reply| answer(reply).unwrap_or_else(strange)).collect()
        }
        _ => (0..commands).map(|_| strange()).collect(),
    }
}

fn answer(reply: Reply) -> Option<Result<Answer, String>> {
    let Reply::List(fields) = reply else { return None };
    let (Reply::Text(kind), rest) = fields.split_first()? else { return None };
    let answer = match (kind.as_str(), rest) {
        ("won", [term, in_quarantine, older]) => Answer::Won(Won {
            term: Term::new(integer(term)?),
            in_quarantine: integer(in_quarantine)? != 0,
            older_lease: Duration::from_millis(integer(older)?),
        }),
        ("held", rest) => Answer::Held(held(rest)?),
        ("quarantined", [left, reason]) => Answer::Quarantined {
            remaining: Duration::from_millis(integer(left)?),
            reason: self::reason(text(reason)?),
        },
        ("renewed", []) => Answer::Renewed,
        ("lost", [duplicate]) => Answer::Lost { duplicate: integer(duplicate)? != 0 },
        ("released", []) => Answer::Released,
        ("not held", []) => Answer::NotHeld,
        ("inspected", []) => Answer::Inspected(None),
        ("inspected", rest) => Answer::Inspected(Some(held(rest)?)),
        ("error", [error]) => return Some(Err(text(error)?.to_owned())),
        _ => return None,
    };
    Some(Ok(answer))
}

fn held(fields: &[Reply]) -> Option<Held> {
    let [holder, term, remaining, same_id, foreign] = fields else { return None };
    let term = integer(term)?;
    Some(Held {
        holder: InstanceId::of_stranger(text(holder)?),
        term: (term > 0).then_some(Term::new(term)),
        remaining: Duration::from_millis(integer(remaining)?),
        same_id: integer(same_id)? != 0,
        foreign: integer(foreign)? != 0,
    })
}

pub(super) fn reason(code: &str) -> &'static str {
    match code {
        "server" => "the server is another one than before, or was restarted, and may have lost leases",
        "lease" => "the lease vanished before its end, without a release: its holder may still lead",
        _ => "the store has no record of this group: it is new (then this is usual), or it was emptied",
    }
}

pub(super) fn integer(reply: &Reply) -> Option<u64> {
    match reply {
        Reply::Integer(number) => u64::try_from(*number).ok(),
        Reply::Text(digits) => digits.parse().ok(),
        _ => None,
    }
}

pub(super) fn text(reply: &Reply) -> Option<&str> {
    match reply {
        Reply::Text(text) => Some(text),
        _ => None,
    }
}
