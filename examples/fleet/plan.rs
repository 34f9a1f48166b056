//! What is going to happen, told before anything does.

use crate::cli::{Course, Options};
use crate::faults::steps;
use crate::report::JOBS;

pub fn text(options: &Options) -> String {
    let Options { instances, ttl, .. } = options;
    let store = if options.store.is_some() { "the store that was named" } else { "a fresh SQLite file" };
    let redis = options.store.as_ref().is_some_and(|url| url.starts_with("redis"));
    let patience =
        if redis { " A server that has never seen this fleet gives nobody a lease for so long." } else { "" };
    let jobs = JOBS.map(|job| {
        let every = if job.every == 1 { "every second".to_owned() } else { format!("every {} s", job.every) };
        format!("    {:<8} {every}, on the leader of group {}", job.name, job.group)
    });
    let course = match options.course {
        Course::Timed { time, calm: true } => format!("For {time:?} nothing is done to them."),
        Course::Timed { time, calm: false } => {
            let faults = steps(options).into_iter().map(|step| {
                let at = step.at.unwrap_or_default().as_secs_f64();
                format!("\n  {at:5.1} s  {}", step.fault.plan(*ttl))
            });
            format!("They are watched for {time:?}. After{}", faults.collect::<String>())
        }
        Course::Rounds(rounds) => format!("{rounds} leaders are killed, {rounds} stalled and {rounds} asked to end."),
    };
    format!(
        "{instances} processes share two jobs. Each has both, and only the leader of a job's group runs it:\n{}\n\
         Their leases live in {store} and last {ttl:?} unless renewed.{patience}\n{course}\n\
         Who ends is replaced. Ctrl-C ends them all.\n",
        jobs.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn options(course: Course) -> Options {
        Options { store: None, instances: 3, ttl: Duration::from_secs(3), course, json: false, log: None }
    }

    #[test]
    fn the_plan_names_each_fault_with_its_time() {
        let text = text(&options(Course::Timed { time: Duration::from_secs(20), calm: false }));
        for told in ["3 processes", "fresh SQLite file", "3.0 s  SIGKILL", "7.0 s  SIGSTOP", "15.0 s  SIGTERM", "4.5s"]
        {
            assert!(text.contains(told), "{told}: {text}");
        }
    }

    #[test]
    fn a_password_in_the_address_of_the_store_is_not_told() {
        let store = Some("redis://user:secret@host".to_owned());
        let text = text(&Options { store, ..options(Course::Rounds(30)) });
        assert!(!text.contains("secret") && text.contains("30 leaders are killed"), "{text}");
    }
}
