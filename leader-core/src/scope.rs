//! Which elector annotated functions ask: normally the process's own, in tests the one of a scope.
//!
//! A gate must stay as cheap as a load when no scope exists: one counter tells.

mod count;

use std::cell::RefCell;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::shared::Shared;

use count::Count;

static SPECIAL: Count = Count::in_static();

/// While one exists, gates look for a scope and for a claimed lease.
#[derive(Debug)]
pub(crate) struct Special(());

impl Special {
    pub(crate) fn new() -> Self {
        SPECIAL.add();
        Self(())
    }

    #[inline]
    pub(crate) fn any() -> bool {
        SPECIAL.any()
    }
}

impl Drop for Special {
    fn drop(&mut self) {
        SPECIAL.remove();
    }
}

thread_local! {
    static ENTERED: RefCell<Vec<(u64, Arc<Shared>)>> = const { RefCell::new(Vec::new()) };
}

/// The innermost elector that this thread has entered.
pub(crate) fn current() -> Option<Arc<Shared>> {
    ENTERED.with_borrow(|entered| entered.last().map(|(_, elector)| Arc::clone(elector)))
}

fn push(elector: &Arc<Shared>) -> u64 {
    ENTERED.with_borrow_mut(|entered| {
        let key = entered.last().map_or(0, |(key, _)| key + 1);
        entered.push((key, Arc::clone(elector)));
        key
    })
}

fn pop(key: u64) {
    // Guards may be dropped out of order; each takes away its own entry.
    let popped = ENTERED.with_borrow_mut(|entered| {
        let at = entered.iter().rposition(|(k, _)| *k == key);
        at.map(|at| entered.remove(at))
    });
    drop(popped);
}

/// As long as it lives, annotated functions on this thread ask one elector. See [`Elector::enter`](crate::Elector::enter).
#[derive(Debug)]
#[must_use = "the elector is current only while the guard lives"]
pub struct EnterGuard {
    key: u64,
    _special: Special,
    /// Belongs to its thread.
    _not_send: PhantomData<*const ()>,
}

impl EnterGuard {
    pub(crate) fn new(elector: &Arc<Shared>) -> Self {
        let special = Special::new();
        Self { key: push(elector), _special: special, _not_send: PhantomData }
    }
}

impl Drop for EnterGuard {
    fn drop(&mut self) {
        pop(self.key);
    }
}

/// A future inside which annotated functions ask one elector. See [`Elector::scope`](crate::Elector::scope).
pub(crate) struct Scoped<F> {
    elector: Arc<Shared>,
    future: Pin<Box<F>>,
    _special: Special,
}

impl<F> Scoped<F> {
    pub(crate) fn new(elector: Arc<Shared>, future: F) -> Self {
        Self { elector, future: Box::pin(future), _special: Special::new() }
    }
}

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let _entered = EnterGuard::new(&self.elector);
        self.future.as_mut().poll(cx)
    }
}
