//! Jobs that cannot be told apart by their place, or that do not know of each other: told before anything starts. No scheduler in
//! this program can start, because of the functions below.

use leader_core::leader_only;
use leader_core::testing::FixedElector;
use leader_cron::{CronError, JobProblem, Scheduler, cron as schedule, cron_jobs, every};

/// The first does not know the second by its name.
#[every("1h")]
#[schedule("@daily")]
fn of_two_names() {}

struct One;
struct Other;

/// One call makes methods of one name, which belong to different groups, or to none.
macro_rules! jobs {
    ($($ty:ty, $name:literal $(, $group:literal)?;)*) => {
        $(#[cron_jobs]
        impl $ty {
            #[every("1h", name = $name)]
            $(#[leader_only(group = $group)])?
            fn work() {}
        })*
    };
}
jobs! {
    One, "one", "first";
    Other, "other";
}

#[tokio::test]
async fn what_cannot_be_told_apart_does_not_start() {
    let refused = Scheduler::new(&FixedElector::following(["first"])).start().unwrap_err();
    let CronError::Invalid { problems } = refused else { panic!("{refused}") };
    let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 2, "{texts:#?}");
    assert!(matches!(&problems[0], JobProblem::DuplicateName { job, .. } if job == "of_two_names"));
    for expected in ["ambiguous::of_two_names (leader-cron/tests/ambiguous.rs:", "by their own names"] {
        assert!(texts[0].contains(expected), "{texts:#?}");
    }
    let JobProblem::AmbiguousGroup { jobs, groups, .. } = &problems[1] else { panic!("{texts:#?}") };
    assert_eq!((&jobs[..], &groups[..]), (&["one".to_owned(), "other".to_owned()][..], &["first".to_owned()][..]));
}
