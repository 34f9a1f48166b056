//! Which faults strike, one after another, and whom: chosen by the seed alone.

use std::time::Duration;

use crate::chaos::plan::Fault as OfStore;
use crate::redis::Way;
use crate::sim::rng::Rng;

/// From one fault to the next, on average and at least.
const GAP: Duration = Duration::from_millis(700);
const LEAST_GAP: Duration = Duration::from_millis(400);
/// Faults of processes strike the leader, but for so many.
const OTHERS: f64 = 0.12;
/// So far off are wall clocks, in milliseconds.
const OFFSETS: [i64; 4] = [200, 1_000, 5_000, 60_000];

/// Something that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The process is killed so many milliseconds after the next tick, by its clock; another one takes its place a little
    /// later.
    KillAt(i64),
    /// The process is killed so many milliseconds after the next tick of the jobs that are due each five seconds.
    KillAtRare(i64),
    /// The process stands still.
    Stop,
    /// The process gives up leadership.
    StepDown,
    /// The process ends as it should, and another one takes its place.
    Restart,
    /// The process's wall clock jumps by so many milliseconds, and back later.
    Jump(i64),
    /// The server is restarted, with all its data.
    ServerRestart,
    /// The server stands still.
    ServerStop,
    /// The server answers nobody.
    PauseClients,
    /// The server closes all connections.
    KillClients,
    /// All connections of the process end.
    Cut,
    /// The network of the process loses everything.
    BlackHole,
    /// The network of the process loses everything in one direction.
    OneWay(Way),
    /// What the process sends, or is answered, arrives late.
    Delay(Way),
    /// Somebody else writes to the SQLite file, in a long transaction.
    HoldFile,
}

/// Whom it strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whom {
    /// Who leads then.
    Leader,
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
    /// How long it lasts, if it is one that does; of a kill, the time until another process begins.
    pub lasts: Duration,
}

impl Fault {
    /// Its name in a report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::KillAt(0) => "kill -9 at a tick",
            Self::KillAt(100) => "kill -9 100 ms after a tick",
            Self::KillAt(..0) => "kill -9 100 ms before a tick",
            Self::KillAt(_) => "kill -9 among the claims of a tick",
            Self::KillAtRare(_) => "kill -9 2 s before a tick",
            Self::Stop => "SIGSTOP",
            Self::StepDown => "step down",
            Self::Restart => "shutdown and start",
            Self::Jump(..0) => "clock set back by 5 s",
            Self::Jump(_) => "clock set ahead by 10 s",
            Self::ServerRestart => "store restarted",
            Self::ServerStop => "store stopped",
            Self::PauseClients => "CLIENT PAUSE",
            Self::KillClients => "CLIENT KILL",
            Self::Cut => "connections cut",
            Self::BlackHole => "black hole",
            Self::OneWay(_) => "one-way loss",
            Self::Delay(_) => "delay",
            Self::HoldFile => "long transaction of another",
        }
    }

    /// The same as a fault of the store, if it is one that strikes the process in this slot.
    #[must_use]
    pub fn of_store(self, slot: usize) -> Option<OfStore> {
        Some(match self {
            Self::PauseClients => OfStore::PauseClients,
            Self::KillClients => OfStore::KillClients,
            Self::Cut => OfStore::Cut(slot),
            Self::BlackHole => OfStore::BlackHole(slot),
            Self::OneWay(way) => OfStore::OneWay(slot, way),
            Self::Delay(way) => OfStore::Delay(slot, way),
            Self::HoldFile => OfStore::HoldFile,
            _ => return None,
        })
    }
}

/// The faults of a seed, without an end.
#[derive(Debug)]
pub struct Plan {
    rng: Rng,
    processes: usize,
    redis: bool,
    ttl: Duration,
}

impl Plan {
    /// `redis`: for a Redis server, and otherwise for an SQLite file. `ttl`: of the lease; most of what lasts is about as long.
    #[must_use]
    pub fn new(seed: u64, processes: usize, redis: bool, ttl: Duration) -> Self {
        Self { rng: Rng::new(seed), processes, redis, ttl }
    }

    fn fault(&mut self) -> Fault {
        let rng = &mut self.rng;
        let way = if rng.chance(0.5) { Way::ToServer } else { Way::ToClient };
        let among = rng.between(3, 60);
        match (self.redis, rng.index(24)) {
            (_, 0..=1) => Fault::KillAt(-100),
            (_, 2..=3) => Fault::KillAt(0),
            (_, 4..=5) => Fault::KillAt(100),
            (_, 6) => Fault::KillAtRare(-2_000),
            (_, 7..=9) => Fault::KillAt(among),
            (_, 10..=11) => Fault::Stop,
            (_, 12..=13) => Fault::StepDown,
            (_, 14..=15) => Fault::Restart,
            (_, 16) => Fault::Jump(-5_000),
            (_, 17) => Fault::Jump(10_000),
            (true, 18) => Fault::ServerRestart,
            (true, 19) => Fault::ServerStop,
            (true, 20) => Fault::PauseClients,
            (true, 21) => {
                if rng.chance(0.5) {
                    Fault::KillClients
                } else {
                    Fault::Cut
                }
            }
            (true, 22) => Fault::BlackHole,
            (true, _) => {
                if rng.chance(0.5) {
                    Fault::OneWay(way)
                } else {
                    Fault::Delay(way)
                }
            }
            (false, 18..=19) => Fault::Stop,
            (false, 20..=21) => Fault::HoldFile,
            (false, _) => Fault::KillAt(among),
        }
    }
}

impl Iterator for Plan {
    type Item = Planned;

    fn next(&mut self) -> Option<Planned> {
        let fault = self.fault();
        let rng = &mut self.rng;
        let after = LEAST_GAP + Duration::from_nanos(rng.around(GAP - LEAST_GAP));
        let whom = if rng.chance(OTHERS) { Whom::Slot(rng.index(self.processes)) } else { Whom::Leader };
        let (low, high) = match fault {
            Fault::Jump(_) => (2.0, 5.0),
            Fault::Stop | Fault::BlackHole | Fault::OneWay(_) => (0.2, 3.0),
            Fault::HoldFile | Fault::PauseClients | Fault::ServerStop => (0.1, 1.5),
            _ => (0.1, 1.2),
        };
        let lasts = self.ttl.mul_f64(low + (high - low) * rng.unit());
        Some(Planned { after, fault, whom, lasts })
    }
}

/// By so many milliseconds is the wall clock of a process off. Where it is the ledger's clock, too, the largest are rare: who
/// is a minute ahead runs a minute's ticks, and then nobody has anything to do for as long.
#[must_use]
pub fn offset_ms(seed: u64, process: u64, redis: bool) -> i64 {
    let mut rng = Rng::new(seed ^ process << 40);
    let sign = if rng.chance(0.5) { 1 } else { -1 };
    let minute = if redis { 0.14 } else { 0.04 };
    match rng.unit() {
        unit if unit < minute => sign * OFFSETS[3],
        unit if unit < 0.3 => 0,
        _ => sign * OFFSETS[rng.index(3)],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const TTL: Duration = Duration::from_secs(1);

    #[test]
    fn a_seed_is_one_course_of_faults() {
        let first = |seed| Plan::new(seed, 4, true, TTL).take(100).collect::<Vec<_>>();
        assert_eq!(first(7), first(7));
        assert_ne!(first(7), first(8));
    }

    #[test]
    fn every_kind_strikes_and_clocks_are_off_by_all_there_is() {
        for (redis, kinds) in [(true, 18), (false, 11)] {
            let all: Vec<_> = Plan::new(1, 4, redis, TTL).take(2_000).collect();
            let names: BTreeSet<_> = all.iter().map(|planned| planned.fault.name()).collect();
            assert_eq!(names.len(), kinds, "{names:?}");
            let whom = |whom| all.iter().any(|planned| planned.whom == whom);
            assert!((0..4).all(|slot| whom(Whom::Slot(slot))) && whom(Whom::Leader));
            let offsets: BTreeSet<_> = (0..500).map(|process| offset_ms(1, process, redis)).collect();
            assert_eq!(offsets.len(), 9, "{offsets:?}");
        }
    }
}
