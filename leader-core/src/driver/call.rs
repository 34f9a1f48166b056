//! Calls of the store: batches out, answers in.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::{Id, JoinError};

use super::{Connection, Driver, describe_panic};
use crate::clock::BootInstant;
use crate::doctor::Finding;
use crate::election::{Event, Request, RequestNo, back_off};
use crate::error::{InspectError, StoreError};
use crate::group::{GroupName, declared_groups};
use crate::identity::InstanceId;
use crate::shared::Phase;
use crate::store::{Answer, Answers, Batch, Command, Op, Session};

use super::report::Report;
use super::schedule::random;

/// So many commands go into one call: a longer script would keep other clients of the store waiting.
const BATCH: usize = 100;

/// So many errors of one call are logged each; of the groups with yet others there is only the number.
const MOST_REPORTS: usize = 8;

/// What a call in flight is about.
#[derive(Debug)]
pub(super) enum Call {
    Connect,
    Batch(Vec<(usize, RequestNo)>),
    Inspect(oneshot::Sender<Result<Option<InstanceId>, InspectError>>),
    /// What it finds comes by a way of its own.
    Examine(oneshot::Receiver<Vec<Finding>>),
    /// If it fails, other instances know less of this one.
    Describe,
}

pub(super) type Done = Result<Answers, StoreError>;

impl Driver {
    pub(super) fn connect(&mut self) {
        self.connection = Connection::Connecting;
        self.described = self.shared.jobs.changes();
        let store = self.shared.store.clone();
        let session = Session {
            candidate: self.shared.candidate.clone(),
            groups: self.gated(),
            program: program(),
            announcer: self.announcer.clone(),
            timeout: self.shared.timing.operation_timeout,
        };
        let patience = self.shared.timing.operation_timeout;
        self.call(Call::Connect, "connect", patience, async move { store.connect(session).await.map(|()| Vec::new()) });
    }

    /// Sends the requests, whose leases count from `now`, in as few calls as may be.
    pub(super) fn send(&mut self, now: BootInstant, requests: Vec<(usize, Request)>) {
        let mut requests = requests.into_iter().peekable();
        while requests.peek().is_some() {
            let (members, commands): (Vec<_>, Vec<_>) =
                requests.by_ref().take(BATCH).map(|(index, r)| ((index, r.no), r.command)).unzip();
            let what = name(&commands);
            // What the calls before took to hand over is gone from this one's time.
            let spent = self.shared.clock.now().saturating_since(now);
            let timeout = self.shared.timing.operation_timeout.saturating_sub(spent);
            let store = self.shared.store.clone();
            let patience = self.shared.timing.operation_timeout;
            let batch = Batch { commands, timeout };
            self.call(Call::Batch(members), what, patience, async move { store.execute(batch).await });
        }
    }

    pub(super) fn inspect(&mut self, index: usize, reply: oneshot::Sender<Result<Option<InstanceId>, InspectError>>) {
        if self.connection != Connection::Connected {
            let attempted = format!("inspect on {}", self.shared.address);
            let cause = "the store has not been reached yet".to_owned();
            let last = self.shared.progress.borrow().last_error.clone();
            // The asker may have gone.
            let _ = reply.send(Err(last.unwrap_or(StoreError::Unavailable { attempted, cause }).into()));
            return;
        }
        let command = Command {
            group: self.groups[index].cell.group.clone(),
            candidate: self.shared.candidate.clone(),
            ttl: self.shared.timing.ttl,
            op: Op::Inspect,
        };
        let timeout = self.shared.timing.operation_timeout;
        let batch = Batch { commands: vec![command], timeout };
        let store = self.shared.store.clone();
        self.call(Call::Inspect(reply), "inspect", timeout, async move { store.execute(batch).await });
    }

    /// Tells the store what this instance does, if that has changed since it was told.
    pub(super) fn describe_if_changed(&mut self, now: BootInstant) {
        let changes = self.shared.jobs.changes();
        if std::mem::replace(&mut self.described, changes) == changes {
            return;
        }
        // Others may do something else.
        self.examine_again(now);
        let (store, incarnation) = (self.shared.store.clone(), self.shared.candidate.incarnation);
        let (groups, patience) = (self.gated(), self.shared.timing.operation_timeout);
        self.call(Call::Describe, "describe", patience, async move {
            store.describe(incarnation, groups).await.map(|()| Vec::new())
        });
    }

    /// The groups, each with the functions of this program that it gates, and with its jobs.
    pub(super) fn gated(&self) -> BTreeMap<GroupName, Vec<String>> {
        let (mut declared, mut jobs) = (declared_groups(), self.shared.jobs.lines());
        let mut functions = |group: &GroupName| {
            let sites = declared.remove(group.as_str()).unwrap_or_default();
            let functions = sites.iter().map(|site| format!("{}::{}", site.module, site.function));
            functions.chain(jobs(group)).collect()
        };
        self.shared.cells.keys().map(|group| (group.clone(), functions(group))).collect()
    }

    /// Starts a call; past this time it is dropped, whatever the store makes of that.
    pub(super) fn call(
        &mut self,
        call: Call,
        what: &'static str,
        after: Duration,
        work: impl Future<Output = Done> + Send + 'static,
    ) {
        let clock = self.shared.clock.clone();
        let give_up = clock.now().saturating_add(after);
        let address = self.shared.address.clone();
        let handle = self.calls.spawn(async move {
            tokio::select! {
                biased;
                done = work => done,
                () = clock.sleep_until(give_up) => Err(StoreError::TimedOut { attempted: format!("{what} on {address}"), after }),
            }
        });
        self.in_flight.insert(handle.id(), call);
    }

    pub(super) fn finished(&mut self, done: Result<(Id, Done), JoinError>) {
        let now = self.shared.clock.now();
        let (id, done) = done.unwrap_or_else(|error| {
            let id = error.id();
            let cause = match error.try_into_panic() {
                Ok(panic) => format!("the store panicked: {}", describe_panic(panic.as_ref())),
                Err(_) => "the call was aborted".to_owned(),
            };
            let attempted = format!("a call of {}", self.shared.address);
            (id, Err(StoreError::Unavailable { attempted, cause }))
        });
        match self.in_flight.remove(&id) {
            Some(Call::Connect) => self.connected(now, done),
            Some(Call::Batch(members)) => self.answered(now, &members, done),
            Some(Call::Inspect(reply)) => {
                // The asker may have gone.
                let _ = reply.send(inspected(done));
            }
            // Sent before the call is done.
            Some(Call::Examine(mut found)) => self.examined(now, done.map(|_| found.try_recv().unwrap_or_default())),
            Some(Call::Describe) | None => {}
        }
    }

    fn connected(&mut self, now: BootInstant, done: Done) {
        let Err(error) = done else {
            self.connection = Connection::Connected;
            self.examine_at(now);
            for index in 0..self.groups.len() {
                self.groups[index].cell.set_problem(None);
                self.settle(index, now, Vec::new());
            }
            return;
        };
        for group in &mut self.groups {
            group.cell.set_problem(Some(&error.to_string()));
        }
        let news = self.shared.progress.borrow().last_error.as_ref() != Some(&error);
        self.shared.progress.send_modify(|p| p.last_error = Some(error.clone()));
        if error.is_permanent() && self.start_deadline.is_some() {
            self.shared.set_phase(Phase::Refused);
            self.ending = true;
        }
        if news {
            self.reporter.send(Report::CallFailed { groups: self.groups.len(), first: None, error });
        }
        self.failed_connects = self.failed_connects.saturating_add(1);
        let most = back_off(self.failed_connects, self.shared.timing.retry, self.shared.timing.ttl);
        // Not all instances of a fleet at once.
        let wait = most / 2 + random(most / 2);
        self.connection = Connection::Wanted { at: now.saturating_add(wait) };
    }

    fn answered(&mut self, now: BootInstant, members: &[(usize, RequestNo)], done: Done) {
        let answers: Answers = match done {
            Ok(answers) if answers.len() == members.len() => {
                self.shared.progress.send_if_modified(|p| !std::mem::replace(&mut p.contact, true));
                answers
            }
            other => {
                let error = other.err().unwrap_or_else(|| StoreError::Refused {
                    attempted: format!("a batch of {} commands on {}", members.len(), self.shared.address),
                    cause: "the store gave another number of answers".to_owned(),
                    advice: "correct the store: each command is answered, in order".to_owned(),
                });
                members.iter().map(|_| Err(error.clone())).collect()
            }
        };
        let mut failures = Failures::default();
        for ((index, no), answer) in members.iter().zip(answers) {
            match answer {
                Ok(answer) => self.answer(*index, now, *no, answer),
                Err(error) => {
                    let news = self.failed(*index, now, *no, &error);
                    failures.add(*index, error, news);
                }
            }
        }
        self.report(failures);
    }

    /// A report for each error, however many groups it is about.
    fn report(&mut self, failures: Failures) {
        self.shared.progress.send_if_modified(|p| failures.last.map(|error| p.last_error = Some(error)).is_some());
        for (index, groups, error) in failures.news {
            let first = Some(self.groups[index].cell.group.clone());
            self.reporter.send(Report::CallFailed { groups, first, error });
        }
    }

    fn answer(&mut self, index: usize, now: BootInstant, no: RequestNo, answer: Answer) {
        let group = &mut self.groups[index];
        if std::mem::take(&mut group.failing) {
            group.refused = None;
            self.reporter.send(Report::Recovered { group: group.cell.group.clone() });
            self.examine_again(now);
        }
        let group = &mut self.groups[index];
        if !matches!(answer, Answer::Quarantined { .. }) {
            group.cell.set_problem(None);
        }
        self.handle(index, now, Event::Answered(no, answer));
    }
}

/// What went wrong in one call.
#[derive(Default)]
struct Failures {
    last: Option<StoreError>,
    /// What is for the log: each error, its first group, and how many groups it is about.
    news: Vec<(usize, usize, StoreError)>,
}

impl Failures {
    fn add(&mut self, index: usize, error: StoreError, news: bool) {
        self.last = Some(error.clone());
        if !news {
            return;
        }
        let same = self.news.iter().position(|(_, _, known)| *known == error);
        let last = (self.news.len() == MOST_REPORTS).then_some(MOST_REPORTS - 1);
        match same.or(last) {
            Some(at) => self.news[at].1 += 1,
            None => self.news.push((index, 1, error)),
        }
    }
}

/// What people call this program.
pub(super) fn program() -> String {
    let file = std::env::current_exe().ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    // What Linux adds when the file was replaced while it runs.
    let file = file.map(|file| file.trim_end_matches(" (deleted)").to_owned());
    file.unwrap_or_else(|| "an unnamed program".to_owned())
}

fn inspected(done: Done) -> Result<Option<InstanceId>, InspectError> {
    match done?.into_iter().next() {
        Some(Ok(Answer::Inspected(held))) => Ok(held.map(|h| h.holder)),
        Some(Err(error)) => Err(error.into()),
        _ => Err(InspectError::Store(StoreError::Refused {
            attempted: "inspect".to_owned(),
            cause: "the store answered something else".to_owned(),
            advice: "correct the store: an inspect is answered with Answer::Inspected".to_owned(),
        })),
    }
}

/// What a batch does, for a message.
fn name(commands: &[Command]) -> &'static str {
    let first = commands.first().map_or("a batch", |command| command.op.name());
    if commands.iter().all(|command| command.op.name() == first) { first } else { "a batch of several kinds" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lasting_error_of_a_call_is_for_the_log_and_very_many_of_them_are_no_flood() {
        let refused = |cause: usize| StoreError::Refused {
            attempted: "acquire".to_owned(),
            cause: format!("key {cause}"),
            advice: "delete it".to_owned(),
        };
        let mut failures = Failures::default();
        for index in 0..100 {
            failures.add(index, refused(0), false);
            failures.add(index, refused(if index < 10 { 1 } else { index }), true);
        }
        let counted: Vec<_> = failures.news.iter().map(|(first, groups, _)| (*first, *groups)).collect();
        assert_eq!(counted, [(0, 10), (10, 1), (11, 1), (12, 1), (13, 1), (14, 1), (15, 1), (16, 84)]);
        assert_eq!(failures.last, Some(refused(99)));
    }
}
