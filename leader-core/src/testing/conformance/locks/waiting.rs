//! The promises to those who wait, and those of work that is done once.

use std::time::Duration;

use super::super::Suite;
use super::super::party::{LONG, SHORT, broken, promised};
use super::{Asker, PLACE};
use crate::clock::BootInstant;
use crate::store::{Busy, LockAnswer, LockOp, LockOwner};

impl Suite<'_> {
    pub(super) async fn who_waits_is_served_in_order_and_told(&self) {
        let (key, [a, mut b, mut c]) = (self.key("order"), self.parties().await);
        let (holder, first, second) =
            (Asker::of(&a), LockOwner::new(b.candidate.clone()), LockOwner::new(c.candidate.clone()));
        let token = holder.win(&key).await;
        let place = Asker::as_owner(&b, &first).is_busy(&key, Some(PLACE)).await;
        promised!(place.ahead == 0, "the first who waits has nobody before it", "{place:?}");
        let place = Asker::as_owner(&c, &second).is_busy(&key, Some(PLACE)).await;
        promised!(place.ahead == 1, "who comes later stands behind", "{place:?}");
        let kept = Asker::as_owner(&b, &first).is_busy(&key, Some(PLACE)).await;
        promised!(kept.ahead == 0, "who asks again keeps its place", "{kept:?}");
        holder.release(&key, Some(token)).await;
        b.hears_of_lock(first.nonce).await;
        for (who, asker, queue) in [
            ("the second", Asker::as_owner(&c, &second), Some(PLACE)),
            ("one without a place", Asker::of(&a), None),
            ("a new one", Asker::of(&a), Some(Duration::from_millis(1))),
        ] {
            let busy = asker.is_busy(&key, queue).await;
            promised!(busy.holder.is_none() && busy.ahead >= 1, "a free lock is for the first", "{who}: {busy:?}");
        }
        let token = Asker::as_owner(&b, &first).win(&key).await;
        Asker::as_owner(&b, &first).release(&key, Some(token)).await;
        c.hears_of_lock(second.nonce).await;
        Asker::as_owner(&c, &second).win(&key).await;
        Asker::as_owner(&c, &second).release(&key, None).await;
        for party in [a, b, c] {
            party.leave().await;
        }
    }

    pub(super) async fn who_leaves_the_queue_makes_room(&self) {
        let (key, [a, b, mut c]) = (self.key("leave"), self.parties().await);
        let (holder, first, second) = (Asker::of(&a), Asker::of(&b), LockOwner::new(c.candidate.clone()));
        holder.win(&key).await;
        first.is_busy(&key, Some(PLACE)).await;
        Asker::as_owner(&c, &second).is_busy(&key, Some(PLACE)).await;
        // The lock is held all the time: who is first now has to know, to be there when it ends by itself.
        let left = first.release(&key, None).await;
        promised!(left == LockAnswer::NotHeld, "who waits holds nothing", "{left:?}");
        c.hears_of_lock(second.nonce).await;
        Asker::as_owner(&c, &second).is_busy(&key, Some(PLACE)).await;
        holder.release(&key, None).await;
        c.hears_of_lock(second.nonce).await;
        let next = Asker { party: &c, owner: second };
        next.win(&key).await;
        // Without a queue the last place is given up, too.
        first.is_busy(&key, Some(PLACE)).await;
        first.is_busy(&key, None).await;
        next.release(&key, None).await;
        let newcomer = Asker::of(&a);
        newcomer.win(&key).await;
        newcomer.release(&key, None).await;
        for party in [a, b, c] {
            party.leave().await;
        }
    }

    pub(super) async fn a_place_in_the_queue_ends_by_itself(&self) {
        let (key, [a, b, c]) = (self.key("place"), self.parties().await);
        let (holder, gone, waits) = (Asker::of(&a), Asker::of(&b), Asker::of(&c));
        holder.win(&key).await;
        let asked = BootInstant::now();
        gone.is_busy(&key, Some(SHORT)).await;
        holder.release(&key, None).await;
        loop {
            match waits.acquire(&key, Some(PLACE)).await {
                LockAnswer::Won { .. } => break,
                LockAnswer::Busy(Busy { holder: None, remaining, .. }) => {
                    promised!(remaining <= SHORT, "the time left is that of the first place", "{remaining:?}");
                    tokio::time::sleep(remaining.max(Duration::from_millis(1))).await;
                }
                other => broken!("a free lock is for who waits", "{other:?}"),
            }
            let waited = BootInstant::now().saturating_since(asked);
            promised!(waited < 100 * SHORT, "a place in the queue ends by itself", "it stands after {waited:?}");
        }
        waits.release(&key, None).await;
        for party in [a, b, c] {
            party.leave().await;
        }
    }

    pub(super) async fn what_was_completed_is_done_until_it_is_forgotten(&self) {
        let (key, [a, b]) = (self.key("done"), self.parties().await);
        let runner = Asker::of(&a);
        let LockAnswer::Won { token } = runner.once(&key).await else {
            broken!("what nobody has done can be done", "it cannot");
        };
        let busy = Asker::of(&b).once(&key).await;
        promised!(matches!(busy, LockAnswer::Busy(_)), "while one is at it, others are not", "{busy:?}");
        runner.release(&key, Some(token)).await;
        let LockAnswer::Won { token } = runner.once(&key).await else {
            broken!("what was not completed can be done again", "it cannot");
        };
        for _ in 0..2 {
            let completed = runner.complete(&key, token, None).await;
            promised!(
                completed == LockAnswer::Completed,
                "the owner can complete, and is told so again",
                "{completed:?}"
            );
        }
        for party in [&a, &b] {
            let done = Asker::of(party).once(&key).await;
            promised!(done == LockAnswer::Done, "what was completed is done", "{done:?}");
        }
        let lock = Asker::of(&b);
        lock.win(&key).await;
        lock.release(&key, None).await;
        for there in [true, false] {
            let forgotten = Asker::of(&b).ask(&key, LONG, LockOp::Forget).await;
            promised!(forgotten == LockAnswer::Forgotten(there), "a note can be removed", "{forgotten:?}");
        }
        let again = Asker::of(&b);
        let answer = again.once(&key).await;
        promised!(matches!(answer, LockAnswer::Won { .. }), "what was forgotten can be done again", "{answer:?}");
        again.release(&key, None).await;
        for party in [a, b] {
            party.leave().await;
        }
    }

    pub(super) async fn a_completion_ends_and_those_who_wait_are_told(&self) {
        let (key, [a, mut b, mut c]) = (self.key("note"), self.parties().await);
        let runner = Asker::of(&a);
        let token = runner.win(&key).await;
        let waiting = [LockOwner::new(b.candidate.clone()), LockOwner::new(c.candidate.clone())];
        Asker::as_owner(&b, &waiting[0]).is_busy(&key, Some(PLACE)).await;
        Asker::as_owner(&c, &waiting[1]).is_busy(&key, Some(PLACE)).await;
        let completed = runner.complete(&key, token, Some(SHORT)).await;
        promised!(completed == LockAnswer::Completed, "the owner can complete", "{completed:?}");
        b.hears_of_lock(waiting[0].nonce).await;
        c.hears_of_lock(waiting[1].nonce).await;
        let noted = BootInstant::now();
        let left = Asker::as_owner(&b, &waiting[0]);
        left.release(&key, None).await;
        let next = Asker::as_owner(&c, &waiting[1]);
        loop {
            match next.once(&key).await {
                LockAnswer::Won { .. } => break,
                LockAnswer::Done => tokio::time::sleep(SHORT / 8).await,
                other => broken!("a completed key is done until the note ends", "{other:?}"),
            }
            let waited = BootInstant::now().saturating_since(noted);
            promised!(waited < 100 * SHORT, "a note ends when it was to end", "it stands after {waited:?}");
        }
        next.release(&key, None).await;
        for party in [a, b, c] {
            party.leave().await;
        }
    }
}
