//! What came of one run, or of many.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::faults::{Fault, KINDS};
use crate::sim::fault_set::Kind;

macro_rules! report {
    ($($(#[doc = $doc:literal])+ $field:ident: $name:literal,)+) => {
        /// The figures of one run, or of many together.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct Report {
            /// How often each kind of fault struck, in the order of [`Kind::all`].
            pub faults: [u64; KINDS],
            $($(#[doc = $doc])+ pub $field: u64,)+
            /// The smallest seed with something wrong, and the first thing wrong there.
            pub failure: Option<(u64, String)>,
        }

        impl Report {
            /// Adds the figures of other runs.
            pub fn add(&mut self, other: &Self) {
                for (sum, more) in self.faults.iter_mut().zip(other.faults) {
                    *sum += more;
                }
                $(self.$field += other.$field;)+
                let first = [self.failure.take(), other.failure.clone()];
                self.failure = first.into_iter().flatten().min_by_key(|(seed, _)| *seed);
            }

            /// The figures with their names.
            #[must_use]
            pub fn figures(&self) -> Vec<(&'static str, u64)> {
                vec![$(($name, self.$field),)+]
            }
        }
    };
}

report! {
    /// Runs, each of one seed.
    runs: "seeds",
    /// Simulated time, in nanoseconds.
    simulated: "simulated ns",
    /// Commands that the store executed.
    commands: "commands",
    /// Leases that the store handed out.
    acquisitions: "acquisitions",
    /// Ticks that should run.
    expected: "expected",
    /// Ticks that ran.
    ran: "ran",
    /// Ticks that were told to have been left out, as the policy says.
    missed: "told as missed",
    /// Ticks that were told to have been left out, because the store may have forgotten that they ran.
    forgotten: "told as forgotten",
    /// Ticks that were given up after three attempts.
    gave_up: "given up",
    /// Ticks of a pause.
    paused: "paused",
    /// Ticks whose claimer died after the claim.
    died: "claimer died",
    /// Ticks around a loss of memory.
    memory: "memory lost",
    /// Ticks before the registration of a changed schedule.
    changed: "schedule changed",
    /// Claims whose body did not begin, because the lease had ended.
    refused: "did not begin",
    /// Bodies that were cut.
    cut: "cut",
    /// Ticks that were given back, and claimed again.
    returned: "given back",
    /// Bodies that ran beside another one of their job, after the store's clock was set ahead: slots end by it.
    excused: "overlapping, clock set ahead",
    /// Bodies that ran beside another one of their job, after the store had forgotten its slot.
    unsafe_slots: "overlapping, slot forgotten",
    /// Locks that were taken.
    locks: "locks taken",
    /// Two held one lock, which the server that gave it had lost: there is no quarantine for locks.
    locks_lost: "locks beside a lost one",
    /// Two held one lock, which had ended by the clock of another server than the one that had given it.
    locks_by_clock: "locks ended by another clock",
    /// Tokens that did not rise, given out by a server whose clock was behind that of the one before.
    tokens_by_clock: "tokens by a clock behind",
    /// Two led one group.
    leaders: "TWO LEADERS",
    /// Terms led under that were not larger than all before.
    terms: "TERMS NOT RISING",
    /// Two held one lock.
    holders: "TWO HOLDERS",
    /// Tokens that were not larger than all before of their lock.
    tokens: "TOKENS NOT RISING",
    /// Attempts that got no lock long after the last fault.
    waiting: "WAITING FOR EVER",
    /// Ticks that did not run, and nobody told.
    lost: "LOST",
    /// Ticks that ran twice, at most once.
    doubled: "DOUBLED",
    /// Bodies that ran beside another one of their job.
    overlaps: "OVERLAPPING",
    /// Bodies that began before their tick.
    early: "EARLY",
    /// Bodies that began later than their job allows.
    late: "TOO LATE",
    /// Ticks that were to run at least once, and none came to its end.
    unfinished: "UNFINISHED",
    /// Ticks that ran after a later one.
    disorder: "OUT OF ORDER",
    /// Ticks that were told to have been left out, and ran.
    misreported: "MISREPORTED",
}

impl Report {
    /// Nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.wrong() == 0
    }

    /// How much is wrong.
    #[must_use]
    pub fn wrong(&self) -> u64 {
        let Self { lost, doubled, overlaps, early, late, unfinished, disorder, misreported, .. } = self;
        let Self { leaders, terms, holders, tokens, waiting, .. } = self;
        let ticks = lost + doubled + overlaps + early + late + unfinished + disorder + misreported;
        ticks + leaders + terms + holders + tokens + waiting
    }

    /// Simulated hours.
    #[must_use]
    pub fn hours(&self) -> f64 {
        self.simulated as f64 / 3.6e12
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<38} {:.2} h", "simulated", self.hours())?;
        writeln!(f, "{:<38} {}", "faults", self.faults.iter().sum::<u64>())?;
        for ((_, name), count) in Fault::all().zip(self.faults).filter(|(_, count)| *count > 0) {
            writeln!(f, "  {name:<36} {count}")?;
        }
        for (name, count) in self.figures().into_iter().filter(|(name, _)| *name != "simulated ns") {
            writeln!(f, "{name:<38} {count}")?;
        }
        Ok(())
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("hours", &self.hours())?;
        let faults: std::collections::BTreeMap<_, _> = Fault::all().map(|(_, name)| name).zip(self.faults).collect();
        map.serialize_entry("faults", &faults)?;
        for (name, count) in self.figures() {
            map.serialize_entry(&name.to_lowercase().replace([' ', ','], "_"), &count)?;
        }
        map.serialize_entry("failure", &self.failure.as_ref().map(|(_, what)| what))?;
        map.serialize_entry("failing_seed", &self.failure.as_ref().map(|(seed, _)| seed))?;
        map.end()
    }
}
