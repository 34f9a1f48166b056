//! The lives of a program, one after another or side by side, on one store.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use leader_core::BootInstant;
use leader_core::store::HistoryEvent;
use leader_core::testing::ledger::entry;
use leader_tests::process::{Command, Fleet, JobPlan, JobRun, Spawn, Told, Wall, eventually};
use leader_tests::redis::RedisServer;
use rusqlite::Connection;

const PROGRAM: &str = env!("CARGO_BIN_EXE_node");
/// In which a leader is not demoted falsely, also on a busy machine.
const TTL: Duration = Duration::from_secs(3);

/// 2027-03-01 00:00:00 UTC.
pub(crate) const MARCH: i64 = 1_803_859_200;

pub(crate) struct Lives {
    // First: nodes go before what they need.
    pub(crate) fleet: Fleet,
    store: Store,
    /// How far the clock of the store is ahead of the true time, in seconds.
    pub(crate) ahead_s: i64,
    count: usize,
}

enum Store {
    File(PathBuf),
    Server(RedisServer),
}

impl Lives {
    /// On a SQLite file, whose clock is the wall clock of who uses it, faked by libfaketime: two seconds before [`MARCH`]. None,
    /// with the reason printed, without libfaketime.
    pub(crate) fn on_a_file() -> Option<Self> {
        let fleet = Fleet::new(PROGRAM);
        Wall::of(&fleet, "none")?;
        let file = fleet.folder().join("leader.db");
        let mut lives = Self { fleet, store: Store::File(file), ahead_s: 0, count: 0 };
        lives.go_to(MARCH - 2);
        Some(lives)
    }

    /// On a Redis server. Its clock cannot be faked, as its allocator and libfaketime call each other for ever: instead of time
    /// that passes, the records of its jobs grow old.
    pub(crate) fn on_redis() -> Option<Self> {
        let server = RedisServer::start(&[])?;
        Some(Self {
            fleet: Fleet::on_store(PROGRAM, &server.url()),
            store: Store::Server(server),
            ahead_s: 0,
            count: 0,
        })
    }

    /// A process with these jobs, which takes part in these groups; its label. It has started.
    pub(crate) fn begin_in(&mut self, groups: &[&str], jobs: &[JobPlan]) -> String {
        let mut plan = self.plan(jobs);
        plan.options.groups = groups.iter().map(|group| (*group).to_owned()).collect();
        if self.ahead_s != 0 {
            return self.start_with_clock(plan).0;
        }
        self.fleet.start(&plan);
        plan.options.label
    }

    /// The same of the group `default` alone, with a wall clock that can be set.
    pub(crate) fn begin_with_clock(&mut self, jobs: &[JobPlan]) -> (String, Wall) {
        let plan = self.plan(jobs);
        self.start_with_clock(plan)
    }

    fn plan(&mut self, jobs: &[JobPlan]) -> Spawn {
        self.count += 1;
        let mut plan = self.fleet.plan(&format!("life-{}", self.count), TTL);
        plan.options.jobs = jobs.to_vec();
        plan.options.trust_fresh_store = true;
        plan
    }

    fn start_with_clock(&mut self, plan: Spawn) -> (String, Wall) {
        let label = plan.options.label.clone();
        let wall = Wall::of(&self.fleet, &label).expect("it was there before");
        wall.jump_to(self.ahead_s);
        self.fleet.start(&wall.plan(plan));
        wall.assert_reads(&mut self.fleet, self.ahead_s);
        (label, wall)
    }

    /// The same of the group `default` alone.
    pub(crate) fn begin(&mut self, jobs: &[JobPlan]) -> String {
        self.begin_in(&[], jobs)
    }

    /// It ends in order. Returns when it has told all.
    pub(crate) fn shut_down(&mut self, label: &str) {
        self.fleet.ask(label, &Command::Shutdown).unwrap();
        self.kill(label);
    }

    /// It is killed. Returns when all that it had told was heard.
    pub(crate) fn kill(&mut self, label: &str) {
        self.fleet.kill(label);
        self.fleet.hears(label, "nothing more", |told| *told == Told::Gone);
    }

    /// The server is started again with its data, while no process runs.
    pub(crate) fn server_starts_again(&mut self) {
        match &mut self.store {
            Store::File(_) => panic!("a file has no server"),
            Store::Server(server) => server.restart_with_data(),
        }
    }

    /// So many seconds pass, while no process runs.
    pub(crate) fn pass(&mut self, seconds: i64) {
        assert!(self.fleet.labels().is_empty(), "somebody would notice");
        match &self.store {
            Store::File(_) => self.ahead_s += seconds,
            Store::Server(server) => {
                for key in server.command::<Vec<String>>(&["KEYS", "*:job:*"]) {
                    for field in ["since", "last"] {
                        let before: i64 = server.command(&["HGET", &key, field]);
                        server.command::<i64>(&["HSET", &key, field, &(before - seconds).to_string()]);
                    }
                    // `tick:attempts`, separated by commas: a tick that was given back at the shutdown is as old as the others.
                    let returned: Option<String> = server.command(&["HGET", &key, "returned"]);
                    let aged = |back: &str| {
                        let (tick, attempts) = back.split_once(':').expect("a tick and its attempts");
                        format!("{}:{attempts}", tick.parse::<i64>().expect("a tick") - seconds)
                    };
                    if let Some(returned) = returned.filter(|returned| !returned.is_empty()) {
                        let aged: Vec<_> = returned.split(',').map(aged).collect();
                        server.command::<i64>(&["HSET", &key, "returned", &aged.join(",")]);
                    }
                }
            }
        }
    }

    /// It is so late now, in seconds since 1970. On a file only; no process runs.
    pub(crate) fn go_to(&mut self, instant: i64) {
        let later = instant - self.now().floor() as i64;
        self.pass(later);
    }

    /// What the store's clock shows, in seconds since 1970.
    pub(crate) fn now(&self) -> f64 {
        let now = match &self.store {
            Store::File(_) => SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64(),
            Store::Server(server) => {
                let (seconds, micros): (u64, u64) = server.command(&["TIME"]);
                seconds as f64 + micros as f64 / 1e6
            }
        };
        now + self.ahead_s as f64
    }

    /// What it showed when this run began, unless it was set since.
    pub(crate) fn time_of(&self, run: &JobRun) -> f64 {
        let ago = BootInstant::now().saturating_since(BootInstant::from_nanos(run.at_ns));
        self.now() - ago.as_secs_f64()
    }

    /// The runs of a job by one life, in order.
    pub(crate) fn runs(&self, label: &str, job: &str) -> Vec<JobRun> {
        let runs = self.fleet.runs_of(job).into_iter().filter(|(of, _)| of == label);
        runs.map(|(_, run)| run).collect()
    }

    /// One text of a job's record; none if there is no record.
    pub(crate) fn text(&self, group: &str, job: &str, field: &str) -> Option<String> {
        match &self.store {
            Store::File(file) => {
                let query = format!(r#"SELECT "{field}" FROM job WHERE grp = ?1 AND name = ?2"#);
                open(file).query_row(&query, [group, job], |row| row.get(0)).ok()
            }
            Store::Server(server) => server.command(&["HGET", &key(group, job), field]),
        }
    }

    /// The same, as a number, once there is one.
    pub(crate) fn number(&self, group: &str, job: &str, field: &str) -> i64 {
        eventually(&format!("{job} has a record"), || self.text(group, job, field)).parse().unwrap()
    }

    /// The ticks that were claimed when they were too old to be run, as the history of a job tells. On a file only.
    pub(crate) fn too_old(&self, group: &str, job: &str) -> Vec<i64> {
        let Store::File(file) = &self.store else { panic!("on a file only") };
        let connection = open(file);
        let mut lines = connection.prepare("SELECT line FROM job_history WHERE grp = ?1 AND name = ?2").unwrap();
        let lines = lines.query_map([group, job], |row| row.get::<_, String>(0)).unwrap();
        let events = lines.filter_map(|line| entry(&line.unwrap())).map(|entry| entry.event);
        let too_old = events.filter_map(|event| match event {
            HistoryEvent::Ended { tick, end } if end.message == "too old to be run" => tick,
            _ => None,
        });
        too_old.collect()
    }

    /// Somebody writes into a job's record.
    pub(crate) fn write(&self, group: &str, job: &str, field: &str, text: &str) {
        let changed = match &self.store {
            Store::File(file) => {
                let update = format!(r#"UPDATE job SET "{field}" = ?3 WHERE grp = ?1 AND name = ?2"#);
                open(file).execute(&update, [group, job, text]).unwrap() == 1
            }
            Store::Server(server) => server.command::<i64>(&["HSET", &key(group, job), field, text]) == 0,
        };
        assert!(changed, "{job} has a record");
    }

    /// Somebody removes a job's record.
    pub(crate) fn remove(&self, group: &str, job: &str) {
        let removed = match &self.store {
            Store::File(file) => {
                open(file).execute("DELETE FROM job WHERE grp = ?1 AND name = ?2", [group, job]).unwrap() == 1
            }
            Store::Server(server) => server.command::<i64>(&["DEL", &key(group, job)]) == 1,
        };
        assert!(removed, "{job} has a record");
    }
}

fn open(file: &PathBuf) -> Connection {
    let connection = Connection::open(file).unwrap();
    connection.busy_timeout(Duration::from_secs(60)).unwrap();
    connection
}

fn key(group: &str, job: &str) -> String {
    format!("{{leader:{group}}}:job:{job}")
}
