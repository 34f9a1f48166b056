//! How a process begins that is going to be hurt, and what it is told.

use std::error::Error;
use std::io::{self, BufRead as _};
use std::thread;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::chaos::log::{Log, watch_stalls};

/// What it is told on its standard input, a line each: to end as a process should.
pub const FINISH: &str = "finish";

/// What every log may hold: the process did not get the processor, though it wanted to run.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename = "stalled")]
struct Stalled {
    from_ns: u64,
    to_ns: u64,
}

/// The one argument of a member, which is JSON. From here on the member ends with whoever started it.
///
/// # Errors
/// If the argument is wrong.
pub fn options<O: DeserializeOwned>(argument: &str) -> Result<O, Box<dyn Error>> {
    // A parent that is killed closes our input, but a process that is stopped would not read that.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    Ok(serde_json::from_str(argument)?)
}

/// Notes the times in which this process does not get the processor.
pub fn note_stalls(log: &Log) {
    let log = log.clone();
    watch_stalls(move |stall| {
        stall.into_iter().for_each(|(from_ns, to_ns)| log.add(&Stalled { from_ns, to_ns }));
        true
    });
}

/// The lines of the standard input, until it ends.
///
/// # Errors
/// If no thread can be started.
pub fn orders() -> io::Result<UnboundedReceiver<String>> {
    let (told, orders) = unbounded_channel();
    thread::Builder::new().name("input".to_owned()).spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            // Nobody listens any more when the process ends.
            let _ = told.send(line);
        }
    })?;
    Ok(orders)
}

/// Two workers.
///
/// # Errors
/// If it cannot be started.
pub fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_a_line_of_every_log() {
        let text = serde_json::to_string(&Stalled { from_ns: 1, to_ns: 2 }).unwrap();
        let of_locks: crate::chaos::log::Line = serde_json::from_str(&text).unwrap();
        assert_eq!(of_locks, crate::chaos::log::Line::Stalled { from_ns: 1, to_ns: 2 });
        let of_jobs: crate::cron_chaos::Line = serde_json::from_str(&text).unwrap();
        assert_eq!(of_jobs, crate::cron_chaos::Line::Stalled { from_ns: 1, to_ns: 2 });
    }
}
