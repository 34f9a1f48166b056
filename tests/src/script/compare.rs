//! The script and the model side by side: whatever happens, they answer the same.

use std::fmt;
use std::time::Duration;

use leader_core::store::{Answer, Command, Op, SameId};
use leader_core::testing::redis_script::Flaw;
use leader_core::{Candidate, GroupName, Incarnation, InstanceId, Term};

use super::course::{Ask, CANDIDATES, Course, GROUPS, Memory, Step, What, Which};
use super::server::{Keys, Server};
use super::{ScriptStore, lease_key, record_key};
use crate::sim::store::{Data, Store};

/// The model's name for a server that does not tell who it is.
const HIDDEN: u32 = u32::MAX;

/// Where the two part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// At which step of the course.
    pub step: usize,
    /// In what.
    pub what: String,
}

/// Goes through a course with both, up to the first difference. Returns it, and the number of commands up to there.
///
/// The server's keys end as early as the model's: one millisecond before they do in Redis.
#[must_use]
pub fn compare(course: &Course, flaw: Option<Flaw>) -> (Option<Difference>, u64) {
    let mut pair = Pair::new(course, flaw);
    for (step, what) in course.steps.iter().enumerate() {
        if let Err(what) = pair.take(what) {
            return (Some(Difference { step, what }), pair.commands);
        }
    }
    (None, pair.commands)
}

/// The shortest course that is found to show a difference, by leaving out what is not needed for one.
#[must_use]
pub fn shortest(mut course: Course, flaw: Option<Flaw>) -> Course {
    let differs = |steps: &[Step]| compare(&Course { steps: steps.to_vec(), ..course.clone() }, flaw).0;
    let mut steps = course.steps.clone();
    let mut chunk = steps.len();
    while chunk > 0 {
        let mut from = 0;
        while from < steps.len() {
            let mut fewer = steps.clone();
            fewer.drain(from..(from + chunk).min(steps.len()));
            match differs(&fewer) {
                Some(difference) => {
                    fewer.truncate(difference.step + 1);
                    steps = fewer;
                }
                None => from += chunk,
            }
        }
        chunk /= 2;
    }
    course.steps = steps;
    course
}

impl fmt::Display for Course {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "shortest quarantine {} ms, trusts fresh: {}", self.shortest_quarantine, self.trusts_fresh)?;
        self.steps.iter().try_for_each(|step| writeln!(f, "{step:?}"))
    }
}

struct Pair {
    script: ScriptStore,
    models: [Store; GROUPS],
    groups: [GroupName; GROUPS],
    snapshot: Option<(Keys, [Data; GROUPS])>,
    identity: u32,
    hidden: bool,
    full: bool,
    /// Microseconds of the server's clock.
    now: u64,
    /// What each candidate was given in each group.
    won: [[Vec<Term>; CANDIDATES.len()]; GROUPS],
    last_won: [Term; GROUPS],
    commands: u64,
}

impl Pair {
    fn new(course: &Course, flaw: Option<Flaw>) -> Self {
        let shortest = Duration::from_millis(course.shortest_quarantine);
        let model = Store::new(shortest, flaw);
        let model = if course.trusts_fresh { model.trusting_fresh() } else { model };
        let now = 1_700_000_000_000_000;
        let mut server = Server::new(1);
        server.now = now;
        Self {
            script: ScriptStore::new(server, flaw, shortest, course.trusts_fresh),
            models: std::array::from_fn(|_| model.clone()),
            groups: std::array::from_fn(|i| GroupName::new(format!("g{i}")).expect("a valid name")),
            snapshot: None,
            identity: 1,
            hidden: false,
            full: false,
            now,
            won: Default::default(),
            last_won: Default::default(),
            commands: 0,
        }
    }

    fn take(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Batch(asks) => return self.ask(asks),
            Step::Pass(micros) => self.now += micros,
            Step::PassToEnd(group, more) => {
                if let Some(end) = self.models[*group].next_end(self.now / 1000) {
                    self.now = self.now.max((end * 1000).saturating_add_signed(more * 1000));
                }
            }
            Step::Restart(memory) => self.restart(*memory),
            Step::Snapshot => {
                let data = self.models.each_ref().map(|model| model.data.clone());
                self.snapshot = Some((self.script.server().keys.clone(), data));
            }
            Step::Flush => self.lose(),
            Step::DeleteLease(group) => {
                self.script.call(&["DEL", &lease_key(&self.groups[*group])]);
                self.models[*group].delete_lease();
            }
            Step::DeleteRecord(group) => {
                self.script.call(&["DEL", &record_key(&self.groups[*group])]);
                self.models[*group].delete_record();
            }
            Step::SetLease(group, holder, life) => self.set_lease(*group, holder, *life),
            Step::SetClock(millis) => self.now = self.now.saturating_add_signed(millis * 1000),
            Step::HideIdentity(hidden) => {
                self.hidden = *hidden;
                self.script.server().troubles.denied = if *hidden { vec!["INFO"] } else { Vec::new() };
            }
            Step::Full(full) => {
                self.full = *full;
                self.script.server().troubles.full = *full;
            }
        }
        self.script.server().now = self.now;
        Ok(())
    }

    fn restart(&mut self, memory: Memory) {
        match memory {
            Memory::Kept => {}
            Memory::Lost => self.lose(),
            Memory::Older => {
                let Some((keys, data)) = self.snapshot.clone() else { return };
                self.script.server().keys = keys;
                for (model, data) in self.models.iter_mut().zip(data) {
                    model.data = data;
                }
            }
        }
        self.identity += 1;
        self.script.server().identity = self.identity;
    }

    fn lose(&mut self) {
        self.script.server().keys = Keys::default();
        for model in &mut self.models {
            model.data = Data::default();
        }
    }

    fn set_lease(&mut self, group: usize, holder: &str, life: Option<u64>) {
        let key = lease_key(&self.groups[group]);
        let full = std::mem::take(&mut self.script.server().troubles.full);
        let life_text = life.map(|life| life.to_string());
        match &life_text {
            Some(life) => self.script.call(&["SET", &key, holder, "PX", life]),
            None => self.script.call(&["SET", &key, holder]),
        };
        self.script.server().troubles.full = full;
        let holder = InstanceId::new(holder).expect("a valid id");
        self.models[group].set_lease(holder, life.map(|life| self.now / 1000 + life));
    }

    fn ask(&mut self, asks: &[Ask]) -> Result<(), String> {
        let commands: Vec<_> = asks.iter().map(|ask| self.command(*ask)).collect();
        let answers = self.script.execute(self.now, &commands);
        let mut announced = Vec::new();
        for (place, (ask, (command, answer))) in asks.iter().zip(commands.iter().zip(answers)).enumerate() {
            self.commands += 1;
            let model = &mut self.models[ask.group];
            let had_lease = model.has_lease(self.now / 1000);
            let before = model.clone();
            model.server = if self.hidden { model.noted_server().unwrap_or(HIDDEN) } else { self.identity };
            let done = model.execute(self.now, command);
            let needs_memory = done.minted.is_some() && !had_lease;
            match answer {
                Err(error) if self.full && needs_memory && error.starts_with("OOM ") => *model = before,
                Ok(_) if self.full && needs_memory && place == 0 => {
                    return Err(format!("{command:?}: a fresh lease without memory"));
                }
                Ok(answer) if answer == done.answer => {
                    if let Answer::Won(won) = answer {
                        self.won[ask.group][ask.who].push(won.term);
                        self.last_won[ask.group] = won.term;
                    }
                    if done.announced {
                        announced.push(lease_key(&command.group));
                    }
                }
                other => return Err(format!("{command:?}\n  model:  {:?}\n  script: {other:?}", done.answer)),
            }
        }
        let published = std::mem::take(&mut self.script.server().published);
        let channels: Vec<_> = published.into_iter().map(|(channel, _)| channel).collect();
        if channels != announced {
            return Err(format!("{commands:?}\n  model:  announces {announced:?}\n  script: {channels:?}"));
        }
        (0..GROUPS).try_for_each(|group| self.look(group))
    }

    /// What somebody sees who only looks.
    fn look(&mut self, group: usize) -> Result<(), String> {
        let command = self.command(Ask { group, who: 0, ttl: 1000, what: What::Inspect });
        let expected = self.models[group].execute(self.now, &command).answer;
        let seen = self.script.execute(self.now, &[command]).remove(0);
        if seen.as_ref() == Ok(&expected) {
            return Ok(());
        }
        Err(format!("to be seen then of {}\n  model:  {expected:?}\n  script: {seen:?}", self.groups[group]))
    }

    fn command(&self, Ask { group, who, ttl, what }: Ask) -> Command {
        let (id, incarnation) = CANDIDATES[who];
        let id = InstanceId::new(id).expect("a valid id");
        let won = &self.won[group][who];
        let named = |which| match which {
            Which::Last => won.last().copied().unwrap_or_default(),
            Which::Earlier => won.iter().rev().nth(1).copied().unwrap_or_default(),
            Which::Anybodys => self.last_won[group],
        };
        let op = match what {
            What::Acquire { floor, continues, take } => Op::Acquire {
                floor: floor.map_or(Term::default(), |above| Term::new(named(Which::Last).get() + above)),
                continues,
                same_id: if take { SameId::Take } else { SameId::Leave },
            },
            What::Renew(which) => Op::Renew { term: named(which) },
            What::Release(which) => Op::Release { term: which.map(named) },
            What::Inspect => Op::Inspect,
        };
        Command {
            group: self.groups[group].clone(),
            candidate: Candidate { id, incarnation: Incarnation::from_u128(incarnation) },
            ttl: Duration::from_millis(ttl),
            op,
        }
    }
}
