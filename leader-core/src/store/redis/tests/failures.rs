//! What is said when a connection does not come about.

use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::super::connection::{Failure, Reply};
use super::server::Server;
use super::{AMPLE, SHORT, chosen, client, run};
use crate::config::RedisClient;

/// Never to be seen.
const PASSWORD: &str = "s3cret!";

async fn failed(url: &str) -> Failure {
    let failure = client(url).connect(AMPLE).await.err().unwrap_or_else(|| panic!("{url} was connected to"));
    let shown = format!("{failure:?}");
    assert!(!shown.contains(PASSWORD) && !shown.contains("%21"), "{shown}");
    failure
}

#[tokio::test]
async fn refused() {
    // Nobody listens there any more.
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let expected = Failure::Unreachable(format!("connection refused by 127.0.0.1:{port}"));
    assert_eq!(failed(&format!("redis://:s3cret%21@127.0.0.1:{port}")).await, expected);
}

#[tokio::test]
async fn an_unknown_host_is_named() {
    let failure = failed("redis://:s3cret%21@leader.invalid").await;
    assert!(matches!(&failure, Failure::Unreachable(cause) if cause.contains("`leader.invalid`")), "{failure:?}");
}

#[tokio::test]
async fn a_silent_peer_takes_the_time_it_is_given() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://:s3cret%21@{}", listener.local_addr().unwrap());
    let before = Instant::now();
    assert_eq!(client(&url).connect(SHORT).await.err(), Some(Failure::TimedOut));
    assert!(before.elapsed() >= SHORT && before.elapsed() < AMPLE);
}

#[tokio::test]
async fn a_peer_that_closes_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    // Before it was asked anything, once it was asked, and in the midst of the first questions.
    for (reads, says) in [(false, ""), (true, ""), (true, "+PONG\r\n"), (true, "+PONG\r\n:1\r\n")] {
        if chosen() != RedisClient::Fred && says.contains(':') {
            // An answer to a question that only fred asks.
            continue;
        }
        for user in ["", ":s3cret%21@"] {
            let url = format!("redis://{user}{}", listener.local_addr().unwrap());
            let closing = async {
                loop {
                    let (mut socket, _) = listener.accept().await.unwrap();
                    if reads {
                        socket.read_u8().await.unwrap();
                        let says = if user.is_empty() { says.to_owned() } else { says.replace("PONG", "OK") };
                        socket.write_all(says.as_bytes()).await.unwrap();
                        socket.shutdown().await.unwrap();
                        // Whatever else is asked; an error is an end too.
                        let _ = tokio::io::copy(&mut socket, &mut tokio::io::sink()).await;
                    }
                }
            };
            // Not everybody asks as much before a link is one: then it is over.
            let failing = async {
                match client(&url).connect(AMPLE).await {
                    Ok(link) => run(&*link, &["PING"]).await.unwrap_err(),
                    Err(failure) => failure,
                }
            };
            let failure = tokio::select! { failure = failing => failure, () = closing => unreachable!() };
            assert!(matches!(&failure, Failure::Unreachable(cause) if cause.contains("closed")), "{failure:?}");
        }
    }
}

#[tokio::test]
async fn a_peer_that_is_no_redis_is_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let other = async {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        }
    };
    let failure = tokio::select! { failure = failed(&url) => failure, () = other => unreachable!() };
    assert!(matches!(&failure, Failure::Impossible { advice, .. } if advice.contains("host and port")), "{failure:?}");
}

#[tokio::test]
async fn what_the_server_says_to_a_login_comes_as_it_is() {
    let Some(server) = Server::start(&["--requirepass", "another"]) else { return };
    let at = format!("127.0.0.1:{}", server.port);
    let wrong = "WRONGPASS invalid username-password pair or user is disabled.";
    for (url, error) in [
        (format!("redis://{at}"), "NOAUTH Authentication required."),
        (format!("redis://:s3cret%21@{at}"), wrong),
        (format!("redis://default:s3cret%21@{at}"), wrong),
        (format!("redis://nobody:s3cret%21@{at}"), wrong),
        (format!("redis://nobody@{at}"), wrong),
        (format!("redis://:another@{at}/16"), "ERR DB index is out of range"),
    ] {
        assert_eq!(failed(&url).await, Failure::Server(error.to_owned()), "{url}");
    }
    let link = client(&format!("redis://:another@{at}/15")).connect(AMPLE).await.unwrap();
    run(&*link, &["SET", "in", "15"]).await.unwrap();
    assert_eq!(
        run(&*link, &["EVAL", "redis.call('SELECT', 15) return redis.call('GET', 'in')", "0"]).await.unwrap(),
        super::text("15")
    );
}

#[tokio::test]
async fn a_user_with_the_least_rights_can_do_all_that_is_needed() {
    let rights = "~leader:* resetchannels &leader:* -@all +eval +evalsha +script|load +get +ping +hello +auth +publish +subscribe";
    let user = format!("--user worker on >s3cret! {rights}");
    let user: Vec<&str> = user.split(' ').collect();
    let Some(server) = Server::start(&user) else { return };
    let client = client(&format!("redis://worker:s3cret%21@127.0.0.1:{}", server.port));
    let link = client.connect(AMPLE).await.unwrap();
    assert_eq!(run(&*link, &["EVAL", "return redis.call('GET', KEYS[1])", "1", "leader:x"]).await.unwrap(), Reply::Nil);
    let denied = run(&*link, &["GET", "other"]).await;
    assert!(matches!(&denied, Err(Failure::Server(error)) if error.starts_with("NOPERM ")), "{denied:?}");
    client.subscribe(vec!["leader:x".to_owned()], Box::new(|_| {}), AMPLE, AMPLE).await.unwrap();
}

#[tokio::test]
async fn who_may_not_select_the_database_is_kept_out_of_every_other() {
    let rights = ["--user", "worker", "on", ">s3cret!", "~*", "&*", "+@all", "-select"];
    let Some(server) = Server::start(&rights) else { return };
    let failure = failed(&format!("redis://worker:s3cret%21@127.0.0.1:{}/3", server.port)).await;
    assert!(matches!(&failure, Failure::Server(error) if error.starts_with("NOPERM ")), "{failure:?}");
}

#[tokio::test]
async fn a_server_that_takes_no_more_clients_is_told() {
    let Some(server) = Server::start(&["--maxclients", "1"]) else { return };
    let _first = client(&server.url()).connect(AMPLE).await.unwrap();
    assert_eq!(failed(&server.url()).await, Failure::Server("ERR max number of clients reached".to_owned()));
}

#[tokio::test]
async fn a_server_that_repeats_what_it_was_told_shows_no_password() {
    let Some(server) = Server::start(&["--rename-command", "AUTH", ""]) else { return };
    for user in ["", "somebody"] {
        let failure = failed(&format!("redis://{user}:s3cret%21@127.0.0.1:{}", server.port)).await;
        assert_eq!(failure, Failure::Server("ERR unknown command 'AUTH'".to_owned()));
    }
}
