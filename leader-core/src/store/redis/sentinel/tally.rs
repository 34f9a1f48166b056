//! What several sentinels tell, taken together.
//!
//! The latest election counts, and of two addresses by the same one that which more of them name. More than half of the
//! sentinels settle it at once; fewer do when the others had their time, so that one which is dead or cut off costs no more
//! than that. An election before one that is known already counts only if more than half of the sentinels tell of no later
//! one: those were told to forget, where fewer may be cut off together with a primary that was given up.

use super::super::address::{List, Sentinels, Server};
use super::super::connection::Failure;
use super::answer::{Found, Told};

/// The answers so far.
pub(super) struct Tally<'a> {
    sentinels: &'a Sentinels,
    /// The latest election that is known.
    known: u64,
    told: Vec<Option<Told>>,
}

impl<'a> Tally<'a> {
    pub(super) fn new(sentinels: &'a Sentinels, known: u64) -> Self {
        Self { sentinels, known, told: vec![None; sentinels.servers.len()] }
    }

    /// What the sentinel with this number has told.
    pub(super) fn take(&mut self, number: usize, told: Told) {
        self.told[number] = Some(told);
    }

    /// The others will not answer any more.
    pub(super) fn close(&mut self) {
        for (told, server) in self.told.iter_mut().zip(&self.sentinels.servers) {
            told.get_or_insert_with(|| Told::Nothing(format!("{server} did not answer in time")));
        }
    }

    /// The primary, or why none is known; nothing as long as other answers may change it. `late`: they had their time.
    pub(super) fn verdict(&self, late: bool) -> Option<Result<Found, Failure>> {
        let all_told = self.told.iter().all(Option::is_some);
        match self.best() {
            Some((found, votes)) => {
                let most = self.is_most(votes);
                if found.epoch >= self.known {
                    return (most || late || all_told).then(|| Ok(found.clone()));
                }
                if most && (late || all_told) {
                    return Some(Ok(found.clone()));
                }
                all_told.then(|| Err(self.behind()))
            }
            None => all_told.then(|| Err(self.failure())),
        }
    }

    fn is_most(&self, number: usize) -> bool {
        number > self.told.len() / 2
    }

    /// The address by the latest election, and how many name it.
    fn best(&self) -> Option<(&Found, usize)> {
        let found = || {
            self.told.iter().filter_map(|told| match told {
                Some(Told::Primary(found)) => Some(found),
                _ => None,
            })
        };
        let votes = |one: &Found| found().filter(|other| *other == one).count();
        // Of equals the last one: the order of the URL decides, and not who was faster.
        found().map(|one| (one, votes(one))).max_by_key(|(one, votes)| (one.epoch, *votes))
    }

    /// Who answers knows less than is known here.
    fn behind(&self) -> Failure {
        Failure::Unreachable(format!(
            "the sentinels that answer know of no election as late as one that is known here, and they are not most of {}{}",
            List(&self.sentinels.servers),
            self.causes()
        ))
    }

    fn failure(&self) -> Failure {
        let Sentinels { service, servers, .. } = self.sentinels;
        let told = || self.told.iter().flatten();
        let unknown: Vec<Server> = servers
            .iter()
            .zip(&self.told)
            .filter(|(_, told)| matches!(told, Some(Told::Unknown)))
            .map(|(server, _)| server.clone())
            .collect();
        let refused = told().filter(|told| matches!(told, Told::Refused { .. })).count();
        if self.is_most(unknown.len()) {
            return Failure::Impossible {
                cause: format!("the sentinels {} watch no service `{service}`", List(&unknown)),
                advice: "write the name that `sentinel monitor` gives it into the URL; the command SENTINEL MASTERS tells the \
                         names"
                    .to_owned(),
            };
        }
        if self.is_most(unknown.len() + refused)
            && let Some(Told::Refused { cause, advice }) = told().find(|told| matches!(told, Told::Refused { .. }))
        {
            return Failure::Impossible { cause: cause.clone(), advice: advice.clone() };
        }
        Failure::Unreachable(format!("no sentinel tells where the primary of `{service}` is{}", self.causes()))
    }

    /// What each of those says that name no primary.
    fn causes(&self) -> String {
        let mut causes = String::new();
        for (told, server) in self.told.iter().zip(&self.sentinels.servers) {
            let cause = match told {
                Some(Told::Nothing(cause) | Told::Refused { cause, .. }) => cause.clone(),
                Some(Told::Unknown) => format!("{server} watches no such service"),
                Some(Told::Primary(_)) | None => continue,
            };
            causes.extend([if causes.is_empty() { ": " } else { "; " }, &cause]);
        }
        causes
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, sentinels, server};
    use super::*;

    /// What these answers mean together, in this order; `None` stands for one that has not come yet.
    fn of(known: u64, told: &[Option<Told>], late: bool) -> Option<Result<Found, Failure>> {
        let sentinels = sentinels(told.len());
        let mut tally = Tally::new(&sentinels, known);
        told.iter().enumerate().for_each(|(n, told)| told.iter().for_each(|told| tally.take(n, told.clone())));
        tally.verdict(late)
    }

    fn primary(host: &str, epoch: u64) -> Option<Told> {
        Some(Told::Primary(found(host, epoch)))
    }

    fn nothing(n: usize) -> Option<Told> {
        Some(Told::Nothing(format!("connection refused by {}", server(n))))
    }

    #[test]
    fn more_than_half_settle_it_at_once_and_fewer_when_the_others_had_their_time() {
        assert_eq!(of(0, &[primary("a", 1)], false), Some(Ok(found("a", 1))));
        let two = [primary("a", 1), None, primary("a", 1)];
        assert_eq!(of(0, &two, false), Some(Ok(found("a", 1))));
        let one = [None, primary("a", 1), None];
        assert_eq!((of(0, &one, false), of(0, &one, true)), (None, Some(Ok(found("a", 1)))));
        // Nobody is left to wait for.
        assert_eq!(of(0, &[nothing(0), primary("a", 1), nothing(2)], false), Some(Ok(found("a", 1))));
        assert_eq!(of(0, &[None, None, None], true), None);
        assert_eq!(of(0, &[primary("a", 1), None], false), None, "half are not more than half");
    }

    #[test]
    fn the_latest_election_counts_and_of_one_election_what_more_of_them_say() {
        let newest = [primary("old", 1), primary("new", 2), primary("old", 1)];
        assert_eq!(of(0, &newest, false), Some(Ok(found("new", 2))));
        let names = [primary("name", 1), primary("10.0.0.1", 1), primary("10.0.0.1", 1)];
        assert_eq!(of(0, &names, false), Some(Ok(found("10.0.0.1", 1))));
    }

    #[test]
    fn an_older_election_than_is_known_counts_only_if_most_tell_of_no_later_one() {
        let old = || primary("old", 1);
        // Those who would know better may just be slower.
        assert_eq!(of(2, &[old(), old(), None], false), None);
        assert_eq!(of(2, &[old(), old(), primary("new", 2)], false), Some(Ok(found("new", 2))));
        assert_eq!(of(2, &[old(), old(), None], true), Some(Ok(found("old", 1))));
        assert_eq!(of(2, &[old(), None, None], true), None);
        let Some(Err(Failure::Unreachable(cause))) = of(2, &[old(), nothing(1), nothing(2)], true) else { panic!() };
        assert!(cause.contains("as late as") && cause.contains("refused by s1:26379; "), "{cause}");
        // Of one that stands for all there is nothing else to ask.
        assert_eq!(of(2, &[old()], false), Some(Ok(found("old", 1))));
    }

    #[test]
    fn a_service_that_most_do_not_know_is_named_and_so_are_they() {
        let Some(Err(Failure::Impossible { cause, advice })) =
            of(0, &[Some(Told::Unknown), nothing(1), Some(Told::Unknown)], false)
        else {
            panic!()
        };
        assert_eq!(cause, "the sentinels s0:26379,s2:26379 watch no service `jobs`");
        assert!(advice.contains("SENTINEL MASTERS"), "{advice}");
        // One that was reset is not the last word.
        assert_eq!(of(0, &[Some(Told::Unknown), primary("a", 1), None], true), Some(Ok(found("a", 1))));
        let passing = of(0, &[Some(Told::Unknown), nothing(1), nothing(2)], false);
        let Some(Err(Failure::Unreachable(cause))) = passing else { panic!("{passing:?}") };
        for part in ["`jobs`", "s0:26379 watches no such service", "s1:26379", "s2:26379"] {
            assert!(cause.contains(part), "{cause}");
        }
    }

    #[test]
    fn a_refusal_by_most_does_not_pass_and_one_by_fewer_may() {
        let refused = || Some(Told::Refused { cause: "no".to_owned(), advice: "do".to_owned() });
        let impossible = Some(Err(Failure::Impossible { cause: "no".to_owned(), advice: "do".to_owned() }));
        assert_eq!(of(0, &[nothing(0), refused(), refused()], false), impossible);
        assert_eq!(of(0, &[nothing(0), Some(Told::Unknown), refused()], false), impossible);
        assert!(matches!(of(0, &[nothing(0), nothing(1), refused()], false), Some(Err(Failure::Unreachable(_)))));
        assert_eq!(of(0, &[primary("a", 1), refused(), refused()], false), Some(Ok(found("a", 1))));
    }

    #[test]
    fn who_does_not_answer_is_named() {
        let sentinels = sentinels(2);
        let mut tally = Tally::new(&sentinels, 0);
        tally.close();
        let verdict = tally.verdict(true);
        let Some(Err(Failure::Unreachable(cause))) = verdict else { panic!("{verdict:?}") };
        assert!(cause.contains("s0:26379 did not answer") && cause.contains("s1:26379 did not answer"), "{cause}");
    }
}
