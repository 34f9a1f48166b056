//! Every order in which threads can meet at a group's view, its lease, its work and its gates, and every value that the
//! memory model lets them see there.
//!
//! These are the library's own files, compiled once more: `sync` gives them loom's models of atomics and mutexes. Around them
//! stands as little as they need. Time stands still here: what matters is who sees which deadline.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(dead_code, unreachable_pub, reason = "each file is taken as a whole")]

#[path = "../../src/cell.rs"]
mod cell;
#[path = "../../src/scope/count.rs"]
mod count;
#[path = "../../src/gate.rs"]
mod gate;
#[path = "../../src/lease.rs"]
mod lease;
mod stand_ins;
mod sync;
#[path = "../../src/work.rs"]
mod work;

mod gates;
mod known_bad;
mod leases;

use stand_ins::{clock, election, entry, event, group, identity, scope};
