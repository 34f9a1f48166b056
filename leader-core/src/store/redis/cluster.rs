//! A cluster of Redis servers: each has some of the 16,384 slots, and the name of a key says in which slot it is.
//!
//! All keys of a group are in one slot, and so are all of a lock. A script may touch the keys of one slot only, so a batch
//! becomes a call for each slot, all of them at the same time, on one link to each node ([`nodes`]). Which node has which slot
//! ([`slots`]) is asked of any of them ([`map`]), again whenever there is reason to doubt it. What a node answers that is not
//! the right one ([`redirect`]) says that nothing was executed: then, and only then, a call is sent to another one.
//!
//! Each node is a server of its own: a lease that comes to another node, by a failover or because its slot was moved there,
//! finds another identity than the one in its record, and the quarantine that this begins keeps everybody out who does not
//! still lead.

mod first;
mod map;
mod nodes;
mod redirect;
mod slots;

pub(super) use self::map::Map;
pub(super) use self::nodes::Nodes;
#[cfg(feature = "testing")]
pub(super) use self::redirect::Redirect;
pub(super) use self::slots::Slots;
