//! Commands drawn by chance, mostly such that something comes of them.

use std::time::Duration;

use leader_core::store::{HistoryEvent, Missed, RunEnd, RunOutcome, TickClaim, TickCommand, TickOp};

use super::{CANDIDATES, GROUPS, JOBS, Pair, candidate};

const TEXTS: [&str; 4] = ["s", "0 * * * * * UTC", "two words:\nand, a line", ""];

impl Pair {
    pub(super) fn command(&mut self) -> TickCommand {
        let (group, job) = (self.rng.index(GROUPS), self.rng.index(JOBS));
        let leader = self.data.groups[group].last.map(|(who, _)| who);
        let who = leader.filter(|_| self.rng.chance(0.85)).unwrap_or_else(|| self.rng.index(CANDIDATES));
        let op = self.op(group, job);
        TickCommand { group: self.groups[group].clone(), job: self.jobs[job].clone(), candidate: candidate(who), op }
    }

    fn op(&mut self, group: usize, job: usize) -> TickOp {
        match self.rng.index(30) {
            0..2 => {
                let known = self.rng.chance(0.5).then(|| self.now() + self.rng.between(-20, 2));
                TickOp::Register { schedule: self.text(), known }
            }
            2 => TickOp::Load,
            3..5 => TickOp::KeepSlot { nonce: self.nonce(), slot: self.time() },
            5..10 => TickOp::End { nonce: self.nonce(), end: self.end() },
            10..14 => TickOp::GiveBack { nonce: self.nonce(), begun: self.rng.chance(0.5), keep: self.rng.chance(0.5) },
            14 => match self.rng.index(3) {
                0 => TickOp::Pause { until: self.now() + self.rng.between(-3, 5), note: self.text() },
                _ => TickOp::Resume,
            },
            15 => TickOp::Note(self.event()),
            16 => TickOp::History { limit: self.rng.index(150) as u32 },
            _ => TickOp::Claim(Box::new(self.claim(group, job))),
        }
    }

    fn claim(&mut self, group: usize, job: usize) -> TickClaim {
        let now = self.now();
        let texts = self.data.jobs.get(&(group, job));
        let last = texts.and_then(|texts| texts[1].parse().ok()).unwrap_or(now);
        let returned = texts.and_then(|texts| texts[7].split(':').next()?.parse().ok());
        let open = texts.and_then(|texts| texts[4].split(':').next()?.parse().ok());
        let near = now + self.rng.between(-6, 1);
        let tick = match self.rng.index(6) {
            0 => returned.unwrap_or(near),
            1 => open.unwrap_or(near),
            _ => near,
        };
        let term = self.data.groups[group].last.map_or(1, |(_, term)| term.get());
        TickClaim {
            term: leader_core::Term::new(if self.rng.chance(0.95) { term } else { term - 1 }),
            tick,
            expect: match self.rng.index(5) {
                0 => tick - 1,
                1 => last + self.rng.between(-2, 2),
                2 if self.rng.chance(0.1) => i64::MIN,
                _ => last,
            },
            floor: now + self.rng.between(-10, 0),
            nonce: self.nonce(),
            not_after_us: if self.rng.chance(0.05) { self.now_us - 1 } else { u64::MAX },
            slot: self.time(),
            forbid: self.rng.chance(0.5),
            at_least_once: self.rng.chance(0.4),
            max_attempts: self.rng.index(4) as u32,
            retry_within: self.time() * 2,
            schedule: if self.rng.chance(0.8) { TEXTS[0].to_owned() } else { self.text() },
            missed: if self.rng.chance(0.1) { Some(self.missed()) } else { None },
            vouch: self.rng.chance(0.5),
            renamed_from: if self.rng.chance(0.2) { Some(self.jobs[self.rng.index(JOBS)].clone()) } else { None },
        }
    }

    /// One of few, so that claims meet again.
    fn nonce(&mut self) -> u128 {
        self.rng.index(5) as u128
    }

    fn time(&mut self) -> Duration {
        Duration::from_micros(self.rng.between(0, 5_000_000) as u64)
    }

    fn text(&mut self) -> String {
        let text = TEXTS[self.rng.index(TEXTS.len())];
        if self.rng.chance(0.05) { text.repeat(300) } else { text.to_owned() }
    }

    fn end(&mut self) -> RunEnd {
        let outcomes = [RunOutcome::Succeeded, RunOutcome::Failed, RunOutcome::TimedOut];
        RunEnd {
            outcome: outcomes[self.rng.index(outcomes.len())],
            message: self.text(),
            began_us: self.now_us - 5,
            took: self.time(),
        }
    }

    fn missed(&mut self) -> Missed {
        Missed { from: self.now() - 9, count: self.rng.index(9) as u64, reason: self.text() }
    }

    fn event(&mut self) -> HistoryEvent {
        match self.rng.index(3) {
            0 => HistoryEvent::Missed(self.missed()),
            1 => HistoryEvent::Manual { instance: candidate(0).id, end: self.end() },
            _ => HistoryEvent::GaveUp { tick: self.now(), attempts: 3 },
        }
    }
}
