//! From the moment that one gives a lock back to the moment that another one has it.

use std::error::Error;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use tokio::runtime::Builder;

use super::ours::Ours;
use crate::process::eventually;

/// How long is waited from when the other one asks for the lock until the store has put it into its queue: much longer than
/// that takes.
pub(super) const SETTLE: Duration = Duration::from_millis(20);
const WAIT: Duration = Duration::from_secs(60);

/// From one elector to another one.
pub(super) fn ours(url: &str) -> Result<impl FnMut() -> Duration + 'static, Box<dyn Error>> {
    let runtime = || Builder::new_current_thread().enable_time().build();
    let (holds, waits) = (Ours::start(url, runtime()?)?, Ours::start(url, runtime()?)?);
    let other = waits.elector.clone();
    let (begin, begun) = channel::<()>();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        while begun.recv().is_ok() {
            let taken = waits.runtime.block_on(waits.elector.lock("hand-over").wait(WAIT).acquire());
            let guard = taken.expect("it is given back");
            // Nobody hears it at the end.
            let _ = tell.send(Instant::now());
            waits.runtime.block_on(guard.release()).expect("it is held");
            let _ = tell.send(Instant::now());
        }
    });
    Ok(move || {
        let taken = holds.runtime.block_on(holds.elector.lock("hand-over").wait(WAIT).acquire());
        let guard = taken.expect("it is given back");
        begin.send(()).expect("the thread lives as long as this");
        eventually("the other one asks for it", || (other.status().locks.waiting == 1).then_some(()));
        std::thread::sleep(SETTLE);
        let released = Instant::now();
        holds.runtime.block_on(guard.release()).expect("it is held");
        let took = told.recv().expect("it takes the lock").saturating_duration_since(released);
        told.recv().expect("it gives the lock back");
        took
    })
}
