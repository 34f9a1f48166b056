//! Asks the ledger who claimed what, before it forgets: it keeps the last lines of each job only.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use leader_core::store::{HistoryEvent, JobName, TickCommand, TickOp, TickReply};
use leader_core::{Config, Elector, GroupName, StoreError};

use super::jobs::Facts;

/// So many questions go into one call.
const BATCH: usize = 100;
/// What came after the death of a process stands behind so many lines at most, if it is asked about at once.
const SOON: u32 = 40;
/// So often all is asked about.
const PERIOD: Duration = Duration::from_secs(8);
/// How long a question is repeated while the store does not answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the ledger knew.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// Job, tick, and who claimed it.
    pub claims: BTreeSet<(String, i64, String)>,
    /// Job, the first of some ticks that were passed over, how many, and why.
    pub missed: BTreeSet<(String, i64, u64, String)>,
    /// Job and tick that was begun so often that it was given up.
    pub given_up: BTreeSet<(String, i64)>,
    /// Job, and when its record began, if that was asked for.
    pub since: BTreeSet<(String, i64)>,
    /// Times at which it could not be asked.
    pub failures: Vec<String>,
}

#[derive(Debug)]
enum Order {
    /// Somebody has died.
    Look,
    /// All that is known by now, with the records.
    Take(Sender<Known>),
}

/// Who asks, in a thread of its own, without ever being a candidate.
#[derive(Debug)]
pub struct Witness {
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<Result<Known, String>>>,
}

impl Witness {
    /// Begins to ask about these jobs in the store that `config` names.
    ///
    /// # Panics
    /// If no thread can be started.
    #[must_use]
    pub fn of(config: Config, jobs: &[Facts]) -> Self {
        let (orders, inbox) = channel();
        let named = |job: &Facts| Some((GroupName::new(&job.group).ok()?, JobName::new(&job.name).ok()?));
        let names: Vec<_> = jobs.iter().filter_map(named).collect();
        let work = move || watch(config, &names, &inbox);
        let thread = thread::Builder::new().name("witness".to_owned()).spawn(work).expect("a thread can be started");
        Self { orders: Some(orders), thread: Some(thread) }
    }

    /// Somebody has died: asks now.
    pub fn look(&self) {
        if let Some(orders) = &self.orders {
            // If it has failed, it says so at the end.
            let _ = orders.send(Order::Look);
        }
    }

    /// Asks once more, tells all, and remembers nothing of it.
    ///
    /// # Errors
    /// If it has failed.
    pub fn take(&mut self) -> Result<Known, String> {
        let (answer, known) = channel();
        let sent = self.orders.as_ref().is_some_and(|orders| orders.send(Order::Take(answer)).is_ok());
        match known.recv() {
            Ok(known) if sent => Ok(known),
            _ => self.end(),
        }
    }

    /// Asks once more, and tells all.
    ///
    /// # Errors
    /// If it could not ask.
    pub fn finish(mut self) -> Result<Known, String> {
        self.end()
    }

    fn end(&mut self) -> Result<Known, String> {
        self.orders = None;
        let known = self.thread.take().map(JoinHandle::join);
        known.and_then(Result::ok).unwrap_or_else(|| Err("the witness has panicked".to_owned()))
    }
}

type Named = (GroupName, JobName);

fn watch(config: Config, jobs: &[Named], inbox: &Receiver<Order>) -> Result<Known, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let groups: BTreeSet<_> = jobs.iter().map(|(group, _)| group.as_str()).collect();
    let config = config.groups(groups).observe_only().instance_id("witness");
    let elector = runtime.block_on(Elector::start(config)).map_err(|error| error.to_string())?;
    let mut known = Known::default();
    let mut all_at = Instant::now();
    loop {
        let limit = match inbox.recv_timeout(all_at.saturating_duration_since(Instant::now())) {
            Ok(Order::Look) => SOON,
            Ok(Order::Take(answer)) => {
                runtime.block_on(ask(&elector, jobs, TickOp::HISTORY, &mut known))?;
                runtime.block_on(records(&elector, jobs, &mut known))?;
                // Whoever asked may have gone.
                let _ = answer.send(std::mem::take(&mut known));
                all_at = Instant::now() + PERIOD;
                continue;
            }
            Err(RecvTimeoutError::Timeout) => TickOp::HISTORY,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let asked = runtime.block_on(ask(&elector, jobs, limit, &mut known));
        if asked? || limit == TickOp::HISTORY {
            all_at = Instant::now() + PERIOD;
        }
    }
    runtime.block_on(ask(&elector, jobs, TickOp::HISTORY, &mut known))?;
    runtime.block_on(elector.shutdown(PATIENCE)).map_err(|error| error.to_string())?;
    Ok(known)
}

/// Whether all was asked about, and not only the last lines: the store was away meanwhile, and much may have come.
async fn ask(elector: &Elector, jobs: &[Named], limit: u32, known: &mut Known) -> Result<bool, String> {
    let (begin, mut limit) = (Instant::now(), limit);
    for some in jobs.chunks(BATCH) {
        let replies = loop {
            match replies(elector, some, TickOp::History { limit }).await {
                Ok(replies) => break replies,
                Err(error) if begin.elapsed() > PATIENCE => {
                    known.failures.push(error.to_string());
                    return Ok(false);
                }
                Err(_) => limit = TickOp::HISTORY,
            }
        };
        for ((_, job), reply) in some.iter().zip(replies) {
            let TickReply::History(entries) = reply else { return Err(format!("the history of {job}: {reply:?}")) };
            entries.into_iter().for_each(|entry| known.add(job, entry.event));
        }
    }
    Ok(limit == TickOp::HISTORY)
}

/// When the record of each job began.
async fn records(elector: &Elector, jobs: &[Named], known: &mut Known) -> Result<(), String> {
    let begin = Instant::now();
    for some in jobs.chunks(BATCH) {
        let replies = loop {
            match replies(elector, some, TickOp::Load).await {
                Ok(replies) => break replies,
                Err(error) if begin.elapsed() > PATIENCE => {
                    known.failures.push(error.to_string());
                    return Ok(());
                }
                Err(_) => {}
            }
        };
        for ((_, job), reply) in some.iter().zip(replies) {
            match reply {
                TickReply::Loaded(record) => drop(known.since.insert((job.as_str().to_owned(), record.since))),
                // Nobody has led since the store forgot it.
                TickReply::Unknown => {}
                other => return Err(format!("the record of {job}: {other:?}")),
            }
        }
    }
    Ok(())
}

/// What is answered about each of some jobs; after an error a moment has passed.
async fn replies(elector: &Elector, jobs: &[Named], op: TickOp) -> Result<Vec<TickReply>, StoreError> {
    let command = |(group, job): &Named| TickCommand {
        group: group.clone(),
        job: job.clone(),
        candidate: elector.__candidate().clone(),
        op: op.clone(),
    };
    let answers = elector.__ask_ledger(jobs.iter().map(command).collect()).await;
    let replies = answers.and_then(|answers| answers.into_iter().map(|answer| Ok(answer?.reply)).collect());
    if replies.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    replies
}

impl Known {
    fn add(&mut self, job: &JobName, event: HistoryEvent) {
        let job = job.as_str().to_owned();
        match event {
            HistoryEvent::Claimed { tick, instance, .. } => {
                self.claims.insert((job, tick, instance.as_str().to_owned()));
            }
            HistoryEvent::Missed(missed) => {
                self.missed.insert((job, missed.from, missed.count, missed.reason));
            }
            HistoryEvent::GaveUp { tick, .. } => {
                self.given_up.insert((job, tick));
            }
            _ => {}
        }
    }
}
