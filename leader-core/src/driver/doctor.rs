//! Examining the store: once by itself, after the first contact, and when a handle asks. No lease waits for it.

use std::time::Duration;

use tokio::sync::oneshot;

use super::call::{Call, program};
use super::report::Report;
use super::{Connection, Driver};
use crate::clock::BootInstant;
use crate::doctor::{Finding, not_examined, of_the_place};
use crate::error::StoreError;
use crate::store::Examination;

/// An examination may take so many operation time-outs: it reads many keys.
const PATIENCE: u32 = 10;
/// And so long in any case: nobody waits for it with a lease at stake.
const LEAST_PATIENCE: Duration = Duration::from_secs(5);

/// From one examination to the next that nobody asked for, at least: it opens a connection.
const PAUSE: Duration = Duration::from_secs(10);
/// While nothing changes the pause doubles, so often at most: to about ten minutes.
const DOUBLINGS: u32 = 6;
/// And while nothing is found, it is looked so often all the same: clocks drift apart, somebody changes a setting.
const SELDOM: Duration = Duration::from_secs(3600);

type Reply = oneshot::Sender<Vec<Finding>>;

/// Who waits for an examination, and when there is one.
#[derive(Debug, Default)]
pub(super) struct Examining {
    due: Option<BootInstant>,
    /// When the last one began.
    last: BootInstant,
    /// How many in a row have found the same.
    unchanged: u32,
    /// Those whom the examination that is under way will answer.
    running: Option<Vec<Reply>>,
    /// Those who asked since it began: the state of the store that they ask for is a later one.
    waiting: Vec<Reply>,
    /// What the store last said of itself.
    found: Vec<Finding>,
}

impl Examining {
    /// When to begin the next one. None while one is under way: its end is an event.
    pub(super) fn due(&self) -> Option<BootInstant> {
        self.due.filter(|_| self.running.is_none())
    }
}

impl Driver {
    /// What needs no store stands from the beginning.
    pub(super) fn look_around(&mut self) {
        let found = of_the_place(&self.shared);
        self.let_stand(found);
    }

    /// The first contact.
    pub(super) fn examine_at(&mut self, at: BootInstant) {
        self.examining.due = Some(at);
    }

    /// Something has changed: another leads, or the store is back. What was found may be gone, and there may be more.
    pub(super) fn examine_again(&mut self, now: BootInstant) {
        self.examining.unchanged = 0;
        self.examine_after_a_pause(now);
    }

    fn examine_after_a_pause(&mut self, now: BootInstant) {
        self.examine_after(PAUSE.saturating_mul(1 << self.examining.unchanged.min(DOUBLINGS)), PAUSE, now);
    }

    /// After this pause since the last one began, and part of the other one.
    fn examine_after(&mut self, pause: Duration, spread: Duration, now: BootInstant) {
        let earliest = self.examining.last.saturating_add(pause).max(now);
        // Not all instances of a fleet at once, which see the same change, or were started together.
        let at = earliest.saturating_add(spread.mul_f64(fastrand::f64() / 2.0));
        self.examining.due = Some(self.examining.due.map_or(at, |due| due.min(at)));
    }

    /// A handle asks.
    pub(super) fn doctor(&mut self, now: BootInstant, reply: Reply) {
        if self.connection == Connection::Connected {
            self.examining.waiting.push(reply);
            self.examine_at(now);
            return;
        }
        let mut found = of_the_place(&self.shared);
        found.push(not_examined(&self.shared.address, self.shared.progress.borrow().last_error.as_ref()));
        // The asker may have gone.
        let _ = reply.send(in_order(found));
    }

    pub(super) fn examine_if_due(&mut self, now: BootInstant) {
        if self.examining.due().is_none_or(|at| at > now) {
            return;
        }
        self.examining.due = None;
        self.examining.last = now;
        self.examining.running = Some(std::mem::take(&mut self.examining.waiting));
        let patience = self.shared.timing.operation_timeout.saturating_mul(PATIENCE).max(LEAST_PATIENCE);
        let examination = Examination {
            candidate: self.shared.candidate.clone(),
            groups: self.gated(),
            program: program(),
            ttl: self.shared.timing.ttl,
            timeout: patience,
        };
        let store = self.shared.store.clone();
        let (tell, found) = oneshot::channel();
        self.call(Call::Examine(found), "the examination", patience, async move {
            // The receiver lives as long as the call.
            let _ = tell.send(store.examine(examination).await?);
            Ok(Vec::new())
        });
    }

    pub(super) fn examined(&mut self, now: BootInstant, examined: Result<Vec<Finding>, StoreError>) {
        let mut found = of_the_place(&self.shared);
        let mut standing = found.clone();
        match examined {
            Ok(store) => {
                let before = &self.examining.found;
                let unchanged =
                    store.len() == before.len() && store.iter().zip(before).all(|(now, before)| now.is_same(before));
                self.examining.unchanged = if unchanged { self.examining.unchanged + 1 } else { 0 };
                self.examining.found.clone_from(&store);
                found.extend(store.iter().cloned());
                standing.extend(store);
            }
            Err(error) => {
                let failed = not_examined(&self.shared.address, Some(&error));
                found.push(failed.clone());
                standing.push(failed);
                // It did not find them gone.
                standing.extend(self.examining.found.iter().cloned());
                if !error.is_permanent() {
                    self.examine_at(now.saturating_add(self.shared.timing.ttl));
                }
            }
        }
        if self.examining.found.is_empty() {
            self.examine_after(SELDOM, SELDOM, now);
        } else {
            // Until it is gone.
            self.examine_after_a_pause(now);
        }
        self.let_stand(standing);
        let found = in_order(found);
        for reply in self.examining.running.take().into_iter().flatten() {
            // The asker may have gone.
            let _ = reply.send(found.clone());
        }
        if !self.examining.waiting.is_empty() {
            self.examine_at(now);
        }
    }

    /// Puts the findings into the status, and those that are new into the log.
    fn let_stand(&mut self, findings: Vec<Finding>) {
        let findings = in_order(findings);
        let before = std::mem::replace(&mut *self.shared.findings(), findings.clone());
        for news in findings.into_iter().filter(|finding| !before.iter().any(|known| finding.is_same(known))) {
            self.reporter.send(Report::Found(news));
        }
    }
}

fn in_order(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by_key(|finding| finding.severity);
    findings
}
