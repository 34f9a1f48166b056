//! The judge of locks: no two hold one at one time, and tokens rise.
//!
//! There is no quarantine for locks: a server that has lost one gives it to the next who asks. What that explains is told by
//! what the server knew when it gave the lock away, and not by how long ago something happened: did it have the last change
//! that the other holder's belief rests on? And if so, had the lock ended by the clock of the server that made that change?

use std::collections::{HashMap, HashSet};

use leader_core::Term;

use super::locked::Locked;
use super::report::Report;

#[derive(Debug, Default)]
pub(super) struct LockJudge {
    changes: u64,
    /// By key and nonce.
    views: HashMap<(usize, u128), View>,
    /// The last grant or extension of each, unless it was given back.
    last: HashMap<(usize, u128), Change>,
    /// The tokens that each was given.
    granted: HashMap<(usize, u128), HashSet<u64>>,
    /// The largest token that each believed in.
    believed: HashMap<(usize, u128), Term>,
    /// By key, who was given the lock, and whom the server could not take into account: why it did give it.
    excuses: HashMap<(usize, u128, u128), Excuse>,
    /// By key: the largest token that was given out, and what the clocks had shown at most by then.
    tokens: HashMap<usize, (u64, u64)>,
}

#[derive(Debug, Clone, Copy)]
struct View {
    host: usize,
    until: u64,
}

/// A server gave a lock, or extended it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    pub(super) no: u64,
    pub(super) nonce: u128,
    pub(super) node: usize,
    /// When the lock ends by the clock of that server as it is now, in true time.
    pub(super) end: u64,
    /// How often the clocks had been set.
    pub(super) steps: usize,
    /// True time.
    pub(super) now: u64,
    /// What the server's clock shows, in microseconds.
    pub(super) wall: u64,
}

/// Why two may hold one lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Excuse {
    /// The server had lost the other's lock.
    Lost,
    /// It had ended by this server's clock, and not by that of the one that had given it.
    Clock,
}

impl LockJudge {
    pub(super) fn next_change(&mut self) -> u64 {
        self.changes += 1;
        self.changes
    }

    /// A server has given a lock under this token, or extended it. `peak`: what any server's clock has shown at most.
    pub(super) fn changed(
        &mut self,
        key: usize,
        change: Change,
        token: Option<u64>,
        peak: u64,
        server: &Locked,
        report: &mut Report,
    ) -> Option<String> {
        let Change { nonce, now, .. } = change;
        self.last.insert((key, nonce), change);
        let token = token?;
        // Nobody believes longer than the lock can have lasted by any clock.
        let longest = 2 * (change.end - now);
        self.last.retain(|_, other| now < other.end + longest);
        for ((_, other), last) in self.last.iter().filter(|((of, other), _)| *of == key && *other != nonce) {
            let by_clock = now < last.end && (last.node != change.node || last.steps != change.steps);
            if !server.knows(*other, last.no) {
                self.excuses.insert((key, nonce, *other), Excuse::Lost);
            } else if by_clock {
                self.excuses.insert((key, nonce, *other), Excuse::Clock);
            }
        }
        if !self.granted.entry((key, nonce)).or_default().insert(token) {
            // Won again: it is the same acquisition. Also by a server that another one has taken the place of.
            return None;
        }
        let (before, shown) = self.tokens.get(&key).copied().unwrap_or_default();
        self.tokens.insert(key, (before.max(token), shown.max(peak)));
        if before < token {
            return None;
        }
        if change.wall <= shown.max(before) {
            report.tokens_by_clock += 1;
            return None;
        }
        report.tokens += 1;
        Some(format!("token {token} after {before}"))
    }

    /// An owner has given back what it had.
    pub(super) fn given_back(&mut self, key: usize, nonce: u128) {
        self.last.remove(&(key, nonce));
        self.excuses.retain(|(of, one, other), _| *of != key || *one != nonce && *other != nonce);
    }

    /// From now on an owner believes to hold a lock until then, or not to. Returns what is wrong with that.
    pub(super) fn view(
        &mut self,
        now: u64,
        (key, host, nonce): (usize, usize, u128),
        believed: Option<(Term, u64)>,
        report: &mut Report,
    ) -> Option<String> {
        let Some((token, until)) = believed.filter(|(_, until)| now < *until) else {
            self.views.remove(&(key, nonce));
            return None;
        };
        let newest = self.believed.entry((key, nonce)).or_default();
        if token < *newest {
            report.tokens += 1;
            return Some(format!("host {host} believes in token {token} after {newest}"));
        }
        *newest = token;
        let goes_on = self.views.insert((key, nonce), View { host, until }).is_some_and(|view| now < view.until);
        if goes_on {
            return None;
        }
        let others = self.views.iter().filter(|((of, other), view)| *of == key && *other != nonce && now < view.until);
        let mut wrong = None;
        for ((_, other), view) in others {
            let excuse = self.excuses.get(&(key, nonce, *other)).or_else(|| self.excuses.get(&(key, *other, nonce)));
            match excuse {
                Some(Excuse::Lost) => report.locks_lost += 1,
                Some(Excuse::Clock) => report.locks_by_clock += 1,
                None => {
                    report.holders += 1;
                    let hosts = (host, view.host);
                    wrong = Some(format!("two hold it, of hosts {hosts:?}, one of them under {token:?}"));
                }
            }
        }
        wrong
    }

    /// A process has ended: it believes in nothing.
    pub(super) fn ends_with(&mut self, host: usize) {
        self.views.retain(|_, view| view.host != host);
    }
}
