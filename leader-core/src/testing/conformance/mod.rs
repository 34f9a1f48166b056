//! The conformance suite: whether a store keeps the contract of [`LeaseStore`].

mod locks;
mod party;
mod ticks;

use std::sync::Arc;
use std::time::Duration;

use self::party::{LONG, Party, SHORT, broken, promised};
use crate::clock::BootInstant;
use crate::group::GroupName;
use crate::identity::{Incarnation, InstanceId};
use crate::lease::Term;
use crate::store::{Answer, Held, LeaseStore, Op, SameId};

/// Checks every promise of the contract of [`LeaseStore`]; what only a fault can show, such as a quarantine, is for
/// the store's own tests. If it has locks or a ledger, their promises are checked, too.
///
/// `make` returns a new handle on the *same* records, as another instance would have it: another client of the same
/// server, another connection to the same file. It may be called at any time. The suite uses groups of its own, named at
/// random, so it can run again and again, also beside itself, on records that stay.
///
/// It takes a few seconds: it waits for leases to run out, for announcements, and for nothing else. It needs a tokio
/// runtime with time that is not paused; on a runtime with several threads, racing candidates really race.
///
/// # Panics
/// At the first promise that is broken, saying which, and what was seen instead. Leases of up to two minutes may then be
/// left in the store.
///
/// ```
/// use std::sync::Arc;
/// use leader_core::store::MemoryStore;
/// use leader_core::testing::conformance;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // In a test of your store: #[tokio::test(flavor = "multi_thread")]
/// let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
/// runtime.block_on(async {
///     let records = MemoryStore::new();
///     conformance(|| Arc::new(records.clone())).await;
/// });
/// # Ok(()) }
/// ```
pub async fn conformance(make: impl Fn() -> Arc<dyn LeaseStore>) {
    let suite = Suite { make: &make, run: format!("{:08x}", Incarnation::random().as_u128() as u32) };
    suite.a_lease_has_one_holder().await;
    suite.candidates_that_race_do_not_win_twice().await;
    suite.a_renew_extends_the_acquisition_it_names().await;
    suite.a_release_ends_the_acquisition_it_names_and_is_announced().await;
    suite.a_release_without_a_term_ends_what_the_incarnation_holds().await;
    suite.a_lease_ends_by_itself_and_not_before_its_ttl().await;
    suite.an_own_lease_is_taken_back_under_a_new_term().await;
    suite.a_term_is_above_every_floor().await;
    suite.another_incarnation_of_the_same_id_is_left_or_taken().await;
    suite.a_batch_is_answered_in_order_and_each_command_on_its_own().await;
    suite.an_examination_and_a_description_change_no_lease().await;
    suite.locks().await;
    suite.ticks().await;
}

struct Suite<'a> {
    make: &'a dyn Fn() -> Arc<dyn LeaseStore>,
    /// Part of every name of this run.
    run: String,
}

impl Suite<'_> {
    fn group(&self, what: &str) -> GroupName {
        GroupName::new(format!("conformance-{}-{what}", self.run)).expect("short words without blanks")
    }

    fn id(&self, who: &str) -> InstanceId {
        InstanceId::new(format!("{who}-{}", self.run)).expect("short words without blanks")
    }

    /// A free group, and as many parties as there are ids, each with a handle of its own.
    async fn stage<const N: usize>(&self, what: &str, ids: [&str; N]) -> (GroupName, [Party; N]) {
        let group = self.group(what);
        let mut parties = Vec::new();
        for id in ids {
            parties.push(Party::join((self.make)(), &self.id(id), std::slice::from_ref(&group)).await);
        }
        parties[0].settle(&group).await;
        let Ok(parties) = parties.try_into() else { unreachable!("as many as ids") };
        (group, parties)
    }

    async fn a_lease_has_one_holder(&self) {
        let (group, [a, b]) = self.stage("holder", ["a", "b"]).await;
        promised!(a.inspect(&group).await.is_none(), "a released lease has no holder", "inspect tells of one");
        let won = a.win(&group).await;
        promised!(!won.in_quarantine, "a lease that is won after the quarantine is an ordinary one", "{won:?}");
        promised!(won.older_lease.is_zero(), "a free lease has no older one", "{won:?}");
        let right = |held: &Held| {
            held.holder == a.candidate.id
                && held.term.is_none_or(|term| term == won.term)
                && held.remaining <= LONG
                && !held.remaining.is_zero()
                && !held.same_id
        };
        match b.acquire(&group, LONG, Term::default()).await {
            Answer::Held(held) if right(&held) => {}
            other => broken!("a refused candidate is told the holder, its term and the time left", "{other:?}"),
        }
        for party in [&a, &b] {
            let found = party.inspect(&group).await;
            promised!(found.as_ref().is_some_and(right), "any instance is told who leads", "{found:?}");
        }
        b.leave().await;
        let late = Party::join((self.make)(), &self.id("late"), &[]).await;
        let found = late.inspect(&group).await;
        promised!(found.as_ref().is_some_and(right), "the lease outlives other handles", "{found:?}");
        late.leave().await;
        a.release(&group, None).await;
        a.leave().await;
    }

    async fn an_examination_and_a_description_change_no_lease(&self) {
        let (group, [a, b]) = self.stage("examined", ["a", "b"]).await;
        let won = a.win(&group).await;
        for party in [&a, &b] {
            party.describe(&group).await;
            party.examine(&group).await;
        }
        let renewed = a.renew(&group, won.term).await;
        promised!(renewed == Answer::Renewed, "an examination changes nothing", "a renew is answered {renewed:?}");
        let found = b.inspect(&group).await;
        let is_held = found.as_ref().is_some_and(|held| held.holder == a.candidate.id);
        promised!(is_held, "an examination changes nothing", "inspect tells of {found:?}");
        a.release(&group, None).await;
        a.leave().await;
        b.leave().await;
    }

    async fn candidates_that_race_do_not_win_twice(&self) {
        const ROUNDS: usize = 10;
        let (group, parties) = self.stage("race", ["r0", "r1", "r2", "r3"]).await;
        let parties = parties.map(Arc::new);
        let mut last = Term::default();
        for _ in 0..ROUNDS {
            let racing: Vec<_> = parties
                .iter()
                .map(|party| {
                    let (party, group) = (Arc::clone(party), group.clone());
                    tokio::spawn(async move { party.acquire(&group, LONG, Term::default()).await })
                })
                .collect();
            let mut winners = Vec::new();
            for (party, answer) in parties.iter().zip(racing) {
                match answer.await {
                    Ok(Answer::Won(won)) => winners.push((party, won.term)),
                    Ok(Answer::Held(_)) => {}
                    Ok(other) => broken!("one of those who ask at once wins, the others are told", "{other:?}"),
                    Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
                }
            }
            promised!(winners.len() == 1, "of those who ask at once one wins", "{} did", winners.len());
            let (winner, term) = winners[0];
            promised!(term > last, "each acquisition has a larger term", "{term} came after {last}");
            last = term;
            winner.release(&group, Some(term)).await;
        }
        for party in parties {
            if let Ok(party) = Arc::try_unwrap(party) {
                party.leave().await;
            }
        }
    }

    async fn a_renew_extends_the_acquisition_it_names(&self) {
        let (group, [a, b, again]) = self.stage("renew", ["a", "b", "a"]).await;
        let Answer::Won(won) = a.acquire(&group, LONG / 4, Term::default()).await else {
            broken!("a free lease is won", "it was not");
        };
        let before = a.inspect(&group).await.map(|held| held.remaining).unwrap_or_default();
        promised!(before <= LONG / 4, "a lease lasts no longer than its ttl", "{before:?} are left");
        let renewed = a.renew(&group, won.term).await;
        promised!(renewed == Answer::Renewed, "the holder can renew", "{renewed:?}");
        let after = a.inspect(&group).await.map(|held| held.remaining).unwrap_or_default();
        promised!(after > LONG / 2 && after <= LONG, "a renew sets the asker's ttl", "{after:?} are left of {LONG:?}");

        let older = Term::new(won.term.get() - 1);
        for (who, party, term, duplicate) in [
            ("another instance", &b, won.term, false),
            ("an older acquisition", &a, older, false),
            ("another incarnation of the same id", &again, won.term, true),
        ] {
            let lost = party.renew(&group, term).await;
            let right = lost == Answer::Lost { duplicate };
            promised!(right, "only the named acquisition is renewed, and a duplicate is told", "{who}: {lost:?}");
        }
        let still = a.renew(&group, won.term).await;
        promised!(still == Answer::Renewed, "a renew that is refused changes nothing", "{still:?}");
        a.release(&group, None).await;
        for party in [a, b, again] {
            party.leave().await;
        }
    }

    async fn a_release_ends_the_acquisition_it_names_and_is_announced(&self) {
        let (group, [a, mut b, again]) = self.stage("release", ["a", "b", "a"]).await;
        let won = a.win(&group).await;
        let older = Term::new(won.term.get() - 1);
        for (who, party, term) in [
            ("another instance", &b, won.term),
            ("an older acquisition", &a, older),
            ("another incarnation of the same id", &again, won.term),
        ] {
            let refused = party.release(&group, Some(term)).await;
            promised!(refused == Answer::NotHeld, "only the named acquisition is released", "{who}: {refused:?}");
        }
        let still = a.renew(&group, won.term).await;
        promised!(still == Answer::Renewed, "a late release changes nothing", "{still:?}");

        let held = b.acquire(&group, LONG, Term::default()).await;
        promised!(matches!(held, Answer::Held(_)), "a held lease is not given away", "{held:?}");
        let released = a.release(&group, Some(won.term)).await;
        promised!(released == Answer::Released, "the holder can release", "{released:?}");
        b.hears_release_of(&group).await;
        let next = b.win(&group).await;
        promised!(next.term > won.term, "each acquisition has a larger term", "{} after {}", next.term, won.term);

        let twice = a.release(&group, Some(won.term)).await;
        promised!(twice == Answer::NotHeld, "an acquisition is released once", "{twice:?}");
        let lost = a.renew(&group, won.term).await;
        promised!(lost == Answer::Lost { duplicate: false }, "a released lease cannot be renewed", "{lost:?}");
        let still = b.renew(&group, next.term).await;
        promised!(still == Answer::Renewed, "late commands of the last holder do not touch the next", "{still:?}");
        b.release(&group, None).await;
        for party in [a, b, again] {
            party.leave().await;
        }
    }

    async fn a_release_without_a_term_ends_what_the_incarnation_holds(&self) {
        let (group, [a, again]) = self.stage("release-any", ["a", "a"]).await;
        let nothing = a.release(&group, None).await;
        promised!(nothing == Answer::NotHeld, "who holds nothing releases nothing", "{nothing:?}");
        a.win(&group).await;
        let other = again.release(&group, None).await;
        promised!(other == Answer::NotHeld, "another incarnation's lease is not released", "{other:?}");
        let released = a.release(&group, None).await;
        promised!(
            released == Answer::Released,
            "a release without a term ends the incarnation's lease",
            "{released:?}"
        );
        promised!(a.inspect(&group).await.is_none(), "a released lease has no holder", "inspect tells of one");
        for party in [a, again] {
            party.leave().await;
        }
    }

    async fn a_lease_ends_by_itself_and_not_before_its_ttl(&self) {
        let (group, [a, b]) = self.stage("expiry", ["a", "b"]).await;
        let sent = BootInstant::now();
        let Answer::Won(old) = a.acquire(&group, SHORT, Term::default()).await else {
            broken!("a free lease is won", "it was not");
        };
        let next = loop {
            match b.acquire(&group, LONG, Term::default()).await {
                Answer::Won(won) => break won,
                Answer::Held(held) => {
                    let left = held.remaining;
                    promised!(left <= SHORT, "the time left is the holder's", "{left:?} of {SHORT:?}");
                    tokio::time::sleep(left.max(Duration::from_millis(1))).await;
                }
                other => broken!("a lease is held or won", "{other:?}"),
            }
            let waited = BootInstant::now().saturating_since(sent);
            promised!(waited < 100 * SHORT, "a lease ends by itself", "it stands after {waited:?}");
        };
        // A hundredth for clocks that do not run at one speed.
        let lasted = BootInstant::now().saturating_since(sent);
        promised!(lasted >= SHORT * 99 / 100, "a lease lasts for its ttl", "{lasted:?} of {SHORT:?}");
        promised!(next.term > old.term, "each acquisition has a larger term", "{} after {}", next.term, old.term);
        let lost = a.renew(&group, old.term).await;
        promised!(lost == Answer::Lost { duplicate: false }, "a lease that ended cannot be renewed", "{lost:?}");
        let late = a.release(&group, Some(old.term)).await;
        promised!(late == Answer::NotHeld, "a lease that ended cannot be released", "{late:?}");
        let still = b.renew(&group, next.term).await;
        promised!(still == Answer::Renewed, "late commands of the last holder do not touch the next", "{still:?}");
        b.release(&group, None).await;
        for party in [a, b] {
            party.leave().await;
        }
    }

    async fn an_own_lease_is_taken_back_under_a_new_term(&self) {
        let (group, [a]) = self.stage("reclaim", ["a"]).await;
        let first = a.win(&group).await.term;
        let second = a.win(&group).await.term;
        promised!(second > first, "a re-claim has a larger term", "{second} after {first}");
        let lost = a.renew(&group, first).await;
        promised!(lost == Answer::Lost { duplicate: false }, "a re-claim ends the acquisition before", "{lost:?}");
        let late = a.release(&group, Some(first)).await;
        promised!(late == Answer::NotHeld, "a late release does not end a re-claim", "{late:?}");
        let still = a.renew(&group, second).await;
        promised!(still == Answer::Renewed, "the re-claim stands", "{still:?}");
        a.release(&group, None).await;
        a.leave().await;
    }

    async fn a_term_is_above_every_floor(&self) {
        let (group, [a, b]) = self.stage("floor", ["a", "b"]).await;
        // As far ahead as a clock that was set back by a day and more leaves a candidate's floor.
        let ahead = |term: Term| Term::new(term.get() + 100_000_000_000);
        let first = a.win(&group).await.term;
        let seen = ahead(first);
        let held = b.acquire(&group, LONG, seen).await;
        promised!(matches!(held, Answer::Held(_)), "a held lease is not given away", "{held:?}");
        let second = a.win(&group).await.term;
        promised!(second > seen, "a refused acquire leaves its floor", "{second} after a floor of {seen}");
        a.release(&group, None).await;
        let seen = ahead(second);
        match b.acquire(&group, LONG, seen).await {
            Answer::Won(won) if won.term > seen => {}
            other => broken!("a term is above the asker's floor", "{other:?} with a floor of {seen}"),
        }
        b.release(&group, None).await;
        let third = a.win(&group).await.term;
        promised!(third > seen, "terms rise for ever", "{third} after {seen}");
        a.release(&group, None).await;
        for party in [a, b] {
            party.leave().await;
        }
    }

    async fn another_incarnation_of_the_same_id_is_left_or_taken(&self) {
        let (group, [old, new, other]) = self.stage("same-id", ["a", "a", "b"]).await;
        let take = Op::Acquire { floor: Term::default(), continues: false, same_id: SameId::Take };
        let won = old.win(&group).await;
        match new.acquire(&group, LONG, Term::default()).await {
            Answer::Held(held) if held.same_id && held.holder == old.candidate.id => {}
            answer => broken!("a seat of the same id is left if so asked, and told", "{answer:?}"),
        }
        let found = new.inspect(&group).await;
        promised!(found.as_ref().is_some_and(|held| held.same_id), "an inspect tells of a duplicate", "{found:?}");
        let refused = other.ask(&group, LONG, take.clone()).await;
        promised!(matches!(refused, Answer::Held(_)), "a seat of another id is never taken", "{refused:?}");
        let taken = match new.ask(&group, LONG, take.clone()).await {
            Answer::Won(taken) => taken,
            answer => broken!("a seat of the same id is taken if so asked", "{answer:?}"),
        };
        promised!(taken.term > won.term, "each acquisition has a larger term", "{} after {}", taken.term, won.term);
        let older = taken.older_lease;
        promised!(!older.is_zero() && older <= LONG, "the time that the older lease had left is told", "{older:?}");
        let lost = old.renew(&group, won.term).await;
        promised!(
            lost == Answer::Lost { duplicate: true },
            "the older incarnation is told of the duplicate",
            "{lost:?}"
        );
        let late = old.release(&group, None).await;
        promised!(late == Answer::NotHeld, "the older incarnation cannot release the lease", "{late:?}");
        let again = new.win(&group).await;
        promised!(
            !again.older_lease.is_zero() && again.older_lease <= older,
            "each acquisition is told of an older belief that has not ended",
            "{again:?}"
        );
        // A short ttl does not shorten it, and a release gives the lease to nobody before its end.
        match new.acquire(&group, SHORT, Term::default()).await {
            Answer::Won(_) => {}
            answer => broken!("an own lease is taken back", "{answer:?}"),
        }
        new.release(&group, None).await;
        match other.acquire(&group, LONG, Term::default()).await {
            Answer::Held(held) if held.remaining > SHORT => {}
            answer => broken!("a lease that was taken over stands until the older belief ends", "{answer:?}"),
        }
        for party in [old, new, other] {
            party.leave().await;
        }
    }

    async fn a_batch_is_answered_in_order_and_each_command_on_its_own(&self) {
        let (free, [a, b]) = self.stage("batch-free", ["a", "b"]).await;
        let (held, own, late, never) =
            (self.group("batch-held"), self.group("batch-own"), self.group("batch-late"), self.group("batch-never"));
        for group in [&held, &own, &late, &never] {
            a.settle(group).await;
        }
        b.win(&held).await;
        let (term, lost) = (a.win(&own).await.term, a.win(&late).await.term);
        a.release(&late, Some(lost)).await;
        let acquire = Op::Acquire { floor: Term::default(), continues: false, same_id: SameId::Leave };
        let commands = vec![
            a.command(&held, LONG, acquire.clone()),
            a.command(&own, LONG, Op::Renew { term }),
            a.command(&late, LONG, Op::Renew { term: lost }),
            a.command(&free, LONG, acquire),
            a.command(&never, LONG, Op::Inspect),
        ];
        let answers = a.batch(commands).await;
        let right = matches!(
            &answers[..],
            [
                Ok(Answer::Held(_)),
                Ok(Answer::Renewed),
                Ok(Answer::Lost { duplicate: false }),
                Ok(Answer::Won(_)),
                Ok(Answer::Inspected(None)),
            ]
        );
        promised!(right, "a batch is answered in order, each command on its own", "{answers:?}");
        let releases = [&held, &own, &late, &free].map(|group| a.command(group, LONG, Op::Release { term: None }));
        let answers = a.batch(releases.into()).await;
        let right = matches!(
            &answers[..],
            [Ok(Answer::NotHeld), Ok(Answer::Released), Ok(Answer::NotHeld), Ok(Answer::Released)]
        );
        promised!(right, "a batch is answered in order, each command on its own", "{answers:?}");
        promised!(a.batch(Vec::new()).await.is_empty(), "an empty batch has no answers", "it has");
        b.release(&held, None).await;
        for party in [a, b] {
            party.leave().await;
        }
    }
}
