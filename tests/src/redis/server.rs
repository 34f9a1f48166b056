//! A Redis server of a test's own.

use std::fs::{self, OpenOptions};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Child;

use redis::{FromRedisValue, RedisResult};
use rustix::process::{Pid, Signal, kill_process};

use super::client::Client;
use super::clock::Clock;
use super::seat::Seat;
use crate::net::Party;
use crate::process::{eventually, installed, stop};

/// The tests' own user: what happens to `default`, as which nodes come, is not in their way.
const HARNESS: (&str, &str) = ("harness", "harness");

/// The port of a server that has an address for itself.
const USUAL: u16 = 6379;

/// By which a server is told to speak TLS, and then it speaks nothing else.
const CERTIFICATE: &str = "tls-cert-file";

/// One server, on a port of its own that it keeps over restarts. Dropping it ends it and removes its files.
///
/// The test's own commands go by a socket in the file system: no fault of a network is in their way.
#[derive(Debug)]
pub struct RedisServer {
    binary: PathBuf,
    folder: tempfile::TempDir,
    data: PathBuf,
    seat: Seat,
    /// If not this machine's.
    clock: Option<Clock>,
    options: Vec<(String, String)>,
    process: Option<Child>,
}

impl RedisServer {
    /// A server with these options, such as `("appendonly", "yes")`; it answers. It saves nothing unless told to. None, with
    /// the reason printed, where no Redis is installed.
    ///
    /// # Panics
    /// If it does not start, or is not installed where `CI` is set.
    #[must_use]
    pub fn start(options: &[(&str, &str)]) -> Option<Self> {
        Self::start_at(Seat::here(), options)
    }

    /// The same, but it runs at this party of a network, on the usual port.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[must_use]
    pub fn start_inside(party: &Party, options: &[(&str, &str)]) -> Option<Self> {
        Self::start_at(Seat::At(party.clone(), USUAL), options)
    }

    pub(super) fn start_at(seat: Seat, options: &[(&str, &str)]) -> Option<Self> {
        let folder = tempfile::tempdir().expect("temporary folders can be created");
        let data = folder.path().join("data");
        fs::create_dir(&data).expect("a temporary folder can be written");
        Self::start_in(folder, data, seat, None, options)
    }

    /// A server with a wall clock of its own, which [`set_clock`](Self::set_clock) moves.
    ///
    /// # Panics
    /// As [`start`](Self::start), and if its clock cannot be compiled.
    #[must_use]
    pub fn start_with_clock(options: &[(&str, &str)]) -> Option<Self> {
        let folder = tempfile::tempdir().expect("temporary folders can be created");
        let data = folder.path().join("data");
        fs::create_dir(&data).expect("a temporary folder can be written");
        let clock = Clock::new(folder.path());
        Self::start_in(folder, data, Seat::here(), Some(clock), options)
    }

    /// A server whose files are in `data`, which is somebody else's.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[must_use]
    pub fn start_on(data: &Path, options: &[(&str, &str)]) -> Option<Self> {
        let folder = tempfile::tempdir().expect("temporary folders can be created");
        Self::start_in(folder, data.to_owned(), Seat::here(), None, options)
    }

    fn start_in(
        folder: tempfile::TempDir,
        data: PathBuf,
        seat: Seat,
        clock: Option<Clock>,
        options: &[(&str, &str)],
    ) -> Option<Self> {
        let binary = binary()?;
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut server = Self { binary, folder, data, seat, clock, options, process: None };
        server.begin();
        Some(server)
    }

    /// Starts the process, and waits until it answers and has loaded what it had saved.
    fn begin(&mut self) {
        let log = OpenOptions::new().create(true).append(true).open(self.log()).expect("its folder can be written");
        let (address, mut program) = (self.address(), self.seat.program(&self.binary));
        let port = address.port().to_string();
        let speaks_tls = self.options.iter().any(|(name, _)| name == CERTIFICATE);
        let ports: &[_] = if speaks_tls { &["--port", "0", "--tls-port", &port] } else { &["--port", &port] };
        program.args(ports).args(["--bind", &address.ip().to_string()]);
        program.arg("--unixsocket").arg(self.socket()).arg("--dir").arg(&self.data);
        // At a party, whoever reaches it may come in.
        program.args(["--protected-mode", "no"]);
        program.args(["--save", "", "--enable-debug-command", "local", "--enable-protected-configs", "local"]);
        program.args(["--user", HARNESS.0, "on", &format!(">{}", HARNESS.1), "~*", "&*", "+@all"]);
        program.envs(self.clock.iter().flat_map(Clock::environment));
        for (name, value) in &self.options {
            program.arg(format!("--{name}")).args(words(value));
        }
        program
            .stdin(std::process::Stdio::null())
            .stderr(log.try_clone().expect("a file can be opened twice"))
            .stdout(log);
        let process = program.spawn().unwrap_or_else(|error| panic!("{:?} cannot be started: {error}", self.binary));
        self.process = Some(process);
        eventually("the server answers", || {
            let Err(error) = self.try_command::<String>(&["PING"]) else { return Some(()) };
            let ended = self.process.as_mut().and_then(|process| process.try_wait().transpose());
            assert!(ended.is_none(), "the server has ended ({ended:?}, {error}); it wrote:\n{}", self.written());
            None
        });
    }

    /// Where to connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.seat.address()
    }

    /// The URL of its database 0, as the user `default`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}/0", self.address())
    }

    /// Where it keeps what it saves.
    #[must_use]
    pub fn data(&self) -> &Path {
        &self.data
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.socket")
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("redis.log")
    }

    /// What it has written to its log.
    #[must_use]
    pub fn written(&self) -> String {
        fs::read_to_string(self.log()).unwrap_or_default()
    }

    /// A connection that lasts, as a user who may do everything.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub fn client(&self) -> RedisResult<Client> {
        Client::on_socket(&self.socket(), Some(HARNESS))
    }

    /// Runs one command on a connection of its own.
    ///
    /// # Panics
    /// If there is no reply, or it is an error or something else than is wanted.
    pub fn command<T: FromRedisValue>(&self, parts: &[&str]) -> T {
        self.try_command(parts).unwrap_or_else(|error| panic!("{parts:?}: {error}"))
    }

    /// Runs one command on a connection of its own.
    ///
    /// # Errors
    /// What the server answered, or that it gave no answer.
    pub fn try_command<T: FromRedisValue>(&self, parts: &[&str]) -> RedisResult<T> {
        self.client()?.command(parts)
    }
}

/// Its clock.
impl RedisServer {
    /// Its wall clock is so many milliseconds from the true time, from now on.
    ///
    /// # Panics
    /// If it has none of its own.
    pub fn set_clock(&self, offset_ms: i64) {
        self.clock.as_ref().expect("it was started with a clock of its own").set(offset_ms);
    }
}

/// The process, and what it remembers.
impl RedisServer {
    /// Kills it: `SIGKILL`. Its port refuses connections until it is started again.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            // Also a process that is stopped dies of this. It fails only if it was waited for before.
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Starts it again after a [`kill`](Self::kill), with what it had saved.
    ///
    /// # Panics
    /// If it is running, or does not start.
    pub fn start_again(&mut self) {
        assert!(self.process.is_none(), "the server is running");
        self.begin();
    }

    /// Kills it and starts it with all its data.
    ///
    /// # Panics
    /// If it cannot save its data, or does not start.
    pub fn restart_with_data(&mut self) {
        self.command::<()>(&["SAVE"]);
        self.kill();
        self.begin();
    }

    /// Tells it to shut down, and starts it again: with all its data, if it was started to keep that.
    ///
    /// # Panics
    /// If it does not end, or does not start.
    pub fn restart(&mut self) {
        // It closes the connection instead of answering.
        let _ = self.try_command::<redis::Value>(&["SHUTDOWN"]);
        if let Some(mut process) = self.process.take() {
            eventually("the server has shut down", || process.try_wait().ok().flatten());
        }
        self.begin();
    }

    /// Kills it and starts it without any data.
    ///
    /// # Panics
    /// If it does not start.
    pub fn restart_empty(&mut self) {
        self.kill();
        empty(&self.data).expect("its folder can be emptied");
        self.begin();
    }

    /// Keeps a copy of what it holds now.
    ///
    /// # Panics
    /// If it cannot save its data.
    pub fn snapshot(&self) {
        self.command::<()>(&["SAVE"]);
        // It writes nothing meanwhile, if it is one that writes all the time.
        self.stop();
        let copied = replace(&self.data, &self.copy());
        self.cont();
        copied.expect("it has saved its data");
    }

    /// Kills it and starts it with what the last [`snapshot`](Self::snapshot) holds.
    ///
    /// # Panics
    /// If there is none, or it does not start.
    pub fn roll_back(&mut self) {
        self.kill();
        replace(&self.copy(), &self.data).expect("there is a snapshot");
        self.begin();
    }

    /// Stops it: `SIGSTOP`; returns when it stands still. The system goes on to accept connections for it.
    ///
    /// # Panics
    /// If it is not running.
    pub fn stop(&self) {
        stop(self.pid());
    }

    /// Continues it after a [`stop`](Self::stop).
    ///
    /// # Panics
    /// If it is not running.
    pub fn cont(&self) {
        kill_process(self.pid(), Signal::CONT).expect("it is a child that was not waited for");
    }

    fn pid(&self) -> Pid {
        Pid::from_child(self.process.as_ref().expect("the server is running"))
    }

    fn copy(&self) -> PathBuf {
        self.folder.path().join("snapshot")
    }

    /// Its process.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }
}

/// Removes what is in a folder.
fn empty(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { fs::remove_dir_all(&path)? } else { fs::remove_file(&path)? }
    }
    Ok(())
}

/// Copies what is in a folder to another one, and removes what was there.
fn replace(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    empty(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let copy = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            replace(&entry.path(), &copy)?;
        } else {
            fs::copy(entry.path(), copy)?;
        }
    }
    Ok(())
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The server's program. None, with the reason printed, where it is not installed.
pub(super) fn binary() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("redis-server")).find(|path| path.exists());
    installed(found, "redis-server", "redis-tools")
}

/// An empty value is one word, which is empty.
fn words(value: &str) -> Vec<&str> {
    if value.is_empty() { vec![""] } else { value.split_whitespace().collect() }
}
