//! Locks by themselves, for simulations.

use super::Locks;
use crate::clock::BootInstant;
use crate::lease::Term;
use crate::store::{LockAnswer, LockCommand, LockKey, LockOwner};

/// The locks of one server, which remembers no token of a lock that is over: as in Redis, where nothing of a lock stays.
#[derive(Debug, Clone, Default)]
pub struct LockTable(Locks);

impl LockTable {
    /// Executes one command at an instant of the server's clock, of which `wall` are the microseconds; `tell` is called for each
    /// owner that is to ask again.
    pub fn execute(
        &mut self,
        command: &LockCommand,
        now: BootInstant,
        wall: Term,
        tell: impl FnMut(&LockOwner),
    ) -> LockAnswer {
        self.0.highest = Term::default();
        self.0.execute(command, now, wall, tell)
    }

    /// Who holds a lock, and under which token.
    #[must_use]
    pub fn holder(&self, key: &LockKey, now: BootInstant) -> Option<(&LockOwner, Term)> {
        let seat = self.0.keys.get(key)?.held.as_ref().filter(|seat| now < seat.until)?;
        Some((&seat.owner, seat.token))
    }
}
