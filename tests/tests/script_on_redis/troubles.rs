//! The script as it is, on a server with and without troubles.

use leader_core::Term;
use leader_core::store::{Answer, Command, Op, SameId};
use leader_core::testing::redis_script;
use leader_tests::redis::{Client, RedisServer};
use leader_tests::script::{PREFIX, lease_key, record_key};

use crate::{Fresh, TTL, acquire, ask, group, run, run_one, won};

/// An acquire by a leader that is within its right.
fn continuing(group: &str, id: &str, incarnation: u128, floor: Term) -> Command {
    ask(group, id, incarnation, Op::Acquire { floor, continues: true, same_id: SameId::Leave })
}

fn field(redis: &RedisServer, group_name: &str, field: &str) -> Option<String> {
    redis.command(&["HGET", &record_key(&group(group_name)), field])
}

fn pttl(redis: &RedisServer, group_name: &str) -> i64 {
    redis.command(&["PTTL", &lease_key(&group(group_name))])
}

#[test]
fn a_lease_is_won_held_renewed_and_released() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let client = &mut redis.client().unwrap();
    let term = won(&run_one(client, acquire("g", "a", 1))).term;
    let clock: (u64, u64) = redis.command(&["TIME"]);
    let now = clock.0 * 1_000_000 + clock.1;
    assert!(term.get() <= now && now < term.get() + 60_000_000, "{term} is not the server's time, {now}");
    assert!((590_000..=600_000).contains(&pttl(&redis, "g")));

    let Ok(Answer::Held(held)) = run_one(client, acquire("g", "b", 2)) else { panic!("it is held") };
    assert_eq!((held.holder.as_str(), held.term, held.same_id, held.foreign), ("a", Some(term), false, false));
    assert!(held.remaining <= TTL && held.remaining > TTL / 2);
    assert!(
        matches!(run_one(client, ask("g", "b", 2, Op::Inspect)), Ok(Answer::Inspected(Some(seen))) if seen.holder == held.holder)
    );
    let Ok(Answer::Held(held)) = run_one(client, acquire("g", "a", 3)) else { panic!("it is held") };
    assert!(held.same_id);

    assert_eq!(run_one(client, ask("g", "a", 1, Op::Renew { term })), Ok(Answer::Renewed));
    let other = Term::new(term.get() - 1);
    assert_eq!(run_one(client, ask("g", "a", 1, Op::Renew { term: other })), Ok(Answer::Lost { duplicate: false }));
    assert_eq!(run_one(client, ask("g", "a", 3, Op::Renew { term })), Ok(Answer::Lost { duplicate: true }));
    assert_eq!(run_one(client, ask("g", "b", 2, Op::Release { term: None })), Ok(Answer::NotHeld));
    assert_eq!(run_one(client, ask("g", "a", 1, Op::Release { term: Some(term) })), Ok(Answer::Released));
    assert_eq!(run_one(client, ask("g", "a", 1, Op::Release { term: Some(term) })), Ok(Answer::NotHeld));
    assert_eq!(run_one(client, ask("g", "b", 2, Op::Inspect)), Ok(Answer::Inspected(None)));
    assert!(won(&run_one(client, acquire("g", "b", 2))).term > term);
    assert_eq!(redis.command::<i64>(&["PTTL", &record_key(&group("g"))]), -1, "the record does not expire");
}

#[test]
fn a_server_that_started_again_gives_a_lease_to_nobody_but_a_leader_that_continues() {
    let Some(mut redis) = RedisServer::start(&[]) else { return };
    let client = &mut redis.client().unwrap();
    let of_record = |answer: &Result<Answer, String>| match answer {
        Ok(Answer::Quarantined { remaining, reason }) => {
            assert!(*remaining <= TTL && *remaining > TTL / 2, "{remaining:?}");
            *reason == redis_script::reason("record")
        }
        other => panic!("{other:?}"),
    };
    assert!(of_record(&run(client, Fresh::Wait, &[acquire("new", "a", 1)])[0]));
    let term = won(&run_one(client, acquire("g", "a", 1))).term;

    redis.restart_with_data();
    let client = &mut redis.client().unwrap();
    assert!(!of_record(&run_one(client, acquire("g", "a", 1))), "it is another server");
    let again = won(&run_one(client, continuing("g", "a", 1, term)));
    assert!(again.in_quarantine && again.term > term);

    redis.flush_all();
    assert!(of_record(&run(client, Fresh::Wait, &[acquire("g", "b", 2)])[0]));
}

#[test]
fn keys_of_a_wrong_type_fail_alone() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let client = &mut redis.client().unwrap();
    redis.command::<()>(&["RPUSH", &lease_key(&group("lease")), "x"]);
    redis.command::<()>(&["SET", &record_key(&group("record")), "x"]);
    let term = Term::new(1);
    let first = [acquire("lease", "a", 1), acquire("one", "a", 1), acquire("record", "a", 1), acquire("two", "a", 1)];
    let ops = [Op::Renew { term }, Op::Release { term: None }, Op::Inspect];
    let later = ops.map(|op| ["lease", "one", "record", "two"].map(|group| ask(group, "a", 1, op.clone())));
    for batch in [first].iter().chain(&later) {
        let answers = run(client, Fresh::Trust, batch);
        for (command, answer) in batch.iter().zip(&answers) {
            if ["lease", "record"].contains(&command.group.as_str()) {
                let error = answer.as_ref().unwrap_err();
                assert_eq!(error, "WRONGTYPE Operation against a key holding the wrong kind of value", "{command:?}");
            } else {
                assert!(answer.is_ok(), "{command:?}: {answer:?}");
            }
        }
    }
}

#[test]
fn without_memory_a_lease_is_kept_and_a_new_one_is_an_error() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let client = &mut redis.client().unwrap();
    let term = won(&run_one(client, acquire("g", "a", 1))).term;
    won(&run_one(client, acquire("free", "a", 1)));
    assert_eq!(run_one(client, ask("free", "a", 1, Op::Release { term: None })), Ok(Answer::Released));
    redis.exhaust_memory();

    assert_eq!(run_one(client, ask("g", "a", 1, Op::Renew { term })), Ok(Answer::Renewed));
    let again = won(&run_one(client, acquire("g", "a", 1))).term;
    assert!(again > term);
    let error = run_one(client, acquire("free", "a", 1)).unwrap_err();
    assert_eq!(error, "OOM command not allowed when used memory > 'maxmemory'.");
    let error = run_one(client, acquire("fresh", "a", 1)).unwrap_err();
    assert!(error.starts_with("OOM "), "{error}");
    assert_eq!(redis.command::<usize>(&["EXISTS", &lease_key(&group("free")), &lease_key(&group("fresh"))]), 0);

    // What is written down about a lease that is not given: the begin of a quarantine, and a floor.
    assert!(matches!(run(client, Fresh::Wait, &[acquire("new", "a", 1)])[0], Ok(Answer::Quarantined { .. })));
    assert!(field(&redis, "new", "quarantine").is_some());
    let floor = Term::new(again.get() + 1_000_000_000);
    let with_floor = ask("g", "b", 2, Op::Acquire { floor, continues: false, same_id: SameId::Leave });
    assert!(matches!(run_one(client, with_floor), Ok(Answer::Held(_))));
    assert_eq!(field(&redis, "g", "highest"), Some(floor.to_string()));
    assert_eq!(run_one(client, ask("g", "a", 1, Op::Release { term: Some(again) })), Ok(Answer::Released));
    assert_eq!(pttl(&redis, "g"), -2);

    redis.relieve_memory();
    assert!(won(&run_one(client, acquire("g", "b", 2))).term > floor);
}

#[test]
fn a_replica_refuses_every_change() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let client = &mut redis.client().unwrap();
    let term = won(&run_one(client, acquire("g", "a", 1))).term;
    redis.become_replica();
    let release = Op::Release { term: None };
    for command in
        [acquire("g", "a", 1), acquire("new", "a", 1), ask("g", "a", 1, Op::Renew { term }), ask("g", "a", 1, release)]
    {
        let error = run_one(client, command).unwrap_err();
        assert_eq!(error, "READONLY You can't write against a read only replica.");
    }
    assert!(matches!(run_one(client, ask("g", "b", 2, Op::Inspect)), Ok(Answer::Inspected(Some(_)))));
}

/// A user with just what the documentation asks for.
fn least_privileged(redis: &RedisServer) -> Client {
    let permissions = redis_script::permissions(PREFIX);
    let rules: Vec<_> =
        ["ACL", "SETUSER", "app", "on", ">word"].into_iter().chain(permissions.split_whitespace()).collect();
    redis.command::<()>(&rules);
    Client::open(redis.address(), Some(("app", "word"))).expect("it is let in")
}

#[test]
fn the_permissions_that_are_asked_for_are_enough_and_two_can_be_missing() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let client = &mut least_privileged(&redis);
    for denied in [&[] as &[&str], &["-publish"], &["resetchannels"], &["-info"]] {
        redis.command::<()>(&[&["ACL", "SETUSER", "app"], denied].concat());
        redis.flush_all();
        let term = won(&run_one(client, acquire("g", "a", 1))).term;
        let knows = field(&redis, "g", "server").unwrap();
        assert_eq!(knows == "-", denied == ["-info"], "{knows}");
        assert_eq!(run_one(client, ask("g", "a", 1, Op::Renew { term })), Ok(Answer::Renewed), "{denied:?}");
        assert!(matches!(run_one(client, acquire("g", "b", 2)), Ok(Answer::Held(_))), "{denied:?}");
        assert_eq!(
            run_one(client, ask("g", "a", 1, Op::Release { term: Some(term) })),
            Ok(Answer::Released),
            "{denied:?}"
        );
        assert_eq!(pttl(&redis, "g"), -2, "{denied:?}");
        assert!(matches!(run(client, Fresh::Wait, &[acquire("new", "a", 1)])[0], Ok(Answer::Quarantined { .. })));
    }
    redis.command::<()>(&["ACL", "SETUSER", "app", "-get"]);
    let error = run_one(client, acquire("g", "a", 1)).unwrap_err();
    assert_eq!(error, "ERR The user executing the script can't run this command or subcommand");
}

#[test]
fn a_release_is_announced_in_the_lease_s_channel() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let client = &mut redis.client().unwrap();
    let listening = redis::Client::open(format!("redis://{}", redis.address())).unwrap();
    let mut listening = listening.get_connection().unwrap();
    let mut listening = listening.as_pubsub();
    listening.subscribe(lease_key(&group("g"))).unwrap();
    let term = won(&run_one(client, acquire("g", "a", 1))).term;
    run_one(client, ask("g", "a", 1, Op::Release { term: Some(term) })).unwrap();
    let message = listening.get_message().unwrap();
    assert_eq!(message.get_payload::<String>().unwrap(), term.to_string());
}

#[test]
fn terms_are_exact_up_to_the_largest_whole_number() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let client = &mut redis.client().unwrap();
    let most = (1_u64 << 53) - 1;
    won(&run_one(client, acquire("g", "a", 1)));
    for term in most - 2..=most {
        let floor = Term::new(term - 1);
        let asked = ask("g", "a", 1, Op::Acquire { floor, continues: false, same_id: SameId::Leave });
        assert_eq!(won(&run_one(client, asked)).term.get(), term);
        assert_eq!(field(&redis, "g", "term"), Some(term.to_string()));
        let named = Op::Renew { term: Term::new(term) };
        let neighbour = Op::Renew { term: Term::new(term - 1) };
        if term < most {
            assert_eq!(run_one(client, ask("g", "a", 1, neighbour)), Ok(Answer::Lost { duplicate: false }));
            assert_eq!(run_one(client, ask("g", "a", 1, named)), Ok(Answer::Renewed));
        }
    }
    for command in [acquire("g", "a", 1), acquire("g", "b", 2), continuing("other", "a", 1, Term::new(most))] {
        let error = run_one(client, command).unwrap_err();
        assert!(error.contains("largest number that a record can hold"), "{error}");
    }
}

#[test]
fn what_others_wrote_into_a_lease_is_told_and_an_own_lease_without_end_gets_one() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let client = &mut redis.client().unwrap();
    let key = lease_key(&group("g"));
    won(&run_one(client, acquire("g", "a", 1)));
    redis.command::<()>(&["PERSIST", &key]);
    let Ok(Answer::Held(held)) = run_one(client, acquire("g", "b", 2)) else { panic!("it is held") };
    assert!(held.remaining <= TTL && held.remaining > TTL / 2, "{held:?}");
    assert!((1..=600_000).contains(&pttl(&redis, "g")), "it ends now");

    redis.command::<()>(&["PERSIST", &key]);
    won(&run_one(client, acquire("g", "a", 1)));
    assert!((1..=600_000).contains(&pttl(&redis, "g")), "it ends now");

    for (value, shown) in [("peer", "peer"), ("", "(empty)"), ("a b", "a?b")] {
        redis.command::<()>(&["SET", &key, value]);
        let Ok(Answer::Held(held)) = run_one(client, acquire("g", "b", 2)) else { panic!("it is held") };
        assert_eq!((held.holder.as_str(), held.term, held.remaining, held.foreign), (shown, None, TTL, true));
        assert_eq!(pttl(&redis, "g"), -1, "nobody knows its ttl");
    }
}
