//! Which faults strike, when and whom: chosen by the seed alone, before anything runs.

use std::time::Duration;

use crate::redis::Way;
use crate::sim::rng::Rng;

/// Faults come for so long, and then for so long none does: there it shows who is stuck.
const STORM: Duration = Duration::from_secs(4);
const CALM: Duration = Duration::from_secs(6);
/// So long after a storm a holder dies while all else is well: there it shows how long its lock stays.
const DEATH: Duration = Duration::from_millis(3600);
/// From one fault to the next in a storm, on average and at least.
const GAP: Duration = Duration::from_millis(450);
const LEAST_GAP: Duration = Duration::from_millis(60);

/// Something that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A process is killed; another one takes its place a little later.
    Kill(usize),
    /// A process is killed while it works under a lock.
    KillInBody(usize),
    /// A process stands still.
    Stop(usize),
    /// A process stands still for longer than the ttl, from an instant on at which it works under a lock.
    StopInBody(usize),
    /// The server closes all connections.
    KillClients,
    /// The server answers nobody.
    PauseClients,
    /// The server forgets its scripts.
    FlushScripts,
    /// The network of a process loses everything.
    BlackHole(usize),
    /// The network of a process loses everything in one direction.
    OneWay(usize, Way),
    /// All connections of a process end.
    Cut(usize),
    /// A process cannot connect, and its connections end.
    Refuse(usize),
    /// What a process sends, or is answered, arrives late.
    Delay(usize, Way),
    /// What a process sends, or is answered, is kept back and then delivered.
    KeepBack(usize, Way),
    /// Somebody else writes to the SQLite file, in a long transaction.
    HoldFile,
}

impl Fault {
    /// Its name in a report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kill(_) => "kill -9",
            Self::KillInBody(_) => "kill -9 in a body",
            Self::Stop(_) => "SIGSTOP",
            Self::StopInBody(_) => "SIGSTOP in a body",
            Self::KillClients => "CLIENT KILL",
            Self::PauseClients => "CLIENT PAUSE",
            Self::FlushScripts => "SCRIPT FLUSH",
            Self::BlackHole(_) => "black hole",
            Self::OneWay(..) => "one-way loss",
            Self::Cut(_) => "connections cut",
            Self::Refuse(_) => "connections refused",
            Self::Delay(..) => "delay",
            Self::KeepBack(..) => "kept back",
            Self::HoldFile => "long transaction of another",
        }
    }

    /// Whose network it is in, if it is in that of one process.
    #[must_use]
    pub fn network(self) -> Option<usize> {
        match self {
            Self::BlackHole(slot)
            | Self::OneWay(slot, _)
            | Self::Cut(slot)
            | Self::Refuse(slot)
            | Self::Delay(slot, _)
            | Self::KeepBack(slot, _) => Some(slot),
            _ => None,
        }
    }
}

/// A fault that will strike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planned {
    /// Since the begin.
    pub at: Duration,
    /// What.
    pub fault: Fault,
    /// How long it lasts, if it is one that does; of a kill, the time until another process begins.
    pub lasts: Duration,
}

/// The faults of a seed, in the order of their time. `redis`: they are for a Redis server, and otherwise for an SQLite file.
/// `ttl`: of the locks; most of what lasts is about as long.
#[must_use]
pub fn plan(seed: u64, time: Duration, processes: usize, redis: bool, ttl: Duration) -> Vec<Planned> {
    let mut rng = Rng::new(seed);
    let mut all = Vec::new();
    let mut at = Duration::from_millis(300);
    let mut storm = Duration::ZERO;
    loop {
        at += LEAST_GAP + Duration::from_nanos(rng.around(GAP));
        if at > storm + STORM {
            let death = (storm + STORM + DEATH, Fault::KillInBody(single(rng.index(processes), processes)));
            storm += STORM + CALM;
            at = at.max(storm);
            all.push(planned(&mut rng, death, ttl));
        }
        let fault = fault(&mut rng, processes, redis);
        all.push(planned(&mut rng, (at, fault), ttl));
        if at >= time {
            all.retain(|planned: &Planned| planned.at < time);
            return all;
        }
    }
}

/// Every other process has a single task.
#[must_use]
pub fn has_one_task(slot: usize) -> bool {
    slot % 2 == 1
}

/// A process of a single task, if there is one: of such a one can be told that it waits for nothing when it dies in a body.
fn single(slot: usize, processes: usize) -> usize {
    match slot {
        slot if has_one_task(slot) => slot,
        slot if slot + 1 < processes => slot + 1,
        slot => slot.saturating_sub(1),
    }
}

fn planned(rng: &mut Rng, (at, fault): (Duration, Fault), ttl: Duration) -> Planned {
    let (low, high) = match fault {
        Fault::Kill(_) => (0.05, 1.0),
        Fault::KillInBody(_) => (1.0, 1.5),
        Fault::Stop(_) => (0.1, 2.4),
        Fault::StopInBody(_) => (1.1, 2.0),
        Fault::BlackHole(_) | Fault::Refuse(_) | Fault::OneWay(..) | Fault::KeepBack(..) => (0.1, 2.5),
        Fault::Delay(..) => (0.3, 2.5),
        Fault::PauseClients | Fault::HoldFile => (0.05, 1.3),
        Fault::KillClients | Fault::FlushScripts | Fault::Cut(_) => (0.0, 0.0),
    };
    Planned { at, fault, lasts: ttl.mul_f64(low + (high - low) * rng.unit()) }
}

fn fault(rng: &mut Rng, processes: usize, redis: bool) -> Fault {
    let slot = rng.index(processes);
    let way = if rng.chance(0.5) { Way::ToServer } else { Way::ToClient };
    match (redis, rng.index(20)) {
        (_, 0..=2) => Fault::Kill(slot),
        (_, 3) => Fault::KillInBody(slot),
        (_, 4..=6) => Fault::Stop(slot),
        (_, 7..=9) => Fault::StopInBody(slot),
        (true, 10) => Fault::KillClients,
        (true, 11) => Fault::PauseClients,
        (true, 12) => Fault::FlushScripts,
        (true, 13..=14) => Fault::BlackHole(slot),
        (true, 15) => Fault::OneWay(slot, way),
        (true, 16) => Fault::Cut(slot),
        (true, 17) => Fault::Refuse(slot),
        (true, 18) => Fault::Delay(slot, way),
        (true, _) => Fault::KeepBack(slot, way),
        (false, 10..=11) => Fault::Kill(slot),
        (false, 12..=13) => Fault::Stop(slot),
        (false, 14..=17) => Fault::StopInBody(slot),
        (false, _) => Fault::HoldFile,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const TTL: Duration = Duration::from_secs(1);

    #[test]
    fn a_seed_is_one_course_of_faults() {
        assert_eq!(plan(7, HOUR, 4, true, TTL), plan(7, HOUR, 4, true, TTL));
        assert_ne!(plan(7, HOUR, 4, true, TTL), plan(8, HOUR, 4, true, TTL));
    }

    #[test]
    fn a_longer_course_begins_like_a_shorter_one() {
        let short = plan(7, HOUR / 60, 4, true, TTL);
        assert_eq!(plan(7, HOUR, 4, true, TTL)[..short.len()], short);
    }

    #[test]
    fn every_kind_of_a_store_strikes_every_process_and_there_are_times_without() {
        for (redis, kinds) in [(true, 13), (false, 5)] {
            let all = plan(1, HOUR, 3, redis, TTL);
            let struck: std::collections::BTreeSet<_> = all.iter().map(|planned| planned.fault.name()).collect();
            assert_eq!(struck.len(), kinds, "{struck:?}");
            for slot in 0..3 {
                assert!(all.iter().any(|planned| planned.fault == Fault::Stop(slot)));
            }
            assert!(all.windows(2).all(|pair| pair[0].at <= pair[1].at));
            let in_calm =
                all.iter().filter(|planned| planned.at.as_nanos() % (STORM + CALM).as_nanos() > STORM.as_nanos());
            assert!(
                in_calm.clone().all(|planned| matches!(planned.fault, Fault::KillInBody(slot) if has_one_task(slot)))
            );
            assert_eq!(in_calm.count(), 360);
        }
    }
}
