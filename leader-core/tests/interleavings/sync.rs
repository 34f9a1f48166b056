//! Loom's models of what threads share state by.

use std::sync::OnceLock;

use loom::sync::atomic;
pub(crate) use loom::sync::atomic::Ordering;
pub(crate) use loom::sync::{Mutex, MutexGuard};
pub(crate) use std::sync::PoisonError;

thread_local! {
    /// A rule that is broken on purpose: no order of loads and stores is kept.
    static WEAK: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// From here on this test's loads and stores are relaxed, whatever the code asks for.
pub(crate) fn weaken() {
    WEAK.set(true);
}

fn order(asked: Ordering) -> Ordering {
    if WEAK.get() { Ordering::Relaxed } else { asked }
}

/// One of a `static` is made when it is first used: by the thread that starts the others.
#[derive(Debug)]
pub(crate) struct AtomicU64 {
    value: u64,
    model: OnceLock<atomic::AtomicU64>,
}

impl AtomicU64 {
    pub(crate) fn new(value: u64) -> Self {
        Self { value, model: OnceLock::from(atomic::AtomicU64::new(value)) }
    }

    fn model(&self) -> &atomic::AtomicU64 {
        self.model.get_or_init(|| atomic::AtomicU64::new(self.value))
    }

    pub(crate) fn load(&self, asked: Ordering) -> u64 {
        self.model().load(order(asked))
    }

    pub(crate) fn store(&self, value: u64, asked: Ordering) {
        self.model().store(value, order(asked));
    }

    pub(crate) fn fetch_max(&self, value: u64, asked: Ordering) -> u64 {
        self.model().fetch_max(value, order(asked))
    }
}

pub(crate) const fn atomic_in_static(value: u64) -> AtomicU64 {
    AtomicU64 { value, model: OnceLock::new() }
}

#[derive(Debug)]
pub(crate) struct AtomicUsize(AtomicU64);

impl AtomicUsize {
    pub(crate) fn load(&self, asked: Ordering) -> u64 {
        self.0.load(asked)
    }

    pub(crate) fn fetch_add(&self, by: u64, asked: Ordering) {
        self.0.model().fetch_add(by, asked);
    }

    pub(crate) fn fetch_sub(&self, by: u64, asked: Ordering) {
        self.0.model().fetch_sub(by, asked);
    }
}

pub(crate) const fn counter_in_static() -> AtomicUsize {
    AtomicUsize(atomic_in_static(0))
}

/// As much of tokio's as is used. Nobody waits here: those who would wait look.
pub(crate) mod watch {
    use super::{Mutex, MutexGuard};

    #[derive(Debug)]
    pub(crate) struct Sender<T>(Mutex<T>);

    #[derive(Debug)]
    pub(crate) struct Receiver<'a, T>(&'a Sender<T>);

    impl<T> Sender<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(Mutex::new(value))
        }

        pub(crate) fn borrow(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }

        pub(crate) fn send_replace(&self, value: T) -> T {
            std::mem::replace(&mut *self.borrow(), value)
        }

        pub(crate) fn send_if_modified(&self, change: impl FnOnce(&mut T) -> bool) -> bool {
            change(&mut self.borrow())
        }

        pub(crate) fn subscribe(&self) -> Receiver<'_, T> {
            Receiver(self)
        }
    }

    impl<T> Receiver<'_, T> {
        pub(crate) async fn wait_for(&mut self, reached: impl Fn(&T) -> bool) -> Result<(), ()> {
            if reached(&self.0.borrow()) { Ok(()) } else { std::future::pending().await }
        }
    }
}
