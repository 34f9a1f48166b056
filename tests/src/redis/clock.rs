//! The wall clock of a server, which steps when the test says so. (Under libfaketime a Redis server hangs.)

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What is loaded into the server.
const SOURCE: &str = include_str!("clock.c");

/// From the true time to a server's, in a file that the server has mapped.
#[derive(Debug)]
pub(super) struct Clock {
    library: PathBuf,
    path: PathBuf,
    file: File,
}

impl Clock {
    /// A true one, with its files in this folder. They are compiled by the C compiler that Rust links with.
    pub(super) fn new(folder: &Path) -> Self {
        let (library, path) = (folder.join("clock.so"), folder.join("clock"));
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-x", "c", "-", "-o"]).arg(&library);
        let mut compiler = compiler.stdin(Stdio::piped()).spawn().expect("Rust needs a C compiler, too");
        let mut stdin = compiler.stdin.take().expect("it is a pipe");
        stdin.write_all(SOURCE.as_bytes()).expect("a compiler reads its source");
        drop(stdin);
        assert!(compiler.wait().is_ok_and(|status| status.success()), "the clock cannot be compiled");
        fs::write(&path, 0_i64.to_ne_bytes()).expect("a temporary folder can be written");
        let file = File::options().write(true).open(&path).expect("it was just written");
        Self { library, path, file }
    }

    /// What is added to the environment of the server.
    pub(super) fn environment(&self) -> [(&'static str, &Path); 2] {
        [("LD_PRELOAD", &self.library), ("LEADER_TESTS_CLOCK", &self.path)]
    }

    /// So many milliseconds from the true time, from now on.
    pub(super) fn set(&self, offset_ms: i64) {
        // At once as a whole: it is one word of memory.
        self.file.write_all_at(&(offset_ms * 1000).to_ne_bytes(), 0).expect("a temporary file can be written");
    }
}
