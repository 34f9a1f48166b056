//! One lock on a server.

use std::collections::BTreeMap;
use std::time::Duration;

use leader_core::store::{LockAnswer, LockCommand, LockOp, LockOwner};
use leader_core::testing::lock::LockTable;
use leader_core::{BootInstant, Term};

/// The locks that instances take, and how many attempts to get it each of them has at one time.
pub(super) const KEYS: [(&str, usize); 2] = [("two-at-once", 2), ("one-at-once", 1)];
/// So many acquisitions are known of a lock that were the last ones: more than can be believed in.
const KNOWN: usize = 32;

/// What a server knows of a lock: what a real one does; and, for the judge, which changes of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Locked {
    table: LockTable,
    /// By nonce: the number of the last grant or extension that this server knows of.
    known: BTreeMap<u128, u64>,
}

/// What a command about a lock did.
#[derive(Debug)]
pub(super) struct Did {
    pub(super) answer: LockAnswer,
    /// Who is to ask again.
    pub(super) told: Vec<LockOwner>,
}

impl Locked {
    /// Executes a command at an instant of the server's clock. `no`: the number of the change, if it is one. `by_value`: a renewal
    /// or release acts for whoever has the instance id.
    pub(super) fn execute(&mut self, nanos: u64, command: &LockCommand, no: u64, by_value: bool) -> Did {
        let (now, wall) = (BootInstant::from_nanos(nanos), Term::new(nanos / 1000));
        let mut command = command.clone();
        let asker = command.owner.nonce;
        if by_value
            && let Some((holder, held)) = self.table.holder(&command.key, now)
            && holder.candidate.id == command.owner.candidate.id
        {
            match &mut command.op {
                LockOp::Renew { token } => *token = held,
                LockOp::Release { token } => *token = Some(held),
                _ => {}
            }
            if !matches!(command.op, LockOp::Acquire { .. }) {
                command.owner = holder.clone();
            }
        }
        let mut told = Vec::new();
        let answer = self.table.execute(&command, now, wall, |owner| told.push(owner.clone()));
        if matches!(answer, LockAnswer::Won { .. } | LockAnswer::Renewed) {
            self.known.insert(asker, no);
            if self.known.len() > KNOWN {
                let oldest = self.known.iter().min_by_key(|(_, no)| **no).map(|(nonce, _)| *nonce);
                oldest.map(|nonce| self.known.remove(&nonce));
            }
        }
        Did { answer, told }
    }

    /// Whether this server knows of that change.
    pub(super) fn knows(&self, nonce: u128, no: u64) -> bool {
        self.known.get(&nonce).is_some_and(|known| *known >= no)
    }
}

/// How long an attempt waits, the lock is held, and how long it is until the next attempt: at most, in ttls.
pub(super) const LONGEST: (u32, u32, u32) = (2, 2, 1);

/// The part of the ttl that a holder does not use.
pub(super) fn guard(ttl: Duration, drift_ppm: u32) -> Duration {
    (ttl * 2 * drift_ppm / 1_000_000).max(Duration::from_millis(2))
}
