//! Redis by Sentinel: each link leads to the server that sentinels call the primary when it is opened.
//!
//! Links are those of another client, and so are the connections to sentinels. What is added here is where they lead: it is
//! asked when a link is opened ([`Finder::find`]), and now and then beside ([`Finder::look`]), since whoever can still reach a
//! primary that was given up sees no error. A link that leads elsewhere than what was found last is over.
//!
//! So an old primary is left by all who reach a sentinel that knows of the new one. Whoever reaches the old primary and no such
//! sentinel stays with it, and then both may give the lease: only a primary that takes no writes without its replicas, or one
//! whose replicas are all waited for, excludes that.

pub(super) mod answer;
mod doctor;
mod finder;
mod tally;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use self::finder::{Connector, Finder};
use super::address::{Sentinels, Server};
use super::connection::{Client, Failure, Heard, Judged, Link, Lookout, Pending, Reply, Request, Subscription};

/// The longest and the shortest time from one question to the next, of an elector whose links are in order. It follows the
/// operation time-out, and so the ttl: with the next primary, others wait for a ttl before they lead.
const SELDOM: Duration = Duration::from_secs(1);
const OFTEN: Duration = Duration::from_millis(100);
/// How long a sentinel may take at least.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long the sentinels that the doctor asks may take at most.
const SURVEY: Duration = Duration::from_secs(2);
/// So many times as often is asked while there is no link.
const HASTE: u32 = 4;

/// Makes links to the primary of a service.
pub(super) struct SentinelClient {
    finder: Arc<Finder>,
}

impl SentinelClient {
    /// `connector`: makes the client for one server.
    pub(super) fn new(sentinels: Sentinels, connector: Connector) -> Self {
        Self { finder: Arc::new(Finder::new(sentinels, connector)) }
    }

    /// The address of sentinels says nothing of a server that cannot be reached from here.
    fn named(&self, server: &Server, failure: Failure) -> Failure {
        let service = self.finder.service();
        let told = format!("the sentinels call {server} the primary of `{service}`");
        match failure {
            Failure::TimedOut => Failure::Unreachable(format!("{told}, and it did not answer in time")),
            Failure::Unreachable(cause) => Failure::Unreachable(format!("{told}: {cause}")),
            failure => failure,
        }
    }
}

impl Client for SentinelClient {
    fn connect(&self, timeout: Duration) -> Pending<'_, Box<dyn Link>> {
        Box::pin(async move {
            let until = Instant::now() + timeout;
            self.finder.note_lack(true);
            // The other half is for the primary.
            let to = self.finder.find(timeout / 2).await?;
            let connected = self.finder.client_of(&to).connect(left(until)?).await;
            let link = connected.map_err(|failure| self.named(&to, failure))?;
            match link.run(Request::bare("ROLE"), left(until)?).await {
                Ok(Reply::List(parts)) if parts.first() == Some(&Reply::Text("master".to_owned())) => {}
                // Not permitted: then the first write tells.
                Err(Failure::Server(_)) => {}
                Ok(_) => return Err(no_primary(&to)),
                Err(failure) => return Err(failure),
            }
            self.finder.note_lack(false);
            Ok(Box::new(Led { link, to, finder: Arc::clone(&self.finder) }) as Box<dyn Link>)
        })
    }

    fn subscribe(
        &self,
        channels: Vec<String>,
        heard: Box<dyn Fn(Heard) + Send + Sync>,
        patience: Duration,
        timeout: Duration,
    ) -> Pending<'_, Box<dyn Subscription>> {
        Box::pin(async move {
            let until = Instant::now() + patience;
            let to = self.finder.find(patience / 2).await?;
            let subscribed = self.finder.client_of(&to).subscribe(channels, heard, left(until)?, timeout).await;
            subscribed.map_err(|failure| self.named(&to, failure))
        })
    }

    fn watch(&self, timeout: Duration, moved: Box<dyn Fn() + Send + Sync>) -> Option<Lookout> {
        let finder = Arc::clone(&self.finder);
        let every = timeout.clamp(OFTEN, SELDOM);
        let mut seen = finder.moves();
        Some(Lookout::over(async move {
            loop {
                // Not in step with the rest of the fleet.
                let wait = every.mul_f64(0.5 + fastrand::f64() / 2.0);
                for part in 0..HASTE {
                    sleep(wait / HASTE).await;
                    if part > 0 && finder.lacks_a_link() {
                        break;
                    }
                }
                finder.look(every.max(PATIENCE)).await;
                let moves = finder.moves();
                if std::mem::replace(&mut seen, moves) != moves {
                    moved();
                }
            }
        }))
    }

    fn examine(&self, until: Instant) -> Judged<'_> {
        Box::pin(async move {
            let timeout = (until.saturating_duration_since(Instant::now()) / 4).min(SURVEY);
            doctor::judge(self.finder.service(), &self.finder.survey(timeout).await)
        })
    }
}

/// A link to what was the primary when it was opened.
struct Led {
    link: Box<dyn Link>,
    to: Server,
    finder: Arc<Finder>,
}

impl Link for Led {
    fn run(&self, request: Request, timeout: Duration) -> Pending<'_, Reply> {
        self.link.run(request, timeout)
    }

    fn is_over(&self) -> bool {
        self.link.is_over() || self.finder.leads_elsewhere(&self.to)
    }
}

/// The sentinels are behind, or the server is: whoever asks again a little later learns which.
fn no_primary(server: &Server) -> Failure {
    Failure::Unreachable(format!("the sentinels call {server} the primary, and it says that it is a replica"))
}

fn left(until: Instant) -> Result<Duration, Failure> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(Failure::TimedOut) } else { Ok(left) }
}
