//! The processes of a chaos: started, hurt, and gone with it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::log::{now_ns, read};
use crate::process::{Usage, is_writing, stop};

/// Several processes of one program, each with a log of its own. Dropping it ends them all.
#[derive(Debug)]
pub struct Crew {
    program: PathBuf,
    folder: PathBuf,
    living: BTreeMap<String, Child>,
    labels: Vec<String>,
}

/// Between two instants of the boot clock, in nanoseconds; whatever it was, it was not outside of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Between {
    /// At the earliest.
    pub from_ns: u64,
    /// At the latest.
    pub to_ns: u64,
}

impl Crew {
    /// Nobody yet. `program` is called with the word `member` and one JSON argument; `folder` is for the logs, and has none.
    ///
    /// # Errors
    /// If it has, or cannot be created.
    pub fn new(program: &Path, folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let is_log = |path: PathBuf| path.extension().is_some_and(|extension| extension == "jsonl");
        if std::fs::read_dir(folder)?.flatten().any(|entry| is_log(entry.path())) {
            return Err(io::Error::other(format!("there are logs in {}", folder.display())));
        }
        Ok(Self { program: program.into(), folder: folder.into(), living: BTreeMap::new(), labels: Vec::new() })
    }

    /// The log of a member.
    #[must_use]
    pub fn log(&self, label: &str) -> PathBuf {
        self.folder.join(format!("{label}.jsonl"))
    }

    /// What a member has logged so far.
    ///
    /// # Errors
    /// If that cannot be read.
    pub fn lines<T: DeserializeOwned>(&self, label: &str) -> io::Result<Vec<T>> {
        read(&self.log(label))
    }

    /// Starts one, and waits for nothing.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&mut self, label: &str, options: &impl Serialize) -> io::Result<()> {
        self.start_in(label, options, &[])
    }

    /// The same with this in its environment.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start_in(
        &mut self,
        label: &str,
        options: &impl Serialize,
        environment: &[(String, String)],
    ) -> io::Result<()> {
        let told = File::create(self.folder.join(format!("{label}.log")))?;
        let mut program = Command::new(&self.program);
        program.arg("member").arg(serde_json::to_string(options)?).env_remove("RUST_LOG");
        program.envs(environment.iter().map(|(name, value)| (name, value)));
        // Whoever stops us at the console stops them by us.
        program.process_group(0).stdin(Stdio::piped()).stderr(told.try_clone()?).stdout(told);
        self.living.insert(label.to_owned(), program.spawn()?);
        self.labels.push(label.to_owned());
        Ok(())
    }

    /// All that were started.
    #[must_use]
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// Those that were not ended here.
    #[must_use]
    pub fn living(&self) -> Vec<String> {
        self.living.keys().cloned().collect()
    }

    /// It was not ended here.
    #[must_use]
    pub fn is_living(&self, label: &str) -> bool {
        self.living.contains_key(label)
    }

    /// Kills one: `SIGKILL`; `None` if it was ended before. When it died.
    pub fn kill(&mut self, label: &str) -> Option<Between> {
        let mut child = self.living.remove(label)?;
        let from_ns = now_ns();
        end(&mut child);
        Some(Between { from_ns, to_ns: now_ns() })
    }

    /// Stops one, and returns when it stands still: whether it holds the writer's lock of an SQLite file, and so stops all
    /// writers. `None` if it has ended.
    pub fn stop(&mut self, label: &str) -> Option<bool> {
        let child = self.living.get_mut(label)?;
        if child.try_wait().ok()?.is_some() {
            return None;
        }
        stop(Pid::from_child(child));
        Some(is_writing(child.id()))
    }

    /// What one has in use. `None` if it has ended.
    #[must_use]
    pub fn usage(&self, label: &str) -> Option<Usage> {
        Usage::of(self.living.get(label)?.id())
    }

    /// Continues one.
    pub fn cont(&self, label: &str) {
        if let Some(child) = self.living.get(label) {
            // It may have ended.
            let _ = kill_process(Pid::from_child(child), Signal::CONT);
        }
    }

    /// Tells one to go on to what comes next.
    pub fn tell(&mut self, label: &str) {
        self.say(label, "");
    }

    /// Tells one something, as a line on its standard input.
    pub fn say(&mut self, label: &str, what: &str) {
        if let Some(input) = self.living.get_mut(label).and_then(|child| child.stdin.as_mut()) {
            // It may have ended.
            let _ = input.write_all(format!("{what}\n").as_bytes());
        }
    }

    /// Where logs are, and whatever else belongs to the members.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How one has ended, if it has. It is not living any more.
    pub fn ended(&mut self, label: &str) -> Option<ExitStatus> {
        let status = self.living.get_mut(label)?.try_wait().ok()??;
        self.living.remove(label);
        Some(status)
    }

    /// The last lines of what one has written beside its log.
    #[must_use]
    pub fn written(&self, label: &str) -> String {
        let text = std::fs::read_to_string(self.folder.join(format!("{label}.log"))).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(8)..].join("\n")
    }
}

fn end(child: &mut Child) {
    // Also a process that is stopped dies of this. It fails only if it was waited for before.
    let _ = child.kill();
    let _ = child.wait();
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.living.values_mut().for_each(end);
    }
}
