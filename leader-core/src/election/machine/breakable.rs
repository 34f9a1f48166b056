//! For checkers of the election: rules that can be broken on purpose, and a look inside.

use super::{Election, Outstanding, Seat, Standing, earliest};
use crate::clock::BootInstant;
use crate::election::{KnownBad, Next, RequestNo};
use crate::identity::Candidate;
use crate::store::Answer;

/// The same three rules, each of which can be broken on purpose.
impl Election {
    pub(super) fn ends(&self, seat: &Seat) -> BootInstant {
        if self.rules.known_bad == Some(KnownBad::NoDeadline) {
            return BootInstant::from_nanos(u64::MAX);
        }
        seat.deadline
    }

    pub(super) fn deadline(&self, now: BootInstant, sent: &Outstanding) -> BootInstant {
        let from = if self.rules.known_bad == Some(KnownBad::DeadlineFromReply) { now } else { sent.sent };
        from.saturating_add(self.rules.ttl.saturating_sub(self.rules.guard))
    }

    /// For the exhaustive model: a request is in flight.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.outstanding.is_some()
    }

    /// For the exhaustive model: who takes part.
    #[must_use]
    pub fn candidate(&self) -> &Candidate {
        &self.candidate
    }

    /// For the exhaustive model: the same election of another candidate.
    pub fn rename(&mut self, candidate: Candidate) {
        self.candidate = candidate;
    }

    /// For the exhaustive model: forgets what makes no difference any more, so that states with one future are one state.
    /// Its only request in flight is number 1.
    pub fn forget_the_past(&mut self, now: BootInstant) {
        self.let_time_pass(now, &mut Vec::new());
        let past = BootInstant::default();
        if self.right <= now {
            self.right = past;
        }
        if let Some(sent) = &mut self.outstanding {
            sent.no = RequestNo(1);
            if sent.right <= now {
                sent.right = past;
            }
        } else if self.not_before <= now {
            self.not_before = past;
        }
        if earliest(self.next) <= now || self.outstanding.is_some() || self.standing != Standing::Competing {
            self.next = Next::At(past);
        }
        self.last_no = RequestNo(u64::from(self.outstanding.is_some()));
        self.failures = 0;
        self.settled = true;
    }

    pub(super) fn late(&mut self, now: BootInstant, answer: Answer) {
        if self.rules.known_bad != Some(KnownBad::LateReply) || self.standing != Standing::Competing {
            return;
        }
        let term = match (answer, &self.seat) {
            (Answer::Won(won), _) => won.term,
            (Answer::Renewed, Some(seat)) => seat.term,
            (Answer::Renewed, None) => self.floor,
            _ => return,
        };
        let deadline = now.saturating_add(self.rules.ttl.saturating_sub(self.rules.guard));
        self.seat = Some(Seat { term, deadline, believed: true });
    }
}
