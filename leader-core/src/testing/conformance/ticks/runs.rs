//! Runs that are on: their slots, their ends, what is given back and taken over.

use std::time::Duration;

use super::super::Suite;
use super::super::party::{LONG, Party, SHORT, broken, promised};
use super::{Job, claim, end, run};
use crate::clock::BootInstant;
use crate::store::{TickClaim, TickOp, TickReply};

impl Suite<'_> {
    pub(super) async fn a_run_holds_the_job_until_its_end(&self) {
        let (group, [a]) = self.stage("tick-end", ["a"]).await;
        let job = self.job(&a, &group, "end").await;
        let (first, next) = (job.claim(0), job.claim(1));
        a.of(&job, claim(&first)).await;
        match a.of(&job, claim(&next)).await {
            TickReply::Busy { left, holder } if left <= LONG && !left.is_zero() && holder == a.candidate.id => {}
            other => broken!("a run holds the job, and is told", "{other:?}"),
        }
        let other = a.of(&job, TickOp::End { nonce: 1, end: end("") }).await;
        promised!(other == TickReply::Other, "an end is accepted by the claim's nonce alone", "{other:?}");
        for _ in 0..2 {
            let ended = a.of(&job, TickOp::End { nonce: first.nonce, end: end("") }).await;
            promised!(ended == TickReply::Ended, "an end that is told again has ended", "{ended:?}");
        }
        let ran = a.of(&job, claim(&next)).await;
        promised!(ran == run(job.due + 1, 1), "a tick that waited is not lost", "{ran:?}");
        // Beside each other.
        let beside = a.of(&job, claim(&TickClaim { forbid: false, ..job.claim(2) })).await;
        promised!(beside == run(job.due + 2, 1), "where overlap is allowed, a run holds nobody", "{beside:?}");
        let record = a.record(&job).await;
        let right = record.unended == [job.due + 1] && record.open.is_some_and(|open| open.tick == job.due + 2);
        promised!(right, "runs that have not ended stand in the record", "{:?}", record.unended);
        let ended = a.of(&job, TickOp::End { nonce: next.nonce, end: end("") }).await;
        promised!(ended == TickReply::Ended, "an earlier run has its end, too", "{ended:?}");
        promised!(a.record(&job).await.unended.is_empty(), "what has ended is forgotten", "it is not");
        a.release(&group, None).await;
        a.leave().await;
    }

    pub(super) async fn a_run_holds_the_job_until_its_slot_is_over(&self) {
        let (group, [a]) = self.stage("tick-slot", ["a"]).await;
        let job = self.job(&a, &group, "slot").await;
        let first = TickClaim { slot: SHORT, ..job.claim(0) };
        a.of(&job, claim(&first)).await;
        let kept = a.of(&job, TickOp::KeepSlot { nonce: first.nonce, slot: LONG }).await;
        promised!(kept == TickReply::Kept, "a slot is kept", "{kept:?}");
        let left = self.is_busy(&a, &job, 1).await;
        promised!(left > SHORT, "a slot that is kept lasts so long from then on", "{left:?}");
        let sent = BootInstant::now();
        a.of(&job, TickOp::KeepSlot { nonce: first.nonce, slot: SHORT }).await;
        let next = self.wait_for_slot(&a, &job, 1, false).await;
        // A hundredth for clocks that do not run at one speed.
        let lasted = BootInstant::now().saturating_since(sent);
        promised!(lasted >= SHORT * 99 / 100, "a slot lasts as long as it was set to", "{lasted:?} of {SHORT:?}");
        promised!(next == run(job.due + 1, 1), "a slot that is over holds nobody", "{next:?}");
        let gone = a.of(&job, TickOp::KeepSlot { nonce: first.nonce, slot: LONG }).await;
        promised!(gone == TickReply::Gone, "a run that lost the job is told", "{gone:?}");
        a.release(&group, None).await;
        a.leave().await;
    }

    pub(super) async fn a_run_that_never_ended_is_taken_over_only_at_least_once(&self) {
        let (group, [a]) = self.stage("tick-again", ["a"]).await;
        let once = self.job(&a, &group, "once").await;
        let twice = self.job(&a, &group, "twice").await;
        // To win again is a new term.
        let once = Job { term: twice.term, ..once };
        a.of(&once, claim(&TickClaim { slot: SHORT, ..once.claim(0) })).await;
        let first = TickClaim { slot: SHORT, at_least_once: true, ..twice.claim(0) };
        a.of(&twice, claim(&first)).await;
        let first_of_all = self.wait_for_slot(&a, &twice, 1, true).await;
        let right = TickReply::Take { tick: twice.due, attempts: 1 };
        promised!(first_of_all == right, "a run that never ended comes first", "{first_of_all:?}");
        let again = TickClaim { slot: SHORT, at_least_once: true, ..twice.claim(0) };
        let ran = a.of(&twice, claim(&again)).await;
        promised!(ran == run(twice.due, 2), "it is run again, and the attempt is told", "{ran:?}");
        let late = a.of(&twice, TickOp::End { nonce: first.nonce, end: end("") }).await;
        promised!(late == TickReply::Other, "a run that was taken over has no end of its own", "{late:?}");
        let over = self.wait_for_slot(&a, &twice, 1, true).await;
        let right = TickReply::Over { tick: twice.due, attempts: 2 };
        promised!(over == right, "a tick that was begun too often is given up", "{over:?}");
        let next = a.of(&twice, claim(&TickClaim { at_least_once: true, ..twice.claim(1) })).await;
        promised!(next == run(twice.due + 1, 1), "and the next one is run", "{next:?}");

        let already = self.wait_for_slot(&a, &once, 0, false).await;
        promised!(matches!(already, TickReply::Moved { .. }), "at most once is not run again", "{already:?}");
        a.release(&group, None).await;
        a.leave().await;
    }

    pub(super) async fn what_is_given_back_is_due_again(&self) {
        let (group, [a]) = self.stage("tick-back", ["a"]).await;
        let job = self.job(&a, &group, "back").await;
        let give_back = |nonce, begun| TickOp::GiveBack { nonce, begun, keep: false };
        let first = job.claim(0);
        a.of(&job, claim(&first)).await;
        let not_open = a.of(&job, give_back(1, false)).await;
        promised!(not_open == TickReply::NotOpen, "only who claimed gives back", "{not_open:?}");
        let returned = a.of(&job, give_back(first.nonce, false)).await;
        promised!(returned == TickReply::Returned, "a claim is given back", "{returned:?}");
        let twice = a.of(&job, give_back(first.nonce, false)).await;
        promised!(twice == TickReply::NotOpen, "a claim is given back once", "{twice:?}");
        let take = a.of(&job, claim(&job.claim(1))).await;
        let right = TickReply::Take { tick: job.due, attempts: 0 };
        promised!(take == right, "what was given back comes first", "{take:?}");
        let again = job.claim(0);
        let ran = a.of(&job, claim(&again)).await;
        promised!(ran == run(job.due, 1), "what was never begun is begun for the first time", "{ran:?}");
        a.of(&job, give_back(again.nonce, true)).await;
        let ran = a.of(&job, claim(&job.claim(0))).await;
        promised!(ran == run(job.due, 2), "what was cut counts as an attempt", "{ran:?}");
        // A later tick takes its place where only the newest counts.
        let allow = |after| TickClaim { forbid: false, ..job.claim(after) };
        let (old, new) = (allow(1), allow(2));
        a.of(&job, claim(&old)).await;
        a.of(&job, claim(&new)).await;
        let superseded = a.of(&job, give_back(old.nonce, false)).await;
        let right = TickReply::Superseded { tick: job.due + 1 };
        promised!(superseded == right, "a later tick takes the place of an older one", "{superseded:?}");
        a.release(&group, None).await;
        a.leave().await;
    }

    pub(super) async fn a_hand_over_keeps_the_record(&self) {
        let (group, [a, b]) = self.stage("tick-handover", ["a", "b"]).await;
        let job = self.job(&a, &group, "handover").await;
        let first = job.claim(0);
        a.of(&job, claim(&first)).await;
        a.release(&group, None).await;
        let next = Job { term: b.win(&group).await.term, group: group.clone(), name: job.name.clone(), due: job.due };
        let record = b.record(&next).await;
        let Some(open) = record.open else { broken!("a run goes on over a hand-over", "{record:?}") };
        let right = open.tick == next.due
            && open.holder == a.candidate
            && open.term == job.term
            && open.nonce == first.nonce
            && open.attempt == 1
            && !open.left.is_zero();
        promised!(right, "the next leader is told of the run", "{open:?}");
        let busy = b.of(&next, claim(&next.claim(1))).await;
        promised!(matches!(busy, TickReply::Busy { .. }), "a run holds the job over a hand-over", "{busy:?}");
        let fenced = a.of(&next, claim(&job.claim(1))).await;
        promised!(fenced == TickReply::Fenced, "who led before claims nothing", "{fenced:?}");
        let kept = a.of(&next, TickOp::KeepSlot { nonce: first.nonce, slot: LONG }).await;
        promised!(kept == TickReply::Kept, "a run keeps its slot whatever the term", "{kept:?}");
        let ended = a.of(&next, TickOp::End { nonce: first.nonce, end: end("") }).await;
        promised!(ended == TickReply::Ended, "a run has its end whatever the term", "{ended:?}");
        let ran = b.of(&next, claim(&TickClaim { vouch: false, ..next.claim(1) })).await;
        promised!(ran == run(next.due + 1, 1), "the next leader goes on where the last one was", "{ran:?}");
        b.release(&group, None).await;
        for party in [a, b] {
            party.leave().await;
        }
    }

    async fn is_busy(&self, party: &Party, job: &Job, after: i64) -> Duration {
        match party.of(job, claim(&job.claim(after))).await {
            TickReply::Busy { left, .. } => left,
            other => broken!("a run holds the job", "{other:?}"),
        }
    }

    /// What a claim is answered once the slot of the run that is on is over.
    async fn wait_for_slot(&self, party: &Party, job: &Job, after: i64, at_least_once: bool) -> TickReply {
        let sent = BootInstant::now();
        loop {
            let asked = TickClaim { at_least_once, ..job.claim(after) };
            match party.of(job, claim(&asked)).await {
                TickReply::Busy { left, .. } => tokio::time::sleep(left.max(Duration::from_millis(1))).await,
                other => return other,
            }
            let waited = BootInstant::now().saturating_since(sent);
            promised!(waited < 100 * SHORT, "a slot is over by itself", "it stands after {waited:?}");
        }
    }
}
