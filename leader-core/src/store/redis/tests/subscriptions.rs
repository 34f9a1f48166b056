//! Subscriptions: what is heard, and that they come back.

use std::sync::{Mutex, mpsc as blocking};
use std::time::Duration;

use tokio::sync::mpsc;

use super::super::RedisStore;
use super::super::connection::{Failure, Heard, Reply, Subscription};
use super::proxy::Proxy;
use super::server::Server;
use super::{AMPLE, SHORT, client, store_at};
use crate::error::StoreError;
use crate::group::GroupName;
use crate::identity::{Candidate, Incarnation, InstanceId};
use crate::store::{Announcement, Batch, Command, LeaseStore, Op, Session};
use crate::testing::Listener;

struct Ear {
    heard: mpsc::UnboundedReceiver<Heard>,
    _subscription: Box<dyn Subscription>,
}

impl Ear {
    async fn at(url: &str, channels: &[&str], timeout: Duration) -> Result<Self, Failure> {
        let (tell, heard) = mpsc::unbounded_channel();
        let channels = channels.iter().map(ToString::to_string).collect();
        let hear = Box::new(move |heard| tell.send(heard).unwrap_or_default());
        let subscription = client(url).subscribe(channels, hear, timeout, timeout).await?;
        Ok(Self { heard, _subscription: subscription })
    }

    async fn next(&mut self) -> Heard {
        tokio::time::timeout(AMPLE, self.heard.recv()).await.expect("nothing was heard").unwrap()
    }
}

fn message(channel: &str) -> Heard {
    Heard::Message { channel: channel.to_owned(), text: "x".to_owned() }
}

#[tokio::test]
async fn what_is_published_on_the_channels_is_heard_and_nothing_else() {
    let Some(server) = Server::start(&[]) else { return };
    let mut ear = Ear::at(&server.url(), &["a", "b"], AMPLE).await.unwrap();
    for (channel, listeners) in [("a", 1), ("c", 0), ("b", 1), ("a", 1)] {
        assert_eq!(server.ask(&["PUBLISH", channel, "x"]), Reply::Integer(listeners));
    }
    for channel in ["a", "b", "a"] {
        assert_eq!(ear.next().await, message(channel));
    }
}

#[tokio::test]
async fn ten_thousand_channels_are_one_subscription() {
    let Some(server) = Server::start(&[]) else { return };
    let channels: Vec<String> = (0..10_000).map(|n| format!("leader:group-number-{n}")).collect();
    let names: Vec<&str> = channels.iter().map(String::as_str).collect();
    let mut ear = Ear::at(&server.url(), &names, AMPLE).await.unwrap();
    for channel in [names[9_999], names[0]] {
        assert_eq!(server.ask(&["PUBLISH", channel, "x"]), Reply::Integer(1));
        assert_eq!(ear.next().await, message(channel));
    }
}

#[tokio::test]
async fn a_subscription_comes_back_after_a_restart_of_the_server_and_tells_of_the_gap() {
    let Some(mut server) = Server::start(&[]) else { return };
    let mut ear = Ear::at(&server.url(), &["a"], AMPLE).await.unwrap();
    for _ in 0..2 {
        server.restart();
        assert_eq!(ear.next().await, Heard::Gap);
        assert_eq!(server.ask(&["PUBLISH", "a", "x"]), Reply::Integer(1));
        assert_eq!(ear.next().await, message("a"));
    }
}

#[tokio::test]
async fn a_peer_that_went_silent_is_noticed_and_left() {
    let Some(server) = Server::start(&[]) else { return };
    let mut proxy = Proxy::to(server.port).await;
    let mut ear = Ear::at(&format!("redis://{}", proxy.address), &["a"], Duration::from_secs(1)).await.unwrap();
    proxy.silence(true);
    tokio::time::timeout(AMPLE, proxy.left()).await.unwrap();
    proxy.silence(false);
    assert_eq!(ear.next().await, Heard::Gap);
    assert_eq!(server.ask(&["PUBLISH", "a", "x"]), Reply::Integer(1));
    assert_eq!(ear.next().await, message("a"));
}

#[tokio::test]
async fn a_subscription_goes_on_trying_while_it_is_refused() {
    let Some(server) = Server::start(&[]) else { return };
    let mut ear = Ear::at(&server.url(), &["a"], AMPLE).await.unwrap();
    let admin = |commands: &[&[&str]]| drop(server.ask_all(commands));
    admin(&[&["CONFIG", "SET", "requirepass", "x"], &["CLIENT", "KILL", "TYPE", "pubsub"]]);
    // It was refused some times when this many connections were made since.
    let refused = |server: &Server| {
        let info = server.ask_all(&[&["AUTH", "x"], &["INFO", "errorstats"]]).pop();
        let Some(Reply::Text(info)) = info else { panic!("{info:?}") };
        info.split_once("errorstat_NOAUTH:count=").map_or(0, |(_, n)| n.trim_end().parse::<u64>().unwrap())
    };
    tokio::time::timeout(AMPLE, async {
        while refused(&server) < 5 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
    assert!(ear.heard.is_empty());
    admin(&[&["AUTH", "x"], &["CONFIG", "SET", "requirepass", ""]]);
    assert_eq!(ear.next().await, Heard::Gap);
}

#[tokio::test]
async fn a_refused_subscription_says_why() {
    let user = ["--user", "default", "on", "nopass", "~*", "+@all", "resetchannels", "&leader:*"];
    let Some(server) = Server::start(&user) else { return };
    for channels in [&["other"][..], &["leader:a", "other"]] {
        let failure = Ear::at(&server.url(), channels, AMPLE).await.err();
        assert!(matches!(&failure, Some(Failure::Server(error)) if error.starts_with("NOPERM ")), "{failure:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_too_slow_to_hear_it_all_is_told_of_the_gap() {
    let Some(server) = Server::start(&[]) else { return };
    let (tell, hears) = blocking::channel();
    let (go, goes) = blocking::channel::<()>();
    let goes = Mutex::new(goes);
    let hear = move |heard| {
        tell.send(heard).unwrap_or_default();
        // Until the test lets go of the other end.
        goes.lock().unwrap().recv().unwrap_or_default();
    };
    let _subscription =
        client(&server.url()).subscribe(vec!["a".to_owned()], Box::new(hear), AMPLE, AMPLE).await.unwrap();
    let publish: &[&str] = &["PUBLISH", "a", "x"];
    server.ask_all(&vec![publish; 10_000]);
    drop(go);
    // All of it, or a word that it was not all.
    for _ in 0..10_000 {
        if hears.recv_timeout(AMPLE).unwrap() == Heard::Gap {
            return;
        }
    }
}

#[tokio::test]
async fn a_dropped_subscription_closes_its_socket_at_once() {
    let Some(server) = Server::start(&[]) else { return };
    let mut proxy = Proxy::to(server.port).await;
    let ear = Ear::at(&format!("redis://{}", proxy.address), &["a"], AMPLE).await.unwrap();
    drop(ear);
    tokio::time::timeout(AMPLE, proxy.left()).await.unwrap();
}

/// An elector's session that was not answered in time, and what then comes of it.
struct Silenced {
    server: Server,
    listener: Listener,
    store: RedisStore,
    command: Command,
    /// The connections that listened and called before.
    before: [Vec<String>; 2],
}

impl Silenced {
    async fn new(timeout: Duration) -> Option<Self> {
        let server = Server::start(&[])?;
        let group = GroupName::new("g").unwrap();
        let candidate = Candidate { id: InstanceId::new("me").unwrap(), incarnation: Incarnation::random() };
        let (session, listener) = Listener::new(candidate.clone(), [group.clone()]);
        let store = store_at(&server.url());
        store.connect(Session { timeout, ..session }).await.unwrap();
        let command = Command { group, candidate, ttl: AMPLE, op: Op::Inspect };
        let mut silenced = Self { server, listener, store, command, before: [vec![], vec![]] };
        silenced.ask(AMPLE).await.unwrap();
        silenced.before = ["pubsub", "normal"].map(|kind| silenced.ids(kind));
        assert_eq!(silenced.before[0].len(), 1);
        silenced.server.stop();
        silenced.ask(SHORT).await.unwrap_err();
        silenced.server.resume();
        silenced.ask(AMPLE).await.unwrap();
        Some(silenced)
    }

    async fn ask(&self, timeout: Duration) -> Result<(), StoreError> {
        let batch = Batch { commands: vec![self.command.clone()], timeout };
        LeaseStore::execute(&self.store, batch).await.map(drop)
    }

    fn ids(&self, kind: &str) -> Vec<String> {
        let Reply::Text(list) = self.server.ask(&["CLIENT", "LIST", "TYPE", kind]) else { panic!() };
        list.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    }
}

/// Where packets are lost, each connection that has to be opened can take long.
#[tokio::test]
async fn what_listens_stays_when_a_call_gets_no_answer_in_time() {
    let Some(mut silenced) = Silenced::new(AMPLE).await else { return };
    assert_eq!(silenced.ids("pubsub"), silenced.before[0]);
    assert!(!silenced.ids("normal").contains(&silenced.before[1][0]), "a command may be stuck there");
    // Who waits for its next attempt need not, and it still hears.
    assert_eq!(silenced.listener.heard().await, Some(Announcement::Gap));
    silenced.server.ask(&["PUBLISH", "leader:g", ""]);
    assert_eq!(silenced.listener.heard().await, Some(Announcement::Released(silenced.command.group.clone())));
}

/// Or it would stay with a server that the address does not mean any more.
#[tokio::test]
async fn what_stayed_is_replaced_and_nothing_is_missed_meanwhile() {
    let Some(mut silenced) = Silenced::new(SHORT).await else { return };
    assert_eq!(silenced.listener.heard().await, Some(Announcement::Gap));
    assert_eq!(silenced.listener.heard().await, Some(Announcement::Gap));
    while silenced.ids("pubsub").len() != 1 {
        tokio::task::yield_now().await;
    }
    assert_ne!(silenced.ids("pubsub"), silenced.before[0]);
    silenced.server.ask(&["PUBLISH", "leader:g", ""]);
    while silenced.listener.heard().await != Some(Announcement::Released(silenced.command.group.clone())) {}
}
