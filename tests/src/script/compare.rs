//! The script and the model side by side: whatever happens, they answer the same.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use leader_core::store::{Answer, Command, Op, SameId};
use leader_core::testing::redis_script::Flaw;
use leader_core::{Candidate, GroupName, Incarnation, InstanceId, Term};

use super::course::{Ask, CANDIDATES, Course, GROUPS, Memory, Step, What, Which};
use super::server::{Keys, Server};
use super::{ScriptStore, lease_key, record_key};
use crate::sim::store::{Data, Store};

/// How long a course is.
const STEPS: usize = 400;
/// The model's name for a server that does not tell who it is.
const HIDDEN: u32 = u32::MAX;

/// A course, gone through with both.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    /// How often each kind of answer came.
    pub answers: BTreeMap<&'static str, u64>,
    /// At which step they parted, and how.
    pub difference: Option<(usize, String)>,
}

/// Goes through a course with both, up to the first difference; the script may have a flaw that the model has not.
///
/// The server's keys end as early as the model's: one millisecond before they do in Redis.
#[must_use]
pub fn compare(course: &Course, of_script: Option<Flaw>, of_model: Option<Flaw>) -> Comparison {
    let mut pair = Pair::new(course, of_script, of_model);
    let parts = |(step, what)| Some((step, pair.take(what).err()?));
    let difference = course.steps.iter().enumerate().find_map(parts);
    Comparison { answers: pair.answers, difference }
}

/// Looks for a difference in the courses of these seeds. Returns the shortest one found, told, and how often each kind of
/// answer came up to there.
///
/// # Panics
/// If the script fails.
#[must_use]
pub fn first_difference(
    seeds: Range<u64>,
    of_script: Option<Flaw>,
    of_model: Option<Flaw>,
) -> (Option<String>, BTreeMap<&'static str, u64>) {
    let mut answers = BTreeMap::new();
    for seed in seeds {
        let course = Course::random(seed, STEPS);
        let comparison = compare(&course, of_script, of_model);
        for (name, count) in comparison.answers {
            *answers.entry(name).or_default() += count;
        }
        if comparison.difference.is_some() {
            let course = shortest(course, of_script, of_model);
            let (_, difference) = compare(&course, of_script, of_model).difference.expect("it is still there");
            return (Some(format!("seed {seed}:\n{course}{difference}")), answers);
        }
    }
    (None, answers)
}

/// The shortest course that is found to show a difference, by leaving out what is not needed for one.
#[must_use]
pub fn shortest(mut course: Course, of_script: Option<Flaw>, of_model: Option<Flaw>) -> Course {
    let mut chunk = course.steps.len();
    while chunk > 0 {
        let mut from = 0;
        while from < course.steps.len() {
            let mut fewer = course.clone();
            fewer.steps.drain(from..(from + chunk).min(course.steps.len()));
            match compare(&fewer, of_script, of_model).difference {
                Some((step, _)) => {
                    fewer.steps.truncate(step + 1);
                    course = fewer;
                }
                None => from += chunk,
            }
        }
        chunk /= 2;
    }
    for step in 0..course.steps.len() {
        let Step::Batch(asks) = &course.steps[step] else { continue };
        for ask in asks.clone() {
            let mut simpler = course.clone();
            simpler.steps[step] = Step::Batch(vec![ask]);
            if compare(&simpler, of_script, of_model).difference.is_some() {
                course = simpler;
                break;
            }
        }
    }
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
    /// Who was given a lease last in each group, and which.
    last_won: [(usize, Term); GROUPS],
    answers: BTreeMap<&'static str, u64>,
}

impl Pair {
    fn new(course: &Course, of_script: Option<Flaw>, of_model: Option<Flaw>) -> Self {
        let shortest = Duration::from_millis(course.shortest_quarantine);
        let model = Store::new(shortest, of_model);
        let model = if course.trusts_fresh { model.trusting_fresh() } else { model };
        let now = 1_700_000_000_000_000;
        let mut server = Server::new(1);
        server.now = now;
        Self {
            script: ScriptStore::new(server, of_script, shortest, course.trusts_fresh),
            models: std::array::from_fn(|_| model.clone()),
            groups: std::array::from_fn(|i| GroupName::new(format!("g{i}")).expect("a valid name")),
            snapshot: None,
            identity: 1,
            hidden: false,
            full: false,
            now,
            won: Default::default(),
            last_won: Default::default(),
            answers: BTreeMap::new(),
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
            *self.answers.entry(name(&answer)).or_default() += 1;
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
                        let who = ask.who.unwrap_or(self.last_won[ask.group].0);
                        self.won[ask.group][who].push(won.term);
                        self.last_won[ask.group] = (who, won.term);
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
        self.look()
    }

    /// What somebody sees who only looks.
    fn look(&mut self) -> Result<(), String> {
        let commands: [_; GROUPS] =
            std::array::from_fn(|group| self.command(Ask { group, who: Some(0), ttl: 1000, what: What::Inspect }));
        let answers = self.script.execute(self.now, &commands);
        for ((model, command), answer) in self.models.iter_mut().zip(&commands).zip(answers) {
            let expected = model.execute(self.now, command).answer;
            if answer.as_ref() != Ok(&expected) {
                let group = &command.group;
                return Err(format!("to be seen then of {group}\n  model:  {expected:?}\n  script: {answer:?}"));
            }
        }
        Ok(())
    }

    fn command(&self, Ask { group, who, ttl, what }: Ask) -> Command {
        let (last, term) = self.last_won[group];
        let who = who.unwrap_or(last);
        let (id, incarnation) = CANDIDATES[who];
        let id = InstanceId::new(id).expect("a valid id");
        let won = &self.won[group][who];
        let named = |which| match which {
            Which::Last => won.last().copied().unwrap_or_default(),
            Which::Earlier => won.iter().rev().nth(1).copied().unwrap_or_default(),
            Which::Anybodys => term,
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

/// The kind of an answer.
fn name(answer: &Result<Answer, String>) -> &'static str {
    match answer {
        Ok(Answer::Won(won)) => match (won.in_quarantine, won.older_lease.is_zero()) {
            (false, true) => "won",
            (false, false) => "won beside an older lease",
            (true, true) => "won in a quarantine",
            (true, false) => "won in a quarantine beside an older lease",
        },
        Ok(Answer::Held(held)) if held.foreign => "held by somebody without a record",
        Ok(Answer::Held(held)) if held.same_id => "held by another incarnation",
        Ok(Answer::Held(_)) => "held",
        Ok(Answer::Quarantined { reason, .. }) => reason,
        Ok(Answer::Renewed) => "renewed",
        Ok(Answer::Lost { duplicate: false }) => "lost",
        Ok(Answer::Lost { duplicate: true }) => "lost to another incarnation",
        Ok(Answer::Released) => "released",
        Ok(Answer::NotHeld) => "not held",
        Ok(Answer::Inspected(None)) => "nobody seen",
        Ok(Answer::Inspected(Some(_))) => "somebody seen",
        Err(_) => "refused for want of memory",
    }
}
