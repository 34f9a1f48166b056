//! A child process that never outlives its parent.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::cli::{self, InstanceOptions};
use crate::message::Message;

/// A child that does not end by itself is killed after so long.
const PATIENCE: Duration = Duration::from_secs(4);

pub struct Process {
    child: Child,
    pid: Pid,
    /// As long as it is open, the child knows that we live.
    stdin: Option<ChildStdin>,
    stopped: bool,
    ended: Option<ExitStatus>,
}

/// Everybody on the host can read the arguments of a process, and the store's URL may hold a password.
fn command(program: &Path, name: &str, options: &InstanceOptions) -> Command {
    let mut command = Command::new(program);
    command.arg(cli::INSTANCE).arg("--log").arg(&options.log);
    command.arg("--ttl").arg(humantime::format_duration(options.ttl).to_string().replace(' ', ""));
    command.env(cli::STORE, &options.store).env("LEADER_INSTANCE_ID", name);
    command
}

impl Process {
    /// Starts this very program as an instance called `name`. What it tells is handed to `hear`, on a thread of its own;
    /// what it complains of is written to `complaints`.
    pub fn start(
        name: &str,
        options: &InstanceOptions,
        complaints: &Path,
        hear: impl Fn(Message) + Send + 'static,
    ) -> io::Result<Self> {
        let mut command = command(&std::env::current_exe()?, name, options);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(complaints)?);
        // Ctrl-C is for us alone: we end the children in order.
        command.process_group(0);
        let mut child = command.spawn()?;
        let pid = Pid::from_child(&child);
        let stdin = child.stdin.take();
        let stdout = child.stdout.take();
        let process = Self { child, pid, stdin, stopped: false, ended: None };
        if let Some(stdout) = stdout {
            std::thread::Builder::new().name(format!("hear {name}")).spawn(move || {
                let lines = BufReader::new(stdout).lines().map_while(Result::ok);
                // A killed child may leave half a message behind.
                lines.filter_map(|line| serde_json::from_str(&line).ok()).for_each(hear);
            })?;
        }
        Ok(process)
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// It does not even notice.
    pub fn kill(&mut self) -> io::Result<()> {
        self.signal(Signal::KILL)
    }

    /// Its threads stand still from now on.
    pub fn stop(&mut self) -> io::Result<()> {
        self.stopped = true;
        self.signal(Signal::STOP)
    }

    /// It goes on as if nothing had happened.
    pub fn resume(&mut self) -> io::Result<()> {
        self.stopped = false;
        self.signal(Signal::CONT)
    }

    /// Asks it to end in good order.
    pub fn terminate(&mut self) -> io::Result<()> {
        self.signal(Signal::TERM)
    }

    /// As `terminate`, but also a stopped one hears it, and a hung one ends.
    pub fn ask_to_end(&mut self) {
        if self.stopped {
            // An error means that it has ended.
            let _ = self.resume();
        }
        self.stdin = None;
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait()?;
        }
        Ok(self.ended)
    }

    /// Waits for its end, and kills it if it takes too long.
    pub fn end(&mut self) -> io::Result<ExitStatus> {
        self.ask_to_end();
        let patience = Instant::now() + PATIENCE;
        while Instant::now() < patience {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.kill()?;
        let status = self.child.wait()?;
        self.ended = Some(status);
        Ok(status)
    }

    /// Its id is its own until we have waited for it, so no signal goes astray.
    fn signal(&mut self, signal: Signal) -> io::Result<()> {
        match self.ended()? {
            Some(_) => Ok(()),
            None => Ok(kill_process(self.pid, signal)?),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nobody is left to be told of an error.
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_argument_of_an_instance_shows_a_password() {
        let store = "redis://:secret@host".to_owned();
        let options = InstanceOptions { store, ttl: Duration::from_secs(3), log: "log".into() };
        let command = command(Path::new("fleet"), "fleet-1", &options);
        assert!(command.get_args().all(|argument| !argument.to_string_lossy().contains("secret")));
        assert!(command.get_envs().any(|(name, value)| name == cli::STORE && value == Some(options.store.as_ref())));
    }
}
