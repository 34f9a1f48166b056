//! The script on a real server: where what plays one in the simulation could lie.
#![cfg(target_os = "linux")]

mod stand_in;
mod troubles;

use std::time::Duration;

use leader_core::store::{Answer, Command, Op, SameId, Won};
use leader_core::testing::redis_script::{self, Reply};
use leader_core::{Candidate, GroupName, Incarnation, InstanceId, Term};
use leader_tests::redis::Client;
use leader_tests::script::PREFIX;
use redis::Value;

/// Long enough for any of these tests.
const TTL: Duration = Duration::from_secs(600);

fn group(name: &str) -> GroupName {
    GroupName::new(name).expect("a valid name")
}

fn ask(group_name: &str, id: &str, incarnation: u128, op: Op) -> Command {
    let candidate =
        Candidate { id: InstanceId::new(id).expect("a valid id"), incarnation: Incarnation::from_u128(incarnation) };
    Command { group: group(group_name), candidate, ttl: TTL, op }
}

fn acquire(group: &str, id: &str, incarnation: u128) -> Command {
    ask(group, id, incarnation, Op::Acquire { floor: Term::default(), continues: false, same_id: SameId::Leave })
}

/// How the script is told to take a group without a record.
#[derive(Clone, Copy, PartialEq)]
enum Fresh {
    Wait,
    Trust,
}

/// Runs a batch.
fn run(client: &mut Client, fresh: Fresh, commands: &[Command]) -> Vec<Result<Answer, String>> {
    let arguments = redis_script::arguments(commands, PREFIX, Duration::ZERO, fresh == Fresh::Trust);
    let mut parts = vec!["EVAL", redis_script::TEXT];
    parts.extend(arguments.iter().map(String::as_str));
    let value: Value = client.command(&parts).expect("the script runs");
    redis_script::answers(reply(value), commands.len())
}

/// Runs one command on a store that trusts a fresh server.
fn run_one(client: &mut Client, command: Command) -> Result<Answer, String> {
    run(client, Fresh::Trust, &[command]).remove(0)
}

fn won(answer: &Result<Answer, String>) -> Won {
    match answer {
        Ok(Answer::Won(won)) => *won,
        other => panic!("{other:?}"),
    }
}

fn reply(value: Value) -> Reply {
    match value {
        Value::Nil => Reply::Nil,
        Value::Int(number) => Reply::Integer(number),
        Value::BulkString(bytes) => Reply::Text(String::from_utf8(bytes).expect("text")),
        Value::SimpleString(text) => Reply::Text(text),
        Value::Okay => Reply::Text("OK".to_owned()),
        Value::Array(values) => Reply::List(values.into_iter().map(reply).collect()),
        other => panic!("{other:?}"),
    }
}
