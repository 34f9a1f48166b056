//! The contract for one lock, without a clock and without storage: what a command changes, and how it is answered.
//!
//! A store finds out what is [`Seen`] of the key by whatever clock and tables it has, asks [`decide`], and writes down the
//! [`Change`].

use std::time::Duration;

use super::{Busy, LockAnswer, LockCommand, LockOp};
use crate::identity::InstanceId;
use crate::lease::Term;

/// A queue is counted no further: whoever stands behind so many has to wait in any case.
pub(in crate::store) const COUNTED: usize = 100;

/// What a store sees of a key at the moment of the decision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::store) struct Seen {
    /// The lock, unless it has run out.
    pub(in crate::store) held: Option<Held>,
    /// The asker has a place in the queue.
    pub(in crate::store) queued: bool,
    /// Those who wait and came before the asker; all, if it has no place. A place that has ended counts for nothing.
    pub(in crate::store) ahead: u32,
    /// How long the place of the first of those lasts.
    pub(in crate::store) first_left: Duration,
    /// How long nobody gets a lock that nobody holds: for all that this store knows, somebody may still believe in it.
    pub(in crate::store) closed: Duration,
    /// Who completed the key, under which token.
    pub(in crate::store) done: Option<(u128, Term)>,
    /// The largest token that this store knows of, of any lock.
    pub(in crate::store) highest: Term,
    /// The wall clock in microseconds, below which no token is given out.
    pub(in crate::store) wall: Term,
}

/// A lock that stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct Held {
    pub(in crate::store) nonce: u128,
    pub(in crate::store) instance: InstanceId,
    pub(in crate::store) token: Term,
    /// How long it lasts unless renewed.
    pub(in crate::store) left: Duration,
}

/// The answer to a command, what to write, and whom to tell once it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct Decision {
    pub(in crate::store) answer: LockAnswer,
    pub(in crate::store) change: Change,
    pub(in crate::store) tell: Tell,
}

/// What happens to lock, queue and note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Change {
    /// They stay as they are.
    Nothing,
    /// The asker holds the lock under this token, for its ttl from now, and its place in the queue ends.
    Take(Term),
    /// The lock lasts for the asker's ttl from now.
    Extend,
    /// The asker's place lasts for so long from now; without one, it gets the last.
    Queue(Duration),
    /// The asker's place ends.
    Leave,
    /// The lock is free, and the asker's place ends.
    Free,
    /// The same, and the key is completed: for so long, or for ever.
    Complete(Option<Duration>),
    /// The key is not completed any more.
    Forget,
}

/// Who is told that it is worth asking again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Tell {
    Nobody,
    /// The first whose place has not ended.
    First,
    Everybody,
}

/// Decides about one command.
pub(in crate::store) fn decide(seen: &Seen, command: &LockCommand) -> Decision {
    let own = seen.held.as_ref().filter(|held| held.nonce == command.owner.nonce);
    let named = |token: Term| own.is_some_and(|own| own.token == token);
    let nothing = |answer| Decision { answer, change: Change::Nothing, tell: Tell::Nobody };
    // Who was first in the queue makes room for the next: also while the lock is held, for whoever is first has to be there at
    // the instant at which it ends by itself.
    let made_room = if seen.queued && seen.ahead == 0 { Tell::First } else { Tell::Nobody };
    let leave = |answer| {
        let change = if seen.queued { Change::Leave } else { Change::Nothing };
        Decision { answer, change, tell: made_room }
    };
    match command.op {
        LockOp::Acquire { once: true, .. } if seen.done.is_some() => leave(LockAnswer::Done),
        LockOp::Acquire { floor, queue, .. } => {
            if let Some(own) = own {
                let answer = LockAnswer::Won { token: own.token };
                return Decision { answer, change: Change::Take(own.token), tell: Tell::Nobody };
            }
            if seen.held.is_none() && seen.ahead == 0 && seen.closed.is_zero() {
                let least = seen.highest.max(floor).get().saturating_add(1);
                let token = Term::new(least).max(seen.wall);
                let answer = LockAnswer::Won { token };
                return Decision { answer, change: Change::Take(token), tell: Tell::Nobody };
            }
            let first_left = if seen.ahead > 0 { seen.first_left } else { Duration::ZERO };
            let busy = LockAnswer::Busy(Busy {
                holder: seen.held.as_ref().map(|held| held.instance.clone()),
                token: seen.held.as_ref().map(|held| held.token),
                remaining: seen.held.as_ref().map_or(first_left.max(seen.closed), |held| held.left),
                ahead: seen.ahead,
            });
            match queue {
                Some(life) => Decision { answer: busy, change: Change::Queue(life), tell: Tell::Nobody },
                None => leave(busy),
            }
        }
        LockOp::Renew { token } if named(token) => {
            Decision { answer: LockAnswer::Renewed, change: Change::Extend, tell: Tell::Nobody }
        }
        LockOp::Renew { .. } => nothing(LockAnswer::Lost),
        LockOp::Release { token } if own.is_some_and(|own| token.is_none_or(|token| own.token == token)) => {
            Decision { answer: LockAnswer::Released, change: Change::Free, tell: Tell::First }
        }
        LockOp::Release { token: Some(_) } => nothing(LockAnswer::NotHeld),
        LockOp::Release { token: None } => leave(LockAnswer::NotHeld),
        LockOp::Complete { token, keep } if named(token) => {
            Decision { answer: LockAnswer::Completed, change: Change::Complete(keep), tell: Tell::Everybody }
        }
        // Asked again, because the answer was lost.
        LockOp::Complete { token, .. } if seen.done == Some((command.owner.nonce, token)) => {
            nothing(LockAnswer::Completed)
        }
        LockOp::Complete { .. } => nothing(LockAnswer::Lost),
        LockOp::Forget => {
            let change = if seen.done.is_some() { Change::Forget } else { Change::Nothing };
            Decision { answer: LockAnswer::Forgotten(seen.done.is_some()), change, tell: Tell::Nobody }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LockKey, LockOwner};
    use super::*;
    use crate::identity::{Candidate, Incarnation};

    const TTL: Duration = Duration::from_secs(10);
    const LEFT: Duration = Duration::from_secs(4);
    const PLACE: Duration = Duration::from_secs(3);

    fn ask(seen: &Seen, nonce: u128, op: LockOp) -> Decision {
        let candidate = Candidate { id: InstanceId::new("a").unwrap(), incarnation: Incarnation::from_u128(1) };
        let owner = LockOwner { candidate, nonce };
        decide(seen, &LockCommand { key: LockKey::new("k").unwrap(), owner, ttl: TTL, op })
    }

    fn acquire(floor: u64, queue: Option<Duration>) -> LockOp {
        LockOp::Acquire { floor: Term::new(floor), queue, once: false }
    }

    fn held_by(nonce: u128, token: u64) -> Seen {
        let held = Held { nonce, instance: InstanceId::new("h").unwrap(), token: Term::new(token), left: LEFT };
        Seen { held: Some(held), wall: Term::new(1_000), ..Seen::default() }
    }

    fn free() -> Seen {
        Seen { wall: Term::new(1_000), ..Seen::default() }
    }

    fn busy(decision: &Decision) -> &Busy {
        match &decision.answer {
            LockAnswer::Busy(busy) => busy,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_token_is_above_all_that_is_known_and_not_below_the_wall_clock() {
        for (highest, floor, token) in [(0, 0, 1_000), (2_000, 0, 2_001), (2_000, 3_000, 3_001), (999, 998, 1_000)] {
            let seen = Seen { highest: Term::new(highest), ..free() };
            let decision = ask(&seen, 1, acquire(floor, None));
            assert_eq!(decision.answer, LockAnswer::Won { token: Term::new(token) });
            assert_eq!(decision.change, Change::Take(Term::new(token)));
        }
    }

    #[test]
    fn a_held_lock_is_busy_for_everybody_else_also_for_the_same_elector() {
        let decision = ask(&held_by(1, 2_000), 2, acquire(9_000, None));
        let told = busy(&decision);
        assert_eq!((told.holder.as_ref().unwrap().as_str(), told.token), ("h", Some(Term::new(2_000))));
        assert_eq!((told.remaining, told.ahead), (LEFT, 0));
        assert_eq!((decision.change, decision.tell), (Change::Nothing, Tell::Nobody));
        assert_eq!(ask(&held_by(1, 2_000), 2, acquire(0, Some(PLACE))).change, Change::Queue(PLACE));
    }

    #[test]
    fn what_the_owner_holds_already_is_won_again_under_the_same_token() {
        let decision = ask(&held_by(1, 2_000), 1, acquire(9_000, None));
        assert_eq!(decision.answer, LockAnswer::Won { token: Term::new(2_000) });
        assert_eq!(decision.change, Change::Take(Term::new(2_000)));
    }

    #[test]
    fn a_free_lock_is_for_the_first_who_waits() {
        let seen = Seen { ahead: 2, first_left: LEFT, ..free() };
        for (queue, change) in [(None, Change::Nothing), (Some(PLACE), Change::Queue(PLACE))] {
            let decision = ask(&seen, 1, acquire(0, queue));
            let told = busy(&decision);
            assert_eq!((&told.holder, told.remaining, told.ahead), (&None, LEFT, 2));
            assert_eq!(decision.change, change);
        }
        let first = Seen { queued: true, ..free() };
        assert!(matches!(ask(&first, 1, acquire(0, None)).answer, LockAnswer::Won { .. }));
    }

    #[test]
    fn a_lock_that_somebody_may_believe_in_is_given_to_nobody() {
        let seen = Seen { closed: LEFT, ..free() };
        let decision = ask(&seen, 1, acquire(0, Some(PLACE)));
        assert_eq!((&busy(&decision).holder, busy(&decision).remaining, busy(&decision).ahead), (&None, LEFT, 0));
        assert_eq!(decision.change, Change::Queue(PLACE));
        // Who holds it knows better.
        let own = ask(&Seen { closed: LEFT, ..held_by(1, 2_000) }, 1, acquire(0, None));
        assert!(matches!(own.answer, LockAnswer::Won { .. }));
    }

    #[test]
    fn who_asks_without_a_queue_gives_up_its_place() {
        let seen = Seen { queued: true, ..held_by(1, 2_000) };
        let decision = ask(&seen, 2, acquire(0, None));
        assert_eq!((decision.change, decision.tell), (Change::Leave, Tell::First));
    }

    #[test]
    fn only_the_acquisition_that_is_named_is_renewed_released_or_completed() {
        let seen = held_by(1, 2_000);
        let (right, wrong) = (Term::new(2_000), Term::new(1_999));
        let renewed = ask(&seen, 1, LockOp::Renew { token: right });
        assert_eq!((renewed.answer, renewed.change), (LockAnswer::Renewed, Change::Extend));
        for (nonce, token) in [(1, wrong), (2, right)] {
            for (op, answer) in [
                (LockOp::Renew { token }, LockAnswer::Lost),
                (LockOp::Release { token: Some(token) }, LockAnswer::NotHeld),
                (LockOp::Complete { token, keep: None }, LockAnswer::Lost),
            ] {
                let expected = Decision { answer, change: Change::Nothing, tell: Tell::Nobody };
                assert_eq!(ask(&seen, nonce, op), expected);
            }
        }
        for token in [Some(right), None] {
            let released = ask(&seen, 1, LockOp::Release { token });
            assert_eq!((released.answer, released.change), (LockAnswer::Released, Change::Free));
            assert_eq!(released.tell, Tell::First);
        }
    }

    #[test]
    fn a_release_without_a_token_also_ends_the_place_and_makes_room_for_the_next() {
        let waits = Seen { queued: true, ..held_by(1, 2_000) };
        let left = ask(&waits, 2, LockOp::Release { token: None });
        assert_eq!((left.answer, left.change, left.tell), (LockAnswer::NotHeld, Change::Leave, Tell::First));
        let first_of_a_free_one = Seen { queued: true, ..free() };
        assert_eq!(ask(&first_of_a_free_one, 2, LockOp::Release { token: None }).tell, Tell::First);
        let second = Seen { queued: true, ahead: 1, ..free() };
        assert_eq!(ask(&second, 2, LockOp::Release { token: None }).tell, Tell::Nobody);
    }

    #[test]
    fn what_was_completed_is_done_for_everybody_who_asks_once() {
        let completed = ask(&held_by(1, 2_000), 1, LockOp::Complete { token: Term::new(2_000), keep: Some(LEFT) });
        assert_eq!((completed.answer, completed.change), (LockAnswer::Completed, Change::Complete(Some(LEFT))));
        assert_eq!(completed.tell, Tell::Everybody);

        let done = Seen { done: Some((1, Term::new(2_000))), ..free() };
        let once = LockOp::Acquire { floor: Term::default(), queue: Some(PLACE), once: true };
        assert_eq!(ask(&done, 2, once.clone()).answer, LockAnswer::Done);
        let waited = Seen { queued: true, ..done.clone() };
        assert_eq!((ask(&waited, 2, once.clone()).change, ask(&waited, 2, once).tell), (Change::Leave, Tell::First));
        // A lock does not care.
        assert!(matches!(ask(&done, 2, acquire(0, None)).answer, LockAnswer::Won { .. }));
    }

    #[test]
    fn a_completion_that_is_asked_for_again_is_confirmed() {
        let done = Seen { done: Some((1, Term::new(2_000))), ..free() };
        let complete = |token| LockOp::Complete { token: Term::new(token), keep: None };
        assert_eq!(ask(&done, 1, complete(2_000)).answer, LockAnswer::Completed);
        assert_eq!(ask(&done, 1, complete(1_999)).answer, LockAnswer::Lost);
        assert_eq!(ask(&done, 2, complete(2_000)).answer, LockAnswer::Lost);
    }

    #[test]
    fn a_note_is_forgotten_once() {
        let done = Seen { done: Some((1, Term::new(2_000))), ..free() };
        let forgotten = ask(&done, 2, LockOp::Forget);
        assert_eq!((forgotten.answer, forgotten.change), (LockAnswer::Forgotten(true), Change::Forget));
        let nothing = ask(&free(), 2, LockOp::Forget);
        assert_eq!((nothing.answer, nothing.change), (LockAnswer::Forgotten(false), Change::Nothing));
    }
}
