//! Links: replies, time-outs, ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::super::connection::{Failure, Link, Reply, Request};
use super::proxy::Proxy;
use super::server::Server;
use super::{AMPLE, SHORT, client, link, request, run, text};

/// More than the systems on both ends hold of what a stopped server does not read: whatever follows waits in the client.
const OVERFLOWING: usize = 32 << 20;
/// More than a stopped server's system takes in for it, and little enough for ours to hold.
const FILLING: usize = 1 << 20;

fn of_size(size: usize) -> Request {
    Request::new("ECHO", vec!["x".repeat(size)])
}

#[tokio::test]
async fn each_kind_of_reply_comes_through() {
    let Some(server) = Server::start(&[]) else { return };
    let link = link(&server.url()).await;
    for (words, reply) in [
        (&["GET", "nothing"][..], Reply::Nil),
        (&["SET", "key", "wörter und ümlaute"], text("OK")),
        (&["GET", "key"], text("wörter und ümlaute")),
        (&["SET", "empty", ""], text("OK")),
        (&["GET", "empty"], text("")),
        (&["INCRBY", "n", "9007199254740993"], Reply::Integer(9_007_199_254_740_993)),
        (&["DECRBY", "m", "1"], Reply::Integer(-1)),
        (&["MGET"], Reply::Nil),
        (&["MGET", "key", "nothing"], Reply::List(vec![text("wörter und ümlaute"), Reply::Nil])),
        (
            &["EVAL", "return {1, {'a', {}}, false, KEYS[1], ARGV[1]}", "1", "k", "v"],
            Reply::List(vec![
                Reply::Integer(1),
                Reply::List(vec![text("a"), Reply::List(vec![])]),
                Reply::Nil,
                text("k"),
                text("v"),
            ]),
        ),
    ] {
        let got = run(&*link, words).await;
        if words == ["MGET"] {
            assert!(matches!(got, Err(Failure::Server(_))), "{got:?}");
        } else {
            assert_eq!(got.unwrap(), reply, "{words:?}");
        }
    }
    // What is no text is shown as well as it can be.
    assert_eq!(run(&*link, &["EVAL", "return 'a\\255'", "0"]).await.unwrap(), text("a\u{fffd}"));
}

#[tokio::test]
async fn errors_of_the_server_come_as_they_are_and_leave_the_link_alone() {
    let Some(server) = Server::start(&[]) else { return };
    let link = link(&server.url()).await;
    run(&*link, &["LPUSH", "list", "x"]).await.unwrap();
    for (words, error) in [
        (&["GET", "list"][..], "WRONGTYPE Operation against a key holding the wrong kind of value"),
        (&["EVALSHA", "0", "0"], "NOSCRIPT No matching script. Please use EVAL."),
        (&["EVAL", "return redis.error_reply('MOVED 1 127.0.0.1:1')", "0"], "MOVED 1 127.0.0.1:1"),
        (&["EVAL", "return redis.error_reply('READONLY as a replica says')", "0"], "READONLY as a replica says"),
        (&["EVAL", "return redis.error_reply('NOAUTH as if logged out')", "0"], "NOAUTH as if logged out"),
        (&["EVAL", "return {1, redis.error_reply('ERR inside')}", "0"], "ERR inside"),
    ] {
        assert_eq!(run(&*link, words).await, Err(Failure::Server(error.to_owned())), "{words:?}");
    }
    assert_eq!(run(&*link, &["PING"]).await.unwrap(), text("PONG"));
}

#[tokio::test]
async fn many_calls_share_a_link_and_each_gets_its_own_reply() {
    let Some(server) = Server::start(&[]) else { return };
    let link: Arc<dyn Link> = link(&server.url()).await.into();
    let mut calls = JoinSet::new();
    for n in 0..500 {
        let link = Arc::clone(&link);
        calls.spawn(async move {
            let n = format!("{n}");
            let reply = link.run(Request::new("ECHO", vec![n.clone()]), AMPLE).await;
            assert_eq!(reply.unwrap(), Reply::Text(n));
        });
    }
    while let Some(done) = calls.join_next().await {
        done.unwrap();
    }
}

#[tokio::test]
async fn an_address_of_version_6_stands_in_brackets() {
    // Not every machine has such addresses; where there are none, there is nothing to try.
    let Ok(listener) = TcpListener::bind("[::1]:0").await else { return };
    let client = client(&format!("redis://{}", listener.local_addr().unwrap()));
    let accepted = tokio::select! {
        failed = client.connect(AMPLE) => panic!("{:?}", failed.err()),
        accepted = listener.accept() => accepted,
    };
    accepted.unwrap();
}

#[tokio::test]
async fn after_a_call_that_got_no_answer_no_further_one_is_sent_but_those_under_way_go_on() {
    let Some(server) = Server::start(&[]) else { return };
    let link = link(&server.url()).await;
    server.stop();
    let short = async {
        let before = Instant::now();
        let short = link.run(Request::bare("PING"), SHORT).await;
        assert!(before.elapsed() >= SHORT && before.elapsed() < AMPLE);
        assert_eq!(short, Err(Failure::TimedOut));
        let next = run(&*link, &["INCR", "n"]).await;
        assert!(matches!(&next, Err(Failure::Unreachable(cause)) if cause.contains("given up")), "{next:?}");
        server.resume();
    };
    let (long, ()) = tokio::join!(link.run(Request::bare("PING"), AMPLE), short);
    assert_eq!(long, Ok(Reply::Text("PONG".to_owned())));
    assert_eq!(server.ask(&["GET", "n"]), Reply::Nil);
    assert!(matches!(run(&*link, &["PING"]).await, Err(Failure::Unreachable(_))));
}

#[tokio::test]
async fn a_call_without_time_is_not_sent() {
    let Some(server) = Server::start(&[]) else { return };
    let link = link(&server.url()).await;
    assert_eq!(link.run(request(&["INCR", "n"]), Duration::ZERO).await, Err(Failure::TimedOut));
    assert_eq!(run(&*link, &["GET", "n"]).await.unwrap(), Reply::Nil);
}

/// The server stands still while `INCR late` waits behind a command of this size, and `give_up` ends both. The link is kept.
async fn later(size: usize, give_up: impl AsyncFnOnce(&dyn Link)) {
    let Some(server) = Server::start(&["--proto-max-bulk-len", "64mb"]) else { return };
    let stuck = link(&server.url()).await;
    server.stop();
    give_up(&*stuck).await;
    // The next time that the runtime looks at its tasks, the connection is gone.
    tokio::task::yield_now().await;
    server.resume();
    tokio::time::timeout(AMPLE, server.wait_until_alone()).await.unwrap();
    assert_eq!(server.ask(&["GET", "late"]), Reply::Nil, "behind {size} bytes");
}

#[tokio::test]
async fn what_was_not_sent_in_its_time_is_never_sent() {
    for size in [FILLING, OVERFLOWING] {
        later(size, async |link| {
            let calls = (link.run(of_size(size), SHORT), link.run(request(&["INCR", "late"]), SHORT));
            let (first, late) = tokio::join!(calls.0, calls.1);
            assert_eq!(first, Err(Failure::TimedOut));
            assert!(late.is_err());
        })
        .await;
    }
}

#[tokio::test]
async fn what_was_not_sent_when_its_future_was_dropped_is_never_sent() {
    for size in [FILLING, OVERFLOWING] {
        later(size, async |link| {
            let (first, late) = (link.run(of_size(size), AMPLE), link.run(request(&["INCR", "late"]), AMPLE));
            let both = async { tokio::join!(first, late) };
            assert!(tokio::time::timeout(SHORT, both).await.is_err());
        })
        .await;
    }
}

#[tokio::test]
async fn a_dropped_link_closes_its_socket_at_once() {
    let Some(server) = Server::start(&[]) else { return };
    let mut proxy = Proxy::to(server.port).await;
    let link = link(&format!("redis://{}", proxy.address)).await;
    drop(link);
    tokio::time::timeout(AMPLE, proxy.left()).await.unwrap();
}

#[tokio::test]
async fn a_connect_that_is_dropped_leaves_nothing_behind() {
    let Some(server) = Server::start(&[]) else { return };
    let mut proxy = Proxy::to(server.port).await;
    proxy.silence(true);
    let client = client(&format!("redis://{}", proxy.address));
    assert!(tokio::time::timeout(SHORT, client.connect(AMPLE)).await.is_err());
    tokio::time::timeout(AMPLE, proxy.left()).await.unwrap();
}

#[tokio::test]
async fn a_link_whose_server_died_fails_at_once_and_for_good() {
    let Some(mut server) = Server::start(&[]) else { return };
    let link = link(&server.url()).await;
    server.stop();
    let died = async {
        // The call is on its way by then.
        tokio::task::yield_now().await;
        server.restart();
    };
    let (pending, ()) = tokio::join!(run(&*link, &["INCR", "n"]), died);
    assert!(matches!(pending, Err(Failure::Unreachable(_))), "{pending:?}");
    for _ in 0..3 {
        let after = run(&*link, &["INCR", "n"]).await;
        assert!(matches!(after, Err(Failure::Unreachable(_))), "{after:?}");
    }
    assert_eq!(server.ask(&["GET", "n"]), Reply::Nil);
}

#[tokio::test]
async fn a_link_that_an_operator_killed_says_so_at_the_next_call() {
    let Some(server) = Server::start(&[]) else { return };
    let link = link(&server.url()).await;
    server.ask(&["CLIENT", "KILL", "TYPE", "normal"]);
    let after = run(&*link, &["PING"]).await;
    assert!(
        matches!(&after, Err(Failure::Unreachable(cause)) if cause.contains(&server.port.to_string())),
        "{after:?}"
    );
}
