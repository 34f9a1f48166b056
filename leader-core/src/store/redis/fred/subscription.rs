//! A subscription that restores itself.

use std::sync::Arc;
use std::time::Duration;

use ::fred::types::Message;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

use super::super::connection::{Failure, Heard, Request, Subscription, Whereabouts};
use super::connection::Connection;

/// Time from one question to the peer to the next, whether it is still there: a connection that only listens never learns
/// by itself that the other end is gone.
const ASK: Duration = Duration::from_secs(2);
/// The first wait after the connection was lost.
const FIRST: Duration = Duration::from_millis(50);
/// The longest wait between two attempts to restore it.
const LONGEST: Duration = Duration::from_secs(1);

/// Dropping it ends the subscription.
pub(super) struct Subscribed(AbortHandle);

impl Subscription for Subscribed {}

impl Drop for Subscribed {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Opens a subscription, and keeps it from then on.
pub(super) async fn start(
    whereabouts: Arc<dyn Whereabouts>,
    channels: Vec<String>,
    heard: Box<dyn Fn(Heard) + Send + Sync>,
    patience: Duration,
    timeout: Duration,
) -> Result<Subscribed, Failure> {
    let plan = Plan { whereabouts, channels, heard, patience, timeout };
    let first = plan.open().await?;
    Ok(Subscribed(tokio::spawn(plan.keep(first)).abort_handle()))
}

struct Plan {
    whereabouts: Arc<dyn Whereabouts>,
    channels: Vec<String>,
    heard: Box<dyn Fn(Heard) + Send + Sync>,
    patience: Duration,
    timeout: Duration,
}

struct Listener {
    connection: Connection,
    messages: broadcast::Receiver<Message>,
}

impl Plan {
    async fn open(&self) -> Result<Listener, Failure> {
        let opening = async {
            let address = self.whereabouts.find(self.patience).await?;
            let connection = Connection::open(&address, self.patience).await?;
            let messages = connection.messages();
            connection.subscribe(self.channels.clone(), self.patience).await?;
            Ok(Listener { connection, messages })
        };
        tokio::time::timeout(self.patience, opening).await.unwrap_or(Err(Failure::TimedOut))
    }

    /// Never gives up: whatever it is that fails, somebody may put it right.
    async fn keep(self, first: Listener) {
        let mut listener = first;
        let mut wait = FIRST;
        loop {
            let since = Instant::now();
            self.listen(listener).await;
            if since.elapsed() > ASK {
                wait = FIRST;
            }
            listener = loop {
                sleep(jittered(wait)).await;
                wait = (wait * 2).min(LONGEST).min(self.timeout.max(FIRST));
                if let Ok(listener) = self.open().await {
                    break listener;
                }
            };
            (self.heard)(Heard::Gap);
        }
    }

    /// Passes on what is heard, for as long as the peer is there.
    async fn listen(&self, Listener { connection, mut messages }: Listener) {
        let questions = async {
            loop {
                sleep(jittered(ASK)).await;
                // An error is an answer: a server that cannot write to its disk refuses each PING.
                if connection.call(Request::bare("PING"), self.timeout).await.is_err() {
                    return;
                }
            }
        };
        tokio::pin!(questions);
        loop {
            let heard = tokio::select! {
                message = messages.recv() => match message {
                    Ok(message) => Heard::Message {
                        channel: message.channel.to_string(),
                        text: message.value.into_string().unwrap_or_default(),
                    },
                    Err(RecvError::Lagged(_)) => Heard::Gap,
                    Err(RecvError::Closed) => return,
                },
                () = &mut questions => return,
                _ = connection.ended() => return,
            };
            (self.heard)(heard);
        }
    }
}

/// Between half of it and all of it, so that a fleet does not come back in step.
fn jittered(wait: Duration) -> Duration {
    wait.mul_f64(0.5 + fastrand::f64() / 2.0)
}
