//! The script that executes a guarded write: its text, its arguments, its answer.

use std::time::Duration;

use super::super::connection::Reply;
use super::super::keys::Keys;
use super::super::locks::LockKeys;
use super::super::script::millis;
use super::marks;
use crate::fence::{Change, GuardedAnswer, GuardedWrite, Holding, Value};
use crate::lease::Term;

const GUARD: &str = concat!(include_str!("../scripts/identity.lua"), include_str!("../scripts/fence.lua"));

/// What most write.
pub(in crate::store::redis) const SET: &str = "redis.call('SET', KEYS[1], ARGV[1])";
const SET_FOR: &str = "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])";
const DELETE: &str = "return redis.call('DEL', KEYS[1])";

/// So long a mark is kept. Without it, the holder is asked for.
const KEPT: Duration = Duration::from_secs(86_400);
const MS: Duration = Duration::from_millis(1);
/// Redis knows no instant after its year 292 million.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 86_400);

pub(super) const STRANGE: &str = "ERR the script's answer is none that it gives";

/// The whole script, with this body. The body's first line is the script's, so that errors name the lines that its author
/// knows.
pub(super) fn around(body: &str) -> String {
    format!("local function body(KEYS, ARGV) {body}\nend\n{GUARD}")
}

pub(super) fn body(change: &Change) -> &str {
    match change {
        Change::Set { keep: None, .. } => SET,
        Change::Set { keep: Some(_), .. } => SET_FOR,
        Change::Delete { .. } => DELETE,
        Change::Run(script) => script.text(),
    }
}

/// What follows the script in a call: the number of keys, the keys, and the arguments that `fence.lua` reads; and one of
/// the keys.
pub(super) fn arguments(write: &GuardedWrite, keys: &Keys, lock_keys: &LockKeys) -> (Vec<Vec<u8>>, String) {
    let (kind, token, holders, owner, incarnation) = match &write.holding {
        Holding::Lease { group, term } => {
            let candidate = &write.candidate;
            let holders = vec![keys.lease(group), keys.record(group)];
            ("lease", term, holders, candidate.id.to_string(), candidate.incarnation.to_string())
        }
        Holding::Lock { key, owner, token } => {
            let holders = vec![lock_keys.names(key).lock];
            ("lock", token, holders, format!("{:032x}", owner.nonce), String::new())
        }
    };
    let one = holders.first().cloned().unwrap_or_default();
    let written = write.change.keys();
    let mut all = vec![(holders.len() + 2 * written.len()).to_string().into_bytes()];
    all.extend(holders.into_iter().map(String::into_bytes));
    for key in written {
        all.extend([key.clone(), marks::of(key)]);
    }
    let held = if write.held { "1" } else { "0" };
    let own = [kind.to_owned(), token.to_string(), millis(KEPT), owner, incarnation, held.to_owned()];
    all.extend(own.map(String::into_bytes));
    match &write.change {
        Change::Set { value, keep, .. } => {
            all.push(value.clone());
            // At least one millisecond: nothing is set for no time at all.
            all.extend(keep.map(|keep| millis(keep.clamp(MS, FOR_EVER)).into_bytes()));
        }
        Change::Delete { .. } => {}
        Change::Run(script) => all.extend(script.args().iter().cloned()),
    }
    (all, one)
}

/// The answer of a call; or what went wrong in the body.
pub(in super::super) fn answer(reply: Reply) -> Result<GuardedAnswer, String> {
    known(reply).unwrap_or_else(|| Err(STRANGE.to_owned()))
}

fn known(reply: Reply) -> Option<Result<GuardedAnswer, String>> {
    let Reply::List(fields) = reply else { return None };
    let mut fields = fields.into_iter();
    let Reply::Bytes(kind) = fields.next()? else { return None };
    let answer = match (&kind[..], fields.next()?, fields.next()) {
        (b"done", reply, None) => GuardedAnswer::Done(value(reply)),
        (b"fenced", Reply::Integer(key), Some(Reply::Bytes(newest))) => {
            let newest = String::from_utf8(newest).ok()?.parse().ok().map(Term::new);
            GuardedAnswer::Fenced { key: usize::try_from(key).ok()?.checked_sub(1), newest }
        }
        (b"failed", Reply::Bytes(error), None) => return Some(Err(String::from_utf8_lossy(&error).into_owned())),
        _ => return None,
    };
    Some(Ok(answer))
}

fn value(reply: Reply) -> Value {
    match reply {
        Reply::Nil => Value::Nil,
        Reply::Integer(number) => Value::Integer(number),
        Reply::Bytes(bytes) => Value::Bytes(bytes),
        Reply::Text(status) => Value::Status(status),
        Reply::Error(error) => Value::Error(error),
        Reply::List(replies) => Value::Array(replies.into_iter().map(value).collect()),
    }
}
