//! Runs by hand, between who asks for them and the courses.

use std::sync::Arc;
use std::time::Duration;

use leader_core::__private::{ByHand, Entry, OnLoss};
use leader_core::store::JobName;
use leader_core::{BootInstant, Elector, InstanceId, StoreError};

use super::{Courses, Member};
use crate::by_hand::{Asked, Denied};
use crate::run::Run;

/// A run that waits for the course to say that the job is free. Nobody else can have led while its lease is held.
pub(super) struct Wish {
    nonce: u128,
    entry: Entry,
    /// Where runs exclude each other.
    alone: Option<ByHand>,
    asked: Asked,
}

impl Wish {
    fn deny(self, denied: Denied) {
        // First: who is told may ask again at once.
        drop(self.alone);
        // Who asked may have gone.
        let _ = self.asked.send(Err(denied));
    }
}

impl Courses {
    /// Somebody wants to run a job now.
    pub(crate) fn trigger(&mut self, job: usize, asked: Asked) {
        // Who asked is told by the drop of it that nobody runs the job any more.
        let Some(job) = self.engine.job(job).filter(|_| !self.engine.bodies.is_closed()) else { return };
        if job.group.is_none() {
            self.engine.run_by_hand(job, asked);
            return;
        }
        let Some(member) = self.members.get_mut(&job.id).filter(|member| !member.removed) else { return };
        let entry = self.engine.elector.__enter(member.group.as_str(), &job.name, OnLoss::Cancel);
        let Some(entry) = entry else {
            // As above.
            let _ = asked.send(Err(Denied::NotLeading));
            return;
        };
        let alone = job.policy.is_exclusive().then(|| self.engine.elector.__begin_by_hand(&job.name, member.id));
        if matches!(alone, Some(None)) || member.is_held_up(&self.engine.elector) {
            drop(alone);
            let busy = Denied::Busy { elsewhere: None, running_for: self.engine.running_for(&job) };
            // As above.
            let _ = asked.send(Err(busy));
            return;
        }
        let alone = alone.flatten();
        let (nonce, mut notices) = (leader_core::__private::random(), Vec::new());
        member.wishes.push(Wish { nonce, entry, alone, asked });
        member.course.ask_by_hand(BootInstant::now(), nonce, &mut notices);
        self.tell(job.id, notices);
        self.touched.push(job.id);
    }

    /// The course says that the job is free.
    pub(super) fn free(&mut self, index: usize, nonce: u128) {
        let Some(member) = self.members.get_mut(&index) else { return };
        let Some(wish) = member.take_wish(nonce) else {
            member.course.refused(nonce);
            return;
        };
        let (engine, job) = (Arc::clone(&self.engine), Arc::clone(&member.job));
        Run::by_hand(engine, job, nonce, wish.entry, wish.alone, wish.asked).spawn();
    }

    /// The course says that another run of the job is on.
    pub(super) fn taken(&mut self, index: usize, nonce: u128, by: Option<(InstanceId, Duration)>) {
        let Some(member) = self.members.get_mut(&index) else { return };
        let Some(wish) = member.take_wish(nonce) else { return };
        let (elsewhere, running_for) =
            by.map_or_else(|| (None, self.engine.running_for(&member.job)), |(id, since)| (Some(id), since));
        wish.deny(Denied::Busy { elsewhere, running_for });
    }
}

impl Member {
    /// A run by hand is on that this course knows nothing of: of a scheduler that was stopped, of a job that was removed and added
    /// again, or of the job under its old name. The ledger does not know of it either.
    pub(super) fn is_held_up(&self, elector: &Elector) -> bool {
        let old = self.job.renamed_from.as_ref().map(JobName::as_str);
        let mut names = [Some(self.name.as_str()), old].into_iter().flatten();
        self.job.policy.is_exclusive() && names.any(|name| elector.__is_by_hand_of_another(name, self.id))
    }

    /// Denies what was wished for, if the lease is about to end or no run begins any more.
    pub(super) fn deny_what_comes_too_late(&mut self, closed: bool) {
        let is_over = |wish: &mut Wish| closed || !wish.entry.lease().is_held() || wish.entry.lease().__is_ending();
        for wish in self.wishes.extract_if(.., is_over) {
            self.course.refused(wish.nonce);
            wish.deny(if closed { Denied::Stopped } else { Denied::NotLeading });
        }
    }

    /// The ledger cannot be asked whether the job is free.
    pub(super) fn deny_for(&mut self, error: &StoreError) {
        for wish in self.wishes.drain(..) {
            self.course.refused(wish.nonce);
            wish.deny(Denied::Store(error.clone()));
        }
    }

    pub(super) fn deny_as_corrupt(&mut self, field: &'static str) {
        for wish in self.wishes.drain(..) {
            wish.deny(Denied::Corrupt(field));
        }
    }

    fn take_wish(&mut self, nonce: u128) -> Option<Wish> {
        let place = self.wishes.iter().position(|wish| wish.nonce == nonce)?;
        Some(self.wishes.remove(place))
    }
}
