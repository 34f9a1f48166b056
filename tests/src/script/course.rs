//! Courses of events for a server and those who use it, drawn by chance.

use crate::sim::rng::Rng;

/// How many groups there are.
pub const GROUPS: usize = 2;
/// Who asks: an instance id, and which start of it. The second and third have the first one's id, the fifth the fourth's.
pub const CANDIDATES: [(&str, u128); 6] = [("a", 1), ("a", 2), ("a", 3), ("b", 4), ("b", 5), ("c", 6)];

/// A course, and what is the same all through it.
#[derive(Debug, Clone)]
pub struct Course {
    /// No quarantine is shorter; milliseconds.
    pub shortest_quarantine: u64,
    /// A group without a record is new.
    pub trusts_fresh: bool,
    /// What happens.
    pub steps: Vec<Step>,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Commands in one call, at most one for each group.
    Batch(Vec<Ask>),
    /// So many microseconds pass.
    Pass(u64),
    /// Time passes until something of a group ends, and by so many milliseconds more.
    PassToEnd(usize, i64),
    /// The server starts again, as another one.
    Restart(Memory),
    /// What it holds is kept for later.
    Snapshot,
    /// It loses all keys.
    Flush,
    /// Somebody deletes a group's lease.
    DeleteLease(usize),
    /// Somebody deletes a group's record.
    DeleteRecord(usize),
    /// Somebody who keeps no record sets a group's lease, for so many milliseconds or for ever.
    SetLease(usize, &'static str, Option<u64>),
    /// The server's clock is set, by so many milliseconds.
    SetClock(i64),
    /// The user may not ask for the server's identity, or may again.
    HideIdentity(bool),
    /// The server's memory is full, or is not any more.
    Full(bool),
}

/// What a server knows after a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// All that it knew.
    Kept,
    /// What it knew at the last snapshot.
    Older,
    /// Nothing.
    Lost,
}

/// One command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// About which group.
    pub group: usize,
    /// Who, of [`CANDIDATES`]; `None` for whoever was the last to be given this group's lease.
    pub who: Option<usize>,
    /// The asker's ttl, in milliseconds.
    pub ttl: u64,
    /// What.
    pub what: What,
}

/// What a command asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// To acquire.
    Acquire {
        /// The floor: so far above the largest term that this candidate was given; `None` for 0.
        floor: Option<u64>,
        /// It says that it still leads.
        continues: bool,
        /// It takes the seat of another incarnation.
        take: bool,
    },
    /// To renew.
    Renew(Which),
    /// To release.
    Release(Option<Which>),
    /// Who leads.
    Inspect,
}

/// Which acquisition a command names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The asker's last.
    Last,
    /// The asker's last but one.
    Earlier,
    /// The last of all.
    Anybodys,
}

impl Course {
    /// The course of this seed.
    #[must_use]
    pub fn random(seed: u64, steps: usize) -> Self {
        let mut rng = Rng::new(seed);
        Self {
            shortest_quarantine: if rng.chance(0.3) { 3000 } else { 0 },
            trusts_fresh: rng.chance(0.2),
            steps: (0..steps).map(|_| step(&mut rng)).collect(),
        }
    }
}

fn step(rng: &mut Rng) -> Step {
    let group = rng.index(GROUPS);
    match rng.index(100) {
        0..=51 => {
            let both = rng.chance(0.2);
            let groups = if both { 0..GROUPS } else { group..group + 1 };
            Step::Batch(groups.map(|group| ask(rng, group)).collect())
        }
        52..=71 => Step::Pass(match rng.index(4) {
            0 => rng.index(3000) as u64,
            1 => rng.index(400_000) as u64,
            2 => rng.index(1_500_000) as u64,
            _ => rng.index(5_000_000) as u64,
        }),
        72..=81 => Step::PassToEnd(group, rng.between(-1, 1)),
        82..=84 => Step::Restart([Memory::Kept, Memory::Older, Memory::Lost][rng.index(3)]),
        85..=87 => Step::Snapshot,
        88 => Step::Flush,
        89..=90 => Step::DeleteLease(group),
        91 => Step::DeleteRecord(group),
        92..=93 => {
            let holder = ["a", "b", "peer"][rng.index(3)];
            Step::SetLease(group, holder, rng.chance(0.8).then(|| 1 + rng.index(4000) as u64))
        }
        94..=95 => {
            let most = if rng.chance(0.3) { 20_000 } else { 1500 };
            Step::SetClock(rng.between(-most, most))
        }
        96..=97 => Step::HideIdentity(rng.chance(0.25)),
        _ => Step::Full(rng.chance(0.25)),
    }
}

fn ask(rng: &mut Rng, group: usize) -> Ask {
    let who = (!rng.chance(0.3)).then(|| rng.index(CANDIDATES.len()));
    let usual = who.map_or(2000, |who| [1000, 3000, 1000, 2000, 1000, 500][who]);
    let ttl = if rng.chance(0.9) { usual } else { 100 + rng.index(4000) as u64 };
    let which = |rng: &mut Rng| match rng.index(6) {
        0 => Which::Earlier,
        1 => Which::Anybodys,
        _ => Which::Last,
    };
    let what = match rng.index(20) {
        0..=9 => What::Acquire {
            floor: rng.chance(0.7).then(|| if rng.chance(0.9) { 0 } else { rng.index(30_000_000) as u64 }),
            continues: rng.chance(0.3),
            take: rng.chance(0.4),
        },
        10..=14 => What::Renew(which(rng)),
        15..=17 => What::Release(rng.chance(0.7).then(|| which(rng))),
        _ => What::Inspect,
    };
    Ask { group, who, ttl, what }
}
