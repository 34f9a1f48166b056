//! Kinds of faults, and the sets of them that runs draw from.

use std::marker::PhantomData;

use super::cluster::Upset;

/// What can go wrong in a simulated world: what is of that world only, and what befalls its servers.
pub trait Kind: Copy + Eq + 'static {
    /// Those of the world, and what they are called.
    const OWN: &'static [(Self, &'static str)];

    /// One that befalls the servers.
    fn of_servers(upset: Upset) -> Self;

    /// All kinds and what they are called, in the order of their numbers.
    fn all() -> impl Iterator<Item = (Self, &'static str)> {
        let servers = Upset::ALL.iter().map(|(upset, name)| (Self::of_servers(*upset), *name));
        Self::OWN.iter().copied().chain(servers)
    }

    /// Its place among all of them.
    ///
    /// # Panics
    /// If it has no name.
    fn number(self) -> usize {
        Self::all().position(|(kind, _)| kind == self).expect("every kind has a name")
    }
}

/// A set of kinds.
#[derive(Debug, PartialEq, Eq)]
pub struct FaultSet<K>(u32, PhantomData<K>);

impl<K> Clone for FaultSet<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for FaultSet<K> {}

impl<K: Kind> FaultSet<K> {
    /// None.
    pub const NONE: Self = Self(0, PhantomData);
    /// Those of the world, with one server.
    pub const OWN: Self = Self((1 << K::OWN.len()) - 1, PhantomData);
    /// Also all that befalls several servers.
    pub const ALL: Self = Self((1 << (K::OWN.len() + Upset::ALL.len())) - 1, PhantomData);

    /// This set and `fault`.
    #[must_use]
    pub fn with(self, fault: K) -> Self {
        Self(self.0 | 1 << fault.number(), PhantomData)
    }

    /// This set but `fault`.
    #[must_use]
    pub fn without(self, fault: K) -> Self {
        Self(self.0 & !(1 << fault.number()), PhantomData)
    }

    /// Those in it.
    #[must_use]
    pub fn kinds(self) -> Vec<K> {
        K::all().enumerate().filter(|(number, _)| self.0 & 1 << number != 0).map(|(_, (kind, _))| kind).collect()
    }
}
