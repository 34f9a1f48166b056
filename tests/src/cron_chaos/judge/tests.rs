//! The judge finds what is wrong, and excuses only what is known to be no fault.

use super::*;
use crate::cron_chaos::jobs::Jobs;

/// The first expected second; the boot clock began a second before it.
const S: i64 = 1_000;
const MS: u64 = 1_000_000;

/// Milliseconds after the first expected second, by the boot clock.
fn at(ms: u64) -> u64 {
    1_000 * MS + ms * MS
}

struct Scene(Evidence, u64);

impl Scene {
    /// Three seconds, in which `a` ran everything in time.
    fn new() -> Self {
        let all = Jobs::All(1).list();
        let wanted = ["again-0", "all-0", "once-0", "rare-0"];
        let jobs = all.into_iter().filter(|job| wanted.contains(&job.name.as_str())).collect();
        let bounds = Bounds { expected: (S, S + 2), own_clocks: false, ledger: true, restarts: 0, news_ns: 0 };
        let evidence = Evidence {
            jobs,
            members: BTreeMap::new(),
            deaths: BTreeMap::new(),
            shifts: Vec::new(),
            troubles: Vec::new(),
            losses: Vec::new(),
            known: Known::default(),
            bounds,
        };
        let mut scene = Self(evidence, 0);
        for tick in S..S + 3 {
            for job in ["again-0", "all-0", "once-0"] {
                scene = scene.runs("a", job, tick, 1, 5, 10);
            }
        }
        scene.runs("a", "rare-0", S, 1, 5, 10)
    }

    fn lines(&mut self, member: &str) -> &mut Vec<Line> {
        self.0.members.entry(member.to_owned()).or_default()
    }

    /// A body that begins `late` milliseconds after its tick.
    fn begins(&mut self, member: &str, job: &str, tick: i64, attempt: u32, late: i64) -> u64 {
        self.1 += 1;
        let (run, ms) = (self.1, (tick - S) * 1_000 + late);
        let true_us = S * 1_000_000 + ms * 1_000;
        let began = Line::Began {
            run,
            job: job.to_owned(),
            tick,
            attempt,
            missed: 0,
            term: 7,
            instance: member.to_owned(),
            at_ns: at(0).saturating_add_signed(ms * MS as i64),
            true_us,
            own_us: true_us,
        };
        self.lines(member).push(began);
        run
    }

    fn runs(mut self, member: &str, job: &str, tick: i64, attempt: u32, late: i64, takes: u64) -> Self {
        let run = self.begins(member, job, tick, attempt, late);
        let ms = (tick - S) * 1_000 + late;
        let at_ns = at(takes).saturating_add_signed(ms * MS as i64);
        self.lines(member).push(Line::Ended { run, at_ns });
        self
    }

    /// No body begins for it.
    fn without(mut self, job: &str, tick: i64) -> Self {
        for lines in self.0.members.values_mut() {
            lines.retain(|line| !matches!(line, Line::Began { job: j, tick: t, .. } if j == job && *t == tick));
        }
        self
    }

    fn killed(mut self, member: &str, ms: u64) -> Self {
        self.0.deaths.insert(member.to_owned(), Between { from_ns: at(ms), to_ns: at(ms + 1) });
        self
    }

    fn claimed(mut self, job: &str, tick: i64, by: &str) -> Self {
        self.0.known.claims.insert((job.to_owned(), tick, by.to_owned()));
        self
    }

    fn trouble(mut self, whom: &str, what: What, from: u64, to: u64) -> Self {
        self.0.troubles.push(Trouble { whom: Some(whom.to_owned()), what, from_ns: at(from), to_ns: at(to) });
        self
    }

    /// The beginnings of what is found.
    fn found(&self) -> Vec<String> {
        let (_, found) = judge(&self.0);
        found.iter().map(|violation| violation.to_string().chars().take_while(|c| *c != ':').collect()).collect()
    }

    fn counts(&self) -> Counts {
        judge(&self.0).0.all
    }
}

#[test]
fn nothing_is_found_where_each_tick_ran_once() {
    let scene = Scene::new();
    assert_eq!(scene.found(), [""; 0]);
    let Counts { expected, ran, latest_ms, .. } = scene.counts();
    assert_eq!((expected, ran, latest_ms), (10, 10, 5));
}

#[test]
fn a_tick_that_no_body_began_is_lost_whatever_went_wrong_at_about_that_time() {
    let scene = Scene::new().without("all-0", S + 1).killed("b", 1_000).trouble("a", What::Halt, 900, 1_100);
    assert_eq!(scene.found(), ["lost"]);
    // Claimed, but by one that lives; and killed, but of another tick.
    assert_eq!(scene.claimed("all-0", S + 1, "a").claimed("all-0", S, "b").found(), ["lost"]);
}

#[test]
fn a_tick_dies_only_with_who_claimed_it_and_was_killed_and_only_at_most_once() {
    let scene = |job| Scene::new().without(job, S + 1).killed("b", 1_000).claimed(job, S + 1, "b");
    assert_eq!((scene("all-0").found(), scene("all-0").counts().died), (vec![], 1));
    assert_eq!(scene("again-0").found(), ["lost"]);
    let two = scene("all-0").without("all-0", S + 2).claimed("all-0", S + 2, "b");
    assert_eq!(two.found(), ["too many died"]);
}

#[test]
fn what_the_store_may_have_forgotten_is_excused_only_if_it_was_restarted_and_somebody_said_so_of_that_tick() {
    let told = |tick, restarts| {
        let mut scene = Scene::new().without("all-0", S + 1);
        scene.0.bounds.restarts = restarts;
        let text = "1 ticks are not run: the store has lost its memory, and".to_owned();
        scene.lines("a").push(Line::Told { job: "all-0".to_owned(), tick, count: 1, text });
        scene
    };
    assert_eq!((told(S + 1, 1).found(), told(S + 1, 1).counts().forgotten), (vec![], 1));
    assert_eq!(told(S + 1, 0).found(), ["lost"]);
    assert_eq!(told(S, 1).found(), ["lost"]);
    assert_eq!(told(S + 2, 1).found(), ["lost"]);
}

#[test]
fn a_tick_is_passed_over_only_where_the_job_says_so_and_somebody_tells() {
    assert_eq!(Scene::new().without("once-0", S + 1).found(), ["lost"]);
    for (job, found) in [("once-0", vec![]), ("again-0", vec!["lost".to_owned()])] {
        let mut scene = Scene::new().without(job, S + 1);
        scene.0.known.missed.insert((job.to_owned(), S, 2, "a newer one is run in their place".to_owned()));
        assert_eq!(scene.found(), found);
    }
}

#[test]
fn a_second_body_is_one_too_many_unless_it_is_a_further_attempt_at_what_did_not_end() {
    let again = |job, attempt| Scene::new().runs("b", job, S, attempt, 1_500, 10);
    assert_eq!(again("all-0", 1).found(), ["doubled"]);
    assert_eq!(again("all-0", 2).found(), ["doubled"]);
    assert_eq!(again("again-0", 1).found(), ["doubled"]);
    assert_eq!(again("again-0", 2).found(), ["doubled"], "the first had ended, and nothing kept it from telling");
    assert_eq!(again("again-0", 2).trouble("a", What::Silence, 0, 1_400).found(), [""; 0]);
    assert_eq!(again("again-0", 2).killed("a", 2_900).found(), ["doubled"], "killed long after");
    assert_eq!(again("again-0", 2).killed("a", 100).counts().repeated, 1);
}

#[test]
fn a_body_that_died_is_repeated_until_one_ends_or_it_is_given_up() {
    let mut died = Scene::new().without("again-0", S + 1).killed("b", 1_100);
    died.begins("b", "again-0", S + 1, 1, 50);
    assert_eq!(died.found(), ["no end"]);
    assert_eq!(died.runs("a", "again-0", S + 1, 2, 2_000, 10).found(), [""; 0]);
}

#[test]
fn a_body_before_its_tick_is_early_by_the_clock_that_the_store_goes_by() {
    let early = || Scene::new().without("again-0", S + 2).runs("b", "again-0", S + 2, 1, -1, 10);
    assert_eq!(early().found(), ["early by 1000 µs"]);
    let mut ahead = early();
    let at = Between { from_ns: 0, to_ns: 1 };
    ahead.0.shifts.push(Shift { member: "b".to_owned(), at, offset_us: 200_000 });
    assert!(ahead.found().contains(&"early by 1000 µs".to_owned()), "the clock of the process does not matter");
    ahead.0.bounds.own_clocks = true;
    assert!(!ahead.found().contains(&"early by 1000 µs".to_owned()));
}

#[test]
fn a_clock_that_does_not_show_what_it_was_set_to_proves_nothing() {
    let mut scene = Scene::new();
    let at = Between { from_ns: 0, to_ns: 1 };
    scene.0.shifts.push(Shift { member: "a".to_owned(), at, offset_us: 5_000_000 });
    assert_eq!(scene.found(), ["wrong clock"]);
}

#[test]
fn two_runs_overlap_unless_the_line_came_late_because_its_process_stood_still() {
    let overlap = |takes| Scene::new().without("all-0", S).runs("b", "all-0", S, 1, 0, takes);
    assert_eq!(overlap(1_500).found(), ["overlap"]);
    assert_eq!(overlap(1_500).trouble("b", What::Silence, 100, 1_490).found(), ["overlap"]);
    assert_eq!(overlap(1_500).trouble("b", What::Halt, 100, 500).found(), ["overlap"], "it went on long before");
    assert_eq!(overlap(1_500).trouble("b", What::Halt, 100, 1_490).found(), [""; 0]);
    assert_eq!(overlap(900).found(), [""; 0]);
}

/// The store loses its memory so many milliseconds after the first tick.
fn forgets(mut scene: Scene, ms: u64) -> Scene {
    scene.0.losses.push(Loss { at: Between { from_ns: at(ms), to_ns: at(ms) }, second: S + (ms / 1_000) as i64 });
    scene
}

#[test]
fn a_tick_that_was_open_when_the_store_lost_its_memory_is_excused_only_by_a_fact() {
    let anew = |mut scene: Scene, since| {
        scene.0.known.since.insert(("again-0".to_owned(), since));
        scene
    };
    let scene = |ms| forgets(Scene::new().without("again-0", S + 1), ms);
    assert_eq!(scene(1_500).found(), ["lost"], "nobody knows of it");
    assert_eq!((anew(scene(1_500), S + 1).found(), anew(scene(1_500), S + 1).counts().forgotten), (vec![], 1));
    assert_eq!(scene(1_500).claimed("again-0", S + 1, "a").found(), [""; 0]);
    assert_eq!(anew(scene(1_500), S).found(), ["lost"], "the record began before the tick");
    assert_eq!(anew(scene(2_500), S + 2).found(), ["lost"], "a later one had been begun before");
    assert_eq!(anew(Scene::new().without("again-0", S + 1), S + 1).found(), ["lost"], "nothing was forgotten");
}

#[test]
fn what_the_store_has_forgotten_may_be_run_again_at_least_once_and_is_doubled_at_most_once() {
    let again = |job| Scene::new().runs("b", job, S, 1, 1_500, 10);
    assert_eq!(forgets(again("again-0"), 1_000).counts().repeated, 1);
    assert_eq!(forgets(again("again-0"), 1_000).found(), [""; 0]);
    assert_eq!(forgets(again("again-0"), 1_600).found(), ["doubled"], "before it forgot");
    assert_eq!(forgets(again("all-0"), 1_000).found(), ["doubled"]);
}

#[test]
fn a_run_that_the_store_has_forgotten_may_be_joined_and_need_not_end() {
    let overlap = || Scene::new().without("all-0", S).runs("b", "all-0", S, 1, 0, 1_500);
    assert_eq!(overlap().found(), ["overlap"]);
    assert_eq!(forgets(overlap(), 900).found(), [""; 0]);
    let mut died = Scene::new().without("again-0", S + 1).killed("b", 1_100);
    died.begins("b", "again-0", S + 1, 1, 50);
    assert_eq!(forgets(died, 1_200).found(), [""; 0]);
}

#[test]
fn what_was_counted_before_is_compared_with_and_not_counted_again() {
    let mut scene = Scene::new().runs("b", "all-0", S, 1, 2_900, 10);
    scene.0.bounds.expected = (S + 2, S + 2);
    scene.0.bounds.news_ns = at(1_500);
    assert_eq!(scene.found(), ["doubled"], "by a body of which the first was counted before");
    scene.0.bounds.news_ns = at(2_950);
    assert_eq!(scene.found(), [""; 0]);
}
