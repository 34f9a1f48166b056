//! The parent: starts the fleet, does to it what the plan says, and reports.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant, SystemTime};
use std::{fmt, fs, io};

use leader_core::BootInstant;
use leader_examples::history::{History, LogError};
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{Course, Options};
use crate::faults::{Fault, Step, stall, steps};
use crate::member::{Member, News};
use crate::message::Message;
use crate::plan;
use crate::report::{JOBS, Led, Report, Strike, Watched};
use crate::screen::Screen;
use crate::table;

/// The loop waits so long for news, then looks at the logs.
const PAUSE: Duration = Duration::from_millis(10);

/// Runs the fleet to its end. Whatever happens, no instance is left when this returns.
pub fn run(options: &Options, screen: &mut Screen) -> Result<Report, FleetError> {
    screen.print(&plan::text(options));
    let mut parent = Parent::new(options, screen)?;
    for _ in 0..options.instances {
        let member = parent.start_member()?;
        parent.members.push(member);
    }
    parent.wait_until_ready()?;
    parent.watch()?;
    parent.finish()
}

/// Why there is no report.
#[derive(Debug)]
pub enum FleetError {
    /// Ctrl-C, or SIGTERM.
    Interrupted,
    /// Something else, in words.
    Failed(String),
}

struct Parent<'a> {
    options: &'a Options,
    screen: &'a mut Screen,
    /// First to be dropped: nobody writes into a folder that is gone.
    members: Vec<Member>,
    started: usize,
    store: String,
    /// The store as the instances name it, without a password.
    address: String,
    logs: PathBuf,
    _folder: TempDir,
    sender: Sender<News>,
    news: Receiver<News>,
    history: History,
    /// The end of the newest view of each acquisition, as its leader told it.
    deadlines: BTreeMap<(String, u64), u64>,
    announced: BTreeMap<&'static str, u64>,
    steps: VecDeque<Step>,
    strikes: Vec<Strike>,
    /// Who is stopped, and until when.
    stalled: Option<(String, Instant)>,
    /// When the next fault of a round comes.
    rested: Option<Instant>,
    ready: Instant,
    last_whole: Instant,
    watched: Watched,
}

impl<'a> Parent<'a> {
    fn new(options: &'a Options, screen: &'a mut Screen) -> Result<Self, FleetError> {
        let folder = TempDir::with_prefix("leader-fleet-")?;
        let logs = match &options.log {
            Some(logs) => fresh_folder(logs)?,
            None => folder.path().to_owned(),
        };
        let store = match &options.store {
            Some(url) => url.clone(),
            None => format!("sqlite://{}", folder.path().join("leader.db").display()),
        };
        let (sender, news) = mpsc::channel();
        listen_for_signals(sender.clone())?;
        let now = Instant::now();
        Ok(Self {
            options,
            screen,
            members: Vec::new(),
            started: 0,
            store,
            address: String::new(),
            logs,
            _folder: folder,
            sender,
            news,
            history: History::default(),
            deadlines: BTreeMap::new(),
            announced: BTreeMap::new(),
            steps: steps(options),
            strikes: Vec::new(),
            stalled: None,
            rested: None,
            ready: now,
            last_whole: now,
            watched: Watched {
                ttl_ms: i64::try_from(options.ttl.as_millis()).unwrap_or(i64::MAX),
                ..Watched::default()
            },
        })
    }

    fn start_member(&mut self) -> Result<Member, FleetError> {
        self.started += 1;
        let started = Member::start(self.started, &self.store, self.options.ttl, &self.logs, &self.sender);
        started.map_err(|cause| FleetError::Failed(format!("starting instance {} failed: {cause}", self.started)))
    }

    fn wait_until_ready(&mut self) -> Result<(), FleetError> {
        while !self.is_whole() {
            self.turn()?;
        }
        self.ready = Instant::now();
        (self.watched.from_ns, self.watched.from_unix_ms) = (BootInstant::now().as_nanos(), unix_ms());
        self.screen.say("all instances are ready, and each group has its leader");
        Ok(())
    }

    fn watch(&mut self) -> Result<(), FleetError> {
        while !self.is_over() {
            self.turn()?;
            self.go_on()?;
        }
        (self.watched.to_ns, self.watched.to_unix_ms) = (BootInstant::now().as_nanos(), unix_ms());
        Ok(())
    }

    fn is_over(&self) -> bool {
        match self.options.course {
            Course::Timed { time, .. } => self.ready.elapsed() >= time,
            Course::Rounds(_) => self.steps.is_empty() && self.is_whole(),
        }
    }

    /// Ends all instances and reads what they still had to say.
    fn finish(mut self) -> Result<Report, FleetError> {
        self.screen.say("the time is over: all instances end");
        for member in &mut self.members {
            member.process.ask_to_end();
        }
        for member in &mut self.members {
            let status = member.process.end()?;
            member.read_log(&mut self.history)?;
            if !status.success() {
                self.screen.say(&surprise(member, status));
            }
        }
        self.screen.finish();
        for led in self.strikes.iter_mut().flat_map(|strike| &mut strike.led) {
            led.until_ns = self.deadlines.get(&(led.group.clone(), led.term)).copied();
        }
        let report = Report::new(&self.address, self.options.instances, self.watched, &self.strikes, &self.history);
        Ok(if matches!(self.options.course, Course::Rounds(_)) { report.summarize() } else { report })
    }

    /// Hears, reads and shows what there is.
    fn turn(&mut self) -> Result<(), FleetError> {
        let first = self.news.recv_timeout(PAUSE).ok();
        let all: Vec<News> = first.into_iter().chain(self.news.try_iter()).collect();
        for news in all {
            self.hear(news)?;
        }
        for member in &mut self.members {
            member.read_log(&mut self.history)?;
        }
        self.replace_ended()?;
        self.announce();
        if self.is_whole() {
            self.last_whole = Instant::now();
        } else if self.last_whole.elapsed() > Duration::from_secs(30) + self.options.ttl * 4 {
            let complaints: Vec<String> = self.members.iter().map(Member::complaints).collect();
            let waited = self.last_whole.elapsed().as_secs();
            return Err(FleetError::Failed(format!(
                "after {waited} s the fleet is still not complete, with a leader for each group\n{}",
                complaints.concat()
            )));
        }
        if self.screen.wants_table() {
            let (now_ns, groups) = (BootInstant::now().as_nanos(), JOBS.map(|job| job.group));
            let rows: Vec<_> = self.members.iter().map(|m| m.row(&groups, &self.history, now_ns)).collect();
            let width = self.screen.width();
            self.screen.show(table::render(&groups, &rows, width));
        }
        Ok(())
    }

    fn hear(&mut self, news: News) -> Result<(), FleetError> {
        let (name, message) = match news {
            News::Interrupted => return Err(FleetError::Interrupted),
            News::From(name, message) => (name, message),
        };
        match message {
            Message::Ready { instance, store } => {
                self.address = store;
                if let Some(member) = self.members.iter_mut().find(|member| member.name == name) {
                    member.id = Some(instance);
                }
            }
            Message::Warmed => {
                self.screen.say(&format!("{name} leads default as it starts, so it alone warms the caches"))
            }
            Message::Renewed { group, term, until_ns } => {
                self.deadlines.insert((group, term), until_ns);
            }
        }
        Ok(())
    }

    fn replace_ended(&mut self) -> Result<(), FleetError> {
        for n in 0..self.members.len() {
            let Some(status) = self.members[n].process.ended()? else { continue };
            self.members[n].read_log(&mut self.history)?;
            let ended = &self.members[n];
            if !ended.ending {
                return Err(FleetError::Failed(surprise(ended, status)));
            }
            let fresh = self.start_member()?;
            let news = format!("{} has ended ({status}); {} takes its place", self.members[n].name, fresh.name);
            self.screen.say(&news);
            self.members[n] = fresh;
        }
        Ok(())
    }

    /// Tells who leads, when it changes.
    fn announce(&mut self) {
        for group in JOBS.map(|job| job.group) {
            let Some(view) = self.history.newest_view(group) else { continue };
            // Its log may be read before the instance has said who it is: then in the next turn.
            let Some(leader) = self.members.iter().find(|m| m.id.as_ref() == Some(&view.instance)) else { continue };
            if self.announced.insert(group, view.term) == Some(view.term) {
                continue;
            }
            let strike = self.strikes.last().filter(|strike| strike.led.iter().any(|led| led.group == group));
            let since = strike.map(|strike| Duration::from_nanos(view.began_ns.saturating_sub(strike.signal_ns)));
            let since = since
                .map_or_else(String::new, |since| format!(", {:.1} ms after the signal", since.as_secs_f64() * 1e3));
            self.screen.say(&format!("{} leads {group} under term {}{since}", leader.name, view.term));
        }
    }

    /// All instances take part, and each group has its leader.
    fn is_whole(&self) -> bool {
        let now_ns = BootInstant::now().as_nanos();
        let is_led = |group| self.members.iter().any(|member| member.leads(group, &self.history, now_ns).is_some());
        self.members.iter().all(Member::takes_part) && JOBS.iter().all(|job| is_led(job.group))
    }

    /// Makes the next fault, if its time has come.
    fn go_on(&mut self) -> Result<(), FleetError> {
        if let Some((name, until)) = &self.stalled {
            if *until <= Instant::now() {
                self.screen.say(&format!("SIGCONT to {name}: it goes on, and must not believe that it still leads"));
                if let Some(member) = self.members.iter_mut().find(|member| member.name == *name) {
                    member.process.resume()?;
                }
                self.stalled = None;
            }
            return Ok(());
        }
        let Some(step) = self.steps.front().copied() else { return Ok(()) };
        if !self.is_whole() {
            self.rested = None;
            return Ok(());
        }
        let due = match step.at {
            Some(at) => self.ready + at,
            // At any moment between two renewals.
            None => {
                let pause = self.options.ttl.mul_f64(fastrand::f64() / 3.0);
                *self.rested.get_or_insert_with(|| Instant::now() + pause)
            }
        };
        if due <= Instant::now() {
            self.rested = None;
            self.steps.pop_front();
            self.strike(step.fault)?;
        }
        Ok(())
    }

    fn strike(&mut self, fault: Fault) -> Result<(), FleetError> {
        let now_ns = BootInstant::now().as_nanos();
        let leads = |member: &&mut Member| member.leads("default", &self.history, now_ns).is_some();
        let Some(victim) = self.members.iter_mut().find(leads) else { return Ok(()) };
        self.screen.say(&fault.words(&victim.name, self.options.ttl));
        let led = |group: &str| {
            let term = victim.leads(group, &self.history, now_ns)?;
            Some(Led { group: group.to_owned(), term, until_ns: None })
        };
        let led = JOBS.iter().filter_map(|job| led(job.group)).collect();
        let signal_ns = BootInstant::now().as_nanos();
        match fault {
            Fault::Kill => victim.process.kill()?,
            Fault::Drain => victim.process.terminate()?,
            Fault::Stall => {
                victim.process.stop()?;
                self.stalled = Some((victim.name.clone(), Instant::now() + stall(self.options.ttl)));
            }
        }
        victim.ending = fault != Fault::Stall;
        self.strikes.push(Strike { fault, signal_ns, led });
        Ok(())
    }
}

impl Drop for Parent<'_> {
    fn drop(&mut self) {
        self.screen.finish();
        // All at once; each is then waited for.
        for member in &mut self.members {
            member.process.ask_to_end();
        }
    }
}

/// Ctrl-C, SIGTERM and a terminal that is closed become news, so that nothing is ended half-way.
fn listen_for_signals(news: Sender<News>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let listen = async {
        let mut hangup = signal(SignalKind::hangup())?;
        tokio::select! {
            asked = leader_core::shutdown_signal() => asked,
            _ = hangup.recv() => Ok(()),
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if runtime.block_on(listen).is_ok() {
            let _ = news.send(News::Interrupted);
        }
    })?;
    Ok(())
}

fn fresh_folder(path: &Path) -> Result<PathBuf, FleetError> {
    fs::create_dir_all(path)?;
    if fs::read_dir(path)?.next().is_some() {
        let path = path.display();
        return Err(FleetError::Failed(format!(
            "--log {path} is not empty, and old logs would be taken for new ones; name another folder"
        )));
    }
    Ok(path.to_owned())
}

fn surprise(member: &Member, status: ExitStatus) -> String {
    format!("{} ended with {status}, unasked or not in good order\n{}", member.name, member.complaints())
}

fn unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

impl fmt::Display for FleetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("interrupted; all instances have ended"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl From<io::Error> for FleetError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<LogError> for FleetError {
    fn from(error: LogError) -> Self {
        Self::Failed(error.to_string())
    }
}
