//! What a session listens to, and whom it tells.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::super::connection::{Failure, Heard, Lookout, Subscription};
use super::super::failure::denied;
use super::{Open, Shared, patience};
use crate::group::GroupName;

/// What listens, if there is something to listen to. If the server does not permit it: what it said.
pub(super) type Listening = Result<Option<Arc<dyn Subscription>>, String>;

/// What is announced on a channel.
pub(super) enum Subject {
    /// That this lease was given back.
    Lease(GroupName),
    /// That a lock is free for the owner in the message.
    Locks,
    /// Who has this elector's instance id.
    Id,
}

impl Shared {
    /// What listened before goes on until something else does: it may have been left behind by a name or a proxy that leads
    /// elsewhere by now, or be about to come back.
    pub(super) fn listen_anew(self: &Arc<Self>, open: &Arc<Open>) {
        let (of, shared) = (Arc::downgrade(open), Arc::downgrade(self));
        let task = async move {
            // First of all come the calls that wait.
            while let Some(wait) = shared.upgrade().map(|shared| shared.timeout) {
                sleep(wait).await;
                let Some(shared) = shared.upgrade() else { return };
                let Ok(listening) = shared.subscribe(patience(shared.timeout)).await else { continue };
                if let Some(open) = of.upgrade() {
                    let before = std::mem::replace(&mut *open.listening(), listening);
                    drop(before);
                    shared.announcer.gap();
                }
                return;
            }
        };
        let _ = open.anew.set(Lookout::over(task));
    }

    pub(super) async fn subscribe(self: &Arc<Self>, patience: Duration) -> Result<Listening, Failure> {
        if self.channels.is_empty() {
            return Ok(Ok(None));
        }
        // Not the other way round: the connections belong to the session.
        let shared = Arc::downgrade(self);
        let heard = move |heard| {
            let Some(shared) = shared.upgrade() else { return };
            match heard {
                Heard::Gap => shared.announcer.gap(),
                Heard::Message { channel, text } => match shared.channels.get(&channel) {
                    Some(Subject::Lease(group)) => shared.announcer.released(group.clone()),
                    Some(Subject::Locks) => {
                        // Anything else is somebody else's message.
                        if let Ok(nonce) = u128::from_str_radix(&text, 16) {
                            shared.announcer.lock_free(nonce);
                        }
                    }
                    Some(Subject::Id) => {
                        if let Some(elector) = &shared.elector {
                            elector.heard(&text, &shared.client, &shared.announcer, patience);
                        }
                    }
                    None => {}
                },
            }
        };
        let channels = self.channels.keys().cloned().collect();
        match self.client.subscribe(channels, Box::new(heard), patience, self.timeout).await {
            Ok(subscription) => Ok(Ok(Some(Arc::from(subscription)))),
            // Without it a release is noticed when the lease would have ended.
            Err(Failure::Server(error)) if denied(&error).is_some() => Ok(Err(error)),
            Err(failure) => Err(failure),
        }
    }
}
