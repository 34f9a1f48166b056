//! Asks the ledger who claimed what, before it forgets: it keeps the last lines of each job only.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use leader_core::store::{HistoryEvent, JobName, TickCommand, TickOp, TickReply};
use leader_core::{Config, Elector, GroupName};

use super::jobs::{Facts, GROUP};

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
    /// Times at which it could not be asked.
    pub failures: Vec<String>,
}

/// Who asks, in a thread of its own, without ever being a candidate.
#[derive(Debug)]
pub struct Witness {
    orders: Option<Sender<()>>,
    thread: Option<JoinHandle<Result<Known, String>>>,
}

impl Witness {
    /// Begins to ask about these jobs in the store at `url`.
    ///
    /// # Panics
    /// If no thread can be started.
    #[must_use]
    pub fn of(url: String, jobs: &[Facts]) -> Self {
        let (orders, inbox) = channel();
        let names: Vec<_> = jobs.iter().filter_map(|job| JobName::new(&job.name).ok()).collect();
        let work = move || watch(url, &names, &inbox);
        let thread = thread::Builder::new().name("witness".to_owned()).spawn(work).expect("a thread can be started");
        Self { orders: Some(orders), thread: Some(thread) }
    }

    /// Somebody has died: asks now.
    pub fn look(&self) {
        if let Some(orders) = &self.orders {
            // If it has failed, it says so at the end.
            let _ = orders.send(());
        }
    }

    /// Asks once more, and tells all.
    ///
    /// # Errors
    /// If it could not ask.
    pub fn finish(mut self) -> Result<Known, String> {
        self.orders = None;
        let known = self.thread.take().map(JoinHandle::join);
        known.and_then(Result::ok).unwrap_or_else(|| Err("the witness has panicked".to_owned()))
    }
}

fn watch(url: String, jobs: &[JobName], inbox: &Receiver<()>) -> Result<Known, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let group = GroupName::new(GROUP).map_err(|error| error.to_string())?;
    let config = Config::new(url).groups([GROUP]).observe_only().instance_id("witness");
    let elector = runtime.block_on(Elector::start(config)).map_err(|error| error.to_string())?;
    let mut known = Known::default();
    let mut all_at = Instant::now();
    loop {
        let limit = match inbox.recv_timeout(all_at.saturating_duration_since(Instant::now())) {
            Ok(()) => SOON,
            Err(RecvTimeoutError::Timeout) => TickOp::HISTORY,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let asked = runtime.block_on(ask(&elector, &group, jobs, limit, &mut known));
        if asked? || limit == TickOp::HISTORY {
            all_at = Instant::now() + PERIOD;
        }
    }
    runtime.block_on(ask(&elector, &group, jobs, TickOp::HISTORY, &mut known))?;
    runtime.block_on(elector.shutdown(PATIENCE)).map_err(|error| error.to_string())?;
    Ok(known)
}

/// Whether all was asked about, and not only the last lines: the store was away meanwhile, and much may have come.
async fn ask(
    elector: &Elector,
    group: &GroupName,
    jobs: &[JobName],
    limit: u32,
    known: &mut Known,
) -> Result<bool, String> {
    let (begin, mut limit) = (Instant::now(), limit);
    for some in jobs.chunks(BATCH) {
        loop {
            let command = |job: &JobName| TickCommand {
                group: group.clone(),
                job: job.clone(),
                candidate: elector.__candidate().clone(),
                op: TickOp::History { limit },
            };
            match elector.__ask_ledger(some.iter().map(command).collect()).await {
                Ok(answers) => {
                    for (job, answer) in some.iter().zip(answers) {
                        match answer.map(|answer| answer.reply) {
                            Ok(TickReply::History(entries)) => {
                                entries.into_iter().for_each(|entry| known.add(job, entry.event));
                            }
                            Ok(other) => return Err(format!("the history of {job}: {other:?}")),
                            Err(error) => return Err(format!("the history of {job}: {error}")),
                        }
                    }
                    break;
                }
                Err(error) if begin.elapsed() > PATIENCE => {
                    known.failures.push(error.to_string());
                    return Ok(false);
                }
                Err(_) => {
                    limit = TickOp::HISTORY;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
    }
    Ok(limit == TickOp::HISTORY)
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
