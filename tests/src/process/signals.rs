//! Signals to children.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// Stops a child that was not waited for, and returns when it stands still.
///
/// # Panics
/// If it is none.
pub fn stop(pid: Pid) {
    kill_process(pid, Signal::STOP).expect("it is a child that was not waited for");
    waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED).expect("it is a child that was not waited for");
}
