//! The contract for one group, without a clock and without storage: what a command changes, and how it is answered.
//!
//! A store reads the group's [`Record`], finds out how long its lease still stands by whatever clock it has, asks
//! [`decide`], and writes down the [`Change`].

use std::time::Duration;

use super::{Answer, Command, Held, Op, SameId, Won};
use crate::identity::Candidate;
use crate::lease::Term;

/// What a store knows of a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// The largest term that was given out, or that any candidate has seen.
    pub(super) highest: Term,
    /// The last acquisition, which may be over.
    pub(super) last: Option<Acquisition>,
}

/// One acquisition of a group's lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Acquisition {
    pub(super) holder: Candidate,
    pub(super) term: Term,
    pub(super) released: bool,
}

/// What the store's clock says at the moment of the decision.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// How long the lease of the last acquisition still stands unless released; zero if it has ended.
    pub(super) left: Duration,
    /// How long an older incarnation of the holder may still believe in the lease that was taken over from it. The lease
    /// stands at least as long.
    pub(super) older: Duration,
    /// Nobody gets a lease yet: for how long, and why.
    pub(super) quarantine: Option<(Duration, &'static str)>,
    /// The wall clock in microseconds, below which no term is given out.
    pub(super) wall: Term,
}

/// The answer to a command, and what to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) answer: Answer,
    pub(super) change: Change,
    /// What [`Record::highest`] becomes, whatever the answer.
    pub(super) highest: Term,
}

/// What happens to the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// It stays as it is.
    Nothing,
    /// The asker acquires it under this term; it lasts for the asker's ttl from now. So long may an older incarnation
    /// believe: see [`Moment::older`], from now on.
    Take(Term, Duration),
    /// It lasts for the asker's ttl from now, and at least as long as an older incarnation may believe.
    Extend,
    /// Its holder has given it up; it stands for as long as an older incarnation may believe.
    Shorten,
    /// It is over.
    Release,
}

/// Decides about one command.
pub(super) fn decide(record: &Record, command: &Command, at: Moment) -> Decision {
    let asker = &command.candidate;
    let lease = record.last.as_ref().filter(|last| !last.released && !at.left.is_zero());
    let own = lease.filter(|lease| lease.holder == *asker);
    let answered = |answer, change| Decision { answer, change, highest: record.highest };
    match command.op {
        Op::Acquire { floor, continues, same_id } => {
            let highest = record.highest.max(floor);
            let refused = |answer| Decision { answer, change: Change::Nothing, highest };
            let older_lease = match lease.filter(|_| own.is_none()) {
                None => at.older,
                Some(last) if last.holder.id == asker.id && same_id == SameId::Take => at.left.max(at.older),
                Some(last) => return refused(Answer::Held(held(last, asker, floor, at.left))),
            };
            // After the question who holds it: a leader that has re-seated itself in the quarantine is a leader.
            if let Some((remaining, reason)) = at.quarantine.filter(|_| !continues) {
                return refused(Answer::Quarantined { remaining, reason });
            }
            let term = Term::new(highest.get().saturating_add(1)).max(at.wall);
            let won = Won { term, in_quarantine: at.quarantine.is_some(), older_lease };
            Decision { answer: Answer::Won(won), change: Change::Take(term, older_lease), highest: term }
        }
        Op::Renew { term } => match own {
            Some(own) if own.term == term => answered(Answer::Renewed, Change::Extend),
            _ => {
                // Also if that other incarnation's lease has ended since: it lives, or lived, at the same time as the asker.
                let duplicate = record.last.as_ref().is_some_and(|last| is_duplicate(last, asker, term));
                answered(Answer::Lost { duplicate }, Change::Nothing)
            }
        },
        Op::Release { term } => match own {
            Some(own) if term.is_none_or(|term| own.term == term) => {
                answered(Answer::Released, if at.older.is_zero() { Change::Release } else { Change::Shorten })
            }
            _ => answered(Answer::NotHeld, Change::Nothing),
        },
        Op::Inspect => {
            let held = |lease| held(lease, asker, Term::default(), at.left);
            answered(Answer::Inspected(lease.map(held)), Change::Nothing)
        }
    }
}

fn held(lease: &Acquisition, asker: &Candidate, floor: Term, left: Duration) -> Held {
    Held {
        holder: lease.holder.id.clone(),
        term: Some(lease.term),
        remaining: left,
        same_id: is_duplicate(lease, asker, floor),
        foreign: false,
    }
}

/// Of another incarnation of the same instance id, and later than what the asker has `seen`. An older one took nothing from
/// the asker: the store has lost its memory of what came after.
fn is_duplicate(last: &Acquisition, asker: &Candidate, seen: Term) -> bool {
    last.holder.id == asker.id && last.holder.incarnation != asker.incarnation && last.term >= seen
}

/// The wall clock as the smallest term that may be given out now. It decides nothing else.
pub(crate) fn wall_clock() -> Term {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Term::new(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::GroupName;
    use crate::identity::{Incarnation, InstanceId};

    const TTL: Duration = Duration::from_secs(10);
    const LEFT: Duration = Duration::from_secs(4);

    fn candidate(id: &str, incarnation: u128) -> Candidate {
        Candidate { id: InstanceId::new(id).unwrap(), incarnation: Incarnation::from_u128(incarnation) }
    }

    #[test]
    fn a_store_without_a_past_begins_with_terms_that_are_later_than_those_of_any_before_it() {
        let began = wall_clock();
        // In microseconds: 2⁵⁰ of them were over in 2005.
        assert!(began > Term::new(1 << 50) && began < Term::new(1 << 53), "{began}");
    }

    fn acquire(floor: u64) -> Op {
        Op::Acquire { floor: Term::new(floor), continues: false, same_id: SameId::Leave }
    }

    fn ask(record: &Record, asker: &Candidate, op: Op, at: Moment) -> Decision {
        let command = Command { group: GroupName::new("g").unwrap(), candidate: asker.clone(), ttl: TTL, op };
        decide(record, &command, at)
    }

    fn at(left: Duration) -> Moment {
        Moment { left, older: Duration::ZERO, quarantine: None, wall: Term::new(1_000) }
    }

    fn led_by(holder: &Candidate, term: u64) -> Record {
        let last = Acquisition { holder: holder.clone(), term: Term::new(term), released: false };
        Record { highest: Term::new(term), last: Some(last) }
    }

    fn won(decision: &Decision) -> Won {
        match decision.answer {
            Answer::Won(won) => won,
            ref other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_term_is_above_the_record_the_floor_and_the_wall_clock() {
        let a = candidate("a", 1);
        for (highest, floor, term) in [(0, 0, 1_000), (2_000, 0, 2_001), (2_000, 3_000, 3_001), (999, 998, 1_000)] {
            let record = Record { highest: Term::new(highest), last: None };
            let decision = ask(&record, &a, acquire(floor), at(Duration::ZERO));
            assert_eq!(won(&decision).term, Term::new(term));
            assert_eq!(
                (decision.change, decision.highest),
                (Change::Take(Term::new(term), Duration::ZERO), Term::new(term))
            );
        }
    }

    #[test]
    fn another_candidate_is_told_who_holds_the_lease_and_leaves_its_floor() {
        let (a, b) = (candidate("a", 1), candidate("b", 2));
        let decision = ask(&led_by(&a, 2_000), &b, acquire(9_000), at(LEFT));
        let held = Held { holder: a.id, term: Some(Term::new(2_000)), remaining: LEFT, same_id: false, foreign: false };
        let expected = Decision { answer: Answer::Held(held), change: Change::Nothing, highest: Term::new(9_000) };
        assert_eq!(decision, expected);
    }

    #[test]
    fn an_own_lease_is_taken_back_under_a_new_term() {
        let a = candidate("a", 1);
        let decision = ask(&led_by(&a, 2_000), &a, acquire(2_000), at(LEFT));
        assert_eq!(won(&decision), Won { term: Term::new(2_001), in_quarantine: false, older_lease: Duration::ZERO });
    }

    #[test]
    fn a_lease_that_ended_or_was_released_is_free() {
        let (a, b) = (candidate("a", 1), candidate("b", 2));
        assert_eq!(won(&ask(&led_by(&a, 2_000), &b, acquire(0), at(Duration::ZERO))).term, Term::new(2_001));
        let mut record = led_by(&a, 2_000);
        record.last.as_mut().unwrap().released = true;
        assert_eq!(won(&ask(&record, &b, acquire(0), at(LEFT))).term, Term::new(2_001));
    }

    #[test]
    fn another_incarnation_of_the_same_id_is_left_or_taken_as_asked() {
        let (old, new) = (candidate("a", 1), candidate("a", 2));
        let left = ask(&led_by(&old, 2_000), &new, acquire(0), at(LEFT));
        assert!(matches!(left.answer, Answer::Held(Held { same_id: true, .. })), "{left:?}");
        let op = Op::Acquire { floor: Term::default(), continues: false, same_id: SameId::Take };
        let taken = ask(&led_by(&old, 2_000), &new, op.clone(), at(LEFT));
        assert_eq!(won(&taken).older_lease, LEFT);
        // Nobody else's seat is taken by it.
        assert!(matches!(ask(&led_by(&candidate("b", 3), 5), &new, op, at(LEFT)).answer, Answer::Held(_)));
    }

    #[test]
    fn while_an_older_incarnation_may_believe_every_acquisition_is_told() {
        let (new, b) = (candidate("a", 2), candidate("b", 3));
        let older = Moment { older: LEFT / 2, ..at(LEFT) };
        let again = ask(&led_by(&new, 2_000), &new, acquire(0), older);
        assert_eq!(won(&again).older_lease, LEFT / 2);
        assert_eq!(again.change, Change::Take(Term::new(2_001), LEFT / 2));
        let third = Op::Acquire { floor: Term::default(), continues: false, same_id: SameId::Take };
        assert_eq!(won(&ask(&led_by(&new, 2_000), &candidate("a", 4), third, older)).older_lease, LEFT);
        // Who gives it up gives it to nobody before.
        let release = Op::Release { term: None };
        let released = ask(&led_by(&new, 2_000), &new, release, older);
        assert_eq!((released.answer, released.change), (Answer::Released, Change::Shorten));
        assert!(matches!(ask(&led_by(&new, 2_000), &b, acquire(0), older).answer, Answer::Held(_)));
    }

    #[test]
    fn a_renew_extends_only_the_acquisition_it_names() {
        let (a, again, b) = (candidate("a", 1), candidate("a", 2), candidate("b", 3));
        let record = led_by(&a, 2_000);
        let renew = |term| Op::Renew { term: Term::new(term) };
        let renewed = ask(&record, &a, renew(2_000), at(LEFT));
        assert_eq!((renewed.answer, renewed.change), (Answer::Renewed, Change::Extend));
        for (asker, term, left, duplicate) in [
            (&a, 1_999, LEFT, false),
            (&a, 2_000, Duration::ZERO, false),
            (&b, 2_000, LEFT, false),
            (&again, 2_000, LEFT, true),
        ] {
            let lost = ask(&record, asker, renew(term), at(left));
            assert_eq!((lost.answer, lost.change), (Answer::Lost { duplicate }, Change::Nothing));
        }
    }

    #[test]
    fn an_incarnation_whose_term_is_older_than_what_was_seen_is_no_duplicate() {
        let (old, new) = (candidate("a", 1), candidate("a", 2));
        let record = led_by(&old, 2_000);
        for (seen, duplicate) in [(1_999, true), (2_000, true), (2_001, false)] {
            let held = ask(&record, &new, acquire(seen), at(LEFT)).answer;
            assert!(matches!(held, Answer::Held(Held { same_id, .. }) if same_id == duplicate), "{seen}: {held:?}");
            let lost = ask(&record, &new, Op::Renew { term: Term::new(seen) }, at(LEFT)).answer;
            assert_eq!(lost, Answer::Lost { duplicate }, "{seen}");
        }
    }

    #[test]
    fn a_release_ends_only_the_acquisition_it_names() {
        let (a, again) = (candidate("a", 1), candidate("a", 2));
        let record = led_by(&a, 2_000);
        let release = |term: Option<u64>| Op::Release { term: term.map(Term::new) };
        for term in [Some(2_000), None] {
            let released = ask(&record, &a, release(term), at(LEFT));
            assert_eq!((released.answer, released.change), (Answer::Released, Change::Release));
        }
        for (asker, term) in [(&a, Some(1_999)), (&again, Some(2_000)), (&again, None)] {
            let late = ask(&record, asker, release(term), at(LEFT));
            assert_eq!((late.answer, late.change), (Answer::NotHeld, Change::Nothing));
        }
    }

    #[test]
    fn in_a_quarantine_only_a_leader_that_continues_gets_a_lease() {
        let (a, b) = (candidate("a", 1), candidate("b", 2));
        let quarantined = |left| Moment { quarantine: Some((LEFT, "the store forgot")), ..at(left) };
        let continues = Op::Acquire { floor: Term::new(7_000), continues: true, same_id: SameId::Leave };
        let refused = ask(&Record::default(), &a, acquire(7_000), quarantined(Duration::ZERO));
        assert_eq!(refused.answer, Answer::Quarantined { remaining: LEFT, reason: "the store forgot" });
        assert_eq!((refused.change, refused.highest), (Change::Nothing, Term::new(7_000)));
        assert!(won(&ask(&Record::default(), &a, continues.clone(), quarantined(Duration::ZERO))).in_quarantine);
        // An own lease may be an old one, too.
        let own = ask(&led_by(&a, 2_000), &a, acquire(0), quarantined(LEFT));
        assert!(matches!(own.answer, Answer::Quarantined { .. }), "{own:?}");
        // A seat that is taken stays taken.
        assert!(matches!(ask(&led_by(&a, 2_000), &b, continues, quarantined(LEFT)).answer, Answer::Held(_)));
    }

    #[test]
    fn an_inspect_changes_nothing_and_tells_the_holder_to_anybody() {
        let (a, b) = (candidate("a", 1), candidate("b", 2));
        let record = led_by(&a, 2_000);
        for asker in [&a, &b] {
            let told = ask(&record, asker, Op::Inspect, at(LEFT));
            let Answer::Inspected(Some(held)) = told.answer else { panic!("{told:?}") };
            assert_eq!((held.holder, held.remaining, held.same_id), (a.id.clone(), LEFT, false));
            assert_eq!((told.change, told.highest), (Change::Nothing, record.highest));
        }
        assert_eq!(ask(&record, &b, Op::Inspect, at(Duration::ZERO)).answer, Answer::Inspected(None));
    }
}
