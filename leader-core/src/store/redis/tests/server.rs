//! Redis servers of the tests: each of its own, on a free port of 127.0.0.1.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::super::connection::Reply;

const PROGRAM: &str = "redis-server";
/// A file with this name in its folder makes it a sentinel.
const SENTINEL: &str = "sentinel.conf";
/// More than any start takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server process; it ends when this is dropped.
pub(crate) struct Server {
    pub(crate) port: u16,
    process: Child,
    arguments: Vec<String>,
    folder: TempDir,
}

impl Server {
    /// Starts one with these arguments besides the usual ones. `None`: there is no such program, and the test has nothing
    /// to do.
    pub(crate) fn start(arguments: &[&str]) -> Option<Self> {
        Self::start_with(|_| arguments.iter().map(ToString::to_string).collect())
    }

    /// The same, where the arguments depend on the port. It listens there in plain text unless they say otherwise.
    pub(crate) fn start_with(arguments: impl Fn(u16) -> Vec<String>) -> Option<Self> {
        Self::start_in(|_| {}, arguments)
    }

    #[allow(clippy::print_stderr)]
    fn start_in(prepare: impl FnOnce(&TempDir), arguments: impl Fn(u16) -> Vec<String>) -> Option<Self> {
        if Command::new(PROGRAM).arg("--version").stdout(Stdio::null()).status().is_err() {
            assert!(std::env::var_os("CI").is_none(), "{PROGRAM} is missing: install the package redis-tools");
            eprintln!("skipped: {PROGRAM} is missing (install the package redis-tools)");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        prepare(&folder);
        loop {
            // Free now; somebody else may be faster, and then it is another one's turn.
            let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
            let arguments = arguments(port);
            if let Some(process) = launch(port, &arguments, &folder) {
                return Some(Self { port, process, arguments, folder });
            }
        }
    }

    /// A sentinel with these lines in its configuration, and arguments as above.
    #[cfg(feature = "redis-tls")]
    pub(crate) fn start_sentinel(lines: &str, arguments: impl Fn(u16) -> Vec<String>) -> Option<Self> {
        Self::start_in(|folder| std::fs::write(folder.path().join(SENTINEL), lines).unwrap(), arguments)
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Allows a user what a message advises, word for word, and nothing else.
    pub(crate) fn allow(&self, user: &str, message: &str) {
        let (_, advised) = message.split_once("ACL SETUSER <user> ").unwrap_or_else(|| panic!("{message}"));
        let command: Vec<&str> = ["ACL", "SETUSER", user].into_iter().chain(advised.split(' ')).collect();
        assert_eq!(self.ask(&command), Reply::Text("OK".to_owned()), "{message}");
    }

    /// As by the kernel: nothing is said to anybody.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// The same server again, without its data.
    pub(crate) fn restart(&mut self) {
        self.kill();
        // Nobody else is given this port as long as connections to it are being closed, or listens to it by chance.
        self.process = launch(self.port, &self.arguments, &self.folder).expect("the port of the server was taken");
    }

    /// It does nothing until it is resumed, while the system goes on receiving for it.
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Waits until every connection from before is through and closed.
    pub(crate) async fn wait_until_alone(&self) {
        let others = || match self.ask(&["CLIENT", "LIST"]) {
            Reply::Text(list) => list.lines().count() - 1,
            other => panic!("{other:?}"),
        };
        while others() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// One command on a connection of its own.
    pub(crate) fn ask(&self, command: &[&str]) -> Reply {
        self.ask_all(&[command]).pop().unwrap()
    }

    /// Some, in one go.
    pub(crate) fn ask_all(&self, commands: &[&[&str]]) -> Vec<Reply> {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let mut out = Vec::new();
        for command in commands {
            write!(out, "*{}\r\n", command.len()).unwrap();
            command.iter().for_each(|word| write!(out, "${}\r\n{word}\r\n", word.len()).unwrap());
        }
        socket.write_all(&out).unwrap();
        let mut answers = BufReader::new(socket);
        commands.iter().map(|_| read(&mut answers)).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have been killed by the test.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `None`: the port was taken.
fn launch(port: u16, arguments: &[String], folder: &TempDir) -> Option<Child> {
    let mut program = Command::new(PROGRAM);
    let config = folder.path().join(SENTINEL);
    if config.exists() {
        program.arg(config).arg("--sentinel");
    }
    let mut process = program
        .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no"])
        .args(["--port", &port.to_string(), "--dir"])
        .arg(folder.path())
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = BufReader::new(process.stdout.take().unwrap());
    let (said, says) = mpsc::channel();
    // It reads to the end: a server whose output nobody reads would stand still some day.
    std::thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            // The test may be content with what it has heard.
            let _ = said.send(line);
        }
    });
    let mut output = String::new();
    while let Ok(line) = says.recv_timeout(PATIENCE) {
        if line.contains("Ready to accept connections") || line.contains("Sentinel ID is") {
            return Some(process);
        }
        output.extend([&line, "\n"]);
    }
    let _ = process.kill();
    process.wait().unwrap();
    assert!(output.contains("Address already in use"), "{PROGRAM} did not start:\n{output}");
    None
}

fn read(from: &mut impl BufRead) -> Reply {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    let (kind, rest) = line.trim_end().split_at(1);
    match (kind, rest) {
        ("+" | "-", text) => Reply::Text(text.to_owned()),
        (":", number) => Reply::Integer(number.parse().unwrap()),
        ("$" | "*", "-1") => Reply::Nil,
        ("$", length) => {
            let mut text = vec![0; length.parse::<usize>().unwrap() + 2];
            from.read_exact(&mut text).unwrap();
            text.truncate(text.len() - 2);
            Reply::Text(String::from_utf8(text).unwrap())
        }
        ("*", length) => Reply::List((0..length.parse().unwrap()).map(|_| read(from)).collect()),
        _ => panic!("`{line}` is no reply"),
    }
}
