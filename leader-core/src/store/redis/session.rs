//! One elector's tie to the server: the link that is open now, and its replacement when it fails.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::connection::{Client, Failure, Heard, Link, Reply, Request, Subscription};
use super::failure::{calls_for_a_new_link, is_unknown_script};
use super::jobs;
use super::keys::Keys;
use crate::group::GroupName;
use crate::store::{Announcer, Session as Asked};

pub(super) struct Session {
    client: Arc<dyn Client>,
    script: Arc<str>,
    link: Mutex<Option<Arc<Open>>>,
    /// One call at a time opens a new link; the others wait for it.
    opening: tokio::sync::Mutex<()>,
    /// The last link has failed, and no call has been answered since.
    failing: AtomicBool,
    announcer: Announcer,
    /// What the record of each group says about the program that leads it.
    pub(super) jobs: HashMap<GroupName, String>,
    /// Ends with the session. None if there is nothing to listen to. If the server does not permit it: what it said.
    subscription: Result<Option<Box<dyn Subscription>>, String>,
}

/// A link, and the name under which its server knows the script.
struct Open {
    link: Box<dyn Link>,
    digest: Option<String>,
}

impl Session {
    pub(super) async fn open(
        client: Arc<dyn Client>,
        script: Arc<str>,
        keys: &Keys,
        asked: Asked,
    ) -> Result<Self, Failure> {
        let jobs = jobs::described(&asked.program, &asked.groups);
        let groups: HashMap<_, _> = asked.groups.into_keys().map(|group| (keys.channel(&group), group)).collect();
        let channels: Vec<_> = groups.keys().cloned().collect();
        let announcer = asked.announcer.clone();
        let heard = move |heard| match heard {
            Heard::Gap => announcer.gap(),
            Heard::Message { channel } => {
                if let Some(group) = groups.get(&channel) {
                    announcer.released(group.clone());
                }
            }
        };
        let until = Instant::now() + asked.timeout;
        let subscribe = async {
            if channels.is_empty() {
                return Ok(Ok(None));
            }
            match client.subscribe(channels, Box::new(heard), asked.timeout).await {
                Ok(subscription) => Ok(Ok(Some(subscription))),
                // Without it a release is noticed when the lease would have ended.
                Err(Failure::Server(error)) => Ok(Err(error)),
                Err(failure) => Err(failure),
            }
        };
        let (opened, subscription) = tokio::join!(open_link(&*client, &script, until), subscribe);
        let (opened, subscription) = (opened?, subscription?);
        Ok(Self {
            client,
            script,
            link: Mutex::new(Some(Arc::new(opened))),
            opening: tokio::sync::Mutex::new(()),
            failing: AtomicBool::new(false),
            announcer: asked.announcer,
            jobs,
            subscription,
        })
    }

    /// Why nobody listens to releases, if nobody does.
    pub(super) fn deaf(&self) -> Option<&str> {
        self.subscription.as_ref().err().map(String::as_str)
    }

    /// Runs the script on these arguments, on a new link if the last one has failed. `key`: one of those that it touches.
    pub(super) async fn run_script(
        &self,
        arguments: impl Fn() -> Vec<String>,
        key: &str,
        timeout: Duration,
    ) -> Result<Reply, Failure> {
        let until = Instant::now() + timeout;
        let open = self.link(until).await?;
        let mut watch = Watch { session: self, open: &open, trusted: false };
        let request = |name, script: &str| {
            let mut all = vec![script.to_owned()];
            all.extend(arguments());
            Request { name, arguments: all, key: Some(key.to_owned()) }
        };
        let mut reply = match &open.digest {
            Some(digest) => open.link.run(request("EVALSHA", digest), left(until)?).await,
            None => Err(Failure::Server("NOSCRIPT".to_owned())),
        };
        if matches!(&reply, Err(Failure::Server(error)) if is_unknown_script(error)) {
            reply = open.link.run(request("EVAL", &self.script), left(until)?).await;
        }
        watch.trusted = match &reply {
            Ok(_) => true,
            Err(Failure::Server(error)) => !calls_for_a_new_link(error),
            Err(_) => false,
        };
        if watch.trusted && self.failing.swap(false, Ordering::Relaxed) {
            // The server is back. Those who wait for their next attempt need not.
            self.announcer.gap();
        }
        reply
    }

    async fn link(&self, until: Instant) -> Result<Arc<Open>, Failure> {
        if let Some(open) = self.present() {
            return Ok(open);
        }
        let timeout = left(until)?;
        let opening = async {
            let _one = self.opening.lock().await;
            if let Some(open) = self.present() {
                return Ok(open);
            }
            let open = Arc::new(open_link(&*self.client, &self.script, until).await?);
            *self.slot() = Some(Arc::clone(&open));
            Ok(open)
        };
        let opened = tokio::time::timeout(timeout, opening).await.unwrap_or(Err(Failure::TimedOut));
        if opened.is_err() {
            self.failing.store(true, Ordering::Relaxed);
        }
        opened
    }

    fn present(&self) -> Option<Arc<Open>> {
        self.slot().clone()
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Arc<Open>>> {
        // Held for an assignment only: a poisoned one is whole.
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, failed: &Arc<Open>) {
        self.failing.store(true, Ordering::Relaxed);
        let forgotten = self.slot().take_if(|open| Arc::ptr_eq(open, failed));
        // Dropped outside of the lock, and now: what it has not sent yet is not sent any more.
        drop(forgotten);
    }
}

/// A call that failed, or whose future was dropped, takes its link with it: a command may be stuck in it.
struct Watch<'a> {
    session: &'a Session,
    open: &'a Arc<Open>,
    trusted: bool,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if !self.trusted {
            self.session.forget(self.open);
        }
    }
}

async fn open_link(client: &dyn Client, script: &str, until: Instant) -> Result<Open, Failure> {
    let link = client.connect(left(until)?).await?;
    let arguments = vec!["LOAD".to_owned(), script.to_owned()];
    let digest = match link.run(Request { name: "SCRIPT", arguments, key: None }, left(until)?).await {
        Ok(Reply::Text(digest)) => Some(digest),
        // Not permitted, or not now: then each call brings the script along.
        Ok(_) | Err(Failure::Server(_)) => None,
        Err(failure) => return Err(failure),
    };
    Ok(Open { link, digest })
}

fn left(until: Instant) -> Result<Duration, Failure> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(Failure::TimedOut) } else { Ok(left) }
}
