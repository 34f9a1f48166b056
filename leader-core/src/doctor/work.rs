//! What an instance does for a group, in the words that instances tell each other, and what is wrong if two of them differ.
//!
//! One line for each function that the group gates, `billing::jobs::send_digest`. Once its jobs were started, a line `@`
//! follows, and then one for each job of the group: `@digest 0 0 3 * * *`. An instance without that line may start its jobs
//! later.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Finding;
use super::several::some_of;

/// So many bytes of a description at most: it is sent with each acquire.
const MOST: usize = 2048;
/// The last line, if not all have room.
const MORE: &str = "…";
/// So many bytes of a schedule.
const LONGEST_SCHEDULE: usize = 100;
/// So many characters of a name that somebody else wrote are shown, and of a schedule.
const LONGEST: usize = 200;

/// What a line about a job begins with; and alone, that all jobs are known.
const JOB: &str = "@";

/// An instance that has led for so long without having started jobs is not about to start any.
pub(crate) const STARTED: Duration = Duration::from_secs(60);

/// The lines about the jobs of a group, names and schedules, as they follow those about its functions.
pub(crate) fn lines_of_jobs<'a>(jobs: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut lines = vec![JOB.to_owned()];
    lines.extend(jobs.map(|(name, schedule)| {
        let schedule: String = schedule.replace(char::is_control, " ").chars().take(LONGEST_SCHEDULE).collect();
        format!("{JOB}{name} {schedule}")
    }));
    lines
}

/// Whether jobs are among the lines.
#[cfg(any(feature = "redis-fred", feature = "redis-rs"))]
pub(crate) fn has_jobs(lines: &[String]) -> bool {
    lines.iter().any(|line| line.len() > JOB.len() && line.starts_with(JOB))
}

/// A description of what a program does for a group: the program's name, and then the lines.
pub(crate) fn describe(program: &str, lines: &[String]) -> String {
    let mut text = shown(program);
    for line in lines {
        if text.len() + line.len() + MORE.len() + 2 > MOST {
            text.extend(["\n", MORE]);
            break;
        }
        text.extend(["\n", line]);
    }
    text
}

/// What others wrote, in one line; and a program's name, as descriptions have it.
pub(crate) fn shown(text: &str) -> String {
    text.replace(char::is_control, "?")
}

/// The same, and not without an end.
fn short(text: &str) -> String {
    shown(text).chars().take(LONGEST).collect()
}

/// What a leader's description lacks of what an instance does.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lack {
    /// It is another program, and what it has not runs nowhere while it leads.
    pub(crate) of_another_program: bool,
    /// What follows the leader's name in a sentence: `of the program …, which has no …`.
    pub(crate) text: String,
}

/// Functions, and jobs with their schedules.
#[derive(Default)]
struct Work<'a> {
    functions: Vec<&'a str>,
    /// None: they may be started later.
    jobs: Option<BTreeMap<&'a str, &'a str>>,
}

impl<'a> Work<'a> {
    fn read(lines: impl Iterator<Item = &'a str>) -> Self {
        let mut work = Self::default();
        for line in lines {
            match line.strip_prefix(JOB) {
                Some("") => drop(work.jobs.get_or_insert_default()),
                Some(job) => {
                    let (name, schedule) = job.split_once(' ').unwrap_or((job, ""));
                    work.jobs.get_or_insert_default().insert(name, schedule);
                }
                None => work.functions.push(line),
            }
        }
        work
    }

    /// What is here and not there, in words.
    fn beyond(&self, other: &Self) -> Vec<String> {
        let functions = self.functions.iter().filter(|function| !other.functions.contains(function));
        let others = other.jobs.as_ref();
        let jobs = self.jobs.iter().flatten().filter(|(name, _)| others.is_some_and(|jobs| !jobs.contains_key(*name)));
        functions.map(|name| short(name)).chain(jobs.map(|(name, _)| format!("job {}", short(name)))).collect()
    }
}

/// What the leader that is described so does not do of what `program` does here. Nothing, if that cannot be told. `led`: for
/// how long it has led, if that is known.
pub(crate) fn lack(description: &str, program: &str, lines: &[String], led: Option<Duration>) -> Option<Lack> {
    let mut theirs = description.split('\n');
    let name = theirs.next().filter(|name| !name.is_empty())?;
    let theirs: Vec<&str> = theirs.collect();
    if theirs.last() == Some(&MORE) {
        return None;
    }
    let (mut theirs, ours) = (Work::read(theirs.into_iter()), Work::read(lines.iter().map(String::as_str)));
    if led.is_some_and(|led| led >= STARTED) {
        theirs.jobs.get_or_insert_default();
    }
    let (missing, more) = (ours.beyond(&theirs), theirs.beyond(&ours));
    let otherwise = ours.jobs.iter().flatten().filter_map(|(job, schedule)| {
        let there = theirs.jobs.as_ref()?.get(job).filter(|there| *there != schedule)?;
        Some(format!("job {} at `{}` instead of `{}`", short(job), short(there), short(schedule)))
    });
    let otherwise: Vec<String> = otherwise.collect();
    if missing.is_empty() && otherwise.is_empty() {
        return None;
    }
    let mut parts = Vec::new();
    if !missing.is_empty() {
        parts.push(format!("has no {}", some_of(&missing)));
    }
    if !otherwise.is_empty() {
        parts.push(format!("runs {}", some_of(&otherwise)));
    }
    if !more.is_empty() {
        parts.push(format!("has {}, which this instance has not", some_of(&more)));
    }
    let text = format!("of the program `{}`, which {}", short(name), parts.join(", and "));
    Some(Lack { of_another_program: name != shown(program) && !missing.is_empty(), text })
}

/// The names of the jobs in a description; nothing, if not all stand there, or they may be started later.
#[cfg(feature = "sqlite")]
pub(crate) fn jobs_in(description: &str) -> Option<Vec<&str>> {
    let lines: Vec<&str> = description.split('\n').skip(1).collect();
    let is_whole = lines.last() != Some(&MORE);
    let jobs = Work::read(lines.into_iter()).jobs.filter(|_| is_whole)?;
    Some(jobs.into_keys().collect())
}

/// `texts`: which leases, held by whom.
pub(crate) fn other_program(texts: &str) -> Finding {
    Finding::error(
        format!("leases are held by a program without the functions that they are for: {texts}"),
        "while it leads, these functions run nowhere",
        "let the two programs use different groups, or give one of them another prefix (Config::prefix, LEADER_PREFIX)",
    )
    .coded("other-program")
}

/// The same of another version of the program.
pub(crate) fn other_jobs(texts: &str) -> Finding {
    Finding::warning(
        format!("leaders do other work than this instance would: {texts}"),
        "while they lead, what they lack runs nowhere, and a job runs by their schedule",
        "during a rolling update this is usual and passes with it; otherwise see that all instances are of one version, and \
         that each starts the jobs of its groups",
    )
    .coded("other-jobs")
}

/// The ttl of a leader, with which a candidate whose own is `ours` has to reckon if the store may lose its memory; nothing, if
/// it does.
pub(crate) fn judge_ttl(ours: Duration, theirs: Duration, shortest_quarantine: Duration) -> Option<String> {
    (ours != theirs && shortest_quarantine < ours.max(theirs))
        .then(|| format!("with a ttl of {theirs:?}, where this instance has {ours:?}"))
}

/// `texts`: which leases, held by whom, with which ttl.
pub(crate) fn other_ttl(texts: &str, advice: &str) -> Finding {
    Finding::warning(
        format!("leaders have another ttl than this instance: {texts}"),
        "a store that lost its memory gives no lease for a ttl of who asks: the longer lease of another may last longer than \
         that, and then two lead",
        format!("give all instances the same ttl (Config::ttl, LEADER_TTL); during a rolling update that changes it this is usual{advice}"),
    )
    .coded("other-ttl")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG_AGO: Option<Duration> = Some(Duration::from_secs(3600));

    fn lines(all: &[&str]) -> Vec<String> {
        all.iter().map(ToString::to_string).collect()
    }

    /// What `billing`, with the first lines, finds of a leader with the others.
    fn text(ours: &[&str], theirs: &[&str], led: Option<Duration>) -> Option<String> {
        let found = lack(&describe("billing", &lines(theirs)), "billing", &lines(ours), led);
        found.map(|lack| {
            assert!(!lack.of_another_program);
            lack.text
        })
    }

    #[test]
    fn what_the_leader_does_not_do_is_told_and_what_it_does_beyond() {
        let of = "of the program `billing`, which";
        assert_eq!(text(&["m::a"], &["m::a", "m::b"], None), None);
        assert_eq!(text(&["m::b", "m::c"], &["m::b"], None), Some(format!("{of} has no m::c")));
        let both = format!("{of} has no m::c, and has m::a, which this instance has not");
        assert_eq!(text(&["m::c"], &["m::a"], None), Some(both));
        let another = lack("mail\nm::a", "billing", &lines(&["m::b"]), None).unwrap();
        assert!(another.of_another_program && another.text.contains("`mail`, which has no m::b"), "{another:?}");
        // It runs, by its schedule.
        let later = lack("mail\n@\n@digest @daily", "billing", &lines(&["@", "@digest @hourly"]), None).unwrap();
        assert!(!later.of_another_program && later.text.contains("job digest at `@daily` instead of"), "{later:?}");
        // Of who described nothing nothing is known.
        assert_eq!(lack("", "billing", &lines(&["m::a"]), LONG_AGO), None);
    }

    #[test]
    fn jobs_are_compared_by_name_and_schedule_once_the_leader_has_started_its_own() {
        let of = "of the program `billing`, which";
        let ours = ["m::a", "@", "@digest 0 0 3 * * *", "@report @hourly"];
        assert_eq!(text(&ours, &ours, LONG_AGO), None);
        assert_eq!(text(&ours, &["m::a"], Some(Duration::from_secs(1))), None, "they may be about to start");
        assert_eq!(text(&ours, &["m::a"], None), None);
        assert_eq!(text(&ours, &["m::a"], LONG_AGO), Some(format!("{of} has no job digest, job report")));
        let theirs = ["m::a", "@", "@digest 0 0 4 * * *", "@older @daily"];
        let told = format!(
            "{of} has no job report, and runs job digest at `0 0 4 * * *` instead of `0 0 3 * * *`, and has job older, which \
             this instance has not"
        );
        assert_eq!(text(&ours, &theirs, None), Some(told));
        // Who has not started any jobs here misses none.
        assert_eq!(text(&["m::a"], &theirs, None), None);
        assert_eq!(text(&["m::a", "@"], &theirs, None), None);
    }

    #[test]
    fn a_description_is_bounded_and_then_says_nothing_of_what_is_missing() {
        let many: Vec<String> = (0..200).map(|n| format!("some::module::function_{n}")).collect();
        let theirs = describe("billing", &many);
        assert!(theirs.len() <= MOST, "{}", theirs.len());
        assert_eq!(lack(&theirs, "billing", &lines(&["m::a"]), LONG_AGO), None);
        let jobs = lines_of_jobs([("digest", "0 0 3 * * *\nrm"), ("long", &*"x".repeat(500))].into_iter());
        assert_eq!(jobs[..2], ["@".to_owned(), "@digest 0 0 3 * * * rm".to_owned()]);
        assert_eq!(jobs[2].len(), "@long ".len() + LONGEST_SCHEDULE);
    }

    #[test]
    fn what_others_wrote_is_shown_in_one_line_that_has_an_end() {
        let theirs = format!("mail\u{1b}[2J\n{}\n@digest \u{7}{}", "x\u{85}".repeat(5_000), "y".repeat(5_000));
        let text = lack(&theirs, "billing", &lines(&["m::a", "@", "@digest @daily"]), None).unwrap().text;
        assert!(text.contains("`mail?[2J`") && text.contains("job digest at `?yy"), "{text}");
        assert!(!text.contains(char::is_control) && text.len() < 1_000, "{text}");
    }

    #[test]
    fn another_ttl_is_told_unless_everybody_reckons_with_the_larger() {
        let s = Duration::from_secs;
        assert_eq!(judge_ttl(s(10), s(10), s(0)), None);
        for (ours, theirs) in [(10, 60), (60, 10)] {
            let told = judge_ttl(s(ours), s(theirs), s(30)).unwrap();
            assert_eq!(told, format!("with a ttl of {theirs}s, where this instance has {ours}s"));
            assert_eq!(judge_ttl(s(ours), s(theirs), s(60)), None);
        }
    }
}
