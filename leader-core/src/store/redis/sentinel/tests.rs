//! Sentinels that a test writes: who is asked, how long that takes, and what becomes of links.

use std::collections::HashMap;
use std::sync::Mutex;

use super::super::address::{Access, Address};
use super::answer::Found;
use super::*;

/// More than anything takes, in paused time.
const AMPLE: Duration = Duration::from_secs(20);

pub(super) fn server(n: usize) -> Server {
    Server { host: format!("s{n}"), port: 26379 }
}

pub(super) fn sentinels(number: usize) -> Sentinels {
    let access = Access { tls: false, ca: None, certificate: None, user: None, password: None, database: 0 };
    Sentinels {
        servers: (0..number).map(server).collect(),
        service: "jobs".to_owned(),
        access: access.clone(),
        watched: access,
    }
}

pub(super) fn found(host: &str, epoch: u64) -> Found {
    Found { server: Server { host: host.to_owned(), port: 6379 }, epoch }
}

/// Hosts, and what becomes of a connection to each.
#[derive(Default)]
struct World {
    hosts: Mutex<HashMap<String, Host>>,
    /// To whom a link was opened, in this order.
    opened: Mutex<Vec<String>>,
}

#[derive(Clone)]
enum Host {
    /// A sentinel that tells of this primary.
    Tells(&'static str, u64),
    /// A server with this role.
    Is(&'static str),
    /// Refuses connections.
    Refuses,
    /// Never answers.
    Hangs,
}

impl World {
    fn new(hosts: &[(&str, Host)]) -> Arc<Self> {
        let world = Self::default();
        hosts.iter().for_each(|(name, host)| world.set(name, host.clone()));
        Arc::new(world)
    }

    fn set(&self, name: &str, host: Host) {
        self.hosts.lock().unwrap().insert(name.to_owned(), host);
    }

    fn host(&self, name: &str) -> Host {
        self.hosts.lock().unwrap().get(name).cloned().unwrap_or(Host::Refuses)
    }

    fn opened(&self) -> Vec<String> {
        std::mem::take(&mut *self.opened.lock().unwrap())
    }

    fn client(self: &Arc<Self>, sentinels: Sentinels) -> SentinelClient {
        let world = Arc::clone(self);
        let connector = move |address: Address| {
            Arc::new(To { world: Arc::clone(&world), name: address.server.host }) as Arc<dyn Client>
        };
        SentinelClient::new(sentinels, Box::new(connector))
    }
}

/// One host.
#[derive(Clone)]
struct To {
    world: Arc<World>,
    name: String,
}

impl Client for To {
    fn connect(&self, _: Duration) -> Pending<'_, Box<dyn Link>> {
        Box::pin(async move {
            match self.world.host(&self.name) {
                Host::Refuses => Err(Failure::Unreachable(format!("connection refused by {}", self.name))),
                Host::Hangs => std::future::pending().await,
                Host::Tells(..) | Host::Is(_) => {
                    self.world.opened.lock().unwrap().push(self.name.clone());
                    Ok(Box::new(self.clone()) as Box<dyn Link>)
                }
            }
        })
    }

    fn subscribe(
        &self,
        _: Vec<String>,
        _: Box<dyn Fn(Heard) + Send + Sync>,
        _: Duration,
        _: Duration,
    ) -> Pending<'_, Box<dyn Subscription>> {
        unreachable!("no test listens")
    }
}

impl Link for To {
    fn run(&self, request: Request, _: Duration) -> Pending<'_, Reply> {
        Box::pin(async move {
            let list =
                |parts: &[&str]| Ok(Reply::List(parts.iter().map(|part| Reply::Text((*part).to_owned())).collect()));
            match (self.world.host(&self.name), request.name, request.arguments.first().map(Vec::as_slice)) {
                (Host::Tells(host, _), "SENTINEL", Some(b"get-master-addr-by-name")) => list(&[host, "6379"]),
                (Host::Tells(_, epoch), "SENTINEL", Some(b"master")) => list(&["config-epoch", &epoch.to_string()]),
                (Host::Is(role), "ROLE", None) => list(&[role]),
                (_, name, _) => Err(Failure::Server(format!("ERR unknown command '{name}'"))),
            }
        })
    }

    fn is_over(&self) -> bool {
        false
    }
}

#[tokio::test(start_paused = true)]
async fn a_sentinel_that_hangs_costs_nothing_if_most_answer_and_a_part_of_the_time_if_not() {
    let world = World::new(&[
        ("s0", Host::Hangs),
        ("s1", Host::Tells("p", 1)),
        ("s2", Host::Tells("p", 1)),
        ("p", Host::Is("master")),
    ]);
    let client = world.client(sentinels(3));
    let began = tokio::time::Instant::now();
    client.connect(AMPLE).await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    world.set("s1", Host::Hangs);
    client.connect(AMPLE).await.unwrap();
    assert!(began.elapsed() > Duration::ZERO && began.elapsed() <= Duration::from_millis(501), "{:?}", began.elapsed());
    world.set("s2", Host::Hangs);
    let failure = client.connect(AMPLE).await.err();
    let Some(Failure::Unreachable(cause)) = failure else { panic!("{failure:?}") };
    assert!((0..3).all(|n| cause.contains(&format!("s{n}:26379 did not answer in time"))), "{cause}");
    assert!(began.elapsed() < AMPLE, "nothing would have been left for the primary");
}

#[tokio::test(start_paused = true)]
async fn a_link_leads_to_a_primary_only() {
    let world = World::new(&[("s0", Host::Tells("p", 1)), ("p", Host::Is("slave"))]);
    let client = world.client(sentinels(1));
    let failure = client.connect(AMPLE).await.err();
    let Some(Failure::Unreachable(cause)) = failure else { panic!("{failure:?}") };
    assert!(cause.contains("p:6379") && cause.contains("replica"), "{cause}");
    // Such as one that can be reached by its replicas only.
    world.set("p", Host::Refuses);
    let failure = client.connect(AMPLE).await.err();
    let Some(Failure::Unreachable(cause)) = failure else { panic!("{failure:?}") };
    assert_eq!(cause, "the sentinels call p:6379 the primary of `jobs`: connection refused by p");
    world.set("p", Host::Is("master"));
    client.connect(AMPLE).await.unwrap();
    // Who may not ask for the role learns by the first write.
    world.set("p", Host::Tells("", 0));
    client.connect(AMPLE).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_link_is_over_when_another_server_is_the_primary_and_that_is_told_once() {
    let world = World::new(&[("p", Host::Is("master")), ("q", Host::Is("master"))]);
    let tell = |host, epoch| (0..3).for_each(|n| world.set(&format!("s{n}"), Host::Tells(host, epoch)));
    tell("p", 1);
    let client = world.client(sentinels(3));
    let (tell_moved, mut moved) = tokio::sync::mpsc::unbounded_channel();
    let _lookout = client.watch(SELDOM, Box::new(move || tell_moved.send(()).unwrap()));
    let old = client.connect(AMPLE).await.unwrap();
    assert!(tokio::time::timeout(AMPLE, moved.recv()).await.is_err(), "it has not moved");
    assert!(!old.is_over());
    // One sentinel knows first, and it is enough: that was a later election.
    world.set("s1", Host::Tells("q", 2));
    let before = tokio::time::Instant::now();
    moved.recv().await.unwrap();
    assert!(before.elapsed() <= 3 * SELDOM, "{:?}", before.elapsed());
    assert!(old.is_over());
    tell("q", 2);
    let new = client.connect(AMPLE).await.unwrap();
    assert!(!new.is_over());
    assert!(tokio::time::timeout(AMPLE, moved.recv()).await.is_err(), "it has moved once");
    // The same election, elsewhere: an operator's doing.
    tell("p", 0);
    moved.recv().await.unwrap();
    assert!(new.is_over());
}

#[tokio::test(start_paused = true)]
async fn a_sentinel_that_is_behind_does_not_lead_back() {
    let world = World::new(&[("p", Host::Is("master")), ("q", Host::Is("master"))]);
    world.set("s0", Host::Tells("p", 1));
    world.set("s1", Host::Tells("q", 2));
    world.set("s2", Host::Tells("q", 2));
    let client = world.client(sentinels(3));
    let (tell_moved, mut moved) = tokio::sync::mpsc::unbounded_channel();
    let lookout = client.watch(SELDOM, Box::new(move || tell_moved.send(()).unwrap()));
    let link = client.connect(AMPLE).await.unwrap();
    assert_eq!(world.opened().last().unwrap(), "q");
    assert!(tokio::time::timeout(AMPLE, moved.recv()).await.is_err() && !link.is_over());
    for name in ["s1", "s2"] {
        world.set(name, Host::Hangs);
    }
    let failure = client.connect(AMPLE).await.err();
    let Some(Failure::Unreachable(cause)) = failure else { panic!("{failure:?}") };
    assert!(cause.contains("as late as"), "{cause}");
    assert!(!link.is_over());
    drop(lookout);
    assert_eq!(moved.recv().await, None);
}
