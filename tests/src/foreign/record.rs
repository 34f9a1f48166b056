//! Records of jobs: one that can be read is the same when it is written and read again, and whatever it says, the rules make of
//! it a record that can be read, and let no claim run that is late, early, or not the leader's.

use leader_core::store::{
    HistoryEntry, JobName, LockOwner, Missed, RunEnd, RunOutcome, TickClaim, TickCommand, TickOp, TickReply,
};
use leader_core::testing::ledger::{FIELDS, Record, Seen, Texts, decide, entry, line};
use leader_core::{Candidate, GroupName, Incarnation, InstanceId, Term};

use super::bytes::Bytes;

/// Of the store's clock, and of terms: as far as a script can tell every number from the next one, less a day.
const MOST: u64 = (1 << 53) - 1 - 86_400_000_000;

/// Ten lines are the record; what follows is what happens to it.
pub(super) fn property(bytes: &[u8]) {
    let mut parts = bytes.splitn(1 + FIELDS.len(), |byte| *byte == b'\n');
    let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let texts: Texts = std::array::from_fn(|_| text());
    let mut bytes = Bytes::new(parts.next().unwrap_or_default());
    let mut read = Record::of_texts(texts.each_ref().map(String::as_str));
    match &read {
        Ok(Some(record)) => assert_readable(record),
        Ok(None) => assert!(texts[0].is_empty() && texts[1].is_empty()),
        Err(field) => assert!(FIELDS.contains(field), "{field}"),
    }
    let mut now_us = 1_800_000_000_000_000;
    for _ in 0..16 {
        now_us = (now_us + bytes.time().as_micros() as u64 * bytes.choice(&[0, 1, 1, 86_400])).min(MOST);
        let command = command(&mut bytes, read.as_ref().ok().and_then(Option::as_ref), now_us);
        let leader = (&command.candidate, Term::new(bytes.choice(&[7, 7, 7, 8])));
        let lease = bytes.choice(&[Some(leader), Some(leader), None]);
        let seen = Seen {
            record: read.clone(),
            left: bytes.time(),
            lease,
            now_us,
            identity: bytes.choice(&["a", "b", ""]),
            lost: bytes.choice(&[Some(0), None, Some(i64::MAX), Some(1_800_000_060)]),
            other_last: bytes.choice(&[Ok(None), Ok(Some(1_800_000_000)), Err("last")]),
        };
        let decision = decide(seen, &command);
        if let (TickReply::Run { tick, .. }, TickOp::Claim(claim)) = (&decision.reply, &command.op) {
            assert_eq!(lease, Some((&command.candidate, claim.term)), "not the leader's");
            assert!(now_us <= claim.not_after_us, "too late");
            let before = read.as_ref().ok().and_then(Option::as_ref).expect("without a record nothing is claimed");
            let mut earlier = before.open.iter().map(|run| run.nonce).chain(before.others.iter().map(|run| run.nonce));
            let again = earlier.any(|nonce| nonce == claim.nonce);
            assert!(again || u64::try_from(*tick).is_ok_and(|tick| tick * 1_000_000 <= now_us), "too early");
            let back = before.returned.iter().any(|back| back.tick == *tick);
            assert!(again || back || claim.at_least_once || *tick > before.last, "{tick} is claimed twice: {before:?}");
        }
        for event in &decision.change.notes {
            let written = line(&HistoryEntry { at_us: now_us, event: event.clone() });
            assert!(entry(&written).is_some(), "{event:?} is written as {written:?}, which is no entry");
        }
        if let Some(record) = decision.change.record {
            assert_readable(&record);
            read = Ok(Some(record));
        }
        if bytes.is_empty() {
            return;
        }
    }
}

fn assert_readable(record: &Record) {
    let written = record.texts();
    let again = Record::of_texts(written.each_ref().map(String::as_str));
    assert_eq!(again.as_ref(), Ok(&Some(record.clone())), "{written:?}");
}

fn command(bytes: &mut Bytes<'_>, record: Option<&Record>, now_us: u64) -> TickCommand {
    let open = record.and_then(|record| record.open.as_ref());
    let nonce = if bytes.flag() { open.map_or(1, |run| run.nonce) } else { u128::from(bytes.number()) };
    let seconds = |bytes: &mut Bytes<'_>| bytes.number().cast_signed();
    let near = |bytes: &mut Bytes<'_>| {
        let back = record.and_then(|record| record.returned.first()).map(|back| back.tick);
        let last = record.map_or(0, |record| record.last);
        let by = i64::from(bytes.byte()) - 64;
        let now = i64::try_from(now_us / 1_000_000).unwrap_or(i64::MAX);
        let from = [last, now, last, back.unwrap_or(now), open.map_or(last, |run| run.tick)];
        if bytes.byte().is_multiple_of(8) {
            bytes.number().cast_signed()
        } else {
            bytes.choice(&from).saturating_add(by)
        }
    };
    let end = |bytes: &mut Bytes<'_>| RunEnd {
        outcome: bytes.choice(&[RunOutcome::Succeeded, RunOutcome::Panicked]),
        message: bytes.text(),
        began_us: bytes.number(),
        took: bytes.time(),
    };
    let op = match bytes.byte() % 12 {
        0 => TickOp::Register { schedule: bytes.text(), known: bytes.flag().then(|| near(bytes)) },
        1 => TickOp::Load,
        2 => TickOp::KeepSlot { nonce, slot: bytes.time() },
        3 => TickOp::End { nonce, end: end(bytes) },
        4 => TickOp::GiveBack { nonce, begun: bytes.flag(), keep: bytes.flag() },
        5 => TickOp::Pause { until: seconds(bytes), note: bytes.text() },
        6 => TickOp::Resume,
        _ => TickOp::Claim(Box::new(TickClaim {
            term: Term::new(7),
            nonce,
            tick: near(bytes),
            expect: near(bytes),
            floor: near(bytes),
            not_after_us: now_us.saturating_add(bytes.choice(&[1_000_000, 1_000_000, u64::MAX, 0])),
            slot: bytes.time(),
            schedule: bytes.choice(&["s", "t", ""]).to_owned(),
            forbid: bytes.flag(),
            at_least_once: bytes.flag(),
            vouch: bytes.flag(),
            max_attempts: u32::from(bytes.byte() % 4),
            retry_within: bytes.time(),
            missed: bytes.flag().then(|| Missed { from: seconds(bytes), count: bytes.number(), reason: bytes.text() }),
            renamed_from: None,
        })),
    };
    let id = InstanceId::new("a:b").expect("it is an id");
    let candidate = Candidate { id, incarnation: Incarnation::from_u128(7) };
    let owner = LockOwner::new(candidate);
    TickCommand {
        group: GroupName::new("g").expect("it is a name"),
        job: JobName::new("j").expect("it is a name"),
        candidate: owner.candidate,
        op,
    }
}
