//! A subscription that restores itself.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

use super::super::connection::{Failure, Heard, Subscription, Whereabouts};
use super::{Adapter, Listener, peer};

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
pub(super) async fn start<A: Adapter>(
    whereabouts: Arc<dyn Whereabouts>,
    channels: Vec<String>,
    heard: Box<dyn Fn(Heard) + Send + Sync>,
    patience: Duration,
    timeout: Duration,
) -> Result<Subscribed, Failure> {
    let plan = Plan::<A> { whereabouts, channels, heard, patience, timeout, by: PhantomData };
    let first = plan.open().await?;
    Ok(Subscribed(tokio::spawn(plan.keep(first)).abort_handle()))
}

struct Plan<A> {
    whereabouts: Arc<dyn Whereabouts>,
    channels: Vec<String>,
    heard: Box<dyn Fn(Heard) + Send + Sync>,
    patience: Duration,
    timeout: Duration,
    by: PhantomData<A>,
}

impl<A: Adapter> Plan<A> {
    async fn open(&self) -> Result<A::Listener, Failure> {
        let opening = async {
            let address = self.whereabouts.find(self.patience).await?;
            let listening = A::listen(&address, self.channels.clone(), self.patience);
            peer::open(&address, self.patience, listening).await
        };
        tokio::time::timeout(self.patience, opening).await.unwrap_or(Err(Failure::TimedOut))
    }

    /// Never gives up: whatever it is that fails, somebody may put it right.
    async fn keep(self, first: A::Listener) {
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
    async fn listen(&self, mut listener: A::Listener) {
        let mut asking = self.ask_later(&listener);
        loop {
            tokio::select! {
                heard = listener.next() => match heard {
                    Some(heard) => (self.heard)(heard),
                    None => return,
                },
                is_there = &mut asking => {
                    if !is_there {
                        return;
                    }
                    asking = self.ask_later(&listener);
                }
            }
        }
    }

    fn ask_later(&self, listener: &A::Listener) -> Pin<Box<dyn Future<Output = bool> + Send>> {
        let asking = listener.ask(self.timeout);
        Box::pin(async {
            sleep(jittered(ASK)).await;
            asking.await
        })
    }
}

/// Between half of it and all of it, so that a fleet does not come back in step.
fn jittered(wait: Duration) -> Duration {
    wait.mul_f64(0.5 + fastrand::f64() / 2.0)
}
