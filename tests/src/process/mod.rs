//! Fleets of real processes: each is one instance that logs when it sees itself lead, and does what it is told.
//!
//! [`Fleet`] starts them (the program `node`), stops, continues and kills them, waits for what they tell, and reads their
//! logs; whatever happens, none outlives it.

mod fleet;
mod locks;
mod mount;
mod node;
mod sampler;
mod talk;

pub use fleet::{Fleet, PATIENCE, Reign, Spawn};
pub use mount::Mount;
pub use node::run;
pub use talk::{Command, Options, Told};
