//! The script that executes a batch of commands to the ledger: its text, its arguments, its answers.

use std::time::Duration;

use super::super::connection::Reply;
use super::super::keys::Keys;
use super::super::script::{integer, text};
use crate::identity::InstanceId;
use crate::store::ledger::history::{entry, missed, texts};
use crate::store::ledger::record::{FIELDS, Record};
use crate::store::ledger::rules::{LONGEST_SLOT_US, floor, micros};
use crate::store::ledger::{cut, second};
use crate::store::{JobRecord, Pause, TickAnswer, TickClaim, TickCommand, TickOp, TickReply};

/// One text, so that a batch of several kinds of commands is one round trip.
pub(in crate::store::redis) const TEXT: &str = concat!(
    include_str!("../scripts/identity.lua"),
    include_str!("../scripts/tick_begin.lua"),
    include_str!("../scripts/tick_claim.lua"),
    include_str!("../scripts/tick_end.lua"),
);

/// Above it a script cannot tell every number from the next one.
const MOST: u64 = (1 << 53) - 1;

/// What follows the script in a call: the number of keys, the keys, and the arguments that the script reads.
pub(in crate::store::redis) fn arguments(commands: &[TickCommand], keys: &Keys) -> Vec<String> {
    let mut all = Vec::with_capacity(1 + 23 * commands.len());
    all.push((5 * commands.len()).to_string());
    for TickCommand { group, job, op, .. } in commands {
        let old = match op {
            TickOp::Claim(claim) => claim.renamed_from.as_ref().unwrap_or(job),
            _ => job,
        };
        all.extend([keys.lease(group), keys.record(group), keys.job(group, job), keys.runs(group, job)]);
        all.push(keys.job(group, old));
    }
    for command in commands {
        let said = Said::of(&command.op);
        let number = |number: Option<u64>| number.map_or_else(String::new, |number| number.min(MOST).to_string());
        let instant = |seconds: Option<i64>| seconds.map_or_else(String::new, |seconds| second(seconds).to_string());
        let claim = said.claim;
        all.extend([
            command.op.name().to_owned(),
            command.candidate.id.to_string(),
            command.candidate.incarnation.to_string(),
            said.nonce.map_or_else(String::new, |nonce| format!("{nonce:032x}")),
            said.flags,
            number(claim.map(|claim| claim.term.get())),
            instant(claim.map(|claim| claim.tick)),
            instant(claim.map(|claim| claim.expect)),
            instant(claim.map(|claim| claim.floor)),
            number(claim.map(|claim| claim.not_after_us)),
            number(said.slot.map(|slot| micros(slot).min(LONGEST_SLOT_US))),
            number(claim.map(|claim| claim.max_attempts.into())),
            number(claim.map(|claim| micros(claim.retry_within))),
            said.schedule.to_owned(),
            claim.and_then(|claim| claim.missed.as_ref()).map(missed).unwrap_or_default(),
            instant(said.known),
            said.kind,
            said.rest,
        ]);
    }
    all
}

/// What a command says beside its name.
#[derive(Default)]
struct Said<'a> {
    claim: Option<&'a TickClaim>,
    nonce: Option<u128>,
    flags: String,
    slot: Option<Duration>,
    schedule: &'a str,
    known: Option<i64>,
    kind: String,
    rest: String,
}

impl<'a> Said<'a> {
    fn of(op: &'a TickOp) -> Self {
        let mut said = Self::default();
        let mut flag = |letter, set: bool| {
            if set {
                said.flags.push(letter);
            }
        };
        match op {
            TickOp::Register { schedule, known } => (said.schedule, said.known) = (cut(schedule), *known),
            TickOp::Claim(claim) => {
                flag('f', claim.forbid);
                flag('a', claim.at_least_once);
                flag('v', claim.vouch);
                said.claim = Some(claim);
                said.nonce = Some(claim.nonce);
                said.slot = Some(claim.slot);
                said.schedule = cut(&claim.schedule);
            }
            TickOp::KeepSlot { nonce, slot } => (said.nonce, said.slot) = (Some(*nonce), Some(*slot)),
            TickOp::End { nonce, end } => {
                said.nonce = Some(*nonce);
                said.rest = format!("{} {}", end.figures(), cut(&end.message));
            }
            TickOp::GiveBack { nonce, begun, keep } => {
                flag('b', *begun);
                flag('k', *keep);
                said.nonce = Some(*nonce);
            }
            TickOp::Pause { until, note } => said.rest = format!("{} {}", second(*until), cut(note)),
            TickOp::Note(event) => {
                let (kind, rest) = texts(event);
                (said.kind, said.rest) = (kind.to_owned(), rest);
            }
            TickOp::History { limit } => said.kind = limit.min(&TickOp::HISTORY).to_string(),
            TickOp::Load | TickOp::Resume => {}
        }
        said
    }
}

/// The answers of a call; each is one, or what went wrong with that command alone.
pub(in crate::store::redis) fn answers(reply: Reply, commands: usize) -> Vec<Result<TickAnswer, String>> {
    let strange = || Err("the script's answer is none of ours".to_owned());
    let all = match reply {
        Reply::List(all) if all.len() == commands + 1 => all,
        _ => Vec::new(),
    };
    let Some((now_us, answers)) = all.split_first().and_then(|(now, answers)| Some((integer(now)?, answers))) else {
        return std::iter::repeat_with(strange).take(commands).collect();
    };
    let of = |reply| Some(answer(reply, now_us)?.map(|reply| TickAnswer { now_us, reply }));
    answers.iter().map(|reply| of(reply).unwrap_or_else(strange)).collect()
}

fn answer(reply: &Reply, now_us: u64) -> Option<Result<TickReply, String>> {
    let Reply::List(fields) = reply else { return None };
    let (Reply::Text(kind), rest) = fields.split_first()? else { return None };
    let instant = |reply| i64::try_from(integer(reply)?).ok();
    let times = |reply| u32::try_from(integer(reply)?).ok();
    let lasts = |reply| integer(reply).map(Duration::from_micros);
    Some(Ok(match (kind.as_str(), rest) {
        ("registered", rest) => TickReply::Registered(told(rest, now_us)?),
        ("loaded", rest) => TickReply::Loaded(told(rest, now_us)?),
        ("unknown", []) => TickReply::Unknown,
        ("corrupt", [field]) => {
            TickReply::Corrupt { field: FIELDS.into_iter().find(|name| text(field) == Some(name))? }
        }
        ("late", []) => TickReply::Late,
        ("fenced", []) => TickReply::Fenced,
        ("done", []) => TickReply::Done,
        ("run", [tick, attempt]) => TickReply::Run { tick: instant(tick)?, attempt: times(attempt)? },
        ("paused", [until, note]) => TickReply::Paused(Pause { until: instant(until)?, note: text(note)?.to_owned() }),
        ("busy", [left, holder]) => {
            TickReply::Busy { left: lasts(left)?, holder: InstanceId::of_stranger(text(holder)?) }
        }
        ("take", [tick, attempts]) => TickReply::Take { tick: instant(tick)?, attempts: times(attempts)? },
        ("over", [tick, attempts]) => TickReply::Over { tick: instant(tick)?, attempts: times(attempts)? },
        ("moved", [last]) => TickReply::Moved { last: instant(last)? },
        ("already", [last, floor]) => TickReply::Already { last: instant(last)?, floor: instant(floor)? },
        ("early", [left]) => TickReply::Early { left: lasts(left)? },
        ("kept", []) => TickReply::Kept,
        ("gone", []) => TickReply::Gone,
        ("ended", []) => TickReply::Ended,
        ("other", []) => TickReply::Other,
        ("returned", []) => TickReply::Returned,
        ("superseded", [tick]) => TickReply::Superseded { tick: instant(tick)? },
        ("not open", []) => TickReply::NotOpen,
        ("changed", []) => TickReply::Changed,
        ("noted", []) => TickReply::Noted,
        ("history", lines) => TickReply::History(lines.iter().filter_map(|line| entry(text(line)?)).collect()),
        ("error", [error]) => return Some(Err(text(error)?.to_owned())),
        _ => return None,
    }))
}

fn told(fields: &[Reply], now_us: u64) -> Option<JobRecord> {
    let [identity, lost, texts @ ..] = fields else { return None };
    let (identity, lost) = (text(identity)?, i64::try_from(integer(lost)?).ok()?);
    let texts: Vec<&str> = texts.iter().map(text).collect::<Option<_>>()?;
    let record = Record::of_texts(texts.try_into().ok()?).ok()??;
    let end = record.open.as_ref().map_or(0, |run| run.slot_end_us);
    let left = Duration::from_micros(end.saturating_sub(now_us));
    Some(record.told(floor(&record, identity, lost), left))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ledger::record::MOST as KEPT;
    use crate::store::ledger::rules::FORGOTTEN;

    #[test]
    fn the_script_has_the_bounds_and_words_of_the_rules() {
        for line in [
            format!("local KEPT = {KEPT}"),
            format!("local HISTORY = {}", TickOp::HISTORY),
            format!("local LAST_SECOND = {}", TickOp::LATEST),
            format!("local MOST = {MOST}"),
            format!("local FORGOTTEN = '{FORGOTTEN}'"),
            format!("local FIELDS = {{'{}'}}", FIELDS.join("', '")),
            format!("local WIDTH = {}", arguments_of_one() - 6),
        ] {
            assert_eq!(TEXT.matches(&line).count(), 1, "{line}");
        }
    }

    fn arguments_of_one() -> usize {
        let command = TickCommand {
            group: crate::group::GroupName::new("g").unwrap(),
            job: crate::store::JobName::new("j").unwrap(),
            candidate: crate::identity::Candidate {
                id: InstanceId::new("a").unwrap(),
                incarnation: crate::identity::Incarnation::from_u128(1),
            },
            op: TickOp::Load,
        };
        arguments(&[command], &Keys::new("leader:")).len()
    }

    #[test]
    fn an_answer_that_is_none_of_ours_is_an_error_of_its_own() {
        let text = |text: &str| Reply::Text(text.to_owned());
        let list = |fields: &[&str]| Reply::List(fields.iter().map(|field| text(field)).collect());
        let reply = Reply::List(vec![text("5"), list(&["late"]), list(&["melted"]), list(&["corrupt", "last"])]);
        let all = answers(reply, 3);
        assert_eq!(all[0], Ok(TickAnswer { now_us: 5, reply: TickReply::Late }));
        assert!(all[1].is_err());
        assert_eq!(all[2], Ok(TickAnswer { now_us: 5, reply: TickReply::Corrupt { field: "last" } }));
        assert!(answers(Reply::Nil, 2).iter().all(Result::is_err));
        assert!(answers(Reply::List(vec![text("5")]), 1).iter().all(Result::is_err));
    }
}
