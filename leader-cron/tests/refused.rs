//! What is wrong is told before anything starts, all at once, with what to do. Every scheduler in this program lacks
//! something, because of the functions below.
#![expect(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

use std::sync::Arc;

use leader_core::testing::FixedElector;
use leader_cron::{CronError, Job, JobProblem, Scheduler, Tick, cron};

struct Database;

trait Mailer: Send + Sync {}

#[cron("@hourly")]
async fn cleanup(_db: &Database, _mailer: &dyn Mailer, _tick: Tick) {
    unreachable!("it was not started");
}

fn tokio() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn problems(scheduler: Scheduler) -> (Vec<JobProblem>, String) {
    let runtime = tokio();
    let _inside = runtime.enter();
    match scheduler.start().unwrap_err() {
        CronError::Invalid { problems } => {
            let text = CronError::Invalid { problems: problems.clone() }.to_string();
            (problems, text)
        }
        other => panic!("{other}"),
    }
}

#[test]
fn data_that_a_job_takes_and_nobody_gave_is_named_with_job_and_place() {
    let elector = FixedElector::following(["none"]);
    let (problems, text) = problems(Scheduler::new(&elector));
    assert_eq!(problems.len(), 2, "{text}");
    let place = "refused::cleanup (leader-cron/tests/refused.rs:";
    for expected in ["job `cleanup`", place, "a `&refused::Database`", "`.data(..)`"] {
        assert!(problems[0].to_string().contains(expected), "{expected} is not in {}", problems[0]);
    }
    for expected in ["job `cleanup`", place, "dyn refused::Mailer", "`.data_arc::<dyn refused::Mailer>(Arc::new(..))`"]
    {
        assert!(problems[1].to_string().contains(expected), "{expected} is not in {}", problems[1]);
    }
}

#[test]
fn an_arc_that_was_given_as_a_value_is_recognized() {
    let elector = FixedElector::following(["none"]);
    let (_, text) = problems(Scheduler::new(&elector).data(Arc::new(Database)));
    assert!(text.contains("an `Arc` of it was given") && text.contains(".data_arc::<refused::Database>(..)"), "{text}");
}

#[test]
fn two_values_of_one_type_are_refused() {
    let elector = FixedElector::following(["none"]);
    let (problems, text) = problems(Scheduler::new(&elector).data(Database).data(Database));
    assert!(matches!(problems[0], JobProblem::DuplicateData { .. }), "{text}");
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let elector = FixedElector::following(["known"]);
    let job = |name: &str, schedule: &str| Job::new(name, schedule, |_| async {});
    let (problems, text) = problems(
        Scheduler::new(&elector)
            .job(job("cleanup", "@daily"))
            .job(job("a:b", "@daily"))
            .job(job("stray", "@daily").group("strange"))
            .job(job("words", "every minute"))
            .job(job("february", "0 0 0 30 2 *"))
            .job(job("past", "0 0 0 1 1 * 2020"))
            .job(job("mars", "@daily").tz("Mars/Base")),
    );
    for expected in [
        "two jobs are called `cleanup`: refused::cleanup (leader-cron/tests/refused.rs:",
        " and leader-cron/tests/refused.rs:",
        "`a:b` (leader-cron/tests/refused.rs:",
        "job `stray` (leader-cron/tests/refused.rs:",
        "group `strange`, but this elector takes no part in it (it has [\"default\", \"known\"])",
        "Config::groups([\"strange\"])",
        "job `words` (leader-cron/tests/refused.rs:",
        "`every minute` is no cron expression",
        "`0 0 0 30 2 *` never comes",
        "`0 0 0 1 1 * 2020` never comes",
        "there is no time zone `Mars/Base`; write the name of the IANA database",
    ] {
        assert!(text.contains(expected), "{expected} is not in: {text}");
    }
    assert_eq!(problems.len(), 9, "{text}");
    assert_eq!(text.lines().count(), 10, "one line for each: {text}");
}

#[test]
fn without_a_runtime_there_is_an_error_and_no_panic() {
    let elector = FixedElector::following(["none"]);
    let refused = Scheduler::new(&elector).start().unwrap_err();
    assert!(matches!(refused, CronError::NoRuntime));
    assert!(format!("{refused:?}").contains("#[tokio::main]"), "the Debug that a main prints is the message");
}
