//! Many groups, whose commands share calls of which parts fail.

use super::*;
use crate::store::Op;
use crate::testing::Fault;

const GROUPS: usize = 250;

fn many(config: Config) -> Config {
    config.groups((1..GROUPS).map(|number| format!("g{number:03}")))
}

fn is_bad(group: &str) -> bool {
    group.ends_with('7')
}

fn led(elector: &Elector) -> usize {
    elector.groups().iter().filter(|group| elector.is_leader(group.as_str())).count()
}

#[test]
fn what_fails_for_some_groups_of_a_call_costs_no_other_its_lease() {
    stage(1, async |stage| {
        let store = stage.faulty();
        let elector = stage.start(store.clone(), many).await;
        assert_eq!((led(&elector), store.calls()), (GROUPS, 3));
        let bad = elector.groups().iter().filter(|group| is_bad(group.as_str())).count();
        store.inject_when(Fault::FailCommands(unplugged()), |command| is_bad(command.group.as_str()));
        tokio::time::sleep(HEARTBEAT + MS).await;
        for _ in 0..300 {
            tokio::time::sleep(MS * 100).await;
            for group in elector.groups() {
                assert_eq!(elector.is_leader(group.as_str()), !is_bad(group.as_str()), "{group}");
            }
        }
        let problems = elector.status().problems;
        assert_eq!(problems.iter().filter(|problem| problem.group.is_some()).count(), bad);
        store.heal();
        tokio::time::sleep(TTL + RETRY * 2).await;
        assert_eq!(led(&elector), GROUPS);
        assert!(elector.status().problems.iter().all(|problem| problem.group.is_none()));
    });
}

#[test]
fn renewals_of_many_groups_share_few_calls_also_after_failures_at_different_times() {
    stage(2, async |stage| {
        let store = stage.faulty();
        let elector = stage.start(store.clone(), many).await;
        for _ in 0..20 {
            let share = fastrand::usize(2..9);
            let unlucky =
                move |command: &crate::store::Command| command.group.as_str().len() % share == fastrand::usize(..share);
            store.inject_when(Fault::FailCommands(unplugged()), unlucky);
            tokio::time::sleep(SECOND * 3).await;
            store.heal();
            tokio::time::sleep(SECOND / 2).await;
        }
        tokio::time::sleep(TTL + RETRY * 2).await;
        assert_eq!(led(&elector), GROUPS);
        tokio::time::sleep(HEARTBEAT * 10).await;
        let (calls, commands) = (store.calls(), store.commands());
        tokio::time::sleep(HEARTBEAT * 20).await;
        assert_eq!(led(&elector), GROUPS);
        let (calls, commands) = (store.calls() - calls, store.commands() - commands);
        // What is due within an eighth of a heartbeat goes out together, at most 100 commands in a call: 9 to 14 calls in each, as
        // chance has it, and not 250.
        assert!(calls <= 20 * 16, "{calls} calls in 20 heartbeats");
        assert!(commands <= GROUPS as u64 * 24, "{commands} commands in 20 heartbeats");
    });
}

#[test]
fn a_call_that_is_answered_with_another_number_of_answers_confirms_nothing() {
    stage(3, async |stage| {
        let store = wire::Wire::new(stage.memory.clone());
        let elector = stage.start(store.clone(), many).await;
        assert_eq!(led(&elector), GROUPS);
        store.weather(|weather| weather.short = 1.0);
        tokio::time::sleep(HEARTBEAT + OPERATION_TIMEOUT).await;
        assert_eq!(led(&elector), 0);
        store.weather(|weather| weather.short = 0.0);
        tokio::time::sleep(TTL + RETRY * 2).await;
        assert_eq!(led(&elector), GROUPS);
    });
}

#[test]
fn an_inspect_has_a_call_of_its_own_and_hangs_no_longer_than_it_may() {
    stage(4, async |stage| {
        let store = stage.faulty();
        let elector = stage.start(store.clone(), many).await;
        store.inject_when(Fault::LoseRequest, |command| command.op == Op::Inspect);
        let (asked, took) = stage.timed(elector.leader_id("g007")).await;
        assert!(asked.is_err() && took == OPERATION_TIMEOUT, "{asked:?} after {took:?}");
        tokio::time::sleep(TTL).await;
        assert_eq!(led(&elector), GROUPS);
    });
}
