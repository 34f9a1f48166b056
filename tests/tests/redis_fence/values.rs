//! What is written is what was meant, byte for byte.

use std::time::Duration;

use leader_core::fence::{FenceError, Script, Value};
use leader_core::{Config, Elector, StoreError};
use leader_tests::redis::RedisServer;

use crate::{KEY, LONG, MARK, leader, value};

#[tokio::test]
async fn keys_values_and_arguments_are_bytes() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let (elector, lease) = leader(&redis).await;
    let all: Vec<u8> = (0..=255).collect();
    let texts: [&[u8]; 5] = [b"", b"\r\n$3\r\n", b"\xff\x00\xfe", "wörter".as_bytes(), &all];
    for bytes in texts {
        elector.fence().set(&lease, bytes, bytes).await.unwrap();
        let echo = Script::new("return {redis.call('GET', KEYS[1]), ARGV[1], KEYS[1]}").key(bytes).arg(bytes);
        let told = elector.fence().run(&lease, echo).await.unwrap();
        assert_eq!(told, Value::Array(vec![Value::Bytes(bytes.to_vec()); 3]));
        // By another client: not only the way there and back is the same.
        let script = "return redis.call('GET', KEYS[1]) == KEYS[1] and redis.call('STRLEN', KEYS[1])";
        let length = elector.fence().run(&lease, Script::new(script).key(bytes)).await.unwrap();
        assert_eq!(length.as_integer(), Some(i64::try_from(bytes.len()).unwrap()));
        assert!(elector.fence().delete(&lease, bytes).await.unwrap());
    }
    elector.fence().set(&lease, KEY, "plain").await.unwrap();
    assert_eq!(value(&redis).as_deref(), Some("plain"));
}

#[tokio::test]
async fn a_script_answers_what_it_returns() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let (elector, lease) = leader(&redis).await;
    let bytes = |text: &str| Value::Bytes(text.into());
    for (text, told) in [
        ("", Value::Nil),
        ("return nil", Value::Nil),
        ("return false", Value::Nil),
        ("return true", Value::Integer(1)),
        ("return 9007199254740991", Value::Integer(9_007_199_254_740_991)),
        ("return -1", Value::Integer(-1)),
        ("return 'text' -- and a remark at the end", bytes("text")),
        ("return redis.call('SET', KEYS[1], 'x')", Value::Status("OK".to_owned())),
        ("return redis.status_reply('FINE')", Value::Status("FINE".to_owned())),
        ("return {}", Value::Array(vec![])),
        ("return {#KEYS, #ARGV, KEYS[1], ARGV[2]}", {
            Value::Array(vec![Value::Integer(1), Value::Integer(2), bytes(KEY), bytes("b")])
        }),
        (
            "return {1, {'two', {3}}, redis.error_reply('BAD luck')}",
            Value::Array(vec![
                Value::Integer(1),
                Value::Array(vec![bytes("two"), Value::Array(vec![Value::Integer(3)])]),
                Value::Error("BAD luck".to_owned()),
            ]),
        ),
        // What stands around it is out of its sight.
        ("return type(rawget(_G, 'token')) .. type(rawget(_G, 'holds'))", bytes("nilnil")),
    ] {
        let script = Script::new(text).key(KEY).arg("a").arg("b");
        assert_eq!(elector.fence().run(&lease, script).await.unwrap(), told, "{text}");
    }
}

#[tokio::test]
async fn a_value_can_be_set_for_a_time_and_otherwise_has_no_end() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let (elector, lease) = leader(&redis).await;
    let left = || redis.command::<i64>(&["PTTL", KEY]);
    elector.fence().set_for(&lease, KEY, "x", LONG).await.unwrap();
    assert!((1..=60_000).contains(&left()), "{}", left());
    elector.fence().set(&lease, KEY, "x").await.unwrap();
    assert_eq!(left(), -1);
    // Longer than Redis can think; and than a clock can.
    elector.fence().timeout(Duration::MAX).set(&lease, KEY, "x").await.unwrap();
    elector.fence().set_for(&lease, KEY, "x", Duration::MAX).await.unwrap();
    assert!(left() > 0);
    elector.fence().set_for(&lease, KEY, "x", Duration::ZERO).await.unwrap();
    leader_tests::process::eventually("it has ended", || value(&redis).is_none().then_some(()));
}

#[tokio::test]
async fn a_script_that_fails_midway_has_written_and_counts_as_having_written() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let (elector, lease) = leader(&redis).await;
    for (text, said) in [
        ("redis.call('SET', KEYS[1], 'half') redis.call('INCR', KEYS[1])", "not an integer"),
        ("redis.call('SET', KEYS[1], 'half') error({err = 'POOR there is less'})", "POOR there is less"),
        ("redis.call('SET', KEYS[1], 'half') return redis.error_reply('POOR there is less')", "POOR there is less"),
        ("redis.call('SET', KEYS[1], 'half') error('a plain text')", "a plain text"),
        ("redis.call('SET', KEYS[1], 'half') return nothing.at.all", "nothing"),
    ] {
        redis.command::<()>(&["DEL", KEY, MARK]);
        let failed = elector.fence().run(&lease, Script::new(text).key(KEY)).await.unwrap_err();
        assert!(matches!(&failed, FenceError::Script { error } if error.contains(said)), "{text}: {failed}");
        assert_eq!(value(&redis).as_deref(), Some("half"), "{text}");
        assert_eq!(crate::marked(&redis), Some(lease.term().get()), "{text}");
    }
    // Nothing of this was run.
    redis.command::<()>(&["DEL", KEY, MARK]);
    let failed = elector.fence().run(&lease, Script::new("redis.call('SET', KEYS[1], ").key(KEY)).await.unwrap_err();
    assert!(matches!(&failed, FenceError::Script { error } if error.contains("compiling")), "{failed}");
    assert_eq!((value(&redis), crate::marked(&redis)), (None, None));
}

#[tokio::test]
async fn a_script_without_keys_is_run_for_the_present_holder_alone() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let (a, old) = leader(&redis).await;
    let script = || Script::new("return 'ran'");
    assert_eq!(a.fence().run(&old, script()).await.unwrap().as_text(), Some("ran"));
    a.step_down("default").await.unwrap();
    let refused = a.fence().run(&old, script()).await;
    assert!(matches!(refused, Err(FenceError::Fenced { newest: None, .. })), "{refused:?}");
}

#[tokio::test]
async fn on_another_store_each_write_is_an_error_that_says_what_to_do() {
    let elector = Elector::start(Config::new("memory:no-fence")).await.unwrap();
    let lease = elector.lease("default").unwrap();
    let refused = elector.fence().set(&lease, KEY, "x").await.unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("guarded set of `balance:7` on memory:no-fence") && text.contains("Redis server"), "{text}");
    assert!(matches!(refused, FenceError::Store(StoreError::Refused { .. })));
    elector.shutdown(Duration::ZERO).await.unwrap();
    assert_eq!(elector.fence().set(&lease, KEY, "x").await, Err(FenceError::Stopped));
}
