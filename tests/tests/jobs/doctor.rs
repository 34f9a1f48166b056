//! Instances whose jobs differ: the doctor of one that follows says what its leader lacks.

use std::time::Duration;

use leader_core::{Config, Elector, Finding, FreshStore, Severity};
use leader_cron::{Explanation, Job, Scheduler};
use leader_tests::redis::RedisServer;

const PATIENCE: Duration = Duration::from_secs(60);

fn job(name: &str, schedule: &str) -> Job {
    Job::new(name, schedule, |_| async {}).group("default")
}

/// Asks the doctor until it finds nothing of what leaders do, or something.
async fn other_jobs(elector: &Elector, wanted: bool) -> Option<Finding> {
    let asking = async {
        loop {
            let found = elector.doctor().await.unwrap().into_iter().find(|finding| finding.code == "other-jobs");
            if found.is_some() == wanted {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.unwrap()
}

async fn a_follower_says_what_its_leader_lacks(url: &str) {
    let config = || {
        let config = Config::new(url).fresh_store(FreshStore::Trust).ttl(Duration::from_secs(60));
        config.heartbeat(Duration::from_millis(200))
    };
    let leader = Elector::start(config()).await.unwrap();
    let of_leader = Scheduler::new(&leader).job(job("digest", "@hourly")).start().unwrap();
    let follower = Elector::start(config()).await.unwrap();
    assert!(leader.is_leader("default") && !follower.is_leader("default"));
    let of_follower =
        Scheduler::new(&follower).job(job("digest", "@daily")).job(job("report", "@daily")).start().unwrap();

    let finding = other_jobs(&follower, true).await.unwrap();
    assert_eq!(finding.severity, Severity::Warning, "{finding}");
    for part in ["has no job report", "runs job digest at `@hourly"] {
        assert!(finding.what.contains(part), "{finding}");
    }
    let problems = follower.status().problems;
    assert!(problems.iter().any(|problem| problem.text.contains("has no job report")), "{problems:?}");
    of_leader.add(job("report", "@daily")).unwrap();
    of_follower.remove("digest").unwrap();
    assert_eq!(other_jobs(&follower, false).await, None);
    assert!(follower.status().problems.iter().all(|problem| !problem.text.contains("report")));
    // The leader has nothing to complain of: what it does is done.
    assert_eq!(other_jobs(&leader, false).await, None);
    leader.shutdown(PATIENCE).await.unwrap();
    follower.shutdown(PATIENCE).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_says_what_its_leader_lacks_on_a_file() {
    let folder = tempfile::tempdir().unwrap();
    a_follower_says_what_its_leader_lacks(&format!("sqlite://{}/leader.db", folder.path().display())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_says_what_its_leader_lacks_on_redis() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    a_follower_says_what_its_leader_lacks(&redis.url()).await;
}

/// What it finds about records of jobs, if that is something.
async fn unused_record(elector: &Elector) -> Option<String> {
    let found = elector.doctor().await.unwrap();
    found.into_iter().find(|finding| finding.code == "unused-record").map(|finding| finding.what)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_was_taken_out_is_missed_and_those_of_an_elector_that_drains_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config::new(format!("sqlite://{}/leader.db", folder.path().display()));
    let elector = Elector::start(config.ttl(Duration::from_secs(60))).await.unwrap();
    let jobs = ["digest", "report"].map(|name| job(name, "@hourly"));
    let jobs = jobs.into_iter().fold(Scheduler::new(&elector), Scheduler::job).start().unwrap();
    let recorded = async {
        for name in ["digest", "report"] {
            let tick = jobs.next_ticks(name, 1).unwrap()[0];
            while jobs.explain(name, tick).await.unwrap() == Explanation::NoRecord {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    };
    tokio::time::timeout(PATIENCE, recorded).await.unwrap();
    assert_eq!(unused_record(&elector).await, None);
    jobs.remove("report").unwrap();
    let found = unused_record(&elector).await.unwrap();
    assert!(found.ends_with(": job `report` of group `default`"), "{found}");
    jobs.stop(PATIENCE).await.unwrap();
    assert_eq!(unused_record(&elector).await, Some(found), "digest goes on elsewhere, or later");
    elector.shutdown(PATIENCE).await.unwrap();
}
