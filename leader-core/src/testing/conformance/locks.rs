//! The promises of [`LeaseStore::execute_locks`](crate::store::LeaseStore::execute_locks).

mod waiting;

use std::sync::Arc;
use std::time::Duration;

use super::Suite;
use super::party::{LONG, PATIENCE, Party, SHORT, broken, promised, within};
use crate::clock::BootInstant;
use crate::lease::Term;
use crate::store::{Announcement, Busy, LockAnswer, LockBatch, LockCommand, LockKey, LockOp, LockOwner};

/// A place in the queue that does not end while the suite looks at it.
const PLACE: Duration = LONG;

/// One who asks for a lock.
struct Asker<'a> {
    party: &'a Party,
    owner: LockOwner,
}

impl<'a> Asker<'a> {
    fn of(party: &'a Party) -> Self {
        Self { party, owner: LockOwner::new(party.candidate.clone()) }
    }

    fn as_owner(party: &'a Party, owner: &LockOwner) -> Self {
        Self { party, owner: owner.clone() }
    }

    fn command(&self, key: &LockKey, ttl: Duration, op: LockOp) -> LockCommand {
        LockCommand { key: key.clone(), owner: self.owner.clone(), ttl, op }
    }

    async fn ask(&self, key: &LockKey, ttl: Duration, op: LockOp) -> LockAnswer {
        let name = op.name();
        match self.party.lock_batch(vec![self.command(key, ttl, op)]).await.remove(0) {
            Ok(answer) => answer,
            Err(error) => broken!("a lock command is executed", "{name}: {error}"),
        }
    }

    async fn acquire(&self, key: &LockKey, queue: Option<Duration>) -> LockAnswer {
        self.ask(key, LONG, acquire(queue)).await
    }

    async fn win(&self, key: &LockKey) -> Term {
        match self.acquire(key, None).await {
            LockAnswer::Won { token } => token,
            other => broken!("a free lock is won", "{other:?}"),
        }
    }

    async fn is_busy(&self, key: &LockKey, queue: Option<Duration>) -> Busy {
        match self.acquire(key, queue).await {
            LockAnswer::Busy(busy) => busy,
            other => broken!("a lock that another one holds, or waits for, is busy", "{other:?}"),
        }
    }

    async fn once(&self, key: &LockKey) -> LockAnswer {
        let op = LockOp::Acquire { floor: Term::default(), queue: None, once: true };
        self.ask(key, LONG, op).await
    }

    async fn renew(&self, key: &LockKey, token: Term) -> LockAnswer {
        self.ask(key, LONG, LockOp::Renew { token }).await
    }

    async fn release(&self, key: &LockKey, token: Option<Term>) -> LockAnswer {
        self.ask(key, LONG, LockOp::Release { token }).await
    }

    async fn complete(&self, key: &LockKey, token: Term, keep: Option<Duration>) -> LockAnswer {
        self.ask(key, LONG, LockOp::Complete { token, keep }).await
    }
}

fn acquire(queue: Option<Duration>) -> LockOp {
    LockOp::Acquire { floor: Term::default(), queue, once: false }
}

impl Party {
    async fn lock_batch(&self, commands: Vec<LockCommand>) -> crate::store::LockAnswers {
        let asked = commands.len();
        match within(self.store.execute_locks(LockBatch { commands, timeout: PATIENCE })).await {
            Some(Ok(answers)) if answers.len() == asked => answers,
            Some(Ok(answers)) => broken!("each command of a batch is answered", "{asked} commands, {answers:?}"),
            Some(Err(error)) => broken!("a batch of lock commands is executed", "{error}"),
            None => broken!("a batch of lock commands is answered", "nothing came within {PATIENCE:?}"),
        }
    }

    /// Waits until this owner is told to ask again.
    async fn hears_of_lock(&mut self, nonce: u128) {
        let heard = async {
            loop {
                match self.listener.heard().await {
                    Some(Announcement::LockFree { nonce: told }) if told == nonce => return,
                    Some(Announcement::Gap) => return,
                    Some(_) => {}
                    None => broken!("the announcer is kept until disconnect", "it was dropped"),
                }
            }
        };
        if within(heard).await.is_none() {
            broken!("the first who waits is told of a release", "nothing was heard within {PATIENCE:?}");
        }
    }
}

impl Suite<'_> {
    /// All of them; or none, if the store has no locks.
    pub(super) async fn locks(&self) {
        let party = Party::join((self.make)(), &self.id("locks"), &[]).await;
        let has_locks = within(party.store.execute_locks(LockBatch { commands: Vec::new(), timeout: PATIENCE })).await;
        party.leave().await;
        match has_locks {
            Some(Ok(answers)) => promised!(answers.is_empty(), "an empty batch has no answers", "{answers:?}"),
            Some(Err(error)) if error.is_permanent() => return,
            other => broken!("an empty batch of lock commands is answered", "{other:?}"),
        }
        self.a_lock_has_one_owner().await;
        self.owners_that_race_do_not_win_twice().await;
        self.a_lock_whose_answer_was_lost_is_won_again_as_the_same_acquisition().await;
        self.only_the_named_acquisition_is_renewed_or_released().await;
        self.a_lock_ends_by_itself_and_not_before_its_ttl().await;
        self.a_token_is_above_every_floor_and_every_token_before().await;
        self.who_waits_is_served_in_order_and_told().await;
        self.who_leaves_the_queue_makes_room().await;
        self.a_place_in_the_queue_ends_by_itself().await;
        self.what_was_completed_is_done_until_it_is_forgotten().await;
        self.a_completion_ends_and_those_who_wait_are_told().await;
        self.a_batch_of_lock_commands_is_answered_in_order().await;
    }

    fn key(&self, what: &str) -> LockKey {
        LockKey::new(format!("conformance {} {what}: é{{{what}}}", self.run)).expect("a short line")
    }

    async fn parties<const N: usize>(&self) -> [Party; N] {
        let mut parties = Vec::new();
        for n in 0..N {
            parties.push(Party::join((self.make)(), &self.id(&format!("p{n}")), &[]).await);
        }
        let Ok(parties) = parties.try_into() else { unreachable!("as many as were asked for") };
        parties
    }

    async fn a_lock_has_one_owner(&self) {
        let (key, [a, b]) = (self.key("owner"), self.parties().await);
        let holder = Asker::of(&a);
        let token = holder.win(&key).await;
        let (of_another, of_the_same, elsewhere) = (Asker::of(&b), Asker::of(&a), Asker::of(&b));
        for other in [&of_another, &of_the_same] {
            let busy = other.is_busy(&key, None).await;
            let right = busy.holder.as_ref() == Some(&a.candidate.id)
                && busy.token.is_none_or(|told| told == token)
                && busy.remaining <= LONG
                && !busy.remaining.is_zero()
                && busy.ahead == 0;
            promised!(right, "who is refused is told the holder and the time left", "{busy:?}");
        }
        let another_key = self.key("owner of another key");
        let answer = elsewhere.acquire(&another_key, None).await;
        promised!(matches!(answer, LockAnswer::Won { .. }), "a lock is about one key", "{answer:?}");
        elsewhere.release(&another_key, None).await;
        let released = holder.release(&key, Some(token)).await;
        promised!(released == LockAnswer::Released, "the owner can release", "{released:?}");
        of_another.win(&key).await;
        of_another.release(&key, None).await;
        for party in [a, b] {
            party.leave().await;
        }
    }

    async fn owners_that_race_do_not_win_twice(&self) {
        const ROUNDS: usize = 10;
        let (key, parties) = (self.key("race"), self.parties::<4>().await.map(Arc::new));
        let mut last = Term::default();
        for _ in 0..ROUNDS {
            let racing: Vec<_> = parties
                .iter()
                .map(|party| {
                    let (party, key) = (Arc::clone(party), key.clone());
                    tokio::spawn(async move {
                        let asker = Asker::of(&party);
                        (asker.acquire(&key, None).await, asker.owner)
                    })
                })
                .collect();
            let mut winners = Vec::new();
            for (party, answer) in parties.iter().zip(racing) {
                match answer.await {
                    Ok((LockAnswer::Won { token }, owner)) => winners.push((Asker { party, owner }, token)),
                    Ok((LockAnswer::Busy(_), _)) => {}
                    Ok((other, _)) => broken!("one of those who ask at once wins", "{other:?}"),
                    Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
                }
            }
            promised!(winners.len() == 1, "of those who ask at once one gets the lock", "{} did", winners.len());
            let (winner, token) = &winners[0];
            promised!(*token > last, "each acquisition has a larger token", "{token} came after {last}");
            last = *token;
            winner.release(&key, Some(last)).await;
        }
        for party in parties {
            if let Ok(party) = Arc::try_unwrap(party) {
                party.leave().await;
            }
        }
    }

    async fn a_lock_whose_answer_was_lost_is_won_again_as_the_same_acquisition(&self) {
        let (key, [a, b]) = (self.key("again"), self.parties().await);
        let owner = Asker::of(&a);
        let token = owner.win(&key).await;
        let waits = Asker::of(&b);
        waits.is_busy(&key, Some(PLACE)).await;
        let again = owner.win(&key).await;
        promised!(again == token, "what the owner holds already is the same acquisition", "{again} after {token}");
        let renewed = owner.renew(&key, token).await;
        promised!(renewed == LockAnswer::Renewed, "asking twice does no harm", "{renewed:?}");
        let released = owner.release(&key, None).await;
        promised!(released == LockAnswer::Released, "an owner can release what it may hold", "{released:?}");
        waits.release(&key, None).await;
        let nothing = owner.release(&key, None).await;
        promised!(nothing == LockAnswer::NotHeld, "who holds nothing releases nothing", "{nothing:?}");
        for party in [a, b] {
            party.leave().await;
        }
    }

    async fn only_the_named_acquisition_is_renewed_or_released(&self) {
        let (key, [a, b]) = (self.key("named"), self.parties().await);
        let owner = Asker::of(&a);
        let token = owner.win(&key).await;
        let older = Term::new(token.get() - 1);
        for (who, asker, token) in [
            ("another owner", Asker::of(&b), token),
            ("another owner of the same elector", Asker::of(&a), token),
            ("an older acquisition", Asker::as_owner(&a, &owner.owner), older),
        ] {
            let lost = asker.renew(&key, token).await;
            promised!(lost == LockAnswer::Lost, "only the named acquisition is renewed", "{who}: {lost:?}");
            let lost = asker.complete(&key, token, None).await;
            promised!(lost == LockAnswer::Lost, "only the named acquisition is completed", "{who}: {lost:?}");
            let refused = asker.release(&key, Some(token)).await;
            promised!(refused == LockAnswer::NotHeld, "only the named acquisition is released", "{who}: {refused:?}");
        }
        let still = owner.renew(&key, token).await;
        promised!(still == LockAnswer::Renewed, "what is refused changes nothing", "{still:?}");
        owner.release(&key, Some(token)).await;
        let lost = owner.renew(&key, token).await;
        promised!(lost == LockAnswer::Lost, "what was released cannot be renewed", "{lost:?}");
        let next = Asker::of(&b);
        let token = next.win(&key).await;
        owner.release(&key, None).await;
        let still = next.renew(&key, token).await;
        promised!(still == LockAnswer::Renewed, "late commands of the last owner do not touch the next", "{still:?}");
        next.release(&key, None).await;
        for party in [a, b] {
            party.leave().await;
        }
    }

    async fn a_lock_ends_by_itself_and_not_before_its_ttl(&self) {
        let (key, [a, b]) = (self.key("expiry"), self.parties().await);
        let (owner, next) = (Asker::of(&a), Asker::of(&b));
        let sent = BootInstant::now();
        let LockAnswer::Won { token } = owner.ask(&key, SHORT, acquire(None)).await else {
            broken!("a free lock is won", "it was not");
        };
        loop {
            match next.acquire(&key, None).await {
                LockAnswer::Won { token: later } => {
                    promised!(later > token, "each acquisition has a larger token", "{later} came after {token}");
                    break;
                }
                LockAnswer::Busy(Busy { remaining, .. }) => {
                    promised!(remaining <= SHORT, "the time left is the owner's", "{remaining:?} of {SHORT:?}");
                    tokio::time::sleep(remaining.max(Duration::from_millis(1))).await;
                }
                other => broken!("a lock is busy or won", "{other:?}"),
            }
            let waited = BootInstant::now().saturating_since(sent);
            promised!(waited < 100 * SHORT, "a lock ends by itself", "it stands after {waited:?}");
        }
        // A hundredth for clocks that do not run at one speed.
        let lasted = BootInstant::now().saturating_since(sent);
        promised!(lasted >= SHORT * 99 / 100, "a lock lasts for its ttl", "{lasted:?} of {SHORT:?}");
        let lost = owner.renew(&key, token).await;
        promised!(lost == LockAnswer::Lost, "a lock that has ended cannot be renewed", "{lost:?}");
        next.release(&key, None).await;

        let LockAnswer::Won { token } = owner.ask(&key, SHORT, acquire(None)).await else {
            broken!("a free lock is won", "it was not");
        };
        if owner.renew(&key, token).await == LockAnswer::Renewed {
            let left = next.is_busy(&key, None).await.remaining;
            promised!(left > LONG / 2 && left <= LONG, "a renew sets the asker's ttl", "{left:?} are left of {LONG:?}");
        }
        owner.release(&key, None).await;
        for party in [a, b] {
            party.leave().await;
        }
    }

    async fn a_token_is_above_every_floor_and_every_token_before(&self) {
        const AHEAD: u64 = 1_000_000_000;
        let (key, another, [a]) = (self.key("floor"), self.key("floor of another"), self.parties().await);
        let (first, ahead) = (Asker::of(&a), Asker::of(&a));
        let token = first.win(&key).await;
        promised!(token.get() > 1 << 50, "a token is at least the wall clock in µs", "{token}");
        let floor = Term::new(token.get() + AHEAD);
        let acquire = LockOp::Acquire { floor, queue: None, once: false };
        match ahead.ask(&another, LONG, acquire).await {
            LockAnswer::Won { token } if token > floor => {}
            other => broken!("a token is above the asker's floor", "{other:?} with {floor}"),
        }
        first.release(&key, None).await;
        ahead.release(&another, None).await;
        a.leave().await;
    }

    async fn a_batch_of_lock_commands_is_answered_in_order(&self) {
        let [a, b] = self.parties().await;
        let (free, held, own, late) =
            (self.key("batch free"), self.key("batch held"), self.key("batch own"), self.key("batch late"));
        let other = Asker::of(&b);
        other.win(&held).await;
        let [o, l, f, h] = [(); 4].map(|()| Asker::of(&a));
        let (token, lost) = (o.win(&own).await, l.win(&late).await);
        l.release(&late, Some(lost)).await;
        let answers = a
            .lock_batch(vec![
                h.command(&held, LONG, acquire(None)),
                o.command(&own, LONG, LockOp::Renew { token }),
                l.command(&late, LONG, LockOp::Renew { token: lost }),
                f.command(&free, LONG, acquire(None)),
                Asker::of(&a).command(&free, LONG, acquire(None)),
                Asker::of(&a).command(&free, LONG, LockOp::Forget),
            ])
            .await;
        let right = matches!(
            &answers[..],
            [
                Ok(LockAnswer::Busy(_)),
                Ok(LockAnswer::Renewed),
                Ok(LockAnswer::Lost),
                Ok(LockAnswer::Won { .. }),
                Ok(LockAnswer::Busy(_)),
                Ok(LockAnswer::Forgotten(false)),
            ]
        );
        promised!(right, "a batch is answered in order, each command on its own", "{answers:?}");
        other.release(&held, None).await;
        o.release(&own, None).await;
        f.release(&free, None).await;
        for party in [a, b] {
            party.leave().await;
        }
    }
}
