//! Which faults strike, one after another, and whom: chosen by the seed alone.

use std::time::Duration;

use super::settings::Place;
use crate::chaos::plan::Fault as OfStore;
use crate::redis::Way;
use crate::sim::rng::Rng;

/// From one fault to the next, on average and at least.
const GAP: Duration = Duration::from_millis(1_100);
const LEAST_GAP: Duration = Duration::from_millis(300);
/// Faults of processes strike a leader, but for so many.
const OTHERS: f64 = 0.25;

/// Something that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A process is killed; another one takes its place a little later.
    Kill,
    /// The same so many milliseconds after the next second, in which most jobs have a tick.
    KillAt(i64),
    /// A process stands still.
    Stop,
    /// A process gives up its group.
    StepDown,
    /// A process gives up all groups, and competes again later.
    Drain,
    /// A process ends as it should, and another one takes its place.
    Restart,
    /// What can happen to the network of one process, to the connections of a server, or to a file, as in `lock-chaos`.
    Store(OfStore),
    /// A server is killed, and started with all that it knew.
    ServerKill,
    /// A server is killed, and started with nothing.
    ServerKillEmpty,
    /// A server is killed, and started with what it knew a while ago.
    RollBack,
    /// A server stands still.
    ServerStop,
    /// A server forgets everything.
    FlushAll,
    /// A replica takes the place of its primary, while all are well.
    Failover,
    /// A primary is killed, and a replica takes its place; it comes back later.
    PrimaryKill,
    /// A primary stands still until a replica has taken its place.
    PrimaryStop,
    /// The slot of a group moves to another node.
    MoveSlot,
    /// The disk of the SQLite file is full.
    FillDisk,
}

impl Fault {
    /// Its name in a report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill -9",
            Self::KillAt(_) => "kill -9 around a tick",
            Self::Stop => "SIGSTOP",
            Self::StepDown => "step down",
            Self::Drain => "drain",
            Self::Restart => "shutdown and start",
            Self::Store(fault) => fault.name(),
            Self::ServerKill => "server killed, with its data",
            Self::ServerKillEmpty => "server killed, without data",
            Self::RollBack => "server rolled back",
            Self::ServerStop => "server stopped",
            Self::FlushAll => "FLUSHALL",
            Self::Failover => "fail-over on purpose",
            Self::PrimaryKill => "primary killed",
            Self::PrimaryStop => "primary stopped until replaced",
            Self::MoveSlot => "slot moved",
            Self::FillDisk => "disk full",
        }
    }

    /// Whose network it is in, if it is in that of one process.
    #[must_use]
    pub fn network(self) -> Option<usize> {
        if let Self::Store(fault) = self { fault.network() } else { None }
    }

    /// The store forgets by it, or may: what the limits say of that holds.
    #[must_use]
    pub fn loses_memory(self) -> bool {
        matches!(
            self,
            Self::ServerKillEmpty
                | Self::RollBack
                | Self::FlushAll
                | Self::Failover
                | Self::PrimaryKill
                | Self::PrimaryStop
                | Self::MoveSlot
        )
    }

    /// It is one of processes.
    #[must_use]
    pub fn is_of_process(self) -> bool {
        matches!(self, Self::Kill | Self::KillAt(_) | Self::Stop | Self::StepDown | Self::Drain | Self::Restart)
    }
}

/// Whom it strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whom {
    /// Who leads this group then.
    Leader(usize),
    /// The process in this slot.
    Slot(usize),
}

/// A fault that will strike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planned {
    /// After the one before.
    pub after: Duration,
    /// What.
    pub fault: Fault,
    /// Whom, if it is a process that it strikes.
    pub whom: Whom,
    /// The group that it is about, if it is about one.
    pub group: usize,
    /// How long it lasts, if it is one that does; of a kill, the time until another process begins.
    pub lasts: Duration,
}

/// The faults of a seed, without an end.
#[derive(Debug)]
pub struct Plan {
    rng: Rng,
    processes: usize,
    groups: usize,
    ttl: Duration,
    kinds: Vec<(u64, Draw)>,
}

/// How a fault of a kind is chosen.
type Draw = fn(&mut Rng, usize) -> Fault;

impl Plan {
    /// `ttl`: of the lease; most of what lasts is about as long.
    #[must_use]
    pub fn new(seed: u64, place: &Place, processes: usize, groups: usize, ttl: Duration) -> Self {
        let mut kinds = of_processes();
        match place {
            Place::Redis => kinds.extend([networks(), clients(), of_server()].concat()),
            Place::Sentinel => kinds.extend([clients(), of_primaries()].concat()),
            Place::Cluster => {
                kinds.extend([clients(), of_primaries()].concat());
                kinds.push((3, |_, _| Fault::MoveSlot));
            }
            Place::Sqlite => {
                kinds.push((6, |_, _| Fault::Store(OfStore::HoldFile)));
                kinds.push((3, |_, _| Fault::FillDisk));
            }
            Place::Foreign(_) => {}
        }
        Self { rng: Rng::new(seed), processes, groups, ttl, kinds }
    }
}

fn way(rng: &mut Rng) -> Way {
    if rng.chance(0.5) { Way::ToServer } else { Way::ToClient }
}

fn of_processes() -> Vec<(u64, Draw)> {
    vec![
        (5, |_, _| Fault::Kill),
        (2, |_, _| Fault::KillAt(-100)),
        (2, |_, _| Fault::KillAt(0)),
        (3, |rng, _| Fault::KillAt(rng.between(3, 60))),
        (2, |_, _| Fault::KillAt(100)),
        (8, |_, _| Fault::Stop),
        (3, |_, _| Fault::StepDown),
        (2, |_, _| Fault::Drain),
        (3, |_, _| Fault::Restart),
    ]
}

fn networks() -> Vec<(u64, Draw)> {
    vec![
        (2, |rng, of| Fault::Store(OfStore::BlackHole(rng.index(of)))),
        (2, |rng, of| Fault::Store(OfStore::OneWay(rng.index(of), way(rng)))),
        (1, |rng, of| Fault::Store(OfStore::Cut(rng.index(of)))),
        (1, |rng, of| Fault::Store(OfStore::Refuse(rng.index(of)))),
        (2, |rng, of| Fault::Store(OfStore::Delay(rng.index(of), way(rng)))),
        (2, |rng, of| Fault::Store(OfStore::KeepBack(rng.index(of), way(rng)))),
    ]
}

fn clients() -> Vec<(u64, Draw)> {
    vec![
        (2, |_, _| Fault::Store(OfStore::KillClients)),
        (2, |_, _| Fault::Store(OfStore::PauseClients)),
        (1, |_, _| Fault::Store(OfStore::FlushScripts)),
    ]
}

fn of_server() -> Vec<(u64, Draw)> {
    vec![
        (2, |_, _| Fault::ServerKill),
        (1, |_, _| Fault::ServerKillEmpty),
        (1, |_, _| Fault::RollBack),
        (2, |_, _| Fault::ServerStop),
        (1, |_, _| Fault::FlushAll),
    ]
}

/// These take long until all is well again.
fn of_primaries() -> Vec<(u64, Draw)> {
    vec![
        (2, |_, _| Fault::Failover),
        (2, |_, _| Fault::PrimaryKill),
        (2, |_, _| Fault::PrimaryStop),
        (2, |_, _| Fault::ServerStop),
        (1, |_, _| Fault::FlushAll),
    ]
}

impl Iterator for Plan {
    type Item = Planned;

    fn next(&mut self) -> Option<Planned> {
        let rng = &mut self.rng;
        let mut left = rng.index(self.kinds.iter().map(|(weight, _)| *weight as usize).sum()) as u64;
        let drawn = self.kinds.iter().find(|(weight, _)| {
            let hit = left < *weight;
            left = left.saturating_sub(*weight);
            hit
        });
        let fault = drawn.map_or(Fault::Kill, |(_, draw)| draw(rng, self.processes));
        let after = LEAST_GAP + Duration::from_nanos(rng.around(GAP - LEAST_GAP));
        let group = rng.index(self.groups);
        let whom = if rng.chance(OTHERS) { Whom::Slot(rng.index(self.processes)) } else { Whom::Leader(group) };
        let (low, high) = match fault {
            Fault::Stop => (0.1, 3.0),
            Fault::Drain => (0.5, 2.0),
            Fault::ServerStop => (0.1, 0.8),
            Fault::ServerKill | Fault::ServerKillEmpty | Fault::RollBack => (0.0, 2.0),
            Fault::FillDisk => (0.5, 2.0),
            Fault::Store(OfStore::HoldFile | OfStore::PauseClients) => (0.1, 1.3),
            Fault::Store(_) => (0.2, 2.5),
            _ => (0.05, 1.2),
        };
        let lasts = self.ttl.mul_f64(low + (high - low) * rng.unit());
        Some(Planned { after, fault, whom, group, lasts })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const TTL: Duration = Duration::from_secs(1);

    fn plan(seed: u64, place: &Place) -> Plan {
        Plan::new(seed, place, 5, 3, TTL)
    }

    #[test]
    fn a_seed_is_one_course_of_faults() {
        let first = |seed| plan(seed, &Place::Redis).take(100).collect::<Vec<_>>();
        assert_eq!(first(7), first(7));
        assert_ne!(first(7), first(8));
    }

    #[test]
    fn every_kind_strikes_and_nothing_is_done_to_a_store_that_is_somebody_else_s() {
        let foreign = Place::Foreign("redis://host".to_owned());
        for (place, kinds) in
            [(Place::Redis, 20), (Place::Sentinel, 14), (Place::Cluster, 15), (Place::Sqlite, 8), (foreign, 6)]
        {
            let all: Vec<_> = plan(1, &place).take(3_000).collect();
            let names: BTreeSet<_> = all.iter().map(|planned| planned.fault.name()).collect();
            assert_eq!(names.len(), kinds, "{place:?}: {names:?}");
            let of_processes = all.iter().all(|planned| planned.fault.is_of_process());
            assert_eq!(of_processes, matches!(place, Place::Foreign(_)));
            let whom = |whom| all.iter().any(|planned| planned.whom == whom);
            assert!((0..5).all(|slot| whom(Whom::Slot(slot))) && (0..3).all(|group| whom(Whom::Leader(group))));
        }
    }
}
