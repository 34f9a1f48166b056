//! A job's record as texts. All stores keep the same, so that they agree on which are none of ours.

use super::{Record, Run, Unended};
use crate::identity::{Candidate, Incarnation, InstanceId};
use crate::lease::Term;
use crate::store::ledger::second;
use crate::store::{Pause, ReturnedTick};

/// The names of a record's texts. An empty text is nothing.
pub const FIELDS: [&str; 10] =
    ["since", "last", "schedule", "server", "open", "slot", "others", "returned", "done", "paused"];

/// The texts of a record, in the order of their names.
#[cfg(any(feature = "sqlite", feature = "testing", test))]
pub type Texts = [String; FIELDS.len()];

impl Record {
    /// As texts.
    #[cfg(any(feature = "sqlite", feature = "testing", test))]
    #[must_use]
    pub fn texts(&self) -> Texts {
        let others = self.others.iter().map(|run| format!("{}:{:032x}:{}", run.tick, run.nonce, run.attempt));
        let returned = self.returned.iter().map(|back| format!("{}:{}", back.tick, back.attempts));
        let open = |run: &Run| {
            let Run { tick, nonce, attempt, began_us, term, holder, .. } = run;
            format!("{tick}:{nonce:032x}:{attempt}:{began_us}:{term}:{}:{}", holder.incarnation, holder.id)
        };
        [
            self.since.to_string(),
            self.last.to_string(),
            self.schedule.clone(),
            self.server.clone(),
            self.open.as_ref().map(open).unwrap_or_default(),
            self.open.as_ref().map(|run| format!("{}:{}", run.slot_us, run.slot_end_us)).unwrap_or_default(),
            others.collect::<Vec<_>>().join(","),
            returned.collect::<Vec<_>>().join(","),
            self.done.map(|nonce| format!("{nonce:032x}")).unwrap_or_default(),
            self.paused.as_ref().map(|pause| format!("{} {}", pause.until, pause.note)).unwrap_or_default(),
        ]
    }

    /// The record with these texts, if there is one. The error is the name of one that is none of ours.
    ///
    /// # Errors
    /// See above.
    pub fn of_texts(texts: [&str; FIELDS.len()]) -> Result<Option<Self>, &'static str> {
        let [since, last, schedule, server, open, slot, others, returned, done, paused] = texts;
        if since.is_empty() && last.is_empty() {
            return Ok(None);
        }
        let other = |part: &str| {
            let mut parts = part.split(':');
            let (tick, nonce, attempt) = (parts.next()?, parts.next()?, parts.next()?);
            parts.next().is_none().then_some(())?;
            Some(Unended { tick: seconds(tick)?, nonce: hex(nonce)?, attempt: times(attempt)? })
        };
        let back = |part: &str| {
            let (tick, attempts) = part.split_once(':')?;
            Some(ReturnedTick { tick: seconds(tick)?, attempts: times(attempts)? })
        };
        let paused = match paused.split_once(' ') {
            None if paused.is_empty() => None,
            None => return Err("paused"),
            Some((until, note)) => Some(Pause { until: seconds(until).ok_or("paused")?, note: note.to_owned() }),
        };
        let open = if open.is_empty() { None } else { Some(run(open).ok_or("open")?) };
        let open = match open {
            None if slot.is_empty() => None,
            None => return Err("slot"),
            Some(run) => {
                let (lasts, end) = slot.split_once(':').ok_or("slot")?;
                let (slot_us, slot_end_us) = (micros(lasts).ok_or("slot")?, micros(end).ok_or("slot")?);
                Some(Run { slot_us, slot_end_us, ..run })
            }
        };
        Ok(Some(Self {
            since: seconds(since).ok_or("since")?,
            last: seconds(last).ok_or("last")?,
            schedule: schedule.to_owned(),
            server: server.to_owned(),
            open,
            others: list(others).map(other).collect::<Option<_>>().ok_or("others")?,
            returned: list(returned).map(back).collect::<Option<_>>().ok_or("returned")?,
            done: if done.is_empty() { None } else { Some(hex(done).ok_or("done")?) },
            paused,
        }))
    }
}

fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(|_| !text.is_empty())
}

fn run(text: &str) -> Option<Run> {
    let mut parts = text.splitn(7, ':');
    let mut next = || parts.next();
    Some(Run {
        tick: seconds(next()?)?,
        nonce: hex(next()?)?,
        attempt: times(next()?)?,
        slot_us: 0,
        slot_end_us: 0,
        began_us: micros(next()?)?,
        term: Term::new(micros(next()?)?),
        holder: {
            let incarnation = Incarnation::from_u128(hex(next()?)?);
            Candidate { id: InstanceId::new(next()?).ok()?, incarnation }
        },
    })
}

/// A second that is at most [`TickOp::LATEST`](crate::store::TickOp::LATEST).
pub(in crate::store) fn seconds(text: &str) -> Option<i64> {
    i64::try_from(whole(text)?).ok().filter(|number| *number == second(*number))
}

/// Above it a script cannot tell every number from the next one.
fn micros(text: &str) -> Option<u64> {
    whole(text).filter(|number| *number < 1 << 53)
}

fn times(text: &str) -> Option<u32> {
    whole(text)?.try_into().ok()
}

fn whole(text: &str) -> Option<u64> {
    let digits = text.len() <= 16 && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

/// As it is written: 32 small digits.
fn hex(text: &str) -> Option<u128> {
    let digits = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if digits { u128::from_str_radix(text, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let holder = Candidate { id: InstanceId::new("a:b").unwrap(), incarnation: Incarnation::from_u128(7) };
        Record {
            since: 60,
            last: 120,
            schedule: "0 * * * * * Europe/Berlin".to_owned(),
            server: "run:replication".to_owned(),
            open: Some(Run {
                tick: 120,
                nonce: u128::MAX,
                attempt: 2,
                slot_us: 10_000_000,
                slot_end_us: 130_000_000,
                began_us: 120_000_001,
                term: Term::new(119_000_000),
                holder,
            }),
            others: vec![Unended { tick: 60, nonce: 1, attempt: 1 }, Unended { tick: 90, nonce: 2, attempt: 1 }],
            returned: vec![ReturnedTick { tick: 30, attempts: 0 }, ReturnedTick { tick: 60, attempts: 3 }],
            done: Some(9),
            paused: Some(Pause { until: 600, note: "in the release\n".to_owned() }),
        }
    }

    #[test]
    fn records_come_back_as_they_were_written() {
        for record in [record(), Record { since: 5, last: 5, ..Record::default() }] {
            let texts = record.texts();
            assert_eq!(Record::of_texts(texts.each_ref().map(String::as_str)), Ok(Some(record)));
        }
        assert_eq!(Record::of_texts([""; 10]), Ok(None));
    }

    #[test]
    fn a_text_that_is_none_of_ours_is_named() {
        let good = record().texts();
        for (field, bad) in [
            ("since", ""),
            ("since", "yesterday"),
            ("last", ""),
            ("last", "-60"),
            ("last", "253402300800"),
            ("open", "120"),
            ("open", "120:0000:1:1:1:00000000000000000000000000000007:a"),
            ("open", "120:000000000000000000000000000000ff:1:1:9007199254740992:00000000000000000000000000000007:a"),
            ("open", "120:000000000000000000000000000000ff:1:1:1:00000000000000000000000000000007:"),
            ("slot", ""),
            ("slot", "1"),
            // A slot of no run.
            ("open", ""),
            ("others", "60"),
            ("others", ","),
            ("returned", "60:1,x"),
            ("returned", "60:4294967296"),
            ("done", "FF"),
            ("paused", "600"),
        ] {
            let mut texts = good.each_ref().map(String::as_str);
            texts[FIELDS.iter().position(|name| *name == field).unwrap()] = bad;
            let named = if (field, bad) == ("open", "") { "slot" } else { field };
            assert_eq!(Record::of_texts(texts), Err(named), "{bad:?}");
        }
    }
}
