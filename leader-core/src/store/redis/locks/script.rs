//! The script that executes a batch of lock commands: its text, its arguments, its answers.

use std::time::Duration;

use super::super::connection::Reply;
use super::super::script::{integer, millis, text};
use super::keys::{LockKeys, Names};
use crate::identity::InstanceId;
use crate::lease::Term;
use crate::store::{Busy, LockAnswer, LockCommand, LockOp};

/// One text, so that a batch of several kinds of commands is one round trip.
pub(in crate::store::redis) const TEXT: &str = concat!(
    include_str!("../scripts/lock_begin.lua"),
    include_str!("../scripts/lock_acquire.lua"),
    include_str!("../scripts/lock_end.lua"),
);

/// Longer than any instance lives; what is kept for longer is kept for ever. Redis knows no instant after its year 292 million.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// What follows the script in a call: the number of keys, the keys, and the arguments that the script reads. `channels`: what
/// the channels begin with that electors listen to.
pub(in crate::store::redis) fn arguments(commands: &[LockCommand], keys: &LockKeys, channels: &str) -> Vec<String> {
    let mut all = Vec::with_capacity(2 + 14 * commands.len());
    all.push((4 * commands.len()).to_string());
    for command in commands {
        let Names { lock, queue, waiting, done } = keys.names(&command.key);
        all.extend([lock, queue, waiting, done]);
    }
    all.push(channels.to_owned());
    for command in commands {
        let (mut floor, mut token, mut place, mut once, mut keep) = (None, None, None, false, None);
        match command.op {
            LockOp::Acquire { floor: seen, queue, once: if_undone } => {
                (floor, place, once) = (Some(seen), queue, if_undone);
            }
            LockOp::Renew { token: named } => token = Some(named),
            LockOp::Release { token: named } => token = named,
            LockOp::Complete { token: named, keep: so_long } => {
                (token, keep) = (Some(named), so_long.filter(|keep| *keep < FOR_EVER));
            }
            LockOp::Forget => {}
        }
        let number = |term: Option<Term>| term.map_or_else(String::new, |term| term.get().to_string());
        // At least one millisecond: nothing is set for no time at all.
        let time = |time: Option<Duration>| time.map_or_else(String::new, |time| millis(time.clamp(MS, FOR_EVER)));
        let candidate = &command.owner.candidate;
        all.push(command.op.name().to_owned());
        all.push(format!("{:032x}", command.owner.nonce));
        all.push(candidate.incarnation.to_string());
        all.push(candidate.id.to_string());
        all.push(millis(command.ttl));
        all.extend([number(floor), number(token), time(place), if once { "1" } else { "0" }.to_owned(), time(keep)]);
    }
    all
}

const MS: Duration = Duration::from_millis(1);

/// The answers of a call; each is one, or what went wrong with that command alone.
pub(in crate::store::redis) fn answers(reply: Reply, commands: usize) -> Vec<Result<LockAnswer, String>> {
    let strange = || Err("the script's answer is none of ours".to_owned());
    match reply {
        Reply::List(answers) if answers.len() == commands => {
            answers.into_iter().map(|reply| answer(reply).unwrap_or_else(strange)).collect()
        }
        _ => std::iter::repeat_with(strange).take(commands).collect(),
    }
}

fn answer(reply: Reply) -> Option<Result<LockAnswer, String>> {
    let Reply::List(fields) = reply else { return None };
    let (Reply::Text(kind), rest) = fields.split_first()? else { return None };
    let answer = match (kind.as_str(), rest) {
        ("won", [token]) => LockAnswer::Won { token: Term::new(integer(token)?) },
        ("busy", [holder, token, remaining, ahead]) => LockAnswer::Busy(Busy {
            holder: Some(text(holder)?).filter(|holder| !holder.is_empty()).map(InstanceId::of_stranger),
            token: integer(token).map(Term::new),
            remaining: Duration::from_millis(integer(remaining)?),
            ahead: u32::try_from(integer(ahead)?).unwrap_or(u32::MAX),
        }),
        ("done", []) => LockAnswer::Done,
        ("renewed", []) => LockAnswer::Renewed,
        ("lost", []) => LockAnswer::Lost,
        ("released", []) => LockAnswer::Released,
        ("not held", []) => LockAnswer::NotHeld,
        ("completed", []) => LockAnswer::Completed,
        ("forgotten", [there]) => LockAnswer::Forgotten(integer(there)? != 0),
        ("error", [error]) => return Some(Err(text(error)?.to_owned())),
        _ => return None,
    };
    Some(Ok(answer))
}
