//! Starting and hurting nodes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command as Program, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use leader_examples::history::{History, Tail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::locks::is_writing;
use super::signals;
use super::talk::{Command, Options, Told};
use super::usage::Usage;

/// Several nodes on one store. Dropping it ends them all and removes their files.
#[derive(Debug)]
pub struct Fleet {
    program: PathBuf,
    folder: tempfile::TempDir,
    store: String,
    pub(super) nodes: BTreeMap<String, Node>,
    pub(super) told: Vec<(String, Told)>,
    pub(super) inbox: Receiver<(String, Told)>,
    outbox: Sender<(String, Told)>,
    pub(super) tails: Vec<Tail>,
    pub(super) history: History,
}

#[derive(Debug)]
pub(super) struct Node {
    child: Child,
    stdin: ChildStdin,
    /// Kept, and not read, if the node's log is to be blocked.
    stdout: Option<ChildStdout>,
    answers: usize,
}

/// How a node is to be started.
#[derive(Debug, Clone)]
pub struct Spawn {
    /// What it is told.
    pub options: Options,
    /// Added to its environment.
    pub environment: Vec<(String, String)>,
    /// The words that come before the program, and start it: elsewhere, but as the same process.
    pub entry: Vec<String>,
    /// Nobody reads its standard output.
    pub blocked_stdout: bool,
}

impl Fleet {
    /// A fleet of the `program`, on the store that `url` means.
    ///
    /// # Panics
    /// If no temporary folder can be created.
    #[must_use]
    pub fn on_store(program: &str, url: &str) -> Self {
        Self::in_folder(program, tempfile::tempdir().expect("temporary folders can be created"), url.to_owned())
    }

    /// A fleet of the `program`, on a fresh SQLite file.
    ///
    /// # Panics
    /// If no temporary folder can be created.
    #[must_use]
    pub fn new(program: &str) -> Self {
        let folder = tempfile::tempdir().expect("temporary folders can be created");
        let url = sqlite(&folder.path().join("leader.db"));
        Self::in_folder(program, folder, url)
    }

    /// A fleet on the SQLite file `database`, which is somewhere else than its logs.
    ///
    /// # Panics
    /// If no temporary folder can be created.
    #[must_use]
    pub fn on(program: &str, database: &Path) -> Self {
        Self::on_store(program, &sqlite(database))
    }

    fn in_folder(program: &str, folder: tempfile::TempDir, store: String) -> Self {
        let (outbox, inbox) = channel();
        Self {
            program: program.into(),
            store,
            folder,
            nodes: BTreeMap::new(),
            told: Vec::new(),
            inbox,
            outbox,
            tails: Vec::new(),
            history: History::default(),
        }
    }

    /// Where the logs are, and whatever else the test puts there.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// How a node of this fleet is started: with this ttl, one group, and an id made from its label.
    #[must_use]
    pub fn plan(&self, label: &str, ttl: Duration) -> Spawn {
        Spawn {
            options: Options {
                label: label.to_owned(),
                store: self.store.clone(),
                stable_id: None,
                groups: Vec::new(),
                ttl,
                heartbeat: None,
                retry: None,
                // Half a ttl: a busy machine is no failed renewal.
                operation_timeout: Some(ttl / 2),
                reclaim_after_deadline: false,
                hold_until_deadline: false,
                trust_fresh_store: false,
                replicas: 0,
                known_bad: None,
                script_flaw: None,
                jobs: Vec::new(),
                log: self.folder().join(format!("{label}.jsonl")),
            },
            environment: vec![("LEADER_INSTANCE_ID".to_owned(), label.to_owned())],
            entry: Vec::new(),
            blocked_stdout: false,
        }
    }

    /// Starts a node and waits until it takes part.
    ///
    /// # Panics
    /// If it does not.
    pub fn start(&mut self, plan: &Spawn) {
        self.spawn(plan);
        self.hears(&plan.options.label, "that it has started", |t| matches!(t, Told::Started { .. }));
    }

    /// Starts a node and waits for nothing.
    ///
    /// # Panics
    /// If there is no such program, or its label is in use.
    pub fn spawn(&mut self, plan: &Spawn) {
        let label = plan.options.label.clone();
        assert!(!self.nodes.contains_key(&label), "{label} is running");
        let options = serde_json::to_string(&plan.options).expect("options can be written as JSON");
        let mut words: Vec<_> = plan.entry.iter().map(PathBuf::from).collect();
        words.push(self.program.clone());
        let mut program = Program::new(&words[0]);
        program
            .args(&words[1..])
            .arg(options)
            .envs(plan.environment.iter().cloned())
            .stdin(Stdio::piped())
            .stderr(Stdio::piped());
        if plan.blocked_stdout {
            program.stdout(Stdio::piped());
        } else {
            let log = File::create(self.output(&label)).expect("the folder can be written");
            program.stdout(log);
        }
        let mut child = program.spawn().unwrap_or_else(|error| panic!("{:?} cannot be started: {error}", self.program));
        let stdin = child.stdin.take().expect("it is a pipe");
        let stderr = child.stderr.take().expect("it is a pipe");
        let (outbox, teller) = (self.outbox.clone(), label.clone());
        // Ends when the process does, which the fleet sees to.
        thread::spawn(move || {
            for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                let told = serde_json::from_str(&line).unwrap_or(Told::Noise { line });
                // The fleet may have gone.
                let _ = outbox.send((teller.clone(), told));
            }
            let _ = outbox.send((teller, Told::Gone));
        });
        self.tails.push(Tail::new(plan.options.log.clone()));
        let stdout = child.stdout.take();
        self.nodes.insert(label, Node { child, stdin, stdout, answers: 0 });
    }

    fn output(&self, label: &str) -> PathBuf {
        self.folder().join(format!("{label}.log"))
    }

    /// What a node has written on its standard output, if that is not blocked.
    #[must_use]
    pub fn written(&self, label: &str) -> String {
        std::fs::read_to_string(self.output(label)).unwrap_or_default()
    }

    /// The pipe that a node writes to and nobody reads.
    ///
    /// # Panics
    /// If it was not started like that.
    #[must_use]
    pub fn blocked_stdout(&self, label: &str) -> &ChildStdout {
        self.nodes[label].stdout.as_ref().expect("it was started with a blocked output")
    }

    /// The labels of the nodes that were not ended.
    #[must_use]
    pub fn labels(&self) -> Vec<String> {
        self.nodes.keys().cloned().collect()
    }

    /// Tells a node to do something, and waits for nothing.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn tell(&mut self, label: &str, command: &Command) {
        let node = self.nodes.get_mut(label).unwrap_or_else(|| panic!("{label} is not running"));
        let mut line = serde_json::to_string(command).expect("commands can be written as JSON");
        line.push('\n');
        node.answers += 1;
        // It may have died of itself; then there will be no answer.
        let _ = node.stdin.write_all(line.as_bytes());
    }

    /// Tells a node to do something, and waits for the answer.
    ///
    /// # Panics
    /// If there is no answer.
    pub fn ask(&mut self, label: &str, command: &Command) -> Result<Value, String> {
        self.tell(label, command);
        let number = self.nodes[label].answers;
        self.until(&format!("{label} answers {command:?}"), |fleet| {
            let mut answers = fleet.told_by(label).filter_map(|told| match told {
                Told::Answer { outcome } => Some(outcome.clone()),
                _ => None,
            });
            answers.nth(number - 1)
        })
    }

    /// A node's status.
    ///
    /// # Panics
    /// If it gives none.
    pub fn status(&mut self, label: &str) -> Value {
        self.ask(label, &Command::Status).expect("a status is always given")
    }

    /// The problems in a node's status.
    pub fn problems(&mut self, label: &str) -> String {
        self.status(label)["problems"].to_string()
    }

    /// Kills a node: `SIGKILL`.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn kill(&mut self, label: &str) {
        let mut node = self.nodes.remove(label).unwrap_or_else(|| panic!("{label} is not running"));
        node.end();
    }

    /// Stops a node, and returns when it stands still. On SQLite not inside a transaction, which would stop all writers of
    /// the file; another store's node has no lock of the kind.
    ///
    /// # Panics
    /// If it cannot be stopped.
    pub fn stop(&mut self, label: &str) {
        let pid = self.pid(label);
        self.until(&format!("{label} is stopped outside of a transaction"), |_| {
            signals::stop(pid);
            if !is_writing(pid.as_raw_nonzero().get().unsigned_abs()) {
                return Some(());
            }
            kill_process(pid, Signal::CONT).expect("it is a child that was not waited for");
            None
        });
    }

    /// Sends a node a signal, wherever it is.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn signal(&self, label: &str, signal: Signal) {
        kill_process(self.pid(label), signal).expect("it is a child that was not waited for");
    }

    /// Continues a node that was stopped.
    pub fn cont(&self, label: &str) {
        self.signal(label, Signal::CONT);
    }

    /// What a node has in use. None where the system does not tell.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn usage(&self, label: &str) -> Option<Usage> {
        Usage::of(self.pid(label).as_raw_nonzero().get().unsigned_abs())
    }

    fn pid(&self, label: &str) -> Pid {
        let node = self.nodes.get(label).unwrap_or_else(|| panic!("{label} is not running"));
        Pid::from_child(&node.child)
    }
}

fn sqlite(database: &Path) -> String {
    format!("sqlite://{}", database.display())
}

impl Node {
    fn end(&mut self) {
        // Also a process that is stopped dies of this. It fails only if it was waited for before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.nodes.values_mut().for_each(Node::end);
    }
}
