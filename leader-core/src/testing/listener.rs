//! What a store announces to one elector.

use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;

use crate::group::GroupName;
use crate::identity::Candidate;
use crate::store::{Announcement, Announcer, Session};

/// The elector's end of a [`Session`]: hears what the store announces.
///
/// ```
/// use leader_core::store::{Announcement, LeaseStore, MemoryStore};
/// use leader_core::testing::Listener;
/// use leader_core::{Candidate, GroupName, Incarnation, InstanceId};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let candidate = Candidate { id: InstanceId::new("a")?, incarnation: Incarnation::random() };
/// let (session, mut listener) = Listener::new(candidate, [GroupName::new("cleanup")?]);
/// let announcer = session.announcer.clone();
/// MemoryStore::new().connect(session).await?;
/// announcer.gap();
/// assert_eq!(listener.heard().await, Some(Announcement::Gap));
/// # Ok::<_, Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct Listener(UnboundedReceiver<Announcement>);

impl Listener {
    /// A session for [`LeaseStore::connect`](crate::store::LeaseStore::connect), with 30 s for connecting, and its listener.
    #[must_use]
    pub fn new(candidate: Candidate, groups: impl IntoIterator<Item = GroupName>) -> (Session, Self) {
        let (announcer, receiver) = Announcer::new();
        let groups = groups.into_iter().map(|group| (group, Vec::new())).collect();
        let (program, timeout) = ("a test".to_owned(), Duration::from_secs(30));
        (Session { candidate, groups, program, announcer, timeout }, Self(receiver))
    }

    /// The next announcement; none once the store has forgotten the session, and every clone of its announcer is gone.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub async fn heard(&mut self) -> Option<Announcement> {
        self.0.recv().await
    }
}
