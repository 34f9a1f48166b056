//! What the records of jobs are worth from one leader to the next, in a file and on a server.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in the helpers of tests too")]

use std::time::{Duration, SystemTime};

use leader_core::store::HistoryEvent;
use leader_core::{Config, Elector, FreshStore};
use leader_cron::{Explanation, Job, LedgerError, Missed, Running, Scheduler, Tick, TriggerError};
use leader_tests::redis::RedisServer;
use rusqlite::Connection;
use tempfile::TempDir;
use tokio::sync::mpsc;

const EVERY_SECOND: &str = "* * * * * *";
/// The same ticks by another text.
const EVERY_SECOND_TOO: &str = "*/1 * * * * *";
/// No test lives to see a tick of it but for a second in a year.
const NEVER: &str = "@yearly";
/// Far more than a loaded machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

enum Store {
    File(TempDir),
    Server(RedisServer),
}

impl Store {
    fn file() -> Self {
        Self::File(tempfile::tempdir().unwrap())
    }

    fn server() -> Option<Self> {
        RedisServer::start(&[]).map(Self::Server)
    }

    async fn elector(&self) -> Elector {
        let url = match self {
            Self::File(folder) => format!("sqlite://{}/leader.db", folder.path().display()),
            Self::Server(server) => server.url(),
        };
        let config = Config::new(url).fresh_store(FreshStore::Trust).groups(["nightly"]).ttl(Duration::from_secs(10));
        Elector::start(config).await.unwrap()
    }

    /// Somebody else writes into the record of a job.
    fn corrupt(&self, job: &str) {
        match self {
            Self::File(_) => self.change("UPDATE job SET \"last\" = 'yesterday' WHERE name = ?1", job),
            Self::Server(server) => {
                assert_eq!(server.command::<i64>(&["HSET", &key(server, job), "last", "yesterday"]), 0);
            }
        }
    }

    fn remove(&self, job: &str) {
        match self {
            Self::File(_) => self.change("DELETE FROM job WHERE name = ?1", job),
            Self::Server(server) => assert_eq!(server.command::<i64>(&["DEL", &key(server, job)]), 1),
        }
    }

    fn change(&self, sql: &str, job: &str) {
        let Self::File(folder) = self else { return };
        let db = Connection::open(folder.path().join("leader.db")).unwrap();
        db.busy_timeout(PATIENCE).unwrap();
        assert_eq!(db.execute(sql, [job]).unwrap(), 1);
    }
}

fn key(server: &RedisServer, job: &str) -> String {
    let keys: Vec<String> = server.command(&["KEYS", &format!("*:job:{job}")]);
    let [key] = keys.as_slice() else { panic!("{keys:?}") };
    key.clone()
}

type Runs = mpsc::UnboundedReceiver<(&'static str, Tick)>;
type Ran = mpsc::UnboundedSender<(&'static str, Tick)>;

/// Each tick of it counts.
fn job(name: &'static str, schedule: &str, ran: &Ran) -> Job {
    let ran = ran.clone();
    let job = Job::new(name, schedule, move |tick| {
        let ran = ran.clone();
        async move {
            // The test may have seen enough.
            let _ = ran.send((name, tick));
        }
    });
    job.group("nightly").missed(Missed::All)
}

async fn next(runs: &mut Runs) -> i64 {
    in_time(runs.recv()).await.unwrap().1.unix_seconds()
}

async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it happens in time")
}

/// Ends an instance; the ticks that it ran beyond those that were looked at.
async fn ends(elector: Elector, jobs: Running, runs: &mut Runs) -> Vec<i64> {
    in_time(elector.shutdown(PATIENCE)).await.unwrap();
    drop(jobs);
    std::iter::from_fn(|| runs.try_recv().ok()).map(|(_, tick)| tick.unix_seconds()).collect()
}

/// So that there is a gap to be made up for.
async fn seconds_pass() {
    tokio::time::sleep(Duration::from_millis(2_100)).await;
}

fn now() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() as i64
}

/// Waits until the record of a job is there.
async fn registered(jobs: &Running, job: &str) {
    let an_hour_ago = SystemTime::now() - Duration::from_secs(3_600);
    in_time(async {
        while jobs.explain(job, an_hour_ago).await.unwrap() == Explanation::NoRecord {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

async fn a_job_that_was_removed_and_is_added_again_goes_on_from_its_last(store: &Store) {
    let elector = store.elector().await;
    let (ran, mut runs) = mpsc::unbounded_channel();
    let jobs = Scheduler::new(&elector).job(job("work", EVERY_SECOND, &ran)).start().unwrap();
    let mut last = next(&mut runs).await;
    jobs.remove("work").unwrap();
    seconds_pass().await;
    jobs.add(job("work", EVERY_SECOND, &ran)).unwrap();
    let until = now() + 1;
    while last < until {
        let tick = next(&mut runs).await;
        assert_eq!(tick, last + 1, "what came in between is made up for, and nothing twice");
        last = tick;
    }
    ends(elector, jobs, &mut runs).await;
}

async fn a_changed_schedule_counts_from_now(store: &Store) {
    let (ran, mut runs) = mpsc::unbounded_channel();
    for (schedule, changed) in [(EVERY_SECOND, false), (EVERY_SECOND_TOO, true)] {
        let elector = store.elector().await;
        let start = now();
        let jobs = Scheduler::new(&elector).job(job("work", schedule, &ran)).start().unwrap();
        let first = next(&mut runs).await;
        assert!(!changed || first > start, "no tick of before is run by the new schedule: {first}, started at {start}");
        ends(elector, jobs, &mut runs).await;
        seconds_pass().await;
    }
}

async fn a_first_tick_that_nobody_was_there_for_is_made_up_for(store: &Store) {
    let (ran, mut runs) = mpsc::unbounded_channel();
    // It registers the job, and does not lead.
    let elector = store.elector().await;
    in_time(elector.drain(PATIENCE)).await.unwrap();
    let before = now();
    let jobs = Scheduler::new(&elector).job(job("work", EVERY_SECOND, &ran)).start().unwrap();
    registered(&jobs, "work").await;
    let after = now();
    seconds_pass().await;
    assert!(ends(elector, jobs, &mut runs).await.is_empty());

    let elector = store.elector().await;
    let jobs = Scheduler::new(&elector).job(job("work", EVERY_SECOND, &ran)).start().unwrap();
    let first = next(&mut runs).await;
    assert!((before + 1..=after + 1).contains(&first), "{before} {first} {after}");
    assert_eq!(next(&mut runs).await, first + 1);
    ends(elector, jobs, &mut runs).await;
}

async fn one_broken_record_among_many_stops_only_its_job(store: &Store) {
    let (ran, mut runs) = mpsc::unbounded_channel();
    let names = ["a", "b", "c", "d"];
    let start = |elector: &Elector| {
        let jobs = names.iter().fold(Scheduler::new(elector), |jobs, name| jobs.job(job(name, EVERY_SECOND, &ran)));
        jobs.start().unwrap()
    };
    let elector = store.elector().await;
    let jobs = start(&elector);
    let mut seen = [0; 4];
    let mut sees = async |runs: &mut Runs, enough: &dyn Fn(&[i32; 4]) -> bool| {
        while !enough(&seen) {
            let (name, _) = in_time(runs.recv()).await.unwrap();
            seen[names.iter().position(|known| *known == name).unwrap()] += 1;
        }
        std::mem::take(&mut seen)
    };
    sees(&mut runs, &|seen| seen.iter().all(|runs| *runs > 0)).await;
    store.corrupt("b");
    let after = sees(&mut runs, &|seen| [0, 2, 3].iter().all(|job| seen[*job] > 3)).await;
    assert!(after[1] <= 1, "one may have been claimed before: {after:?}");
    let error = jobs.explain("b", SystemTime::now()).await.unwrap_err();
    assert!(matches!(error, LedgerError::Corrupt { field: "last", .. }), "{error}");
    let error = in_time(jobs.trigger("b")).await.unwrap_err();
    assert!(matches!(error, TriggerError::Ledger(LedgerError::Corrupt { .. })), "{error}");
    ends(elector, jobs, &mut runs).await;

    // As the message says.
    store.remove("b");
    let elector = store.elector().await;
    let jobs = start(&elector);
    sees(&mut runs, &|seen| seen.iter().all(|runs| *runs > 0)).await;
    ends(elector, jobs, &mut runs).await;
}

async fn ticks_go_on_under_a_new_name(store: &Store) {
    let (ran, mut runs) = mpsc::unbounded_channel();
    let mut last = None;
    let mut follows = |tick: i64| {
        assert!(last.is_none_or(|last| tick == last + 1), "{last:?}, then {tick}");
        last = Some(tick);
    };
    let old = store.elector().await;
    let old_jobs = Scheduler::new(&old).job(job("old", EVERY_SECOND, &ran)).start().unwrap();
    follows(next(&mut runs).await);
    follows(next(&mut runs).await);
    ends(old, old_jobs, &mut runs).await.into_iter().for_each(&mut follows);
    // Nobody is there for some ticks.
    seconds_pass().await;
    let renamed = || job("new", EVERY_SECOND, &ran).renamed_from("old");
    let new = store.elector().await;
    let new_jobs = Scheduler::new(&new).job(renamed()).start().unwrap();
    for _ in 0..4 {
        follows(next(&mut runs).await);
    }
    // Another one, that follows first: both know the old name.
    let second = store.elector().await;
    let second_jobs = Scheduler::new(&second).job(renamed()).start().unwrap();
    follows(next(&mut runs).await);
    ends(new, new_jobs, &mut runs).await.into_iter().for_each(&mut follows);
    for _ in 0..2 {
        follows(next(&mut runs).await);
    }
    ends(second, second_jobs, &mut runs).await;
}

async fn a_new_name_that_was_registered_while_the_old_one_ran_takes_over_from_it(store: &Store) {
    let (ran, mut runs) = mpsc::unbounded_channel();
    let (old, new) = (store.elector().await, store.elector().await);
    let old_jobs = Scheduler::new(&old).job(job("old", EVERY_SECOND, &ran)).start().unwrap();
    let mut last = next(&mut runs).await;
    let new_jobs = Scheduler::new(&new).job(job("new", EVERY_SECOND, &ran).renamed_from("old")).start().unwrap();
    registered(&new_jobs, "new").await;
    let leads = new.is_leader("nightly");
    let mut ended = ends(old, old_jobs, &mut runs).await;
    assert!(!leads, "the first leads until it ends");
    while ended.len() < 4 {
        ended.push(next(&mut runs).await);
    }
    for tick in ended {
        assert_eq!(tick, last + 1);
        last = tick;
    }
    ends(new, new_jobs, &mut runs).await;
}

async fn what_a_pause_swallowed_is_known_to_a_later_leader(store: &Store) {
    let (ran, mut runs) = mpsc::unbounded_channel();
    let elector = store.elector().await;
    let jobs = Scheduler::new(&elector).job(job("work", EVERY_SECOND, &ran)).start().unwrap();
    next(&mut runs).await;
    let until = SystemTime::now() + Duration::from_secs(3);
    jobs.pause("work", until, "stocktaking").await.unwrap();
    ends(elector, jobs, &mut runs).await;
    // It comes when the pause is over, and never saw it begin.
    tokio::time::sleep(until.duration_since(SystemTime::now()).unwrap() + Duration::from_secs(1)).await;
    let elector = store.elector().await;
    let jobs = Scheduler::new(&elector).job(job("work", EVERY_SECOND, &ran)).start().unwrap();
    let end = until.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() as i64;
    assert!(next(&mut runs).await >= end);
    let why = jobs.explain("work", until - Duration::from_secs(1)).await.unwrap();
    assert!(matches!(&why, Explanation::Missed { reason } if reason == "the job was paused"), "{why:?}");
    ends(elector, jobs, &mut runs).await;
}

async fn a_run_by_hand_stands_in_the_history_of_the_fleet(store: &Store) {
    let (ran, mut runs) = mpsc::unbounded_channel();
    let (leader, follower) = (store.elector().await, store.elector().await);
    let of_leader = Scheduler::new(&leader).job(job("work", NEVER, &ran)).start().unwrap();
    let of_follower = Scheduler::new(&follower).job(job("work", NEVER, &ran)).start().unwrap();
    let run = in_time(of_leader.trigger("work")).await.unwrap();
    assert!(runs.try_recv().unwrap().1.is_manual());
    let error = in_time(of_follower.trigger("work")).await.unwrap_err();
    let by = |id: &Option<leader_core::InstanceId>| id.as_ref() == Some(leader.instance_id());
    assert!(matches!(&error, TriggerError::NotLeading { leader, .. } if by(leader)), "{error}");
    let history = of_follower.history("work").await.unwrap();
    assert!(matches!(&history[..], [entry] if matches!(entry.event, HistoryEvent::Manual { .. })), "{history:?}");
    let why = of_follower.explain("work", run.tick).await.unwrap();
    assert!(matches!(why, Explanation::Manual { .. }), "{why:?}");
    ends(follower, of_follower, &mut runs).await;
    ends(leader, of_leader, &mut runs).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_memory_is_full_keeps_no_history_and_holds_up_no_tick() {
    let Some(store) = Store::server() else { return };
    let Store::Server(server) = &store else { return };
    let elector = store.elector().await;
    let (ran, mut runs) = mpsc::unbounded_channel();
    let jobs = Scheduler::new(&elector).job(job("work", EVERY_SECOND, &ran)).start().unwrap();
    let mut last = next(&mut runs).await;
    server.exhaust_memory();
    let run = in_time(async {
        loop {
            match jobs.trigger("work").await {
                Err(TriggerError::Busy { .. }) => {}
                run => return run.unwrap(),
            }
        }
    });
    assert!(run.await.manual);
    let mut seen_by_hand = false;
    while !seen_by_hand || last < now() {
        let (_, tick) = in_time(runs.recv()).await.unwrap();
        seen_by_hand |= tick.is_manual();
        if !tick.is_manual() {
            assert_eq!(tick.unix_seconds(), last + 1);
            last = tick.unix_seconds();
        }
    }
    server.relieve_memory();
    next(&mut runs).await;
    ends(elector, jobs, &mut runs).await;
}

macro_rules! on_both {
    ($($promise:ident),* $(,)?) => {
        mod in_a_file {$(
            #[tokio::test(flavor = "multi_thread")]
            async fn $promise() {
                super::$promise(&super::Store::file()).await;
            }
        )*}

        mod on_a_server {$(
            #[tokio::test(flavor = "multi_thread")]
            async fn $promise() {
                let Some(store) = super::Store::server() else { return };
                super::$promise(&store).await;
            }
        )*}
    };
}
on_both!(
    a_job_that_was_removed_and_is_added_again_goes_on_from_its_last,
    a_changed_schedule_counts_from_now,
    a_first_tick_that_nobody_was_there_for_is_made_up_for,
    one_broken_record_among_many_stops_only_its_job,
    ticks_go_on_under_a_new_name,
    a_new_name_that_was_registered_while_the_old_one_ran_takes_over_from_it,
    what_a_pause_swallowed_is_known_to_a_later_leader,
    a_run_by_hand_stands_in_the_history_of_the_fleet,
);
