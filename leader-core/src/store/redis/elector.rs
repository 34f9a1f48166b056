//! What a session that listens knows of its elector.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;

use super::connection::Client;
use super::keys::Keys;
use super::told::Told;
use super::twins::Twins;
use crate::store::{Announcer, Session as Asked};

pub(super) struct Elector {
    /// What the records of its groups say about what it does.
    pub(super) told: Told,
    pub(super) twins: Twins,
    /// An answer to one of them is under way.
    answering: AtomicBool,
}

impl Elector {
    pub(super) fn new(asked: &Asked, keys: &Keys) -> Self {
        Self {
            told: Told::new(&asked.program, &asked.groups),
            twins: Twins::new(asked.candidate.clone(), keys),
            answering: AtomicBool::new(false),
        }
    }

    /// On the channel of its id this was said, by itself or by another one. `client`: to answer by; `patience`: how long that
    /// may take each to connect and to say it.
    pub(super) fn heard(
        self: &Arc<Self>,
        text: &str,
        client: &Arc<dyn Client>,
        announcer: &Announcer,
        patience: Duration,
    ) {
        let meaning = self.twins.hear(text);
        if meaning.is_news {
            announcer.examine();
        }
        let (Some(answer), Ok(runtime)) = (meaning.answer, Handle::try_current()) else { return };
        // One at a time: whoever asked asks again.
        if self.answering.swap(true, Ordering::Relaxed) {
            return;
        }
        let (elector, client) = (Arc::clone(self), Arc::clone(client));
        drop(runtime.spawn(async move {
            // Not by the link for the leases, which wait for nothing else.
            if let Ok(link) = client.connect(patience).await {
                // As above.
                let _ = link.run(answer, patience).await;
            }
            elector.answering.store(false, Ordering::Relaxed);
        }));
    }
}
