//! The promises of [`LeaseStore::execute_ticks`](crate::store::LeaseStore::execute_ticks).

mod runs;

use std::sync::Arc;
use std::time::Duration;

use super::Suite;
use super::party::{LONG, PATIENCE, Party, broken, promised, within};
use crate::group::GroupName;
use crate::identity::Incarnation;
use crate::lease::Term;
use crate::store::{
    HistoryEvent, JobName, JobRecord, Missed, RunEnd, RunOutcome, TickAnswers, TickBatch, TickClaim, TickCommand,
    TickOp, TickReply,
};

const SCHEDULE: &str = "*/10 * * * * * UTC";
const HOUR: i64 = 3600;

/// One job of a group that is led.
struct Job {
    group: GroupName,
    name: JobName,
    term: Term,
    /// A tick that is due, and was never claimed; those after it up to the next minute are due, too.
    due: i64,
}

impl Job {
    /// The claim of the tick so many seconds after the first that is due, by whoever knows of all before it.
    fn claim(&self, after: i64) -> TickClaim {
        let tick = self.due + after;
        TickClaim {
            term: self.term,
            tick,
            expect: tick - 1,
            floor: 0,
            nonce: Incarnation::random().as_u128(),
            not_after_us: u64::MAX,
            slot: LONG,
            forbid: true,
            at_least_once: false,
            max_attempts: 2,
            retry_within: LONG,
            schedule: SCHEDULE.to_owned(),
            missed: None,
            vouch: true,
            renamed_from: None,
        }
    }
}

fn claim(claim: &TickClaim) -> TickOp {
    TickOp::Claim(Box::new(claim.clone()))
}

fn run(tick: i64, attempt: u32) -> TickReply {
    TickReply::Run { tick, attempt }
}

fn end(message: &str) -> RunEnd {
    let took = Duration::from_millis(1_234);
    RunEnd { outcome: RunOutcome::Failed, message: message.to_owned(), began_us: 1_700_000_000_000_000, took }
}

impl Party {
    fn tick_command(&self, group: &GroupName, job: &JobName, op: TickOp) -> TickCommand {
        TickCommand { group: group.clone(), job: job.clone(), candidate: self.candidate.clone(), op }
    }

    async fn tick_batch(&self, commands: Vec<TickCommand>) -> TickAnswers {
        let asked = commands.len();
        match within(self.store.execute_ticks(TickBatch { commands, timeout: PATIENCE })).await {
            Some(Ok(answers)) if answers.len() == asked => answers,
            Some(Ok(answers)) => broken!("each command of a batch is answered", "{asked} commands, {answers:?}"),
            Some(Err(error)) => broken!("a batch of commands to the ledger is executed", "{error}"),
            None => broken!("a batch of commands to the ledger is answered", "nothing came within {PATIENCE:?}"),
        }
    }

    async fn tick(&self, group: &GroupName, job: &JobName, op: TickOp) -> (u64, TickReply) {
        let name = op.name();
        match self.tick_batch(vec![self.tick_command(group, job, op)]).await.remove(0) {
            Ok(answer) => (answer.now_us, answer.reply),
            Err(error) => broken!("a command to the ledger is executed", "{name}: {error}"),
        }
    }

    async fn of(&self, job: &Job, op: TickOp) -> TickReply {
        self.tick(&job.group, &job.name, op).await.1
    }

    async fn record(&self, job: &Job) -> JobRecord {
        match self.of(job, TickOp::Load).await {
            TickReply::Loaded(record) => record,
            other => broken!("a load tells the record", "{other:?}"),
        }
    }

    async fn history(&self, job: &Job, limit: u32) -> Vec<HistoryEvent> {
        match self.of(job, TickOp::History { limit }).await {
            TickReply::History(entries) => entries.into_iter().map(|entry| entry.event).collect(),
            other => broken!("a history is told", "{other:?}"),
        }
    }
}

impl Suite<'_> {
    /// All of them; or none, if the store has no ledger.
    pub(super) async fn ticks(&self) {
        let party = Party::join((self.make)(), &self.id("ticks"), &[]).await;
        let has_ledger = within(party.store.execute_ticks(TickBatch { commands: Vec::new(), timeout: PATIENCE })).await;
        party.leave().await;
        match has_ledger {
            Some(Ok(answers)) => promised!(answers.is_empty(), "an empty batch has no answers", "{answers:?}"),
            Some(Err(error)) if error.is_permanent() => return,
            other => broken!("an empty batch of commands to the ledger is answered", "{other:?}"),
        }
        self.a_new_job_has_no_past().await;
        self.a_tick_is_claimed_once_and_by_the_leader_alone().await;
        self.claims_that_race_run_once().await;
        self.a_tick_is_due_by_the_stores_clock().await;
        self.a_record_that_vanished_is_not_trusted_by_others().await;
        self.a_changed_schedule_and_a_new_name_keep_the_ticks_exact().await;
        self.a_paused_job_claims_nothing().await;
        self.a_run_holds_the_job_until_its_end().await;
        self.a_run_holds_the_job_until_its_slot_is_over().await;
        self.a_run_that_never_ended_is_taken_over_only_at_least_once().await;
        self.what_is_given_back_is_due_again().await;
        self.a_hand_over_keeps_the_record().await;
        self.the_history_is_kept_in_order_and_bounded().await;
        self.a_batch_of_commands_to_the_ledger_is_answered_in_order().await;
    }

    /// A job with two minutes of past that `party` leads.
    async fn job(&self, party: &Party, group: &GroupName, name: &str) -> Job {
        let name = JobName::new(name).expect("a short word");
        let (now_us, loaded) = party.tick(group, &name, TickOp::Load).await;
        promised!(loaded == TickReply::Unknown, "a job that nobody registered is unknown", "{loaded:?}");
        self.job_since(party, group, name, (now_us / 1_000_000) as i64 - 120).await
    }

    /// A new job whose first tick is this one.
    async fn job_since(&self, party: &Party, group: &GroupName, name: JobName, due: i64) -> Job {
        let term = party.win(group).await.term;
        let register = TickOp::Register { schedule: SCHEDULE.to_owned(), known: Some(due - 1) };
        match party.tick(group, &name, register).await.1 {
            TickReply::Registered(record) if record.last == due - 1 => {}
            other => broken!("a job is registered with what is known of it", "{other:?}"),
        }
        Job { group: group.clone(), name, term, due }
    }

    async fn a_new_job_has_no_past(&self) {
        let (group, [a, b]) = self.stage("tick-new", ["a", "b"]).await;
        let term = a.win(&group).await.term;
        let name = JobName::new("new").expect("a short word");
        let register = |schedule: &str| TickOp::Register { schedule: schedule.to_owned(), known: None };
        let (now_us, reply) = b.tick(&group, &name, register(SCHEDULE)).await;
        let TickReply::Registered(first) = reply else { broken!("any instance registers a job", "{reply:?}") };
        let now = (now_us / 1_000_000) as i64;
        let right = first.since == now && first.last == now && first.floor == 0 && first.schedule == SCHEDULE;
        promised!(right, "a new job begins now, by the store's clock", "{first:?} at {now}");
        for op in [register("another"), TickOp::Register { schedule: SCHEDULE.to_owned(), known: Some(now - 9) }] {
            let again = a.tick(&group, &name, op).await.1;
            promised!(again == TickReply::Registered(first.clone()), "a record that is there stays", "{again:?}");
        }
        let job = Job { group, name, term, due: now };
        let past = a.of(&job, claim(&TickClaim { vouch: false, expect: now, ..job.claim(0) })).await;
        promised!(matches!(past, TickReply::Already { .. }), "a new job has no past", "{past:?}");
        a.release(&job.group, None).await;
        for party in [a, b] {
            party.leave().await;
        }
    }

    async fn a_tick_is_claimed_once_and_by_the_leader_alone(&self) {
        let (group, [a, b]) = self.stage("tick-claim", ["a", "b"]).await;
        let job = self.job(&a, &group, "claim").await;
        let first = job.claim(0);
        for (who, party, term) in
            [("a follower", &b, job.term), ("an older acquisition", &a, Term::new(job.term.get() - 1))]
        {
            let fenced = party.of(&job, claim(&TickClaim { term, ..first.clone() })).await;
            promised!(fenced == TickReply::Fenced, "only the present acquisition claims", "{who}: {fenced:?}");
        }
        let late = a.of(&job, claim(&TickClaim { not_after_us: 1, ..first.clone() })).await;
        promised!(late == TickReply::Late, "a claim past its instant does nothing", "{late:?}");
        for _ in 0..2 {
            let ran = a.of(&job, claim(&first)).await;
            promised!(ran == run(job.due, 1), "a claim is the same claim under its nonce", "{ran:?}");
        }
        let ended = a.of(&job, TickOp::End { nonce: first.nonce, end: end("no") }).await;
        promised!(ended == TickReply::Ended, "a run ends", "{ended:?}");
        let done = a.of(&job, claim(&first)).await;
        promised!(done == TickReply::Done, "a claim that has ended is not run again", "{done:?}");
        let other = job.claim(0);
        let moved = a.of(&job, claim(&other)).await;
        promised!(moved == TickReply::Moved { last: job.due }, "who walked from an older tick is told", "{moved:?}");
        let already = a.of(&job, claim(&TickClaim { expect: job.due, vouch: false, ..other })).await;
        let right = TickReply::Already { last: job.due, floor: 0 };
        promised!(already == right, "a tick is claimed once", "{already:?}");
        let next = a.of(&job, claim(&job.claim(1))).await;
        promised!(next == run(job.due + 1, 1), "the next tick is claimed", "{next:?}");
        a.release(&group, None).await;
        let fenced = a.of(&job, claim(&job.claim(2))).await;
        promised!(fenced == TickReply::Fenced, "who has released the lease claims nothing", "{fenced:?}");
        for party in [a, b] {
            party.leave().await;
        }
    }

    async fn claims_that_race_run_once(&self) {
        let (group, [a]) = self.stage("tick-race", ["a"]).await;
        let job = self.job(&a, &group, "race").await;
        let a = Arc::new(a);
        for round in 0..5 {
            let racing: Vec<_> = (0..4)
                .map(|_| {
                    let (party, op) = (Arc::clone(&a), claim(&TickClaim { forbid: false, ..job.claim(round) }));
                    let (group, name) = (job.group.clone(), job.name.clone());
                    tokio::spawn(async move { party.tick(&group, &name, op).await.1 })
                })
                .collect();
            let mut ran = 0;
            for answer in racing {
                match answer.await {
                    Ok(TickReply::Run { .. }) => ran += 1,
                    Ok(TickReply::Moved { .. }) => {}
                    Ok(other) => broken!("one of the claims that race runs, the others are told", "{other:?}"),
                    Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
                }
            }
            promised!(ran == 1, "of the claims that race one runs", "{ran} did");
        }
        a.release(&group, None).await;
        if let Ok(party) = Arc::try_unwrap(a) {
            party.leave().await;
        }
    }

    async fn a_tick_is_due_by_the_stores_clock(&self) {
        let (group, [a]) = self.stage("tick-due", ["a"]).await;
        let job = self.job(&a, &group, "due").await;
        let (now_us, reply) = a.tick(&group, &job.name, claim(&job.claim(HOUR))).await;
        let TickReply::Early { left } = reply else { broken!("a tick is not claimed before it is due", "{reply:?}") };
        let due_us = (job.due + HOUR) as u64 * 1_000_000;
        promised!(now_us + left.as_micros() as u64 == due_us, "the time left is told", "{left:?} at {now_us}");
        let ran = a.of(&job, claim(&job.claim(0))).await;
        promised!(ran == run(job.due, 1), "an early claim consumes nothing", "{ran:?}");
        a.release(&group, None).await;
        a.leave().await;
    }

    async fn a_record_that_vanished_is_not_trusted_by_others(&self) {
        let (group, [a]) = self.stage("tick-known", ["a"]).await;
        let job = self.job(&a, &group, "known").await;
        let record = a.record(&job).await;
        promised!(record.floor > job.due, "who does not vouch is told a floor", "{record:?}");
        match a.of(&job, claim(&TickClaim { vouch: false, ..job.claim(0) })).await {
            TickReply::Already { floor, .. } if floor == record.floor => {}
            other => broken!("what may have been forgotten is not run", "{other:?}"),
        }
        let ran = a.of(&job, claim(&job.claim(0))).await;
        promised!(ran == run(job.due, 1), "who has led all the time vouches", "{ran:?}");
        promised!(a.record(&job).await.floor == 0, "a claim makes the record exact", "it did not");
        a.release(&group, None).await;
        a.leave().await;
    }

    async fn a_changed_schedule_and_a_new_name_keep_the_ticks_exact(&self) {
        let (group, [a]) = self.stage("tick-change", ["a"]).await;
        let job = self.job(&a, &group, "old-name").await;
        let changed = TickClaim { schedule: "0 * * * * * UTC".to_owned(), floor: job.due + 5, ..job.claim(5) };
        let already = a.of(&job, claim(&changed)).await;
        let right = matches!(already, TickReply::Already { floor, .. } if floor == job.due + 5);
        promised!(right, "a changed schedule counts from the registration", "{already:?}");
        let next = TickClaim { tick: job.due + 6, expect: job.due + 5, forbid: false, ..changed };
        let ran = a.of(&job, claim(&next)).await;
        promised!(ran == run(job.due + 6, 1), "a changed schedule goes on", "{ran:?}");

        let new_name = JobName::new("new-name").expect("a short word");
        let renamed = self.job_since(&a, &group, new_name, job.due).await;
        let from = |after| TickClaim { renamed_from: Some(job.name.clone()), ..renamed.claim(after) };
        let already = a.of(&renamed, claim(&from(6))).await;
        let right = matches!(already, TickReply::Already { last, .. } if last == job.due + 6);
        promised!(right, "the last tick under the old name counts", "{already:?}");
        let ran = a.of(&renamed, claim(&from(7))).await;
        promised!(ran == run(job.due + 7, 1), "the renamed job goes on", "{ran:?}");
        let last = a.record(&job).await.last;
        promised!(last == job.due + 7, "the old name's last tick is raised along", "{last}");
        a.release(&group, None).await;
        a.leave().await;
    }

    async fn a_paused_job_claims_nothing(&self) {
        let (group, [a]) = self.stage("tick-pause", ["a"]).await;
        let job = self.job(&a, &group, "pause").await;
        let until = job.due + 2 * HOUR;
        let paused = a.of(&job, TickOp::Pause { until, note: "in the release: é".to_owned() }).await;
        promised!(paused == TickReply::Changed, "a job is paused", "{paused:?}");
        match a.of(&job, claim(&job.claim(0))).await {
            TickReply::Paused(pause) if pause.until == until && pause.note == "in the release: é" => {}
            other => broken!("a paused job claims nothing, and says why", "{other:?}"),
        }
        promised!(a.record(&job).await.paused.is_some(), "a pause stands in the record", "it does not");
        a.of(&job, TickOp::Resume).await;
        let ran = a.of(&job, claim(&job.claim(0))).await;
        promised!(ran == run(job.due, 1), "a pause consumes nothing by itself", "{ran:?}");
        a.release(&group, None).await;
        a.leave().await;
    }

    async fn the_history_is_kept_in_order_and_bounded(&self) {
        let (group, [a]) = self.stage("tick-history", ["a"]).await;
        let job = self.job(&a, &group, "history").await;
        let missed = Missed { from: job.due - 30, count: 3, reason: "only the newest counts".to_owned() };
        let first = TickClaim { missed: Some(missed.clone()), ..job.claim(0) };
        a.of(&job, claim(&first)).await;
        a.of(&job, TickOp::End { nonce: first.nonce, end: end("it said\n\"no\" | 'never'") }).await;
        let by_hand = HistoryEvent::Manual { instance: a.candidate.id.clone(), end: end(&"é".repeat(150)) };
        a.of(&job, TickOp::Note(by_hand)).await;
        let expected = [
            HistoryEvent::Missed(missed),
            HistoryEvent::Claimed { tick: job.due, attempt: 1, instance: a.candidate.id.clone() },
            HistoryEvent::Ended { tick: Some(job.due), end: end("it said\n\"no\" | 'never'") },
            HistoryEvent::Manual { instance: a.candidate.id.clone(), end: end(&"é".repeat(100)) },
        ];
        let told = a.history(&job, 9).await;
        promised!(told == expected, "the history tells what happened", "{told:?}");
        let told = a.history(&job, 2).await;
        promised!(told == expected[2..], "the last entries are told, the oldest first", "{told:?}");
        let note = |n| HistoryEvent::GaveUp { tick: n, attempts: 2 };
        let notes = (0..150).map(|n| a.tick_command(&group, &job.name, TickOp::Note(note(n)))).collect();
        let answers = a.tick_batch(notes).await;
        let noted = answers.iter().all(|answer| answer.as_ref().is_ok_and(|answer| answer.reply == TickReply::Noted));
        promised!(noted, "notes are taken", "{answers:?}");
        let told = a.history(&job, 1_000).await;
        let newest: Vec<_> = (30..150).map(note).collect();
        promised!(told == newest, "the last 120 entries are kept", "{} of them: {told:?}", told.len());
        a.release(&group, None).await;
        a.leave().await;
    }

    async fn a_batch_of_commands_to_the_ledger_is_answered_in_order(&self) {
        let (group, [a, b]) = self.stage("tick-batch", ["a", "b"]).await;
        let job = self.job(&a, &group, "one").await;
        let (foreign, nobody) = (self.group("tick-foreign"), JobName::new("nobody").expect("a short word"));
        a.settle(&foreign).await;
        let others = self.job(&b, &foreign, "one").await;
        let stranger = TickClaim { term: others.term, ..others.claim(0) };
        let commands = vec![
            a.tick_command(&group, &nobody, TickOp::Load),
            a.tick_command(&group, &job.name, claim(&job.claim(0))),
            a.tick_command(&foreign, &others.name, claim(&stranger)),
            a.tick_command(&group, &job.name, TickOp::KeepSlot { nonce: 1, slot: LONG }),
            a.tick_command(&group, &nobody, TickOp::History { limit: 5 }),
        ];
        let answers: Vec<_> = a.tick_batch(commands).await.into_iter().map(|answer| answer.map(|a| a.reply)).collect();
        let right = answers
            == [
                Ok(TickReply::Unknown),
                Ok(run(job.due, 1)),
                Ok(TickReply::Fenced),
                Ok(TickReply::Gone),
                Ok(TickReply::History(Vec::new())),
            ];
        promised!(right, "a batch is answered in order, each command on its own", "{answers:?}");
        let last = b.record(&others).await.last;
        promised!(last < others.due, "groups have jobs of their own, also under one name", "{last}");
        a.release(&group, None).await;
        b.release(&foreign, None).await;
        for party in [a, b] {
            party.leave().await;
        }
    }
}
