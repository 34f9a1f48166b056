//! What the doctor finds on real servers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tempfile::tempdir;

use super::super::RedisStore;
use super::super::keys::Keys;
use super::server::Server;
use super::{AMPLE, Reply, SHORT, chosen, client, run, store_at, text};
use crate::doctor::{Finding, Severity};
use crate::group::GroupName;
use crate::identity::{Candidate, Incarnation, InstanceId};
use crate::store::{Announcer, Answer, Batch, Command, Examination, LeaseStore, Op, SameId, Session};
use crate::{Config, Elector, FreshStore};

const TTL: Duration = Duration::from_secs(600);

fn candidate(id: &str) -> Candidate {
    Candidate { id: InstanceId::new(id).unwrap(), incarnation: Incarnation::from_u128(1) }
}

fn groups() -> BTreeMap<GroupName, Vec<String>> {
    ["a", "b"].map(|name| (GroupName::new(name).unwrap(), vec![format!("jobs::{name}")])).into()
}

/// Connects as an instance of a program, which the store then knows.
async fn connect(store: &RedisStore, id: &str, program: &str, groups: BTreeMap<GroupName, Vec<String>>) {
    let program = program.to_owned();
    let session = Session { candidate: candidate(id), groups, program, announcer: Announcer::new().0, timeout: AMPLE };
    // As it was not before.
    store.disconnect(session.candidate.incarnation).await.unwrap();
    store.connect(session).await.unwrap();
}

async fn examined(store: &RedisStore) -> Vec<Finding> {
    examined_with(store, groups(), TTL).await
}

async fn examined_with(store: &RedisStore, groups: BTreeMap<GroupName, Vec<String>>, ttl: Duration) -> Vec<Finding> {
    let (candidate, program) = (candidate("me"), "billing".to_owned());
    store.examine(Examination { candidate, groups, program, ttl, timeout: AMPLE }).await.unwrap()
}

async fn acquire(store: &RedisStore, id: &str, group: &str) -> Result<Answer, crate::StoreError> {
    let command = Command {
        group: GroupName::new(group).unwrap(),
        candidate: candidate(id),
        ttl: TTL,
        op: Op::Acquire { floor: crate::Term::default(), continues: false, same_id: SameId::Leave },
    };
    LeaseStore::execute(store, Batch { commands: vec![command], timeout: AMPLE }).await?.remove(0)
}

/// The one finding, of a server that was made ill by these commands.
async fn one(store: &RedisStore, server: &Server, commands: &[&[&str]]) -> (Severity, String) {
    for (command, reply) in commands.iter().zip(server.ask_all(commands)) {
        assert!(!matches!(&reply, Reply::Text(text) if text.starts_with("ERR")), "{command:?}: {reply:?}");
    }
    let found = examined(store).await;
    let [finding] = &found[..] else { panic!("{commands:?}: {found:#?}") };
    (finding.severity, finding.to_string())
}

/// Servers tell nobody when they have got so far.
async fn until(is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(AMPLE, waiting).await.unwrap();
}

#[tokio::test]
async fn a_healthy_server_is_nothing_to_find_and_is_left_as_it_was() {
    let Some(server) = Server::start(&[]) else { return };
    let store = store_at(&server.url());
    connect(&store, "me", "billing", groups()).await;
    assert_eq!(examined(&store).await, []);
    assert_eq!(server.ask(&["DBSIZE"]), Reply::Integer(0));
    assert!(matches!(acquire(&store, "me", "a").await, Ok(Answer::Won(_))));
    let changes = || match server.ask(&["INFO", "persistence"]) {
        Reply::Text(info) => {
            info.lines().find(|line| line.starts_with("rdb_changes_since_last_save")).unwrap().to_owned()
        }
        reply => panic!("{reply:?}"),
    };
    let before = changes();
    assert_eq!(examined(&store).await, []);
    assert_eq!(changes(), before);
}

#[tokio::test]
async fn what_a_server_is_set_to_and_short_of_is_found() {
    let Some(server) = Server::start(&[]) else { return };
    let store = store_at(&server.url());
    let policy = &["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"][..];
    let (severity, found) = one(&store, &server, &[policy]).await;
    assert!(severity == Severity::Warning && found.contains("allkeys-lru"), "{found}");
    let (severity, found) = one(&store, &server, &[&["CONFIG", "SET", "maxmemory", "1gb"]]).await;
    assert!(severity == Severity::Error && found.contains("allkeys-lru"), "{found}");

    let policy = &["CONFIG", "SET", "maxmemory-policy", "noeviction"][..];
    let (severity, found) = one(&store, &server, &[policy, &["CONFIG", "SET", "maxmemory", "1kb"]]).await;
    assert!(severity == Severity::Error && found.contains("memory is full"), "{found}");
    let no_limit = &["CONFIG", "SET", "maxmemory", "0"][..];
    let minds = &["CONFIG", "SET", "min-replicas-to-write", "1"][..];
    let (severity, found) = one(&store, &server, &[no_limit, minds]).await;
    assert!(severity == Severity::Error && found.contains("min-replicas-to-write"), "{found}");

    // Nobody listens at that address.
    let follows = &["REPLICAOF", "127.0.0.1", "1"][..];
    let (severity, found) = one(&store, &server, &[&["CONFIG", "SET", "min-replicas-to-write", "0"], follows]).await;
    assert!(severity == Severity::Error && found.contains("a replica, of 127.0.0.1:1"), "{found}");
    let own_master = &["REPLICAOF", "NO", "ONE"][..];
    assert_eq!(server.ask(own_master), text("OK"));
    assert_eq!(examined(&store).await, []);
}

#[tokio::test]
async fn a_server_that_cannot_save_its_data_is_found() {
    let Some(server) = Server::start(&["--save", "3600", "1000000", "--enable-protected-configs", "yes"]) else {
        return;
    };
    let folder = tempdir().unwrap();
    let gone = folder.path().join("gone");
    std::fs::create_dir(&gone).unwrap();
    assert_eq!(server.ask(&["CONFIG", "SET", "dir", gone.to_str().unwrap()]), text("OK"));
    std::fs::remove_dir(&gone).unwrap();
    server.ask(&["BGSAVE"]);
    let has_failed = |info| matches!(info, Reply::Text(info) if info.contains("rdb_last_bgsave_status:err"));
    until(|| has_failed(server.ask(&["INFO", "persistence"]))).await;
    let (severity, found) = one(&store_at(&server.url()), &server, &[]).await;
    assert!(severity == Severity::Error && found.contains("could not save its data"), "{found}");
}

#[tokio::test]
async fn a_server_of_a_cluster_is_found() {
    let Some(server) = Server::start(&["--cluster-enabled", "yes"]) else { return };
    let (severity, found) = one(&store_at(&server.url()), &server, &[]).await;
    assert!(severity == Severity::Error && found.contains("part of a Redis Cluster"), "{found}");
}

#[tokio::test]
async fn strange_leases_and_keys_of_a_wrong_type_are_found_with_the_command_that_removes_them() {
    let Some(server) = Server::start(&[]) else { return };
    let store = store_at(&server.url());
    let (severity, found) = one(&store, &server, &[&["SET", "leader:a", "nest-1", "PX", "600000"]]).await;
    assert!(severity == Severity::Warning && found.contains("`leader:a` (held by `nest-1`)"), "{found}");
    let (severity, found) = one(&store, &server, &[&["PERSIST", "leader:a"]]).await;
    assert!(severity == Severity::Error && found.ends_with("DEL leader:a"), "{found}");
    let wrong: &[&[&str]] = &[&["DEL", "leader:a"], &["LPUSH", "leader:a", "x"], &["SADD", "{leader:b}:term", "x"]];
    let (severity, found) = one(&store, &server, wrong).await;
    assert!(severity == Severity::Error && found.ends_with("DEL leader:a {leader:b}:term"), "{found}");
    assert!(found.contains("type list") && found.contains("type set"), "{found}");
}

#[tokio::test]
async fn another_program_that_leads_without_our_functions_is_found() {
    let Some(server) = Server::start(&[]) else { return };
    let (ours, theirs) = (store_at(&server.url()), store_at(&server.url()));
    connect(&theirs, "other", "mail", BTreeMap::from([(GroupName::new("a").unwrap(), vec!["jobs::x".to_owned()])]))
        .await;
    assert!(matches!(acquire(&theirs, "other", "a").await, Ok(Answer::Won(_))));
    let (severity, found) = one(&ours, &server, &[]).await;
    assert!(severity == Severity::Error, "{found}");
    assert!(found.contains("(held by `other` of the program `mail`, which has no jobs::a"), "{found}");
    assert!(found.contains(", and has jobs::x, which this instance has not"), "{found}");
}

#[tokio::test]
async fn another_version_that_leads_without_our_jobs_is_found_and_not_when_it_has_started_them() {
    let Some(server) = Server::start(&[]) else { return };
    let (ours, theirs) = (store_at(&server.url()), store_at(&server.url()));
    let older = candidate("older");
    let of_a = |lines: &[&str]| {
        BTreeMap::from([(GroupName::new("a").unwrap(), lines.iter().map(ToString::to_string).collect())])
    };
    connect(&theirs, "older", "billing", of_a(&["jobs::a"])).await;
    let Ok(Answer::Won(won)) = acquire(&theirs, "older", "a").await else { panic!() };
    let groups = || {
        BTreeMap::from([(GroupName::new("a").unwrap(), ["jobs::a", "@", "@digest @daily"].map(str::to_owned).into())])
    };
    assert_eq!(examined_with(&ours, groups(), TTL).await, [], "it may be about to start them");
    let renew = |answer| async move {
        let command = Command {
            group: GroupName::new("a").unwrap(),
            candidate: candidate("older"),
            ttl: TTL,
            op: Op::Renew { term: won.term },
        };
        let answers = LeaseStore::execute(answer, Batch { commands: vec![command], timeout: AMPLE }).await.unwrap();
        assert_eq!(answers, [Ok(Answer::Renewed)]);
    };
    theirs.describe(older.incarnation, of_a(&["jobs::a", "@", "@digest @hourly"])).await.unwrap();
    renew(&theirs).await;
    let found = examined_with(&ours, groups(), TTL).await;
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert!(finding.code == "other-jobs" && finding.severity == Severity::Warning, "{finding}");
    assert!(finding.what.contains("which runs job digest at `@hourly` instead of `@daily`"), "{finding}");
    theirs.describe(older.incarnation, of_a(&["jobs::a", "@", "@digest @daily", "@more @hourly"])).await.unwrap();
    renew(&theirs).await;
    assert_eq!(examined_with(&ours, groups(), TTL).await, []);
}

#[tokio::test]
async fn jobs_that_were_started_while_the_server_was_away_stand_in_the_record() {
    let Some(mut server) = Server::start(&[]) else { return };
    server.kill();
    let config = Config::new(server.url()).redis_client(chosen()).ttl(AMPLE).fresh_store(FreshStore::Trust);
    let elector = Elector::start(config.start_timeout(SHORT)).await.unwrap();
    // Not before the first attempt has failed.
    while elector.status().problems.is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let digest = (Arc::from("digest"), Some((GroupName::new("default").unwrap(), "@daily".to_owned())));
    let _claim = elector.__claim_jobs(&[digest]).unwrap();
    let mut events = elector.subscribe("default").unwrap();
    server.restart();
    while !matches!(events.next().await.unwrap(), crate::Event::Acquired { .. }) {}
    let Reply::List(record) = server.ask(&["HGETALL", "{leader:default}:term"]) else { panic!() };
    let tells = |part: &Reply| matches!(part, Reply::Text(text) if text.ends_with("\n@\n@digest @daily"));
    assert!(record.iter().any(tells), "{record:?}");
}

#[tokio::test]
async fn a_leader_with_another_ttl_is_found_unless_this_instance_reckons_with_the_larger() {
    let Some(server) = Server::start(&[]) else { return };
    let (ours, theirs) = (store_at(&server.url()), store_at(&server.url()));
    connect(&theirs, "other", "billing", groups()).await;
    assert!(matches!(acquire(&theirs, "other", "a").await, Ok(Answer::Won(_))));
    assert_eq!(examined(&ours).await, []);
    let found = examined_with(&ours, groups(), TTL / 2).await;
    let [finding] = &found[..] else { panic!("{found:?}") };
    let text = "`leader:a` (held by `other` with a ttl of 600s, where this instance has 300s)";
    assert!(finding.code == "other-ttl" && finding.what.contains(text), "{finding}");
    assert_eq!(examined_with(&ours.shortest_quarantine(TTL), groups(), TTL / 2).await, []);
}

#[tokio::test]
async fn two_that_live_with_one_id_find_each_other_before_either_leads() {
    let Some(server) = Server::start(&[]) else { return };
    let (ours, theirs) = (store_at(&server.url()), store_at(&server.url()));
    connect(&ours, "me", "billing", groups()).await;
    assert_eq!(examined(&ours).await, []);
    let twin = Candidate { incarnation: Incarnation::from_u128(2), ..candidate("me") };
    let (announcer, mut announced) = Announcer::new();
    let program = "billing".to_owned();
    let session = Session { candidate: twin.clone(), groups: groups(), program, announcer, timeout: AMPLE };
    theirs.connect(session).await.unwrap();
    let found = examined(&ours).await;
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert!(finding.code == "same-id" && finding.severity == Severity::Error, "{finding}");
    assert!(finding.what.contains(&format!("process {} on ", std::process::id())), "{finding}");
    assert!(finding.why.starts_with("if they have a group in common, each takes"), "{finding}");
    assert_eq!(announced.recv().await, Some(crate::store::Announcement::Examine), "the other one looks, too");
    assert_eq!(server.ask(&["DBSIZE"]), Reply::Integer(0));
    theirs.disconnect(twin.incarnation).await.unwrap();
    assert_eq!(examined(&ours).await, []);
}

#[tokio::test]
async fn a_server_that_waits_too_long_for_its_replicas_is_found_where_its_settings_may_be_read() {
    let Some(server) = Server::start(&[]) else { return };
    let port = server.port.to_string();
    let Some(_replica) = Server::start(&["--replicaof", "127.0.0.1", &port]) else { return };
    assert_eq!(server.ask(&["CONFIG", "SET", "min-replicas-to-write", "1"]), text("OK"));
    let is_in_step = || matches!(server.ask(&["INFO", "replication"]), Reply::Text(info) if info.contains("min_slaves_good_slaves:1"));
    until(is_in_step).await;
    let store = store_at(&server.url());
    assert_eq!(examined(&store).await, [], "it waits for 10 s, and the ttl is longer");
    let (severity, found) = one(&store, &server, &[&["CONFIG", "SET", "min-replicas-max-lag", "600"]]).await;
    assert!(severity == Severity::Warning && found.contains("min-replicas-max-lag is 600s"), "{found}");
    let store = limited(&server, &Keys::new("leader:").rights().rules());
    assert_eq!(examined(&store).await, []);
    assert_eq!(server.ask(&["ACL", "SETUSER", "app", "+config|get"]), text("OK"));
    let (_, found) = one(&store, &server, &[]).await;
    assert!(found.contains("is 600s"), "{found}");
}

#[tokio::test]
async fn an_elector_says_what_is_unsafe_about_its_server_and_leads_on() {
    let Some(server) = Server::start(&["--maxmemory", "1gb", "--maxmemory-policy", "volatile-lru"]) else { return };
    let config = Config::new(server.url()).redis_client(chosen()).ttl(TTL).fresh_store(FreshStore::Trust);
    let elector = Elector::start(config).await.unwrap();
    let found = elector.doctor().await.unwrap();
    // Of the place where the tests run nothing is to be found: servers are shared by hosts.
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!(elector.status().problems[0].text, finding.to_string());
    assert!(finding.what.contains("volatile-lru") && elector.is_leader("default"));
    assert_eq!(server.ask(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]), text("OK"));
    assert_eq!(elector.doctor().await.unwrap(), []);
    assert!(elector.status().problems.is_empty());
}

/// A server with a user who may do what this says, and the store that speaks in its name.
fn limited(server: &Server, rules: &str) -> RedisStore {
    let mut command = vec!["ACL", "SETUSER", "app", "reset", "on", ">secret"];
    command.extend(rules.split(' '));
    assert_eq!(server.ask(&command), text("OK"));
    store_at(&format!("redis://app:secret@127.0.0.1:{}", server.port))
}

#[tokio::test]
async fn the_permissions_that_are_advised_are_enough() {
    let Some(server) = Server::start(&[]) else { return };
    let store = limited(&server, &Keys::new("leader:").rights().rules());
    connect(&store, "me", "billing", groups()).await;
    assert_eq!(examined(&store).await, []);
}

/// The advice takes nothing away that this user needs elsewhere, and gives no patterns that it has already: Redis refuses to
/// add one to `~*`.
#[tokio::test]
async fn what_an_error_advises_allows_what_was_refused_whatever_else_the_user_may() {
    let Some(server) = Server::start(&[]) else { return };
    let all = "~* &* +@all";
    for (refused, rules) in [
        ("a command", format!("{all} -evalsha -eval")),
        ("a command in the script", format!("{all} -hset")),
        ("the lease", "~other:* &* +@all".to_owned()),
        ("the record", "~other:* ~leader:* &* +@all".to_owned()),
    ] {
        let store = limited(&server, &rules);
        connect(&store, "me", "billing", groups()).await;
        let error = acquire(&store, "me", "a").await.expect_err(refused).to_string();
        server.allow("app", &error);
        acquire(&store, "me", "a").await.expect(refused);
        let link = client(&format!("redis://app:secret@127.0.0.1:{}", server.port)).connect(AMPLE).await.unwrap();
        assert_eq!(run(&*link, &["GET", "other:k"]).await, Ok(Reply::Nil), "{refused}: {error}");
        assert_eq!(run(&*link, &["LRANGE", "other:k", "0", "1"]).await, Ok(Reply::List(vec![])), "{refused}: {error}");
    }
}

#[tokio::test]
async fn each_permission_that_is_missing_is_found_and_what_is_advised_allows_it() {
    let Some(server) = Server::start(&[]) else { return };
    let all = Keys::new("leader:").rights().rules();
    for (missing, severity) in [
        ("+eval", Severity::Error),
        ("+evalsha", Severity::Error),
        ("+get", Severity::Error),
        ("+set", Severity::Error),
        ("+pexpire", Severity::Error),
        ("+persist", Severity::Error),
        ("+del", Severity::Error),
        ("+hset", Severity::Error),
        ("+hmget", Severity::Error),
        ("+pttl", Severity::Error),
        ("+time", Severity::Error),
        ("~leader:*", Severity::Error),
        ("~{leader:*", Severity::Error),
        ("+info", Severity::Warning),
        ("+publish", Severity::Warning),
        ("+subscribe", Severity::Warning),
        ("&leader:*", Severity::Warning),
        ("+script|load", Severity::Warning),
    ] {
        let rules: Vec<&str> = all.split(' ').filter(|rule| *rule != missing).collect();
        let store = limited(&server, &rules.join(" "));
        connect(&store, "me", "billing", groups()).await;
        let found = examined(&store).await;
        let [finding] = &found[..] else { panic!("{missing}: {found:#?}") };
        assert_eq!(finding.severity, severity, "{missing}: {finding}");
        assert!(finding.advice.contains(missing), "{missing}: {finding}");
        server.allow("app", &finding.advice);
        connect(&store, "me", "billing", groups()).await;
        assert_eq!(examined(&store).await, [], "{missing}");
    }
}
