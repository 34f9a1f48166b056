//! Running the examples as programs.

use std::path::PathBuf;
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

/// Where cargo has put this example.
pub fn program(example: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    // target/debug/deps/test → target/debug/examples/example
    let path = test.parent().unwrap().with_file_name("examples").join(example);
    assert!(path.exists(), "{} is not built; `cargo build -p leader-examples --examples` builds it", path.display());
    path
}

/// A program that does not outlive its test.
pub struct Guard(pub Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // Most have ended by now.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}
