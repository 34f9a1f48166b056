//! The script of the ledger and the rules side by side: whatever happens, they answer the same and leave the same behind.

mod chance;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use leader_core::store::{HistoryEntry, JobName, TickCommand, TickOp, TickReply};
use leader_core::testing::ledger::{Decision, FIELDS, Record, Seen, Texts, decide, entry, line};
use leader_core::testing::redis_script::{self, TickFlaw, job_keys};
use leader_core::{Candidate, GroupName, Incarnation, InstanceId, Term};

use super::server::{Keys, Reply, Server};
use super::{Interpreter, PREFIX, lease_key, record_key};
use crate::sim::rng::Rng;

/// How many groups there are, how many jobs in each, and how many who ask.
const GROUPS: usize = 2;
const JOBS: usize = 2;
const CANDIDATES: usize = 3;
/// How long a course is.
const STEPS: usize = 250;

/// What the rules are about: all that a server holds of the ledger.
#[derive(Clone, Default)]
struct Data {
    jobs: BTreeMap<(usize, usize), Texts>,
    histories: BTreeMap<(usize, usize), Vec<String>>,
    groups: [Group; GROUPS],
}

/// What leases leave behind.
#[derive(Clone, Default)]
struct Group {
    lease: Option<usize>,
    /// The last acquisition.
    last: Option<(usize, Term)>,
    /// The server's name, as the leases' script noted it.
    server: Option<String>,
    /// Since which second which server is known.
    lost: Option<(i64, String)>,
}

struct Pair {
    script: Interpreter,
    data: Data,
    snapshot: (Keys, Data),
    groups: [GroupName; GROUPS],
    jobs: [JobName; JOBS],
    identity: u32,
    hidden: bool,
    now_us: u64,
    rng: Rng,
    answers: BTreeMap<&'static str, u64>,
}

/// Looks for a difference in the courses of these seeds; the script may have a flaw that the rules have not. Returns the first
/// one found, told, and how often each kind of answer came up to there.
///
/// # Panics
/// If the script fails.
#[must_use]
pub fn first_difference(seeds: Range<u64>, flaw: Option<TickFlaw>) -> (Option<String>, BTreeMap<&'static str, u64>) {
    let text = redis_script::TICK_TEXT;
    let script = flaw.map_or_else(|| text.to_owned(), |flaw| flaw.in_script(text));
    let mut answers = BTreeMap::new();
    for seed in seeds {
        let mut pair = Pair::new(seed, &script, std::mem::take(&mut answers));
        let difference = (0..STEPS).find_map(|step| Some((step, pair.step().err()?)));
        answers = pair.answers;
        if let Some((step, difference)) = difference {
            return (Some(format!("seed {seed}, step {step}:\n{difference}")), answers);
        }
    }
    (None, answers)
}

fn candidate(who: usize) -> Candidate {
    let id = InstanceId::new(format!("i:{who}")).expect("a valid id");
    Candidate { id, incarnation: Incarnation::from_u128(7 + who as u128) }
}

fn server_name(identity: u32) -> String {
    format!("{identity:040x}:{:040x}", !u64::from(identity))
}

impl Pair {
    fn new(seed: u64, script: &str, answers: BTreeMap<&'static str, u64>) -> Self {
        let now_us = 1_700_000_000_000_000;
        let mut server = Server::new(0);
        server.now = now_us;
        Self {
            script: Interpreter::new(script, server),
            data: Data::default(),
            snapshot: Default::default(),
            groups: std::array::from_fn(|i| GroupName::new(format!("g{i}")).expect("a valid name")),
            jobs: std::array::from_fn(|i| JobName::new(format!("j{i}")).expect("a valid name")),
            identity: 1,
            hidden: false,
            now_us,
            rng: Rng::new(seed),
            answers,
        }
    }

    fn now(&self) -> i64 {
        (self.now_us / 1_000_000) as i64
    }

    /// What the server is called in a group, as far as anybody can tell.
    fn name(&self, group: usize) -> String {
        if !self.hidden {
            return server_name(self.identity);
        }
        self.data.groups[group].server.clone().unwrap_or_else(|| "-".to_owned())
    }

    fn step(&mut self) -> Result<(), String> {
        match self.rng.index(100) {
            0..60 => {
                let commands: Vec<_> = (0..1 + self.rng.index(3)).map(|_| self.command()).collect();
                return self.ask(&commands);
            }
            60..80 => self.now_us += self.rng.between(0, 3_000_000) as u64,
            80..88 | 89 => self.elect(),
            88 => {
                let group = self.rng.index(GROUPS);
                self.data.groups[group].lease = None;
                self.operate(&["DEL", &lease_key(&self.groups[group])]);
            }
            90 => self.snapshot = (self.script.server().keys.clone(), self.data.clone()),
            91 => {
                (self.script.server().keys, self.data) = self.snapshot.clone();
                self.identity += 1;
            }
            92 => self.identity += 1,
            93 => {
                self.script.server().keys = Keys::default();
                self.data = Data::default();
            }
            94 => {
                self.hidden = !self.hidden;
                self.script.server().troubles.denied = if self.hidden { vec!["INFO"] } else { Vec::new() };
            }
            95 => {
                let full = self.rng.chance(0.5);
                self.script.server().troubles.full = full;
            }
            96 => self.now_us = self.now_us.saturating_add_signed(self.rng.between(-30_000_000, 30_000_000)),
            97..99 => {
                let key = (self.rng.index(GROUPS), self.rng.index(JOBS));
                let [record, _] = job_keys(&self.groups[key.0], &self.jobs[key.1], PREFIX);
                self.data.jobs.remove(&key);
                self.operate(&["DEL", &record]);
            }
            _ => self.meddle(),
        }
        let (identity, now) = (self.identity, self.now_us);
        let mut server = self.script.server();
        (server.identity, server.now) = (identity, now);
        Ok(())
    }

    /// A command of somebody else, for whom there is always room.
    fn operate(&self, arguments: &[&str]) -> Reply {
        let arguments: Vec<_> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let mut server = self.script.server();
        let full = std::mem::take(&mut server.troubles.full);
        server.begin();
        let reply = server.call(&arguments);
        server.troubles.full = full;
        reply
    }

    /// Somebody gets a lease, as the leases' script writes it down.
    fn elect(&mut self) {
        let (group, who) = (self.rng.index(GROUPS), self.rng.index(CANDIDATES));
        let (name, now) = (self.name(group), self.now());
        let data = &mut self.data.groups[group];
        let term = Term::new(data.last.map_or(1_000, |(_, term)| term.get()) + 1);
        (data.lease, data.last) = (Some(who), Some((who, term)));
        // A version without a ledger does not write the last one.
        if data.server.as_ref() != Some(&name) && self.rng.chance(0.8) {
            data.lost = Some((now, name.clone()));
        }
        data.server = Some(name.clone());
        let lost = data.lost.as_ref().map(|(second, of)| format!("{second} {of}")).unwrap_or_default();
        let Candidate { id, incarnation } = candidate(who);
        let (term, incarnation) = (term.to_string(), incarnation.to_string());
        self.operate(&["SET", &lease_key(&self.groups[group]), id.as_str()]);
        let fields = ["term", &term, "incarnation", &incarnation, "server", &name, "lost", &lost];
        self.operate(&[&["HSET", &record_key(&self.groups[group])], &fields[..]].concat());
    }

    /// Somebody else writes into a record.
    fn meddle(&mut self) {
        let key = (self.rng.index(GROUPS), self.rng.index(JOBS));
        let Some(texts) = self.data.jobs.get_mut(&key) else { return };
        let place = self.rng.index(FIELDS.len());
        let values = ["", "x", "12", "12:", "1:2", "0:1,5:4294967296", "253402300800", "12 a", "ff", "1:2:3:4:5:6:7"];
        values[self.rng.index(values.len())].clone_into(&mut texts[place]);
        let value = texts[place].clone();
        let [record, _] = job_keys(&self.groups[key.0], &self.jobs[key.1], PREFIX);
        self.operate(&["HSET", &record, FIELDS[place], &value]);
    }

    fn ask(&mut self, commands: &[TickCommand]) -> Result<(), String> {
        self.script.server().now = self.now_us;
        let arguments = redis_script::tick_arguments(commands, PREFIX);
        let reply = self.script.eval(arguments).unwrap_or_else(|error| panic!("{commands:?}: {error}"));
        let answers = redis_script::tick_answers(reply, commands.len());
        for (command, answer) in commands.iter().zip(answers) {
            let before = self.before(command);
            let expected = self.decide(command);
            *self.answers.entry(kind(&expected)).or_default() += 1;
            let answer = answer.map(|answer| (answer.now_us, answer.reply));
            if answer.as_ref() != Ok(&(self.now_us, expected.clone())) {
                return Err(format!("{before}{command:?}\n  rules:  {expected:?}\n  script: {answer:?}"));
            }
        }
        self.compare().map_err(|difference| format!("{commands:?}\n{difference}"))
    }

    fn before(&self, command: &TickCommand) -> String {
        let (group, job) = self.place(command);
        format!("at {} in {}: {:?}\n", self.now_us, self.name(group), self.data.jobs.get(&(group, job)))
    }

    fn place(&self, command: &TickCommand) -> (usize, usize) {
        let group = self.groups.iter().position(|group| *group == command.group).expect("one of them");
        (group, self.jobs.iter().position(|job| *job == command.job).expect("one of them"))
    }

    /// What the rules say.
    fn decide(&mut self, command: &TickCommand) -> TickReply {
        let key = self.place(command);
        if let TickOp::History { limit } = command.op {
            let lines = self.data.histories.get(&key).map_or(&[][..], Vec::as_slice);
            let told = &lines[lines.len().saturating_sub(limit as usize)..];
            return TickReply::History(told.iter().filter_map(|line| entry(line)).collect());
        }
        let read = |data: &Data, key| match data.jobs.get(&key) {
            None => Ok(None),
            Some(texts) => Record::of_texts(Texts::each_ref(texts).map(String::as_str)),
        };
        let old = match &command.op {
            TickOp::Claim(claim) => claim.renamed_from.as_ref().filter(|old| **old != command.job),
            _ => None,
        };
        let old = old.map(|old| (key.0, self.jobs.iter().position(|job| job == old).expect("one of them")));
        let other_last = match old.and_then(|old| self.data.jobs.get(&old)).map_or("", |texts| texts[1].as_str()) {
            "" => Ok(None),
            text => match text.parse() {
                Ok(last @ 0..=TickOp::LATEST) => Ok(Some(last)),
                _ => Err("last"),
            },
        };
        let (name, group) = (self.name(key.0), &self.data.groups[key.0]);
        let leader = group.lease.zip(group.last).filter(|(holder, (last, _))| holder == last);
        let leader = leader.map(|(_, (who, term))| (candidate(who), term));
        let record = read(&self.data, key);
        let end = record.iter().flatten().find_map(|record| record.open.as_ref()).map_or(0, |run| run.slot_end_us);
        let seen = Seen {
            record,
            left: Duration::from_micros(end.saturating_sub(self.now_us)),
            lease: leader.as_ref().map(|(who, term)| (who, *term)),
            now_us: self.now_us,
            identity: &name,
            lost: group.lost.as_ref().filter(|(_, of)| *of == name).map(|(second, _)| *second),
            other_last,
        };
        let Decision { reply, change } = decide(seen, command);
        if let Some(record) = change.record {
            self.data.jobs.insert(key, record.texts());
        }
        if let Some((last, old)) = change.other_last.zip(old) {
            self.data.jobs.entry(old).or_default()[1] = last.to_string();
        }
        if let Some(second) = change.lost {
            self.data.groups[key.0].lost = Some((second, name));
        }
        let history = self.data.histories.entry(key).or_default();
        history.extend(change.notes.into_iter().map(|event| line(&HistoryEntry { at_us: self.now_us, event })));
        history.drain(..history.len().saturating_sub(TickOp::HISTORY as usize));
        reply
    }

    /// What is left behind.
    fn compare(&self) -> Result<(), String> {
        let texts = |reply| match reply {
            Reply::List(parts) => parts
                .into_iter()
                .map(|part| match part {
                    Reply::Nil => String::new(),
                    Reply::Text(text) => text,
                    other => panic!("{other:?}"),
                })
                .collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        for (group, name) in self.groups.iter().enumerate() {
            let lost = texts(self.operate(&["HMGET", &record_key(name), "lost"])).remove(0);
            let expected = self.data.groups[group].lost.as_ref();
            let expected = expected.map(|(second, of)| format!("{second} {of}")).unwrap_or_default();
            if lost != expected {
                return Err(format!("lost memory of {name}\n  rules:  {expected}\n  script: {lost}"));
            }
            for (job, job_name) in self.jobs.iter().enumerate() {
                let [record, runs] = job_keys(name, job_name, PREFIX);
                let fields = texts(self.operate(&[&["HMGET", &record], &FIELDS[..]].concat()));
                let expected = self.data.jobs.get(&(group, job)).cloned().unwrap_or_default();
                if fields != expected {
                    return Err(format!("{job_name} of {name}\n  rules:  {expected:?}\n  script: {fields:?}"));
                }
                let history = texts(self.operate(&["LRANGE", &runs, "0", "-1"]));
                let expected = self.data.histories.get(&(group, job)).cloned().unwrap_or_default();
                if history != expected {
                    return Err(format!("history of {job_name}\n  rules:  {expected:?}\n  script: {history:?}"));
                }
            }
        }
        Ok(())
    }
}

/// The kind of an answer.
fn kind(reply: &TickReply) -> &'static str {
    match reply {
        TickReply::Registered(_) => "registered",
        TickReply::Loaded(_) => "loaded",
        TickReply::Unknown => "unknown",
        TickReply::Corrupt { .. } => "corrupt",
        TickReply::Late => "late",
        TickReply::Fenced => "fenced",
        TickReply::Done => "done",
        TickReply::Run { attempt: 1, .. } => "run",
        TickReply::Run { .. } => "run again",
        TickReply::Paused(_) => "paused",
        TickReply::Busy { .. } => "busy",
        TickReply::Take { .. } => "take",
        TickReply::Over { .. } => "over",
        TickReply::Moved { .. } => "moved",
        TickReply::Already { .. } => "already",
        TickReply::Early { .. } => "early",
        TickReply::Kept => "kept",
        TickReply::Gone => "gone",
        TickReply::Ended => "ended",
        TickReply::Other => "other",
        TickReply::Returned => "returned",
        TickReply::Superseded { .. } => "superseded",
        TickReply::NotOpen => "not open",
        TickReply::Changed => "changed",
        TickReply::Noted => "noted",
        TickReply::History(_) => "history",
        _ => "another",
    }
}
