//! Fleets of real processes: each is one instance that logs when it sees itself lead, and does what it is told.
//!
//! [`Fleet`] starts them (the program `node`), stops, continues and kills them, waits for what they tell, and reads their
//! logs; whatever happens, none outlives it.

mod chosen;
mod fleet;
mod jobs;
mod locks;
mod mount;
mod needed;
mod node;
mod patience;
pub(crate) mod sampler;
mod signals;
mod talk;
mod usage;
mod wall;
mod watch;
mod wear;

pub use chosen::{again_over_the_other_client, client, config_at, store_at};
pub use fleet::{Fleet, Spawn};
pub use jobs::{JobPlan, JobRun, MissedTicks};
pub use locks::is_writing;
pub use mount::Mount;
pub use needed::installed;
pub use node::run;
pub use patience::{PATIENCE, eventually};
pub use signals::stop;
pub use talk::{Command, Held, Options, Told};
pub use usage::Usage;
pub use wall::Wall;
pub use watch::Reign;
