//! What happens to a group's row at a command: the contract's rules, with the time and the evidence that this store has.

use std::time::Duration;

use super::files::FileId;
use super::host::Host;
use super::row::{Row, Suspicion};
use crate::clock::BootInstant;
use crate::lease::Term;
use crate::store::rules::{Acquisition, Change, Moment, Record, decide};
use crate::store::{Answer, Command};

const QUARANTINE: &str =
    "the database file has taken the place of another, by which instances that live may still lead";

/// What is known at the moment of the decision, beside what stands in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Evidence<'a> {
    pub(super) now: BootInstant,
    pub(super) wall: Term,
    /// Where this process runs.
    pub(super) here: &'a Host,
    /// The asker's life lock.
    pub(super) life: FileId,
    /// The holder in the row has ended: its life lock could be had.
    pub(super) dead: bool,
    /// Since when this process has seen the row with the same version.
    pub(super) row_seen: BootInstant,
    /// Since when this process has seen the note.
    pub(super) note_seen: BootInstant,
}

/// The answer, and the row and the note as they are to be from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) answer: Answer,
    pub(super) row: Row,
    pub(super) note: Option<Suspicion>,
}

/// Decides about one command.
pub(super) fn judge(row: &Row, note: Option<&Suspicion>, command: &Command, evidence: Evidence<'_>) -> Verdict {
    let Evidence { now, wall, here, life, .. } = evidence;
    let quarantine =
        note.map(|note| (quarantine(note, command.ttl, evidence), QUARANTINE)).filter(|(t, _)| !t.is_zero());
    let decision = decide(&row.record, command, Moment { left: left(row, command.ttl, evidence), quarantine, wall });

    let mut row = Row { record: Record { highest: decision.highest, ..row.record.clone() }, ..row.clone() };
    let mut note = note.cloned();
    match decision.change {
        Change::Nothing => {}
        Change::Take(term) => {
            let holder = command.candidate.clone();
            row.record.last = Some(Acquisition { holder, term, released: false });
            row.host = here.clone();
            row.life = life;
            // Who got a lease after the quarantine has waited for all that could have been forgotten.
            note = note.filter(|_| quarantine.is_some());
        }
        Change::Extend => {}
        Change::Release => {
            if let Some(last) = &mut row.record.last {
                last.released = true;
            }
        }
    }
    if matches!(decision.change, Change::Take(_) | Change::Extend) {
        row.ttl = command.ttl;
        row.until = now.saturating_add(command.ttl);
    }
    if decision.change != Change::Nothing {
        row.version += 1;
    }
    if let (Answer::Quarantined { .. }, Some(note)) = (&decision.answer, &mut note) {
        note.ttl = note.ttl.max(command.ttl);
    }
    Verdict { answer: decision.answer, row, note }
}

/// How long the lease in the row still stands.
fn left(row: &Row, asker_ttl: Duration, evidence: Evidence<'_>) -> Duration {
    let until = if evidence.dead {
        return Duration::ZERO;
    } else if row.host.clock == evidence.here.clock {
        row.until
    } else {
        // Another clock's instants say nothing here. But who has not renewed for a whole ttl of its own believes no more.
        evidence.row_seen.saturating_add(row.ttl.max(asker_ttl))
    };
    until.saturating_since(evidence.now)
}

/// How long leases that a file before this one may have held can still be believed in.
fn quarantine(note: &Suspicion, asker_ttl: Duration, evidence: Evidence<'_>) -> Duration {
    let since = if note.host.clock == evidence.here.clock { note.since } else { evidence.note_seen };
    since.saturating_add(note.ttl.max(asker_ttl)).saturating_since(evidence.now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::GroupName;
    use crate::identity::{Candidate, Incarnation, InstanceId};
    use crate::store::{Held, Op, SameId};

    const S: Duration = Duration::from_secs(1);
    const LIFE: FileId = FileId { dev: 1, ino: 2 };

    fn host(clock: &str) -> Host {
        Host { boot: "boot".to_owned(), clock: clock.to_owned() }
    }

    fn second(n: u64) -> BootInstant {
        BootInstant::from_nanos(n * 1_000_000_000)
    }

    fn command(id: &str, ttl: Duration, op: Op) -> Command {
        let candidate =
            Candidate { id: InstanceId::new(id).unwrap(), incarnation: Incarnation::from_u128(id.len() as u128) };
        Command { group: GroupName::new("g").unwrap(), candidate, ttl, op }
    }

    fn acquire(id: &str, ttl: Duration) -> Command {
        let op = Op::Acquire { floor: Term::default(), continues: false, same_id: SameId::Leave };
        command(id, ttl, op)
    }

    fn evidence(here: &Host, now: BootInstant) -> Evidence<'_> {
        Evidence { now, wall: Term::new(1), here, life: LIFE, dead: false, row_seen: now, note_seen: now }
    }

    /// The row after `a` acquired at second 100, for 10 s, by clock `home`.
    fn row_of_a() -> Row {
        let home = host("home");
        judge(&Row::default(), None, &acquire("a", 10 * S), evidence(&home, second(100))).row
    }

    fn remaining(verdict: &Verdict) -> Duration {
        match &verdict.answer {
            Answer::Held(Held { remaining, .. }) | Answer::Quarantined { remaining, .. } => *remaining,
            other => panic!("{other:?}"),
        }
    }

    fn wins(verdict: &Verdict) -> bool {
        matches!(verdict.answer, Answer::Won(_))
    }

    #[test]
    fn an_acquisition_names_the_holder_its_life_and_its_clock() {
        let row = row_of_a();
        assert_eq!((row.until, row.ttl, row.life, row.version), (second(110), 10 * S, LIFE, 1));
        assert_eq!(row.host, host("home"));
        assert_eq!(row.record.last.unwrap().holder.id.as_str(), "a");
    }

    #[test]
    fn within_one_clock_a_lease_stands_until_its_instant() {
        let home = host("home");
        let row = row_of_a();
        let held = judge(&row, None, &acquire("bb", S), evidence(&home, second(109)));
        assert_eq!(remaining(&held), S);
        assert_eq!(held.row, row);
        assert!(wins(&judge(&row, None, &acquire("bb", S), evidence(&home, second(110)))));
    }

    #[test]
    fn by_another_clock_a_lease_stands_for_a_whole_ttl_since_it_was_seen_unchanged() {
        let away = host("away");
        let row = row_of_a();
        let at = |now, seen| Evidence { row_seen: second(seen), ..evidence(&away, second(now)) };
        // Its own instants are long past, and count for nothing.
        assert_eq!(remaining(&judge(&row, None, &acquire("bb", S), at(5_000, 5_000))), 10 * S);
        assert_eq!(remaining(&judge(&row, None, &acquire("bb", S), at(5_009, 5_000))), S);
        assert!(wins(&judge(&row, None, &acquire("bb", S), at(5_010, 5_000))));
        // The longer ttl of both counts.
        assert_eq!(remaining(&judge(&row, None, &acquire("bb", 30 * S), at(5_010, 5_000))), 20 * S);
    }

    #[test]
    fn a_released_lease_is_free_by_any_clock() {
        let home = host("home");
        let release = command("a", 10 * S, Op::Release { term: None });
        let released = judge(&row_of_a(), None, &release, evidence(&home, second(101)));
        assert_eq!((released.answer.clone(), released.row.version), (Answer::Released, 2));
        let away = host("away");
        assert!(wins(&judge(&released.row, None, &acquire("bb", S), evidence(&away, second(1)))));
    }

    #[test]
    fn the_lease_of_a_dead_holder_is_free_at_once() {
        for clock in ["home", "away"] {
            let here = host(clock);
            let dead = Evidence { dead: true, ..evidence(&here, second(101)) };
            assert!(wins(&judge(&row_of_a(), None, &acquire("bb", S), dead)));
        }
    }

    #[test]
    fn a_renew_counts_as_a_change_and_a_deposited_floor_does_not() {
        let home = host("home");
        let row = row_of_a();
        let renew = command("a", 20 * S, Op::Renew { term: row.record.highest });
        let renewed = judge(&row, None, &renew, evidence(&home, second(105)));
        assert_eq!((renewed.answer, renewed.row.until, renewed.row.ttl), (Answer::Renewed, second(125), 20 * S));
        assert_eq!(renewed.row.version, row.version + 1);
        let op = Op::Acquire { floor: Term::new(77), continues: false, same_id: SameId::Leave };
        let refused = judge(&row, None, &command("bb", S, op), evidence(&home, second(105)));
        assert_eq!((refused.row.record.highest, refused.row.version), (Term::new(77), row.version));
    }

    #[test]
    fn a_suspected_file_gives_no_lease_for_the_longest_ttl_that_was_asked_for() {
        let home = host("home");
        let note = Suspicion { since: second(100), ttl: Duration::ZERO, host: home.clone() };
        let first = judge(&Row::default(), Some(&note), &acquire("a", 10 * S), evidence(&home, second(102)));
        assert_eq!(remaining(&first), 8 * S);
        assert_eq!(first.note.as_ref().unwrap().ttl, 10 * S);
        // One with a shorter ttl waits for what the first would have waited for.
        let other = judge(&first.row, first.note.as_ref(), &acquire("bb", S), evidence(&home, second(105)));
        assert_eq!(remaining(&other), 5 * S);
        let won = judge(&other.row, other.note.as_ref(), &acquire("bb", S), evidence(&home, second(110)));
        assert!(wins(&won));
        assert_eq!(won.note, None);
    }

    #[test]
    fn a_note_by_another_clock_counts_from_when_it_was_seen() {
        let (home, away) = (host("home"), host("away"));
        let note = Suspicion { since: second(100), ttl: Duration::ZERO, host: home };
        let at = |now| Evidence { note_seen: second(5_000), ..evidence(&away, second(now)) };
        assert_eq!(remaining(&judge(&Row::default(), Some(&note), &acquire("a", 10 * S), at(5_001))), 9 * S);
        assert!(wins(&judge(&Row::default(), Some(&note), &acquire("a", 10 * S), at(5_010))));
    }

    #[test]
    fn a_leader_that_continues_does_not_end_the_quarantine_of_others() {
        let home = host("home");
        let note = Suspicion { since: second(100), ttl: 10 * S, host: home.clone() };
        let op = Op::Acquire { floor: Term::default(), continues: true, same_id: SameId::Leave };
        let won = judge(&Row::default(), Some(&note), &command("a", 10 * S, op), evidence(&home, second(101)));
        assert!(wins(&won));
        assert_eq!(won.note, Some(note));
    }
}
