//! What plays a server in the simulation, and Redis: the same commands from a script, the same answers.

use leader_core::testing::redis_script::Reply;
use leader_tests::redis::{Client, RedisServer};
use leader_tests::script::Interpreter;
use leader_tests::script::server::Server;
use redis::Value;

use crate::reply;

/// Executes the commands in its arguments, each with the number of its parts before it, and tells what Lua sees of the
/// answers. How much time something has left differs by the way, and is not told.
const PROBE: &str = r"
local function told(reply)
  if type(reply) == 'table' then
    if reply.err then return 'error ' .. reply.err end
    if reply.ok then return 'done ' .. reply.ok end
    local parts = {}
    for i, part in ipairs(reply) do parts[i] = told(part) end
    return #reply .. ' [' .. table.concat(parts, ', ') .. ']'
  end
  if type(reply) == 'number' then return string.format('number %.0f', reply) end
  return type(reply) .. ' ' .. tostring(reply)
end
local answers, i = {}, 1
while ARGV[i] do
  local command = {}
  for k = 1, tonumber(ARGV[i]) do command[k] = ARGV[i + k] end
  i = i + 1 + tonumber(ARGV[i])
  local reply = redis.pcall(unpack(command))
  if command[1] == 'PTTL' and reply > 0 then reply = 'some time' end
  answers[#answers + 1] = told(reply)
end
return answers
";

/// Of which kind errors are, what may be named, and how numbers go in and out.
const LANGUAGE: &str = r"
local answers = {}
local function tell(...)
  local all = {...}
  for i = 1, select('#', ...) do all[i] = type(all[i]) .. ' ' .. tostring(all[i]) end
  answers[#answers + 1] = table.concat(all, ', ')
end
tell(pcall(redis.call, 'GET', KEYS[2]))
tell(pcall(error, {err = 'CODE words'}))
tell(pcall(error, 'words', 0))
tell((pcall(function() return nothing end)))
tell((pcall(function() something = 1 end)))
tell(pcall(function(...) return select('#', ...) end, nil, nil))
tell(redis.call('SET', KEYS[1], 1795000000000001, 'PX', 100000).ok, redis.call('GET', KEYS[1]))
redis.call('SET', KEYS[1], 9007199254740991)
tell(redis.call('GET', KEYS[1]), string.format('%.0f', redis.call('GET', KEYS[1]) + 0))
tell(redis.call('TIME')[1] * 1000 > 0, #redis.call('TIME'))
local server, replication = redis.call('INFO', 'server'), redis.call('INFO', 'replication')
tell(#string.match(server, 'run_id:(%w+)'), #string.match(replication, 'master_replid:(%w+)'))
tell(tonumber(''), tonumber(false))
tell(#{'a', 'b'}, unpack({'a', 'b'}))
answers[#answers + 1] = 1234.9
answers[#answers + 1] = true
answers[#answers + 1] = {1, {2, {'three'}}, {}}
return answers
";

const KEYS: [&str; 3] = ["leader:a", "leader:list", "{leader:a}:term"];

fn on_redis(client: &mut Client, script: &str, following: &[String]) -> Reply {
    let parts: Vec<_> = ["EVAL", script].into_iter().chain(following.iter().map(String::as_str)).collect();
    reply(client.command::<Value>(&parts).expect("the script runs"))
}

fn following(commands: &[&[&str]]) -> Vec<String> {
    let mut all = vec![KEYS.len().to_string()];
    all.extend(KEYS.map(str::to_owned));
    for command in commands {
        all.push(command.len().to_string());
        all.extend(command.iter().map(|part| (*part).to_owned()));
    }
    all
}

/// Runs the commands in one script on both, and compares each answer.
fn compare(client: &mut Client, stand_in: &Interpreter, commands: &[&[&str]]) {
    let following = following(commands);
    let Reply::List(expected) = on_redis(client, PROBE, &following) else { panic!("the script returns a list") };
    let Ok(Reply::List(played)) = stand_in.eval(following) else { panic!("the script returns a list") };
    assert_eq!(expected.len(), commands.len());
    for (command, (expected, played)) in commands.iter().zip(expected.iter().zip(&played)) {
        assert_eq!(played, expected, "{command:?}");
    }
}

#[test]
fn commands_answer_as_in_redis() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let mut client = redis.client().unwrap();
    let mut server = Server::new(0);
    server.now = 1_700_000_000_000_000;
    let stand_in = Interpreter::new(PROBE, server);
    let [lease, list, record] = KEYS;
    let commands: &[&[&str]] = &[
        // A key that is not there.
        &["GET", lease],
        &["PTTL", lease],
        &["PEXPIRE", lease, "1000"],
        &["PERSIST", lease],
        &["DEL", lease],
        &["HMGET", record, "term", "id"],
        // A lease.
        &["SET", lease, "a", "NX", "PX", "100000"],
        &["SET", lease, "b", "NX", "PX", "100000"],
        &["SET", lease, "b", "PX", "100000", "NX"],
        &["GET", lease],
        &["PTTL", lease],
        &["PEXPIRE", lease, "200000"],
        &["PTTL", lease],
        &["PERSIST", lease],
        &["PERSIST", lease],
        &["PTTL", lease],
        &["set", lease, "c", "px", "100000"],
        &["SET", lease, "c"],
        &["PTTL", lease],
        &["PEXPIRE", lease, "0"],
        &["GET", lease],
        &["SET", lease, ""],
        &["GET", lease],
        &["PEXPIRE", lease, "-5"],
        &["PTTL", lease],
        // A record.
        &["HSET", record, "term", "7", "id", "a", "empty", ""],
        &["HSET", record, "term", "8", "ttl", "1000"],
        &["HMGET", record, "term", "until", "id", "empty", "ttl"],
        &["PERSIST", record],
        &["PTTL", record],
        // Keys of other kinds.
        &["LTRIM", list, "-119", "-1"],
        &["LRANGE", list, "0", "-1"],
        &["RPUSH", list, "x", "y"],
        &["RPUSH", list, "z"],
        &["LTRIM", list, "-119", "-1"],
        &["LRANGE", list, "-2", "-1"],
        &["LRANGE", list, "-120", "-1"],
        &["LRANGE", list, "2", "1"],
        &["LTRIM", list, "-2", "-1"],
        &["LRANGE", list, "0", "-1"],
        &["LRANGE", list, "0", "x"],
        &["LTRIM", record, "-2", "-1"],
        &["LRANGE", record, "-2", "-1"],
        &["GET", list],
        &["GET", record],
        &["HMGET", list, "term"],
        &["HSET", list, "term", "1"],
        &["RPUSH", record, "x"],
        &["SET", list, "a", "NX", "PX", "100000"],
        &["PTTL", list],
        &["PEXPIRE", list, "100000"],
        &["DEL", list, record, lease],
        &["PTTL", list],
        // What is not well-formed.
        &["SET", lease, "a", "PX", "0"],
        &["SET", lease, "a", "PX", "x"],
        &["SET", lease, "a", "PX"],
        &["PEXPIRE", lease, "x"],
        &["PEXPIRE", lease, "1.5"],
        &["HSET", record, "term", "1", "id"],
        &["HSET", record, "term"],
        &["GET"],
        &["GET", lease, lease],
        &["TIME", lease],
        &["NOTHING", lease],
        &["PUBLISH", lease, "7"],
    ];
    compare(&mut client, &stand_in, commands);
    assert_eq!(stand_in.server().published, [(lease.to_owned(), "7".to_owned())]);
}

#[test]
fn lua_is_that_of_redis() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let mut client = redis.client().unwrap();
    let stand_in = Interpreter::new(LANGUAGE, Server::new(0));
    stand_in.server().now = 1_700_000_000_000_000;
    client.command::<()>(&["RPUSH", KEYS[1], "x"]).unwrap();
    stand_in.server().call(&["RPUSH", KEYS[1], "x"].map(str::to_owned));
    let following = following(&[]);
    let expected = on_redis(&mut client, LANGUAGE, &following);
    assert_eq!(stand_in.eval(following), Ok(expected));
}

#[test]
fn an_error_that_nobody_catches_fails_the_script_on_both() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let mut client = redis.client().unwrap();
    for script in
        ["return redis.call('HSET', KEYS[1])", "error({err = 'CODE words'})", "return redis.error_reply('CODE words')"]
    {
        let expected = client.command::<Value>(&["EVAL", script, "1", KEYS[0]]).unwrap_err();
        let played =
            Interpreter::new(script, Server::new(0)).eval(vec!["1".to_owned(), KEYS[0].to_owned()]).unwrap_err();
        let code = played.split(' ').next();
        assert_eq!(code, expected.code().or(Some("ERR")), "{script}: {played}; {expected}");
    }
}

#[test]
fn a_server_in_trouble_refuses_what_redis_refuses() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let mut client = redis.client().unwrap();
    let mut server = Server::new(0);
    server.now = 1_700_000_000_000_000;
    let stand_in = Interpreter::new(PROBE, server);
    let [lease, list, record] = KEYS;
    let write: [&[&str]; 2] = [&["SET", lease, "a", "PX", "100000"], &["HSET", record, "term", "1"]];
    compare(&mut client, &stand_in, &write);

    redis.exhaust_memory();
    stand_in.server().troubles.full = true;
    // What reads and what may need memory; then what only changes what is there, after which nothing is refused.
    for first in [
        &["PEXPIRE", lease, "100000"] as &[_],
        &["PERSIST", record],
        &["PERSIST", "leader:list"],
        &["LTRIM", list, "-1", "-1"],
        &["DEL", list],
        &["PUBLISH", lease, "1"],
        &["GET", lease],
    ] {
        compare(
            &mut client,
            &stand_in,
            &[
                &["SET", lease, "b", "NX", "PX", "100000"],
                &["HSET", record, "term", "2"],
                &["HMGET", record, "term"],
                &["RPUSH", list, "x"],
                first,
                &["HSET", record, "term", "3"],
                &["SET", list, "b", "PX", "100000"],
                &["HMGET", record, "term"],
                &["DEL", list],
            ],
        );
    }
    redis.relieve_memory();
    stand_in.server().troubles.full = false;

    redis.become_replica();
    stand_in.server().troubles.replica = true;
    compare(
        &mut client,
        &stand_in,
        &[
            &["GET", lease],
            &["SET", lease, "b"],
            &["PEXPIRE", lease, "1000"],
            &["PERSIST", record],
            &["DEL", lease],
            &["HSET", record, "term", "9"],
            &["PUBLISH", lease, "1"],
            &["HMGET", record, "term"],
        ],
    );
    redis.become_primary();
    stand_in.server().troubles.replica = false;

    redis.command::<()>(&["ACL", "SETUSER", "harness", "-info", "-publish", "-set"]);
    stand_in.server().troubles.denied = vec!["INFO", "PUBLISH", "SET"];
    compare(
        &mut client,
        &stand_in,
        &[&["INFO", "server"], &["PUBLISH", lease, "1"], &["SET", lease, "b"], &["GET", lease]],
    );
}
