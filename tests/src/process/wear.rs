//! What stays of what is done over and over: nothing.

use super::fleet::Fleet;
use super::patience::eventually;
use super::talk::Command;
use super::usage::Usage;
use super::watch::Reign;

/// The memory of a process may differ so much from one look to the next.
const SAME: f64 = 1.05;

/// What piles up has more than so many KiB after some outages. Less comes and goes.
const PILE: u64 = 8192;

impl Fleet {
    /// A node takes so many locks and drops them, and once more. The second time leaves no more behind than the first: no
    /// memory, no threads, no open files; and neither leaves anything in the store, of which `left` says what is there.
    ///
    /// # Panics
    /// If something is left.
    pub fn assert_locks_leave_nothing(&mut self, label: &str, count: u32, left: impl Fn() -> Vec<String>) {
        let before = left();
        let take = |fleet: &mut Self| {
            fleet.ask(label, &Command::Locks { count }).expect("nobody else wants them");
            // What was dropped is given back in the background.
            as_before(&before, &left);
        };
        take(self);
        let first = [self.usage(label)];
        take(self);
        self.assert_no_more([label], &first);
    }

    /// So many times the leader drains and another node takes over, and once more: the same holds of all these nodes.
    ///
    /// # Panics
    /// If something is left.
    pub fn assert_flaps_leave_nothing<const N: usize>(
        &mut self,
        labels: [&str; N],
        times: usize,
        left: impl Fn() -> Vec<String>,
    ) {
        let reign = self.leader("default", 0);
        // Each has led before, and whatever it needs for that it has.
        let reign = self.flap(reign, N);
        let before = left();
        let reign = self.flap(reign, times);
        as_before(&before, &left);
        let first = labels.map(|label| self.usage(label));
        self.flap(reign, times);
        as_before(&before, &left);
        self.assert_no_more(labels, &first);
        self.assert_safe();
    }

    /// After outages these nodes have no more in use than before them: descriptors, sockets among them, and threads; nor has
    /// their memory grown since half of the outages were over, by when each kind had been there.
    ///
    /// # Panics
    /// If something is left.
    #[allow(clippy::print_stderr)]
    pub fn assert_nothing_piled_up<const N: usize>(
        &mut self,
        labels: [&str; N],
        at_first: [Usage; N],
        halfway: [Usage; N],
    ) {
        for (label, (at_first, halfway)) in labels.into_iter().zip(at_first.into_iter().zip(halfway)) {
            let threads = at_first.threads.max(halfway.threads);
            // What was given up is closed in its own time, and a thread that has nothing to do ends.
            let after = self.until(&format!("{label} has no more open than {at_first:?}"), |fleet| {
                let few = |after: &Usage| after.descriptors <= at_first.descriptors && after.threads <= threads;
                fleet.usage(label).filter(few)
            });
            eprintln!("{label}: at first {at_first:?}, halfway {halfway:?}, at last {after:?}");
            assert!(after.resident_kib < halfway.resident_kib + PILE, "the memory of {label} has grown");
        }
    }

    fn flap(&mut self, mut reign: Reign, times: usize) -> Reign {
        for _ in 0..times {
            let led = reign.label;
            self.ask(&led, &Command::Drain).expect("nothing runs there");
            reign = self.leader("default", reign.term);
            assert_ne!(reign.label, led, "it stands aside");
            self.ask(&led, &Command::Resume).expect("the elector has not ended");
        }
        reign
    }

    #[allow(clippy::print_stderr)]
    fn assert_no_more<const N: usize>(&mut self, labels: [&str; N], first: &[Option<Usage>]) {
        for (label, first) in labels.into_iter().zip(first) {
            let Some(first) = first else { continue };
            // What is not needed any more ends in its own time.
            let second = self.until(&format!("{label} has no more in use than {first:?}"), |fleet| {
                let few = |now: &Usage| now.threads <= first.threads && now.descriptors <= first.descriptors;
                fleet.usage(label).filter(few)
            });
            eprintln!("{label}: after the first time {first:?}, after the second {second:?}");
            let most = first.resident_kib as f64 * SAME;
            assert!(second.resident_kib as f64 <= most, "{label} has grown from {first:?} to {second:?}");
        }
    }
}

fn as_before(before: &[String], left: impl Fn() -> Vec<String>) {
    eventually(&format!("nothing is there but {before:?}"), || (left() == before).then_some(()));
}
