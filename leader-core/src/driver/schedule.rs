//! Which group is due when.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::clock::BootInstant;
use crate::election::Next;

/// For each lease that an instance holds already, it is so much slower, at most, to take a further one: so groups spread
/// over the fleet.
const SPREAD: Duration = Duration::from_millis(5);

#[derive(Debug, Default)]
pub(super) struct Schedule {
    order: BTreeSet<(BootInstant, usize)>,
    /// By group: what its election last wanted, and the instant that was chosen for it.
    chosen: Vec<Option<(Next, Option<BootInstant>)>>,
}

impl Schedule {
    pub(super) fn new(groups: usize) -> Self {
        Self { order: BTreeSet::new(), chosen: vec![None; groups] }
    }

    /// Takes note of what a group's election wants next. `held`: leases of this instance; `most`: the longest delay.
    pub(super) fn set(&mut self, group: usize, next: Next, held: usize, most: Duration) {
        let known = self.chosen[group].as_ref();
        if known.is_some_and(|(wanted, _)| *wanted == next) {
            return;
        }
        self.take_out(group);
        let at = instant(next, held, most);
        if let Some(at) = at {
            self.order.insert((at, group));
        }
        self.chosen[group] = Some((next, at));
    }

    fn take_out(&mut self, group: usize) {
        if let Some((_, Some(at))) = self.chosen[group].take() {
            self.order.remove(&(at, group));
        }
    }

    /// The first instant at which something is due.
    pub(super) fn first(&self) -> Option<BootInstant> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Takes out every group that is due, and if one of them renews, the renewals that may share its batch.
    /// `window`: how long before its time a renewal may go.
    pub(super) fn take_due(&mut self, now: BootInstant, window: Duration) -> Vec<usize> {
        let mut due: Vec<usize> = self.order.range(..=(now, usize::MAX)).map(|(_, group)| *group).collect();
        if due.iter().any(|group| matches!(self.chosen[*group], Some((Next::Renew { .. }, _)))) {
            let soon = (now.saturating_add(Duration::from_nanos(1)), 0)..=(now.saturating_add(window), usize::MAX);
            let joins =
                |group: usize| matches!(self.chosen[group], Some((Next::Renew { earliest, .. }, _)) if earliest <= now);
            due.extend(self.order.range(soon).map(|(_, group)| *group).filter(|group| joins(*group)));
        }
        for group in &due {
            self.take_out(*group);
        }
        due
    }
}

fn instant(next: Next, held: usize, most: Duration) -> Option<BootInstant> {
    match next {
        Next::Idle => None,
        Next::Waiting(at) => at,
        Next::Renew { earliest, latest } | Next::Retry { earliest, latest } => {
            Some(earliest.saturating_add(random(latest.saturating_since(earliest))))
        }
        // A release, or the first request: nothing to spread.
        Next::At(at) if at == BootInstant::default() => Some(at),
        Next::At(at) => {
            let spread = SPREAD.saturating_mul(u32::try_from(held).unwrap_or(u32::MAX)).min(most);
            Some(at.saturating_add(random(spread)))
        }
    }
}

/// Up to `most`.
pub(super) fn random(most: Duration) -> Duration {
    Duration::from_nanos(fastrand::u64(..=u64::try_from(most.as_nanos()).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> BootInstant {
        BootInstant::from_nanos(ms * 1_000_000)
    }

    const fn renew(earliest: u64, latest: u64) -> Next {
        Next::Renew { earliest: at(earliest), latest: at(latest) }
    }

    fn schedule(wants: &[Next]) -> Schedule {
        let mut schedule = Schedule::new(wants.len());
        for (group, next) in wants.iter().enumerate() {
            schedule.set(group, *next, 0, Duration::ZERO);
        }
        schedule
    }

    #[test]
    fn renewals_share_a_batch_and_followers_do_not_hurry() {
        let mut schedule = schedule(&[renew(100, 100), renew(90, 140), renew(110, 140), Next::At(at(105)), Next::Idle]);
        let mut due = schedule.take_due(at(100), Duration::from_millis(50));
        due.sort_unstable();
        assert_eq!(due, [0, 1]);
        assert!(schedule.first().unwrap() >= at(105));
    }

    #[test]
    fn nothing_is_due_before_its_time_and_all_that_is_due_is_taken_once() {
        let mut schedule = schedule(&[Next::At(at(10)), Next::At(at(20)), Next::Waiting(Some(at(30)))]);
        assert!(schedule.take_due(at(9), Duration::ZERO).is_empty());
        assert_eq!(schedule.take_due(at(20), Duration::ZERO), [0, 1]);
        assert!(schedule.take_due(at(20), Duration::ZERO).is_empty());
        assert_eq!(schedule.first(), Some(at(30)));
    }

    #[test]
    fn who_holds_leases_is_slower_to_take_another() {
        let mut latest = BootInstant::default();
        for _ in 0..200 {
            latest = latest.max(instant(Next::At(at(10)), 4, Duration::from_secs(1)).unwrap());
            assert_eq!(instant(Next::At(at(10)), 0, Duration::from_secs(1)), Some(at(10)));
        }
        assert!(latest > at(10) && latest <= at(30));
    }
}
