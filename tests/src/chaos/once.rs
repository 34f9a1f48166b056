//! Work that is to be done once, by many instances that begin at one time and die at the worst instants.
//!
//! The work of a key is a row in a database of its own, in a table without a rule of uniqueness: only the work itself sees to
//! it, inside the transaction that commits, that it is not done twice. The first process that gets half-way dies there, with
//! the row written and not committed; the first that has committed dies before that could be noted. Some others are killed
//! at instants by chance.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use leader_core::{Elector, LockError, Once, OnceBuilder};
use rusqlite::{Connection, TransactionBehavior};
use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};

use super::check::{Attempt, Evidence, attempts, overlaps};
use super::crew::{Between, Crew};
use super::ground::Ground;
use super::log::{How, Line, Log, nanos, now_ns};
use super::member::{Body, Options, PATIENT, Watched, Work};
use super::settings::{Bad, Settings};
use crate::sim::rng::Rng;

const LOOK: Duration = Duration::from_millis(10);
/// How long a body works before its transaction.
const LENGTH: Duration = Duration::from_millis(30);
/// Between two steps of it.
const STEP: Duration = Duration::from_micros(700);
/// How long the store keeps the notes: longer than anybody here.
const KEEP: Duration = Duration::from_secs(3600);

/// What one member is to do once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Errand {
    /// So many different things.
    pub keys: usize,
    /// What their names begin with: what is done once is never done again.
    pub name: String,
    /// Where the rows are written.
    pub database: PathBuf,
    /// Where is noted who has died by its own hand.
    pub folder: PathBuf,
}

/// The claim has ended before it was known that the work is done.
fn is_over(error: &LockError) -> bool {
    error.is_lost() || error.is_unconfirmed()
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// One attempt: the body, and then the commit.
pub(super) async fn attempt(
    claim: OnceBuilder,
    key: &str,
    body: Body,
    wait: Duration,
    commit: impl Fn() -> Result<(), Failure>,
) -> How {
    let (attempt, log, polled) = (body.attempt, body.log.clone(), Arc::clone(&body.polled));
    let asked = Line::Asked { attempt, key: key.to_owned(), at_ns: now_ns(), wait_ns: nanos(wait), must: false };
    log.add(&asked);
    let work = || async {
        body.run(0).await;
        commit()
    };
    let how = match (Watched { polled, future: Box::pin(claim.run::<_, Failure, _>(work)) }).await {
        Ok(Once::Ran(())) => How::Done,
        Ok(Once::Done) => How::Before,
        Ok(Once::Busy) => How::Busy,
        Err(error) if error.downcast_ref().is_some_and(is_over) => How::Lost,
        Err(error) => How::Failed(error.to_string()),
    };
    log.add(&Line::Left { attempt, at_ns: now_ns(), how: how.clone() });
    how
}

/// Does all of it, at once, and returns when each is known to be done.
pub(super) async fn run(
    elector: &Elector,
    options: &Options,
    errand: Errand,
    log: &Log,
) -> Result<(), Box<dyn std::error::Error>> {
    let tasks = (0..errand.keys).map(|key| {
        let (elector, errand, log) = (elector.clone(), errand.clone(), log.clone());
        let (ttl, blind) = (options.ttl, options.bad == Some(Bad::Blind));
        tokio::spawn(async move {
            let name = errand.key(key);
            for attempt in (key as u64..).step_by(errand.keys) {
                let body = Body::new(&log, attempt, LENGTH, STEP);
                let claim = elector.once(&name).ttl(ttl).wait(PATIENT).keep(KEEP);
                let how = self::attempt(claim, &name, body, Duration::ZERO, || errand.commit(&name, blind)).await;
                if matches!(how, How::Done | How::Before) {
                    break;
                }
                tokio::time::sleep(LOOK).await;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await?;
    }
    Ok(())
}

impl Errand {
    fn key(&self, number: usize) -> String {
        format!("{}-{number}", self.name)
    }

    /// The work: idempotent up to its commit.
    fn commit(&self, key: &str, blind: bool) -> Result<(), Failure> {
        let mut database = Connection::open(&self.database)?;
        database.busy_timeout(PATIENT)?;
        let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done: i64 =
            transaction.query_row("SELECT count(*) FROM effects WHERE key = ?1", [key], |row| row.get(0))?;
        if done == 0 || blind {
            transaction.execute("INSERT INTO effects (key, pid) VALUES (?1, ?2)", (key, std::process::id()))?;
        }
        self.dies_first_at("half-way", key);
        transaction.commit()?;
        self.dies_first_at("committed", key);
        Ok(())
    }

    /// Whoever comes here first with this key does not leave.
    fn dies_first_at(&self, place: &str, key: &str) {
        if std::fs::File::create_new(self.folder.join(format!("{key}.{place}"))).is_ok() {
            // Not by exiting: nothing is tidied up.
            let _ = kill_process(getpid(), Signal::KILL);
        }
    }
}

/// What came of it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct OnceReport {
    /// The seed.
    pub seed: u64,
    /// How many began at one time.
    pub instances: usize,
    /// How many died, by their own hand and by chance.
    pub died: usize,
    /// Bodies that began.
    pub runs: usize,
    /// The rows of each key.
    pub rows: BTreeMap<String, i64>,
    /// What must not be.
    pub violations: Vec<String>,
}

/// Runs it with so many instances; of `settings`, `processes` and `time` do not matter. `None`: no Redis server is installed.
///
/// # Errors
/// If it could not be run to its end; says why.
pub fn run_once(settings: &Settings, instances: usize, program: &Path) -> Result<Option<OnceReport>, String> {
    let own = tempfile::tempdir().map_err(|error| error.to_string())?;
    let folder = settings.logs.clone().unwrap_or_else(|| own.path().into());
    let mut crew = Crew::new(program, &folder).map_err(|error| error.to_string())?;
    let Some(ground) = Ground::open(&settings.place, own.path(), 1, &[])? else { return Ok(None) };
    let name = format!("once-{}-{}", std::process::id(), now_ns());
    let (database, at) = (own.path().join("effects.db"), own.path().into());
    let errand = Errand { keys: settings.keys, name, database, folder: at };
    scene(settings, instances, &ground, &mut crew, &errand).map(Some).map_err(|error| error.to_string())
}

fn scene(
    settings: &Settings,
    instances: usize,
    ground: &Ground,
    crew: &mut Crew,
    errand: &Errand,
) -> Result<OnceReport, Failure> {
    let database = Connection::open(&errand.database)?;
    database
        .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE effects (key TEXT NOT NULL, pid INTEGER NOT NULL)")?;
    for n in 0..instances {
        let label = format!("i{n}");
        let options = Options {
            label: label.clone(),
            store: ground.url(0),
            lock_prefix: "_chaos:".to_owned(),
            ttl: settings.ttl,
            operation_timeout: settings.operation_timeout(),
            retry: settings.retry(),
            work: Work::Once(errand.clone()),
            bad: settings.bad,
            log: crew.log(&label),
        };
        crew.start(&label, &options)?;
    }
    let labels = crew.living();
    let begin = Instant::now();
    for label in &labels {
        while crew.lines::<Line>(label)?.is_empty() {
            if begin.elapsed() > PATIENT || crew.ended(label).is_some() {
                return Err(format!("{label} does not start; it wrote last:\n{}", crew.written(label)).into());
            }
            thread::sleep(LOOK);
        }
    }
    labels.iter().for_each(|label| crew.tell(label));
    let mut rng = Rng::new(settings.seed);
    let mut evidence = Evidence::default();
    for _ in 0..instances / 7 {
        thread::sleep(Duration::from_nanos(rng.below(settings.ttl / 2)));
        let label = &labels[rng.index(labels.len())];
        if let Some(death) = crew.kill(label) {
            evidence.deaths.insert(label.clone(), death);
        }
    }
    let mut report = OnceReport { seed: settings.seed, instances, ..OnceReport::default() };
    until_all_ended(crew, &mut evidence, &mut report);
    for label in &labels {
        evidence.members.insert(label.clone(), crew.lines(label)?);
    }
    report.died = evidence.deaths.len();
    let mut rows = database.prepare("SELECT key, count(*) FROM effects GROUP BY key")?;
    report.rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    judge(&evidence, errand, &mut report)?;
    Ok(report)
}

/// Those who died by their own hand have died like the others.
fn until_all_ended(crew: &mut Crew, evidence: &mut Evidence, report: &mut OnceReport) {
    let begin = Instant::now();
    let mut living = crew.living();
    while !living.is_empty() && begin.elapsed() < 2 * PATIENT {
        living.retain(|label| {
            let Some(status) = crew.ended(label) else { return true };
            let at = now_ns();
            match status.signal() {
                Some(_) => _ = evidence.deaths.insert(label.clone(), Between { from_ns: at, to_ns: at }),
                None if status.success() => {}
                None => report.violations.push(format!("{label} ended with {status}: {}", crew.written(label))),
            }
            false
        });
        thread::sleep(LOOK);
    }
    report.violations.extend(living.iter().map(|label| format!("{label} does not end: {}", crew.written(label))));
}

fn judge(evidence: &Evidence, errand: &Errand, report: &mut OnceReport) -> io::Result<()> {
    let by_key = attempts(&evidence.members);
    for key in (0..errand.keys).map(|key| errand.key(key)) {
        let all = by_key.get(&key).map_or(&[][..], Vec::as_slice);
        report.runs += all.iter().filter(|attempt| attempt.body.is_some()).count();
        let mut wrong = |what: String| report.violations.push(format!("{key}: {what}"));
        match report.rows.get(&key) {
            Some(1) => {}
            rows => wrong(format!("{} rows", rows.unwrap_or(&0))),
        }
        overlaps(all).iter().for_each(|overlap| wrong(overlap.to_string()));
        let ended = |attempt: &&Attempt| attempt.how() == Some(&How::Done);
        let ran: Vec<_> = all.iter().filter(ended).collect();
        if ran.len() > 1 {
            wrong(format!("{} instances were told that it was them", ran.len()));
        }
        let noted = ran.iter().filter_map(|attempt| attempt.left.as_ref()).map(|(at, _)| *at).min();
        let again =
            |attempt: &&Attempt| attempt.body.is_some_and(|body| Some(body.since_ns) > noted && noted.is_some());
        if let Some(attempt) = all.iter().find(again) {
            wrong(format!("{} ran it after it was done", attempt.member));
        }
        for place in ["half-way", "committed"] {
            if !errand.folder.join(format!("{key}.{place}")).try_exists()? {
                wrong(format!("nobody came to the place `{place}`, to die there"));
            }
        }
        let knows = |member: &String| {
            let told = |attempt: &Attempt| matches!(attempt.how(), Some(How::Done | How::Before));
            all.iter().any(|attempt| &attempt.member == member && told(attempt))
        };
        let living = evidence.members.keys().filter(|member| !evidence.deaths.contains_key(*member));
        living
            .filter(|member| !knows(member))
            .for_each(|member| wrong(format!("{member} never knew that it was done")));
    }
    Ok(())
}

impl std::fmt::Display for OnceReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { seed, instances, died, runs, rows, violations } = self;
        let rows: Vec<_> = rows.values().collect();
        write!(f, "seed {seed}: {instances} instances, {died} died, {runs} bodies, rows of each key {rows:?}")?;
        violations.iter().try_for_each(|violation| write!(f, "\n  {violation}"))
    }
}
