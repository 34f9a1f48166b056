//! One instance as its parent sees it: the process, and what its log has told so far.

use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::time::Duration;
use std::{fs, io};

use leader_examples::history::{History, Line, LogError, Tail};

use crate::cli::InstanceOptions;
use crate::message::Message;
use crate::process::Process;
use crate::table::{Row, State};

/// A view whose newest sign is older is not taken for the present.
const FRESH: Duration = Duration::from_millis(300);

pub struct Member {
    pub name: String,
    pub process: Process,
    /// Its id in the store; `None` until its first round is over.
    pub id: Option<String>,
    /// Its parent makes it end: then its end is no surprise.
    pub ending: bool,
    log: Tail,
    complaints: PathBuf,
    ran: usize,
    last_tick: Option<i64>,
}

/// What the parent's one loop waits for.
#[derive(Debug)]
pub enum News {
    /// The instance of this name says something.
    From(String, Message),
    /// We were asked to end.
    Interrupted,
}

impl Member {
    /// Starts the `number`th instance of the fleet, which logs into `folder`.
    pub fn start(number: usize, store: &str, ttl: Duration, folder: &Path, news: &Sender<News>) -> io::Result<Self> {
        let name = format!("fleet-{number}");
        let log = folder.join(format!("{name}.jsonl"));
        let complaints = folder.join(format!("{name}.stderr"));
        let options = InstanceOptions { store: store.to_owned(), ttl, log: log.clone() };
        let (news, sender) = (news.clone(), name.clone());
        let hear = move |message| {
            // The parent does not listen any more once it ends.
            let _ = news.send(News::From(sender.clone(), message));
        };
        let process = Process::start(&name, &options, &complaints, hear)?;
        let log = Tail::new(log);
        Ok(Self { name, process, id: None, ending: false, log, complaints, ran: 0, last_tick: None })
    }

    /// Adds what its log has gained to the history of all.
    pub fn read_log(&mut self, history: &mut History) -> Result<(), LogError> {
        for line in self.log.read()? {
            if let Line::Run(run) = &line {
                self.ran += 1;
                self.last_tick = self.last_tick.max(Some(run.tick));
            }
            history.add(line);
        }
        Ok(())
    }

    /// The term under which it leads `group` at `now_ns`, as far as its log tells.
    pub fn leads(&self, group: &str, history: &History, now_ns: u64) -> Option<u64> {
        let view = history.newest_view(group)?;
        let fresh = view.ended_ns + FRESH.as_nanos() as u64 >= now_ns;
        (fresh && Some(&view.instance) == self.id.as_ref()).then_some(view.term)
    }

    /// Whether it takes part in the elections: ready, and neither stopped nor ending.
    pub fn takes_part(&self) -> bool {
        self.state() == State::Running
    }

    pub fn row(&self, groups: &[&str], history: &History, now_ns: u64) -> Row {
        let terms = groups.iter().map(|group| self.leads(group, history, now_ns)).collect();
        Row { name: self.name.clone(), state: self.state(), terms, ran: self.ran, last_tick: self.last_tick }
    }

    /// The end of what it wrote to standard error.
    pub fn complaints(&self) -> String {
        let text = fs::read_to_string(&self.complaints).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(10)..].join("\n")
    }

    fn state(&self) -> State {
        match (&self.id, self.process.is_stopped(), self.ending) {
            (_, true, _) => State::Stopped,
            (_, _, true) => State::Ending,
            (None, ..) => State::Starting,
            (Some(_), ..) => State::Running,
        }
    }
}
