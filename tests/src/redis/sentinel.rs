//! A sentinel of a test's own.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::process::{Child, Stdio};

use redis::{FromRedisValue, RedisResult};

use super::client::Client;
use super::seat::Seat;
use super::server::binary;
use crate::net::Party;
use crate::process::eventually;

/// The port of a sentinel that has an address for itself.
const USUAL: u16 = 26379;

/// By which the test's own commands go, in its folder.
const SOCKET: &str = "sentinel.socket";

/// One sentinel, on a port of its own that it keeps over restarts, and with what it has found out in its file. Dropping it ends
/// it and removes its files.
#[derive(Debug)]
pub struct Sentinel {
    folder: tempfile::TempDir,
    seat: Seat,
    password: Option<String>,
    process: Option<Child>,
}

impl Sentinel {
    /// A sentinel with these lines in its configuration, and as this password of its user `default`; it answers. None, with the
    /// reason printed, where no Redis is installed.
    ///
    /// # Panics
    /// If it does not start, or is not installed where `CI` is set.
    #[must_use]
    pub fn start(lines: &[String], password: Option<&str>) -> Option<Self> {
        Self::start_at(Seat::here(), lines, password)
    }

    /// The same, but it runs at this party of a network, on the usual port.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[must_use]
    pub fn start_inside(party: &Party, lines: &[String], password: Option<&str>) -> Option<Self> {
        Self::start_at(Seat::At(party.clone(), USUAL), lines, password)
    }

    fn start_at(seat: Seat, lines: &[String], password: Option<&str>) -> Option<Self> {
        binary()?;
        let folder = tempfile::tempdir().expect("temporary folders can be created");
        let (ip, port) = (seat.address().ip(), seat.address().port());
        let socket = folder.path().join(SOCKET).display().to_string();
        let mut text = format!("port {port}\nbind {ip}\nprotected-mode no\nunixsocket {socket}\n");
        text += &format!("dir {}\n", folder.path().display());
        if let Some(password) = password {
            text += &format!("requirepass {password}\n");
        }
        text += &lines.join("\n");
        text.push('\n');
        fs::write(folder.path().join("sentinel.conf"), text).expect("a temporary folder can be written");
        let mut sentinel = Self { folder, seat, password: password.map(ToOwned::to_owned), process: None };
        sentinel.start_again();
        Some(sentinel)
    }

    /// Starts it, also again after a [`kill`](Self::kill), with what it knew.
    ///
    /// # Panics
    /// If it is running, or does not start.
    pub fn start_again(&mut self) {
        assert!(self.process.is_none(), "the sentinel is running");
        let binary = binary().expect("it was there before");
        let path = |name| self.folder.path().join(name);
        let log = File::options().create(true).append(true).open(path("log")).expect("its folder can be written");
        let mut program = self.seat.program(&binary);
        program.arg(path("sentinel.conf")).arg("--sentinel");
        program.stdin(Stdio::null()).stderr(log.try_clone().expect("a file can be opened twice")).stdout(log);
        self.process = Some(program.spawn().unwrap_or_else(|error| panic!("{binary:?} cannot be started: {error}")));
        eventually("the sentinel answers", || {
            let Err(error) = self.try_command::<String>(&["PING"]) else { return Some(()) };
            let ended = self.process.as_mut().and_then(|process| process.try_wait().transpose());
            assert!(ended.is_none(), "the sentinel has ended ({ended:?}, {error}); it wrote:\n{}", self.written());
            None
        });
    }

    /// Kills it: `SIGKILL`. Its port refuses connections until it is started again.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            // It fails only if it was waited for before.
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Where to connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.seat.address()
    }

    /// What it has written to its log.
    #[must_use]
    pub fn written(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Runs one command on a connection of its own.
    ///
    /// # Errors
    /// What the sentinel answered, or that it gave no answer.
    pub fn try_command<T: FromRedisValue>(&self, parts: &[&str]) -> RedisResult<T> {
        let user = self.password.as_deref().map(|password| ("default", password));
        Client::on_socket(&self.folder.path().join(SOCKET), user)?.command(parts)
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        self.kill();
    }
}
