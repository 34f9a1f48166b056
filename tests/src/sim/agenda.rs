//! What is going to happen, in order of time; what was added first comes first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A queue of things by true time. They lie still while their keys are sorted, because they are large.
#[derive(Debug)]
pub struct Agenda<T> {
    order: BinaryHeap<Reverse<(u64, u64, usize)>>,
    things: Vec<Option<T>>,
    free: Vec<usize>,
    added: u64,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Agenda<T> {
    /// Nothing.
    #[must_use]
    pub fn new() -> Self {
        Self { order: BinaryHeap::new(), things: Vec::new(), free: Vec::new(), added: 0 }
    }

    /// Adds a thing that happens at `at`.
    pub fn add(&mut self, at: u64, thing: T) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.things.push(None);
            self.things.len() - 1
        });
        self.things[place] = Some(thing);
        self.added += 1;
        self.order.push(Reverse((at, self.added, place)));
    }

    /// Takes the next thing, with its time.
    pub fn pop(&mut self) -> Option<(u64, T)> {
        let Reverse((at, _, place)) = self.order.pop()?;
        self.free.push(place);
        self.things[place].take().map(|thing| (at, thing))
    }
}
