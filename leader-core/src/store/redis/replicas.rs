//! Waiting until replicas have what a call has written.
//!
//! `WAIT` is about what its own connection has written, on the server that it leads to: so it goes out on the link of the
//! script, once that was answered, and blocks it. Not in one go with the script, though that is quicker (1.4 times the script
//! alone, instead of twice; 60 µs): most answers need no replica, and a script that the server does not know, or that is another
//! node's, is sent again, and would be confirmed without having been executed.

use std::num::NonZeroU8;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::connection::{Failure, Link, Reply, Request};
use super::session::{Answered, left};

/// What a user of the server must be allowed to, on top.
pub(super) const PERMISSION: &str = "+wait";

/// So much of its time a call leaves to replicas. A server whose clock ticks ten times a second ends a `WAIT` up to 100 ms late.
const PATIENCE: f64 = 0.75;
/// And so much to the server to say that it was in vain. What is left is for telling it.
const LIMIT: f64 = 0.95;

/// What a reply becomes.
pub(super) struct Reading<'a, T> {
    /// What each command was answered, or the server's error for it.
    pub(super) read: &'a (dyn Fn(Reply) -> Vec<Result<T, String>> + Sync),
    /// Which answers are none before replicas have confirmed them.
    pub(super) needs: Option<Needs<T>>,
}

/// Which answers count only once so many replicas have what was written.
pub(super) struct Needs<T> {
    pub(super) replicas: NonZeroU8,
    pub(super) needed: fn(&T) -> bool,
}

impl<T> Reading<'_, T> {
    /// The answers in a reply that came on this link.
    pub(super) async fn answers(
        &self,
        reply: Reply,
        link: &dyn Link,
        confirmations: &Confirmations,
        until: Instant,
    ) -> Answered<T> {
        let mut answers: Answered<T> =
            (self.read)(reply).into_iter().map(|answer| answer.map_err(Failure::Server)).collect();
        if let Some(needs) = self.needs {
            needs.confirm(&mut answers, link, confirmations, until).await;
        }
        answers
    }
}

impl<T> Clone for Needs<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Needs<T> {}

impl<T> Needs<T> {
    /// None, if no replica is to be waited for.
    pub(super) fn new(replicas: u8, needed: fn(&T) -> bool) -> Option<Self> {
        NonZeroU8::new(replicas).map(|replicas| Self { replicas, needed })
    }

    /// Waits for the replicas if any of these answers, which came on this link, needs them. Without them it is none.
    pub(super) async fn confirm(
        self,
        answers: &mut [Result<T, Failure>],
        link: &dyn Link,
        confirmations: &Confirmations,
        until: Instant,
    ) {
        let needs = |answer: &Result<T, Failure>| answer.as_ref().is_ok_and(self.needed);
        if !answers.iter().any(needs) {
            return;
        }
        if let Err(failure) = confirmations.wait(self.replicas, link, until).await {
            for answer in answers.iter_mut().filter(|answer| needs(answer)) {
                *answer = Err(failure.clone());
            }
        }
    }
}

/// What replicas have confirmed on one link. Calls that are answered while one waits share the next wait.
#[derive(Debug, Default)]
pub(super) struct Confirmations {
    /// So many calls that need them were answered.
    answered: AtomicU64,
    last: Mutex<Confirmed>,
}

#[derive(Debug)]
struct Confirmed {
    /// The calls that were answered before the last wait began.
    calls: u64,
    /// The end of its time.
    until: Option<Instant>,
    outcome: Result<(), Failure>,
}

impl Default for Confirmed {
    fn default() -> Self {
        Self { calls: 0, until: None, outcome: Ok(()) }
    }
}

impl Confirmations {
    /// The caller's script was answered on this link before.
    async fn wait(&self, replicas: NonZeroU8, link: &dyn Link, until: Instant) -> Result<(), Failure> {
        let call = self.answered.fetch_add(1, Ordering::Relaxed) + 1;
        let in_vain = Failure::Unconfirmed { by: None, of: replicas };
        let Ok(time) = left(until) else { return Err(in_vain) };
        let Ok(mut last) = tokio::time::timeout(time.mul_f64(LIMIT), self.last.lock()).await else {
            return Err(in_vain);
        };
        // In vain, but this one has much more time.
        let was_short = matches!(last.outcome, Err(Failure::Unconfirmed { .. }))
            && last.until.is_none_or(|last| until > last + time / 4);
        if last.calls < call || was_short {
            // If this future is dropped from here on, the next one waits anew; but then nothing more is sent on the link.
            let calls = self.answered.load(Ordering::Relaxed);
            let outcome = ask(replicas, link, until).await;
            *last = Confirmed { calls, until: Some(until), outcome };
        }
        last.outcome.clone()
    }
}

async fn ask(replicas: NonZeroU8, link: &dyn Link, until: Instant) -> Result<(), Failure> {
    let in_vain = |by| Failure::Unconfirmed { by, of: replicas };
    let Ok(time) = left(until) else { return Err(in_vain(None)) };
    let request = Request::new("WAIT", vec![replicas.to_string(), patience(time).to_string()]);
    match link.run(request, time.mul_f64(LIMIT)).await {
        Ok(Reply::Integer(by)) if by >= i64::from(replicas.get()) => Ok(()),
        Ok(Reply::Integer(by)) => Err(in_vain(u8::try_from(by).ok())),
        Ok(_) | Err(Failure::TimedOut) => Err(in_vain(None)),
        // It is not permitted; or the server has become a replica meanwhile.
        Err(failure) => Err(failure),
    }
}

/// In milliseconds, and never 0, which would mean: for ever.
fn patience(time: Duration) -> u128 {
    time.mul_f64(PATIENCE).as_millis().max(1)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex as Plain;

    use tokio::sync::watch;

    use super::super::connection::Pending;
    use super::super::tie::all;
    use super::*;

    /// A server whose answer to each `WAIT` a test writes; it gives them once it is let.
    struct Server {
        answers: Plain<Vec<Result<Reply, Failure>>>,
        asked: Plain<Vec<Vec<Vec<u8>>>>,
        answering: watch::Sender<bool>,
    }

    impl Server {
        /// The last of these stands for all that follow.
        fn new(answers: impl IntoIterator<Item = Result<Reply, Failure>>) -> Self {
            let mut answers: Vec<_> = answers.into_iter().collect();
            answers.reverse();
            Self { answers: answers.into(), asked: Plain::default(), answering: watch::Sender::new(true) }
        }

        fn asked(&self) -> usize {
            self.asked.lock().unwrap().len()
        }
    }

    impl Link for Server {
        fn run(&self, request: Request, _: Duration) -> Pending<'_, Reply> {
            assert_eq!(request.name, "WAIT");
            self.asked.lock().unwrap().push(request.arguments);
            let mut answers = self.answers.lock().unwrap();
            let answer = if answers.len() > 1 { answers.pop() } else { answers.last().cloned() };
            let mut answering = self.answering.subscribe();
            Box::pin(async move {
                answering.wait_for(|answering| *answering).await.unwrap();
                answer.unwrap()
            })
        }

        fn is_over(&self) -> bool {
            false
        }
    }

    /// Of a lease that was won, and of one that is another's.
    const WON: Result<bool, Failure> = Ok(true);
    const HELD: Result<bool, Failure> = Ok(false);

    fn needs(replicas: u8) -> Needs<bool> {
        Needs::new(replicas, |won| *won).unwrap()
    }

    fn unconfirmed(by: Option<u8>, of: u8) -> Failure {
        Failure::Unconfirmed { by, of: NonZeroU8::new(of).unwrap() }
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    async fn confirmed(server: &Server, answers: &[Result<bool, Failure>], replicas: u8) -> Vec<Result<bool, Failure>> {
        let mut answers = answers.to_vec();
        needs(replicas).confirm(&mut answers, server, &Confirmations::default(), soon()).await;
        answers
    }

    #[tokio::test]
    async fn nobody_is_waited_for_unless_an_answer_needs_it() {
        let failed = || Err(Failure::Server("WRONGTYPE".to_owned()));
        let server = Server::new([Ok(Reply::Integer(0))]);
        assert_eq!(confirmed(&server, &[HELD, failed()], 1).await, [HELD, failed()]);
        assert_eq!(server.asked(), 0);
        assert!(Needs::<bool>::new(0, |_| true).is_none());
    }

    #[tokio::test]
    async fn with_enough_confirmations_the_answers_count() {
        let server = Server::new([Ok(Reply::Integer(3))]);
        assert_eq!(confirmed(&server, &[WON, HELD], 2).await, [WON, HELD]);
        assert_eq!(server.asked(), 1);
    }

    #[tokio::test]
    async fn without_them_an_answer_that_needs_them_is_none_and_the_others_stand() {
        let denied = Failure::Server("NOPERM this user has no permissions to run the 'wait' command".to_owned());
        let gone = Failure::Unreachable("gone".to_owned());
        for (said, failure) in [
            (Ok(Reply::Integer(1)), unconfirmed(Some(1), 2)),
            (Ok(Reply::Integer(-1)), unconfirmed(None, 2)),
            (Ok(Reply::Nil), unconfirmed(None, 2)),
            (Err(Failure::TimedOut), unconfirmed(None, 2)),
            (Err(denied.clone()), denied),
            (Err(gone.clone()), gone),
        ] {
            let server = Server::new([said]);
            assert_eq!(confirmed(&server, &[WON, HELD, WON], 2).await, [Err(failure.clone()), HELD, Err(failure)]);
        }
    }

    #[tokio::test]
    async fn the_server_is_told_to_wait_for_less_than_there_is_time_and_never_for_ever() {
        let server = Server::new([Ok(Reply::Integer(1))]);
        confirmed(&server, &[WON], 1).await;
        let asked = server.asked.lock().unwrap()[0].clone();
        let [replicas, wait] = &asked[..] else { panic!("{asked:?}") };
        let wait: u64 = std::str::from_utf8(wait).unwrap().parse().unwrap();
        assert!(replicas == b"1" && wait > 0 && wait <= 15_000, "{wait}");
        assert_eq!(patience(Duration::from_micros(900)), 1);
        let server = Server::new([Ok(Reply::Integer(1))]);
        let outcome = Confirmations::default().wait(NonZeroU8::MIN, &server, Instant::now()).await;
        assert_eq!((outcome, server.asked()), (Err(unconfirmed(None, 1)), 0));
    }

    #[tokio::test]
    async fn calls_that_are_answered_while_one_waits_share_the_next_wait() {
        for (said, outcome) in [(1, Ok(())), (0, Err(unconfirmed(Some(0), 1)))] {
            let server = Server::new([Ok(Reply::Integer(1)), Ok(Reply::Integer(said))]);
            server.answering.send_replace(false);
            let confirmations = Confirmations::default();
            let calls = all((0..100).map(|_| confirmations.wait(NonZeroU8::MIN, &server, soon())));
            let answer = async {
                // All of them wait by then.
                tokio::task::yield_now().await;
                assert_eq!((server.asked(), confirmations.answered.load(Ordering::Relaxed)), (1, 100));
                server.answering.send_replace(true);
            };
            let (outcomes, ()) = tokio::join!(calls, answer);
            assert_eq!(outcomes[0], Ok(()));
            assert!(outcomes[1..].iter().all(|each| *each == outcome), "{outcomes:?}");
            assert_eq!(server.asked(), 2);
        }
    }

    #[tokio::test]
    async fn whoever_has_more_time_does_not_share_a_wait_that_was_too_short() {
        let server = Server::new([0, 0, 1].map(|by| Ok(Reply::Integer(by))));
        server.answering.send_replace(false);
        let confirmations = Confirmations::default();
        let short = || Instant::now() + Duration::from_secs(2);
        let wait = |until| confirmations.wait(NonZeroU8::MIN, &server, until);
        // The second one's wait is begun by one that has little time, once the first one has ended.
        let answer = async {
            tokio::task::yield_now().await;
            server.answering.send_replace(true);
        };
        let (first, second, third, ()) = tokio::join!(wait(soon()), wait(short()), wait(soon()), answer);
        assert!(first.is_err() && second.is_err() && third.is_ok(), "{first:?} {second:?} {third:?}");
        assert_eq!(server.asked(), 3);
    }
}
