//! The machine itself: what it holds, and how each event changes it.

mod timing;

use std::time::Duration;

use self::timing::REFRESH;
use super::{Event, Failure, Loss, Notice, Request, RequestNo, Rules, Span};
use crate::clock::BootInstant;
use crate::lease::Term;
use crate::store::{Busy, LockAnswer, LockCommand, LockKey, LockOp, LockOwner};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Held {
        token: Term,
        deadline: BootInstant,
    },
    Completing {
        token: Term,
        deadline: BootInstant,
        keep: Option<Duration>,
    },
    /// Somebody still has it, and may not know yet.
    Lost {
        token: Term,
    },
    /// Nobody needs it: what the store may hold is to be released.
    Leaving {
        token: Option<Term>,
    },
    Gone,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Outstanding {
    no: RequestNo,
    sent: BootInstant,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// With a place in the queue, or for the last time.
    Acquire {
        queues: bool,
    },
    Renew,
    Complete,
    Release,
}

/// One attempt to get a lock. See the module's documentation.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    rules: Rules,
    key: LockKey,
    owner: LockOwner,
    state: State,
    outstanding: Option<Outstanding>,
    last_no: RequestNo,
    next: Span,
    failures: u32,
    /// It was announced that the lock is free while the store was being asked: its answer may be older.
    woken: bool,
    /// Some acquire was sent.
    asked: bool,
    /// Some acquire got no answer: it may still be executed, after a release that overtook it.
    unanswered: bool,
    /// Who had the lock when it was asked for last.
    seen: Option<Busy>,
    /// How the release ended was told.
    farewell: bool,
    /// After that nothing of it stands in the store, neither lock nor place, whether it was released or not.
    stands_until: BootInstant,
}

impl Machine {
    /// An attempt that has not asked yet; its first request is due at once.
    pub(crate) fn new(key: LockKey, owner: LockOwner, rules: Rules, now: BootInstant) -> Self {
        Self {
            rules,
            key,
            owner,
            state: State::Waiting,
            outstanding: None,
            last_no: RequestNo::default(),
            next: Span::at(now),
            failures: 0,
            woken: false,
            asked: false,
            unanswered: false,
            seen: None,
            farewell: false,
            stands_until: now,
        }
    }

    /// What may be believed: the lock is held under this token, until then. Not while a completion is being noted: that ends
    /// the lock, and who knows when.
    pub(crate) fn view(&self, now: BootInstant) -> Option<(Term, BootInstant)> {
        match self.state {
            State::Held { token, deadline } => (now < deadline).then_some((token, deadline)),
            _ => None,
        }
    }

    #[cfg(test)]
    pub(super) fn newest(&self) -> RequestNo {
        self.last_no
    }

    #[cfg(test)]
    pub(super) fn owner(&self) -> &LockOwner {
        &self.owner
    }

    /// Nothing is left to do or to wait for.
    pub(crate) fn is_gone(&self) -> bool {
        self.state == State::Gone && self.outstanding.is_none()
    }

    /// What one who waits was answered last.
    pub(crate) fn waits_for(&self) -> Option<&Busy> {
        self.seen.as_ref().filter(|_| self.is_waiting())
    }

    /// Still waits for the lock.
    pub(crate) fn is_waiting(&self) -> bool {
        self.state == State::Waiting
    }

    /// It was not had, or is lost.
    pub(crate) fn is_over(&self) -> bool {
        !matches!(self.state, State::Waiting | State::Held { .. } | State::Completing { .. })
    }

    /// Something is being given back or noted, and the store has not failed at it.
    pub(crate) fn is_taking_leave(&self) -> bool {
        match self.state {
            State::Completing { .. } => self.failures == 0,
            State::Leaving { .. } => !self.farewell,
            _ => false,
        }
    }

    /// The store failed at something that is tried again.
    pub(crate) fn is_retrying(&self) -> bool {
        self.failures > 0 && !matches!(self.state, State::Lost { .. } | State::Gone)
    }

    /// When to call [`poll`](Self::poll); `None`: not before an event.
    pub(crate) fn next(&self) -> Option<Span> {
        match self.state {
            State::Held { deadline, .. } if self.outstanding.is_some() || !self.rules.renew => Some(Span::at(deadline)),
            State::Held { deadline, .. } => Some(self.next.before(deadline)),
            // An answer that is on its way may still say that it was noted.
            _ if self.outstanding.is_some() => None,
            State::Completing { deadline, .. } => Some(self.next.before(deadline)),
            State::Waiting | State::Leaving { .. } => Some(self.next),
            State::Lost { .. } | State::Gone => None,
        }
    }

    /// Lets time pass, and returns the request that is due, if any. Send it at once: `now` is the instant that the lock
    /// counts from. `floor`: the largest token that this elector has seen.
    pub(crate) fn poll(&mut self, now: BootInstant, floor: Term, notices: &mut Vec<Notice>) -> Option<Request> {
        self.let_time_pass(now, notices);
        if self.outstanding.is_some() || now < self.next.earliest {
            return None;
        }
        let (kind, op) = match self.state {
            State::Waiting => {
                let queue = (now < self.rules.wait_until).then(|| self.place());
                let once = self.rules.once;
                self.asked = true;
                (Kind::Acquire { queues: queue.is_some() }, LockOp::Acquire { floor, queue, once })
            }
            State::Held { token, .. } if self.rules.renew => (Kind::Renew, LockOp::Renew { token }),
            State::Completing { token, keep, .. } => (Kind::Complete, LockOp::Complete { token, keep }),
            State::Leaving { token } => (Kind::Release, LockOp::Release { token }),
            State::Held { .. } | State::Lost { .. } | State::Gone => return None,
        };
        self.last_no.0 += 1;
        self.woken = false;
        self.outstanding = Some(Outstanding { no: self.last_no, sent: now, kind });
        let (key, owner) = (self.key.clone(), self.owner.clone());
        Some(Request { no: self.last_no, command: LockCommand { key, owner, ttl: self.rules.ttl, op } })
    }

    /// Takes in an event.
    pub(crate) fn handle(&mut self, now: BootInstant, event: Event, notices: &mut Vec<Notice>) {
        self.let_time_pass(now, notices);
        match event {
            Event::Answered(no, answer) => self.answered(now, no, answer, notices),
            Event::Failed(no, failure) => self.failed(now, no, failure, notices),
            Event::Announced if self.outstanding.is_some() => self.woken = true,
            Event::Announced if self.is_waiting() || self.is_retrying() => self.next = Span::at(now),
            Event::Announced => {}
            Event::Leave => self.leave(now, notices),
            Event::Complete(keep) => {
                if let State::Held { token, deadline } = self.state {
                    self.state = State::Completing { token, deadline, keep };
                    self.next = Span::at(now);
                } else {
                    notices.push(Notice::NotCompleted);
                }
            }
            Event::StopRenewing => self.rules.renew = false,
        }
        self.let_time_pass(now, notices);
    }

    /// Ends what has run out.
    pub(crate) fn let_time_pass(&mut self, now: BootInstant, notices: &mut Vec<Notice>) {
        match self.state {
            State::Held { token, deadline } if deadline <= now => {
                self.state = State::Lost { token };
                notices.push(Notice::Lost(token, Loss::Expired));
            }
            State::Completing { token, deadline, .. } if deadline <= now && self.outstanding.is_none() => {
                notices.push(Notice::Unconfirmed(token));
                self.take_leave(now, Some(token));
            }
            _ => {}
        }
    }

    fn leave(&mut self, now: BootInstant, notices: &mut Vec<Notice>) {
        match self.state {
            State::Waiting if self.asked => self.take_leave(now, None),
            State::Waiting => self.state = State::Gone,
            State::Held { token, .. } | State::Lost { token } => self.take_leave(now, Some(token)),
            // It was refused, and something else is left to release: who gives it back only now is to know.
            State::Leaving { .. } if self.farewell => notices.push(Notice::Released(false)),
            // The work is done: that it is noted needs nobody to wait for it.
            State::Completing { .. } | State::Leaving { .. } | State::Gone => {}
        }
    }

    fn take_leave(&mut self, now: BootInstant, token: Option<Term>) {
        self.state = State::Leaving { token };
        self.next = Span::at(now);
        self.failures = 0;
    }

    /// The store holds nothing of it, unless an acquire is still on its way.
    fn finish(&mut self, now: BootInstant) {
        if self.unanswered {
            self.farewell = true;
            self.take_leave(now, None);
        } else {
            self.state = State::Gone;
        }
    }

    /// The request in flight, if it is this one; it may have been executed at any time up to now.
    fn came_back(&mut self, now: BootInstant, no: RequestNo) -> Option<Outstanding> {
        let sent = self.outstanding.take_if(|outstanding| outstanding.no == no)?;
        if matches!(sent.kind, Kind::Acquire { .. } | Kind::Renew) {
            self.stands_until = now.saturating_add(self.rules.ttl.max(self.place()));
        }
        Some(sent)
    }

    fn answered(&mut self, now: BootInstant, no: RequestNo, answer: LockAnswer, notices: &mut Vec<Notice>) {
        let Some(sent) = self.came_back(now, no) else { return };
        let failures = std::mem::take(&mut self.failures);
        match (sent.kind, answer) {
            (Kind::Acquire { .. }, LockAnswer::Won { token }) => self.won(now, &sent, token, notices),
            (Kind::Acquire { queues }, LockAnswer::Busy(busy)) => self.busy(now, queues, busy, notices),
            (Kind::Acquire { .. }, LockAnswer::Done) if self.rules.once => {
                if self.is_waiting() {
                    notices.push(Notice::Done);
                }
                self.finish(now);
            }
            (Kind::Renew, LockAnswer::Renewed) => self.renewed(&sent),
            (Kind::Renew, LockAnswer::Lost) => {
                match self.state {
                    State::Held { token, .. } => notices.push(Notice::Lost(token, Loss::Refused)),
                    State::Completing { .. } => notices.push(Notice::NotCompleted),
                    State::Leaving { .. } => self.told(Notice::Released(false), notices),
                    State::Waiting | State::Lost { .. } | State::Gone => {}
                }
                self.finish(now);
            }
            (Kind::Complete, LockAnswer::Completed) => {
                notices.push(Notice::Completed);
                self.finish(now);
            }
            (Kind::Complete, LockAnswer::Lost) => {
                notices.push(Notice::NotCompleted);
                self.finish(now);
            }
            (Kind::Release, answer @ (LockAnswer::Released | LockAnswer::NotHeld)) => {
                self.told(Notice::Released(answer == LockAnswer::Released), notices);
                if std::mem::take(&mut self.unanswered) {
                    // Once more, a little later: the acquire may have been behind this release.
                    self.state = State::Leaving { token: None };
                    self.next = Span::at(now.saturating_add(self.rules.retry));
                } else {
                    self.state = State::Gone;
                }
            }
            // A store that answers something else than was asked has confirmed nothing.
            _ => {
                self.failures = failures;
                self.unconfirmed(now, &sent, Failure::Permanent, notices);
            }
        }
    }

    fn won(&mut self, now: BootInstant, sent: &Outstanding, token: Term, notices: &mut Vec<Notice>) {
        if !self.is_waiting() {
            // Given up meanwhile.
            self.take_leave(now, Some(token));
            return;
        }
        let deadline = self.deadline(sent);
        if now < deadline {
            self.state = State::Held { token, deadline };
            self.next = self.renew_window(sent.sent);
            notices.push(Notice::Won(token));
        } else if now < self.rules.wait_until {
            // If it has not run out in the store, it is won again.
            self.next = Span::at(now);
        } else {
            notices.push(Notice::Late);
            self.take_leave(now, Some(token));
        }
    }

    fn busy(&mut self, now: BootInstant, queues: bool, busy: Busy, notices: &mut Vec<Notice>) {
        if !self.is_waiting() {
            // Given up meanwhile: only a place can be left.
            if queues {
                self.take_leave(now, None)
            } else {
                self.finish(now)
            }
            return;
        }
        if !queues {
            notices.push(Notice::Busy(busy));
            self.finish(now);
            return;
        }
        let span = if std::mem::take(&mut self.woken) { Span::at(now) } else { timing::next_question(now, &busy) };
        // Then it asks for the last time.
        self.next = span.before(self.rules.wait_until);
        self.seen = Some(busy);
    }

    fn renewed(&mut self, sent: &Outstanding) {
        let extended = self.deadline(sent);
        match &mut self.state {
            State::Held { deadline, .. } => {
                *deadline = extended.max(*deadline);
                self.next = self.renew_window(sent.sent);
            }
            State::Completing { deadline, .. } => *deadline = extended.max(*deadline),
            State::Waiting | State::Lost { .. } | State::Leaving { .. } | State::Gone => {}
        }
    }

    fn failed(&mut self, now: BootInstant, no: RequestNo, failure: Failure, notices: &mut Vec<Notice>) {
        if let Some(sent) = self.came_back(now, no) {
            self.unconfirmed(now, &sent, failure, notices);
        }
    }

    /// A request without a usable answer.
    fn unconfirmed(&mut self, now: BootInstant, sent: &Outstanding, failure: Failure, notices: &mut Vec<Notice>) {
        self.failures = self.failures.saturating_add(1);
        self.unanswered |= matches!(sent.kind, Kind::Acquire { .. }) && failure == Failure::Passing;
        match self.state {
            State::Waiting if failure == Failure::Permanent || self.rules.wait_until <= now => {
                notices.push(Notice::Failed);
                self.take_leave(now, None);
            }
            State::Waiting => self.next = self.retry_at(now, REFRESH).before(self.rules.wait_until),
            // What was sent before is no reason to wait.
            State::Completing { .. } if sent.kind != Kind::Complete => self.next = Span::at(now),
            State::Leaving { .. } if sent.kind != Kind::Release => self.next = Span::at(now),
            // The back-off always leaves time for some more: nobody else can use what is left of it.
            State::Held { deadline, .. } | State::Completing { deadline, .. } => {
                self.next = self.retry_at(now, deadline.saturating_since(now) / 4);
            }
            State::Leaving { .. } => {
                self.told(Notice::NotReleased, notices);
                // What is permanent is not for us to change, and what the store holds ends by itself.
                if failure == Failure::Passing && now < self.stands_until {
                    self.next = self.retry_at(now, self.rules.ttl);
                } else {
                    self.state = State::Gone;
                }
            }
            State::Lost { .. } | State::Gone => {}
        }
    }

    fn told(&mut self, notice: Notice, notices: &mut Vec<Notice>) {
        if !std::mem::replace(&mut self.farewell, true) {
            notices.push(notice);
        }
    }
}
