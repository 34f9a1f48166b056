//! What becomes of bytes, as the test wants it.

use std::time::Duration;

use tokio::time::Instant;

/// A direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// What clients send.
    ToServer,
    /// What the server answers.
    ToClient,
}

/// The rules of a proxy at one time.
#[derive(Debug)]
pub(super) struct Rules {
    /// New connections are accepted.
    pub(super) open: bool,
    /// How many connections there have been; they are numbered from 1.
    pub(super) accepted: u64,
    /// Connections up to this number are ended.
    pub(super) cut: u64,
    to_server: Course,
    to_client: Course,
}

/// What becomes of bytes in one direction.
#[derive(Debug, Default)]
pub(super) struct Course {
    pub(super) delay: Duration,
    /// Connections up to this number deliver nothing for now.
    pub(super) held: u64,
    pub(super) swallows: bool,
    /// The chunk of this number, from 1, is swallowed.
    pub(super) swallows_in: Option<u64>,
}

/// What is to be done with a chunk now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Deliver,
    Swallow,
    WaitUntil(Instant),
    /// For another verdict.
    Wait,
}

impl Default for Rules {
    fn default() -> Self {
        Self { open: true, accepted: 0, cut: 0, to_server: Course::default(), to_client: Course::default() }
    }
}

impl Rules {
    pub(super) fn course(&mut self, way: Way) -> &mut Course {
        match way {
            Way::ToServer => &mut self.to_server,
            Way::ToClient => &mut self.to_client,
        }
    }
}

impl Course {
    /// On a chunk that came on the connection of this number at that time.
    pub(super) fn judge(&mut self, number: u64, came: Instant) -> Verdict {
        if self.swallows {
            return Verdict::Swallow;
        }
        if number <= self.held {
            return Verdict::Wait;
        }
        let due = came + self.delay;
        if Instant::now() < due {
            return Verdict::WaitUntil(due);
        }
        let left = self.swallows_in.take().map(|left| left - 1);
        self.swallows_in = left.filter(|left| *left > 0);
        if left == Some(0) { Verdict::Swallow } else { Verdict::Deliver }
    }
}
