//! A network namespace without a name.

use std::io::{Read, Write};
use std::process::{Child, Command, Output, Stdio};

/// One namespace, and the process that holds it: `cat`, which ends when nobody can write to it any more.
#[derive(Debug)]
pub(super) struct Namespace(Child);

impl Namespace {
    /// A namespace in which there is nothing but an interface `lo`, which is down. The error is what the system says.
    pub(super) fn new() -> Result<Self, String> {
        let mut command = Command::new("unshare");
        command.args(["--net", "--", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut namespace = Self(command.spawn().map_err(|error| format!("unshare: {error}"))?);
        let Self(holder) = &mut namespace;
        let (Some(stdin), Some(stdout), Some(stderr)) = (&mut holder.stdin, &mut holder.stdout, &mut holder.stderr)
        else {
            unreachable!("all of them are pipes");
        };
        // It answers: it runs, and inside.
        let answers = stdin.write_all(b"\n").is_ok() && stdout.read_exact(&mut [0]).is_ok();
        if !answers {
            let mut text = String::new();
            // What could not be read is missing in the reason, and nothing else.
            let _ = stderr.read_to_string(&mut text);
            return Err(text.trim().to_owned());
        }
        Ok(namespace)
    }

    /// What its system calls it: the id of the process that holds it.
    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    /// A program that is started by these words becomes one that runs inside.
    pub(super) fn entry(&self) -> Vec<String> {
        ["nsenter", &format!("--net=/proc/{}/ns/net", self.id()), "--"].map(ToOwned::to_owned).into()
    }

    /// Has a tool inside do what `lines` say. The error is what it says.
    pub(super) fn tell(&self, tool: &[&str], lines: &str) -> Result<Output, String> {
        let entry = self.entry();
        let mut command = Command::new(&entry[0]);
        command.args(&entry[1..]).args(tool).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let done = command.spawn().and_then(|mut process| {
            if let Some(mut stdin) = process.stdin.take() {
                // Of a tool that has ended already its own error is more telling.
                let _ = stdin.write_all(lines.as_bytes());
            }
            process.wait_with_output()
        });
        match done {
            Ok(done) if done.status.success() => Ok(done),
            Ok(done) => Err(format!("{}: {}", tool[0], String::from_utf8_lossy(&done.stderr).trim())),
            Err(error) => Err(format!("{}: {error}", tool[0])),
        }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // What runs inside keeps it until it has ended, too.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
