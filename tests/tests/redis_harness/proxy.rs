//! The proxy delivers everything, and otherwise what it is told.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use leader_tests::process::{PATIENCE, eventually};
use leader_tests::redis::{Client, Proxy, RedisServer, Way};

const A_WHILE: Duration = Duration::from_millis(300);

/// A server, and a proxy before it.
fn two() -> Option<(RedisServer, Proxy)> {
    let redis = RedisServer::start(&[])?;
    let proxy = Proxy::before(&redis);
    Some((redis, proxy))
}

fn through(proxy: &Proxy) -> Client {
    Client::open(proxy.address(), None).unwrap()
}

/// A connection on which commands are sent without waiting for replies.
fn raw(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect(proxy.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn send(mut stream: &TcpStream, command: &str) {
    stream.write_all(format!("{command}\r\n").as_bytes()).unwrap();
}

fn line(mut stream: &TcpStream) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        line.push(byte[0]);
    }
    String::from_utf8(line).unwrap().trim_end().to_owned()
}

fn has(redis: &RedisServer, key: &str) -> bool {
    redis.command(&["EXISTS", key])
}

#[test]
fn everything_is_delivered_and_the_end_too() {
    let Some((redis, proxy)) = two() else { return };
    let mut client = through(&proxy);
    let large = "x".repeat(1 << 20);
    client.command::<()>(&["SET", "key", &large]).unwrap();
    assert!(client.command::<String>(&["GET", "key"]).unwrap() == large);
    assert_eq!((proxy.connections(), redis.connections()), (1, 1));
    drop(client);
    eventually("the server's side has ended", || (redis.connections() == 0 && proxy.connections() == 0).then_some(()));
    let stream = raw(&proxy);
    send(&stream, "QUIT");
    assert_eq!(line(&stream), "+OK");
    assert_eq!((&stream).read(&mut [0]).unwrap(), 0, "the server has closed it");
}

#[test]
fn delays_add_up_over_both_directions() {
    let Some((_redis, proxy)) = two() else { return };
    let mut client = through(&proxy);
    proxy.delay(Way::ToServer, A_WHILE);
    proxy.delay(Way::ToClient, A_WHILE);
    let begin = Instant::now();
    client.command::<()>(&["PING"]).unwrap();
    assert!(begin.elapsed() >= 2 * A_WHILE, "{:?}", begin.elapsed());
}

#[test]
fn connections_are_cut_and_new_ones_refused_until_they_are_accepted_again() {
    let Some((redis, proxy)) = two() else { return };
    let mut client = through(&proxy);
    client.command::<()>(&["PING"]).unwrap();
    proxy.cut();
    assert_eq!(proxy.connections(), 0);
    assert!(client.command::<()>(&["PING"]).is_err());
    let mut client = through(&proxy);
    proxy.refuse();
    client.command::<()>(&["PING"]).unwrap();
    for _ in 0..2 {
        assert_eq!(TcpStream::connect(proxy.address()).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }
    proxy.accept();
    through(&proxy).command::<()>(&["PING"]).unwrap();
    drop(redis);
    // Nobody is behind it: a connection that ends at once.
    assert_eq!(raw(&proxy).read(&mut [0]).unwrap_or(0), 0);
}

#[test]
fn what_a_client_has_sent_arrives_late_though_it_has_gone() {
    let Some((redis, proxy)) = two() else { return };
    let held = raw(&proxy);
    // It has been carried before.
    send(&held, "PING");
    assert_eq!(line(&held), "+PONG");
    proxy.hold(Way::ToServer);
    send(&held, "SET late 1");
    proxy.until_held(Way::ToServer, "SET late");
    held.shutdown(Shutdown::Both).unwrap();
    drop(held);
    // A connection that is made now is carried, and what it did was before what is held.
    let mut client = through(&proxy);
    client.command::<()>(&["SET", "new", "1"]).unwrap();
    assert!(has(&redis, "new") && !has(&redis, "late"));
    proxy.release(Way::ToServer);
    // It has been delivered; the server reads it when it gets to it.
    eventually("what was held has arrived", || has(&redis, "late").then_some(()));
    client.command::<()>(&["PING"]).unwrap();
}

#[test]
fn an_interrupted_network_delivers_in_order_when_it_is_back() {
    let Some((redis, proxy)) = two() else { return };
    let before = raw(&proxy);
    proxy.stall(Way::ToServer);
    let later = raw(&proxy);
    for (stream, key) in [(&before, "a"), (&later, "b")] {
        send(stream, &format!("SET {key} 1"));
        send(stream, &format!("APPEND {key} 2"));
    }
    proxy.until_held(Way::ToServer, "APPEND a");
    proxy.until_held(Way::ToServer, "APPEND b");
    assert!(!has(&redis, "a") && !has(&redis, "b"));
    proxy.release(Way::ToServer);
    for stream in [before, later] {
        assert_eq!((line(&stream), line(&stream)), ("+OK".to_owned(), ":2".to_owned()));
    }
}

#[test]
fn one_way_is_lost_and_the_other_is_not() {
    let Some((redis, proxy)) = two() else { return };
    let lost = raw(&proxy);
    proxy.swallow(Way::ToClient);
    send(&lost, "SET one 1");
    proxy.until_lost(Way::ToClient, 1);
    assert!(has(&redis, "one"));
    // As if it had never answered, also after the network is well again: what was lost stays so.
    proxy.heal();
    lost.set_read_timeout(Some(A_WHILE)).unwrap();
    send(&lost, "SET two 1");
    proxy.until_lost(Way::ToClient, 2);
    assert!(has(&redis, "two"));
    assert_eq!((&lost).read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    through(&proxy).command::<()>(&["PING"]).unwrap();
}

#[test]
fn a_black_hole_takes_connections_and_answers_none() {
    let Some((redis, proxy)) = two() else { return };
    proxy.black_hole();
    let lost = raw(&proxy);
    lost.set_read_timeout(Some(A_WHILE)).unwrap();
    send(&lost, "SET key 1");
    assert_eq!((&lost).read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert!(!has(&redis, "key"));
}

#[test]
fn the_nth_chunk_is_lost_with_what_follows_it() {
    let Some((redis, proxy)) = two() else { return };
    let other = raw(&proxy);
    let stream = raw(&proxy);
    // Each is a chunk of its own because its reply was waited for.
    let ask = |stream: &TcpStream| {
        send(stream, "PING");
        line(stream)
    };
    assert_eq!((ask(&stream), ask(&other)), ("+PONG".to_owned(), "+PONG".to_owned()));
    proxy.swallow_nth(Way::ToServer, 2);
    assert_eq!(ask(&stream), "+PONG");
    send(&stream, "SET second 1");
    stream.set_read_timeout(Some(A_WHILE)).unwrap();
    assert_eq!((&stream).read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    send(&stream, "SET third 1");
    assert_eq!((&stream).read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(ask(&other), "+PONG", "only one was to be lost");
    assert!(!has(&redis, "second") && !has(&redis, "third"));
}
