//! One elector's tie to the store for one kind of commands: to one server, or to the nodes of a cluster; and how a batch
//! becomes calls.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use super::cluster::Nodes;
use super::connection::{Failure, Reply};
use super::failure::{Denied, denied};
use super::replicas::{Needs, Reading};
use super::session::{Answered, Call, Script, Session};
use super::slot;

/// How much of its time a batch that becomes several calls leaves to each.
pub(super) const PART: f64 = 0.9;

pub(super) enum Tie {
    Server(Session),
    Cluster(Nodes),
}

/// How commands of one kind become a call of the tie's script.
pub(super) struct Kind<'a, C, T> {
    /// The key that a command is about; all others that it touches are in the same slot.
    pub(super) key: &'a (dyn Fn(&C) -> String + Sync),
    /// What follows the script in a call for these commands.
    pub(super) arguments: &'a (dyn Fn(&[C]) -> Vec<String> + Sync),
    /// The answers in a reply to so many commands.
    pub(super) read: fn(Reply, usize) -> Vec<Result<T, String>>,
    /// Which answers are none before replicas have confirmed them.
    pub(super) needs: Option<Needs<T>>,
}

impl Tie {
    /// Executes the commands in as few calls as may be, and answers each, within `timeout`.
    ///
    /// # Errors
    /// None of them was answered. Of a cluster a part may have been: there each command fails for itself.
    pub(super) async fn batch<C: Clone + Send + Sync, T: Send>(
        &self,
        commands: &[C],
        kind: &Kind<'_, C, T>,
        timeout: Duration,
    ) -> Result<Answered<T>, Failure> {
        if let Self::Server(_) = self {
            return self.together(commands, kind, Instant::now() + timeout).await;
        }
        // What one node is silent about must not cost the others' answers, which are told with it.
        let until = Instant::now() + timeout.mul_f64(PART);
        let parts = by_slot(commands, kind);
        let calls = parts.values().map(|members| async move {
            let commands: Vec<C> = members.iter().map(|index| commands[*index].clone()).collect();
            self.together(&commands, kind, until).await
        });
        let outcomes = all(calls).await;
        let mut answers: Vec<Option<Result<T, Failure>>> = commands.iter().map(|_| None).collect();
        for (members, outcome) in parts.values().zip(outcomes) {
            match outcome {
                Ok(part) => {
                    for (index, answer) in members.iter().zip(part) {
                        answers[*index] = Some(answer);
                    }
                }
                Err(failure) => {
                    for index in members {
                        answers[*index] = Some(Err(failure.clone()));
                    }
                }
            }
        }
        Ok(answers.into_iter().map(|answer| answer.unwrap_or_else(|| Err(strange()))).collect())
    }

    /// One call of a script on whoever has this key, and with it all others that the script touches.
    pub(super) async fn call<T>(
        &self,
        key: &[u8],
        call: Call<'_>,
        reading: &Reading<'_, T>,
        until: Instant,
    ) -> Result<Answered<T>, Failure> {
        match self {
            Self::Server(session) => session.call(call, reading, until).await,
            Self::Cluster(nodes) => nodes.call(slot::of(key), call, reading, until).await,
        }
    }

    /// The session that listens and knows what its elector's groups are for.
    pub(super) fn listener(&self) -> Option<&Session> {
        match self {
            Self::Server(session) => Some(session),
            Self::Cluster(nodes) => nodes.listener(),
        }
    }

    pub(super) fn is_of_a_cluster(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    fn script(&self) -> &Arc<Script> {
        match self {
            Self::Server(session) => session.script(),
            Self::Cluster(nodes) => nodes.script(),
        }
    }

    /// In one call, if nothing speaks against it.
    async fn together<C: Sync, T>(
        &self,
        commands: &[C],
        kind: &Kind<'_, C, T>,
        until: Instant,
    ) -> Result<Answered<T>, Failure> {
        match self.at_once(commands, kind, until).await {
            // One key that the server's user may not touch fails a call as a whole.
            Err(Failure::Server(error)) if commands.len() > 1 && denied(&error) == Some(Denied::Key) => {
                let mut answers = Vec::with_capacity(commands.len());
                for command in commands {
                    match self.at_once(std::slice::from_ref(command), kind, until).await {
                        Ok(answer) => answers.extend(answer),
                        Err(Failure::Server(error)) => answers.push(Err(Failure::Server(error))),
                        Err(failure) => return Err(failure),
                    }
                }
                Ok(answers)
            }
            answers => answers,
        }
    }

    async fn at_once<C: Sync, T>(
        &self,
        commands: &[C],
        kind: &Kind<'_, C, T>,
        until: Instant,
    ) -> Result<Answered<T>, Failure> {
        let Some(first) = commands.first() else { return Ok(Vec::new()) };
        let arguments = || (kind.arguments)(commands).into_iter().map(String::into_bytes).collect();
        let call = Call { script: self.script(), arguments: &arguments, verbatim: false };
        let read = |reply| (kind.read)(reply, commands.len());
        let reading = Reading { read: &read, needs: kind.needs };
        self.call((kind.key)(first).as_bytes(), call, &reading, until).await
    }
}

/// There is no answer where one should be.
pub(super) fn strange() -> Failure {
    Failure::Server("ERR the script gave another number of answers".to_owned())
}

/// Which of the commands are in which slot, by their places.
fn by_slot<C, T>(commands: &[C], kind: &Kind<'_, C, T>) -> BTreeMap<u16, Vec<usize>> {
    let mut parts: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    for (index, command) in commands.iter().enumerate() {
        parts.entry(slot::of((kind.key)(command).as_bytes())).or_default().push(index);
    }
    parts
}

/// What all of these come to, at the same time.
pub(super) async fn all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<Pin<Box<F>>> = futures.map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, done) in running.iter_mut().zip(&mut done) {
            if done.is_none()
                && let Poll::Ready(output) = future.as_mut().poll(context)
            {
                *done = Some(output);
            }
        }
        if done.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_one_slot_stay_together_and_in_order() {
        let read = |_, _| Vec::<Result<(), String>>::new();
        let kind = Kind { key: &String::clone, arguments: &|_| Vec::new(), read, needs: None };
        let commands = ["{a}1", "b", "{a}2", "{b}", "a"].map(str::to_owned);
        let parts = by_slot(&commands, &kind);
        assert_eq!(parts.get(&slot::of(b"a")), Some(&vec![0, 2, 4]));
        assert_eq!((parts.get(&slot::of(b"b")), parts.len()), (Some(&vec![1, 3]), 2));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_takes_its_time_holds_up_no_other() {
        let begin = tokio::time::Instant::now();
        let seconds = all([3, 1, 2].into_iter().map(|seconds| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            seconds
        }));
        assert_eq!((seconds.await, begin.elapsed()), (vec![3, 1, 2], Duration::from_secs(3)));
        assert!(all(std::iter::empty::<std::future::Ready<()>>()).await.is_empty());
    }
}
