//! A small file system of its own.

use std::path::Path;
use std::process::Command;

/// A file system in memory, unmounted at the end whatever happens.
#[derive(Debug)]
pub struct Mount(tempfile::TempDir);

impl Mount {
    /// One of this size, such as `256k`. None, with the reason printed, where this user may not mount.
    ///
    /// # Panics
    /// If no temporary folder can be created.
    #[must_use]
    #[allow(clippy::print_stderr)]
    pub fn new(size: &str) -> Option<Self> {
        let mount = Self(tempfile::tempdir().expect("temporary folders can be created"));
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &format!("size={size},mode=0700"), "leader-test"]).arg(mount.path());
        match command.output() {
            Ok(done) if done.status.success() => Some(mount),
            failed => {
                eprintln!("skipped: this user may not mount a small disk ({failed:?})");
                None
            }
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Detached at once, also if a process has still something open in it.
        let _ = Command::new("umount").arg("-l").arg(self.path()).output();
    }
}
