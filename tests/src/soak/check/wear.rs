//! What processes and servers have in use, while all is well.

use serde::Serialize;

use super::Violation;

/// With fewer looks than this nothing can be told: the first ones are of processes that have just begun.
const ENOUGH: usize = 9;

/// What was in use at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Sample {
    /// Threads of the process that is never killed.
    pub threads: u64,
    /// Its open files, sockets among them.
    pub descriptors: u64,
    /// Its memory, in KiB.
    pub resident_kib: u64,
    /// Connections of all processes at the servers.
    pub connections: u64,
    /// Memory of the servers, in KiB.
    pub server_kib: u64,
    /// Memory of the process that checks, in KiB.
    pub checker_kib: u64,
}

/// The first third beside the last one.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Wear {
    /// How often was looked.
    pub samples: usize,
    /// In the middle of the first third.
    pub first: Sample,
    /// In the middle of the last third.
    pub last: Sample,
}

/// What may be in use at the end, by what was at the beginning.
type Right = fn(u64) -> u64;

/// Its name, where it stands, and how much of it is right.
type Figure = (&'static str, fn(&Sample) -> u64, Right);

const FIGURES: [Figure; 6] = [
    ("threads of a process", |sample| sample.threads, |first| first + 2),
    ("open files of a process", |sample| sample.descriptors, |first| first + 6),
    // Allocators grow in steps.
    ("memory of a process, in KiB", |sample| sample.resident_kib, |first| first + first / 4 + 6 * 1024),
    ("connections at the servers", |sample| sample.connections, |first| first + 8),
    ("memory of the servers, in KiB", |sample| sample.server_kib, |first| first + first / 2 + 16 * 1024),
    ("memory of the checker, in KiB", |sample| sample.checker_kib, |first| first + first / 2 + 16 * 1024),
];

impl Wear {
    /// Of the samples in the order of time. The middle of a third is that of each figure by itself.
    pub(in crate::soak) fn of(samples: &[Sample]) -> Self {
        let third = samples.len().div_ceil(3);
        let (first, last) = (&samples[..third], &samples[samples.len() - third..]);
        Self { samples: samples.len(), first: middle(first), last: middle(last) }
    }

    /// What has grown.
    pub(in crate::soak) fn judge(&self) -> Vec<Violation> {
        if self.samples < ENOUGH {
            return Vec::new();
        }
        let grown = |(what, of, right): &Figure| {
            let (first, last) = (of(&self.first), of(&self.last));
            let most = right(first);
            (last > most).then(|| Violation::Grown { what: (*what).to_owned(), first, last, most })
        };
        FIGURES.iter().filter_map(grown).collect()
    }
}

fn middle(samples: &[Sample]) -> Sample {
    let of = |figure: fn(&Sample) -> u64| {
        let mut all: Vec<_> = samples.iter().map(figure).collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied().unwrap_or_default()
    };
    Sample {
        threads: of(|sample| sample.threads),
        descriptors: of(|sample| sample.descriptors),
        resident_kib: of(|sample| sample.resident_kib),
        connections: of(|sample| sample.connections),
        server_kib: of(|sample| sample.server_kib),
        checker_kib: of(|sample| sample.checker_kib),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(grows: impl Fn(&mut Sample, u64)) -> Vec<Sample> {
        let sample = |n| {
            let mut sample = Sample {
                threads: 9,
                descriptors: 30,
                resident_kib: 12_000,
                connections: 15,
                server_kib: 2_000,
                checker_kib: 9_000,
            };
            grows(&mut sample, n);
            sample
        };
        (0..30).map(sample).collect()
    }

    fn found(samples: &[Sample]) -> Vec<String> {
        let grown = Wear::of(samples).judge();
        grown.iter().map(|violation| violation.to_string().split(',').next().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn what_stays_is_not_grown_and_what_leaks_is() {
        assert_eq!(found(&samples(|_, _| {})), [""; 0]);
        assert_eq!(found(&samples(|sample, n| sample.threads += n / 5)), ["grown: threads of a process"]);
        assert_eq!(found(&samples(|sample, n| sample.descriptors += n)), ["grown: open files of a process"]);
        assert_eq!(found(&samples(|sample, n| sample.resident_kib += 700 * n)), ["grown: memory of a process"]);
        assert_eq!(found(&samples(|sample, n| sample.connections += n)), ["grown: connections at the servers"]);
        assert_eq!(found(&samples(|sample, n| sample.server_kib += 2_000 * n)), ["grown: memory of the servers"]);
    }

    #[test]
    fn a_peak_is_no_growth_and_few_looks_tell_nothing() {
        assert_eq!(found(&samples(|sample, n| sample.threads += if n == 28 { 100 } else { 0 })), [""; 0]);
        assert_eq!(found(&samples(|sample, n| sample.threads += 9 * n)[..8]), [""; 0]);
    }
}
