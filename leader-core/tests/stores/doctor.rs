//! What the doctor finds about a file, and about those who share it. Some of these need processes with a clock or a kernel of
//! their own, or a file system: without the right to make them they say so and check nothing.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use leader_core::store::{Announcement, Answer, Examination, JobName, LeaseStore, Op, TickBatch, TickCommand, TickOp};
use leader_core::testing::Listener;
use leader_core::{Candidate, Finding, Incarnation, Severity};
use rusqlite::Connection;

use crate::party::{LONG, PATIENCE, Party, group};

const PATH: &str = "LEADER_TEST_DOCTOR_PATH";
const EXAMINES: &str = "LEADER_TEST_DOCTOR_EXAMINES";

/// What the doctor finds for this one, which does so much for its group; but for what is found of the place where the tests
/// run.
async fn examined_with(party: &Party, lines: &[&str]) -> Vec<Finding> {
    let examination = Examination {
        candidate: party.candidate.clone(),
        groups: BTreeMap::from([(group("g"), lines.iter().map(ToString::to_string).collect())]),
        program: "a test".to_owned(),
        ttl: LONG,
        timeout: PATIENCE,
    };
    let found = party.store.examine(examination).await.unwrap();
    found.into_iter().filter(|finding| finding.code != "container-file").collect()
}

async fn examined(party: &Party) -> Vec<Finding> {
    examined_with(party, &[]).await
}

fn one(found: &[Finding], code: &str) -> Finding {
    let [finding] = found else { panic!("{found:#?}") };
    assert_eq!(finding.code, code, "{finding}");
    finding.clone()
}

/// Not a test of its own: what the child does.
#[tokio::test]
async fn child_that_leads_or_examines() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let party = Party::join(Path::new(&path), "child").await.unwrap();
    let examines = std::env::var_os(EXAMINES).is_some();
    let term = if examines { None } else { Some(party.win().await) };
    #[allow(clippy::print_stdout)]
    {
        let found = if examines { raw(&party).await } else { Vec::new() };
        println!("\nready {}", found.iter().map(|finding| finding.code).collect::<Vec<_>>().join(" "));
    }
    // Until the parent's end of the pipe closes: no child outlives its test.
    let parent = std::thread::spawn(|| drop(std::io::stdin().lines().next()));
    while !parent.is_finished() {
        if let Some(term) = term {
            assert_eq!(party.renew(term).await, Ok(Answer::Renewed));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    std::process::exit(0);
}

/// With what is found of the place.
async fn raw(party: &Party) -> Vec<Finding> {
    let groups = BTreeMap::from([(group("g"), Vec::new())]);
    let (candidate, program) = (party.candidate.clone(), "a test".to_owned());
    party.store.examine(Examination { candidate, groups, program, ttl: LONG, timeout: PATIENCE }).await.unwrap()
}

/// Killed at the end, whatever happens.
struct Other {
    process: Child,
    said: String,
}

impl Other {
    /// Starts the child by this program, which is given it as further arguments. None, with the reason printed, if it cannot.
    #[allow(clippy::print_stderr)]
    fn start(path: &Path, wrapper: &[&str], environment: &[(&str, &str)]) -> Option<Self> {
        let mut process = Command::new(wrapper[0])
            .args(&wrapper[1..])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "doctor::child_that_leads_or_examines", "--nocapture"])
            .env(PATH, path)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut other = Self { process, said: String::new() };
        for line in output.lines() {
            if let Some(said) = line.unwrap().strip_prefix("ready") {
                said.trim().clone_into(&mut other.said);
                return Some(other);
            }
        }
        assert!(std::env::var_os("CI").is_none(), "{wrapper:?} is not possible here");
        eprintln!("skipped: {wrapper:?} is not possible here");
        None
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn a_healthy_file_is_nothing_to_find_and_is_left_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let (a, b) = (Party::join(&path, "a").await.unwrap(), Party::join(&path, "b").await.unwrap());
    assert_eq!(examined(&a).await, []);
    a.win().await;
    let other = Connection::open(&path).unwrap();
    let version = || other.query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0)).unwrap();
    let before = version();
    for party in [&a, &b] {
        assert_eq!(examined(party).await, []);
    }
    assert_eq!(version(), before);
    // Nor does it wait for a writer, or one for it.
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(examined(&b).await, []);
    other.execute_batch("ROLLBACK").unwrap();
    a.leave().await;
    b.leave().await;
}

#[tokio::test]
async fn two_that_live_with_one_id_are_found_before_either_leads_and_not_when_one_has_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let (a, b) = (Party::join(&path, "same").await.unwrap(), Party::join(&path, "same").await.unwrap());
    let other = Party::join(&path, "other").await.unwrap();
    for party in [&a, &b] {
        let finding = one(&examined(party).await, "same-id");
        let who = format!("process {} on ", std::process::id());
        assert!(finding.severity == Severity::Error && finding.what.contains(&who), "{finding}");
    }
    assert_eq!(examined(&other).await, []);
    b.leave().await;
    assert_eq!(examined(&a).await, []);
}

#[tokio::test]
async fn two_that_live_with_one_id_are_nothing_to_find_if_they_have_no_group_in_common() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let a = Party::join(&path, "same").await.unwrap();
    // One without a card's room for its groups may have each of them.
    for (groups, why) in [(1, None), (20_000, Some("if they have a group in common, ")), (0, Some("each takes"))] {
        let mut names: Vec<_> = (0..groups).map(|n| group(&format!("other-{n}"))).collect();
        if groups == 0 {
            names.push(group("g"));
        }
        let twin = Candidate { incarnation: Incarnation::random(), ..a.candidate.clone() };
        let (session, _listener) = Listener::new(twin.clone(), names);
        a.store.connect(session).await.unwrap();
        let found = examined(&a).await;
        match why {
            None => assert_eq!(found, []),
            Some(why) => assert!(one(&found, "same-id").why.starts_with(why), "{found:?}"),
        }
        a.store.disconnect(twin.incarnation).await.unwrap();
    }
}

#[tokio::test]
async fn a_leader_with_another_ttl_or_other_work_is_found_and_not_when_it_has_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let (a, b) = (Party::join(&path, "a").await.unwrap(), Party::join(&path, "b").await.unwrap());
    let Ok(Answer::Won(won)) = a.acquire(2 * LONG).await else { panic!() };
    let finding = one(&examined(&b).await, "other-ttl");
    assert!(finding.what.contains("`g` (held by `a` with a ttl of 240s, where this instance has 120s)"), "{finding}");
    assert_eq!(a.renew(won.term).await, Ok(Answer::Renewed));
    assert_eq!(examined(&b).await, []);

    let ours = ["m::a", "@", "@digest 0 0 3 * * *"];
    let finding = one(&examined_with(&b, &ours).await, "other-jobs");
    assert!(finding.what.contains("`g` (held by `a` of the program `a test`, which has no m::a)"), "{finding}");
    let described = |lines: &[&str]| BTreeMap::from([(group("g"), lines.iter().map(ToString::to_string).collect())]);
    a.store.describe(a.candidate.incarnation, described(&["m::a", "@"])).await.unwrap();
    let finding = one(&examined_with(&b, &ours).await, "other-jobs");
    assert!(finding.severity == Severity::Warning && finding.what.contains("has no job digest)"), "{finding}");
    a.store.describe(a.candidate.incarnation, described(&ours)).await.unwrap();
    assert_eq!(examined_with(&b, &ours).await, []);
    a.store.describe(a.candidate.incarnation, described(&["@"])).await.unwrap();
    one(&examined_with(&b, &ours).await, "other-jobs");
    assert_eq!(a.ask(LONG, Op::Release { term: None }).await, Ok(Answer::Released));
    assert_eq!(examined_with(&b, &ours).await, [], "nobody leads");
}

#[tokio::test]
async fn an_elector_that_connects_again_says_what_it_does_by_then() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let (a, b) = (Party::join(&path, "a").await.unwrap(), Party::join(&path, "b").await.unwrap());
    a.win().await;
    let ours = ["m::a", "@", "@digest 0 0 3 * * *"];
    one(&examined_with(&b, &ours).await, "other-jobs");
    // Its driver has given the first connect up, which was done all the same, and its jobs were started since.
    let (mut session, _listener) = Listener::new(a.candidate.clone(), [group("g")]);
    session.groups.insert(group("g"), ours.map(str::to_owned).into());
    session.program = "a test".to_owned();
    a.store.connect(session).await.unwrap();
    assert_eq!(examined_with(&b, &ours).await, []);
}

#[tokio::test]
async fn a_record_of_a_job_that_no_instance_has_is_found_once_all_have_started_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let (a, b) = (Party::join(&path, "a").await.unwrap(), Party::join(&path, "b").await.unwrap());
    let register = TickCommand {
        group: group("g"),
        job: JobName::new("digest").unwrap(),
        candidate: a.candidate.clone(),
        op: TickOp::Register { schedule: "0 0 3 * * *".to_owned(), known: None },
    };
    a.store.execute_ticks(TickBatch { commands: vec![register], timeout: PATIENCE }).await.unwrap().remove(0).unwrap();
    assert_eq!(examined_with(&a, &["@"]).await, [], "the other has not started its jobs");
    let described = |lines: &[&str]| BTreeMap::from([(group("g"), lines.iter().map(ToString::to_string).collect())]);
    b.store.describe(b.candidate.incarnation, described(&["@"])).await.unwrap();
    let finding = one(&examined_with(&a, &["@"]).await, "unused-record");
    assert!(finding.what.ends_with("job `digest` of group `g`"), "{finding}");
    assert_eq!(examined(&a).await, [], "nor has this one");
    assert_eq!(examined_with(&a, &["@", "@digest 0 0 4 * * *"]).await, []);
    b.store.describe(b.candidate.incarnation, described(&["@", "@digest 0 0 3 * * *"])).await.unwrap();
    assert_eq!(examined_with(&a, &["@"]).await, []);
    b.leave().await;
    one(&examined_with(&a, &["@"]).await, "unused-record");
    // Somebody whose life file cannot be opened, not even by root.
    let life = folder.path().join("leader.db-locks").join(Incarnation::random().to_string());
    std::os::unix::fs::symlink(&life, &life).unwrap();
    assert_eq!(examined_with(&a, &["@"]).await, [], "it may have that job");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_leader_with_a_boot_clock_of_its_own_is_found_and_a_dead_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let party = Party::join(&path, "a").await.unwrap();
    let Some(other) = Other::start(&path, &["unshare", "--time"], &[]) else { return };
    let finding = one(&examined(&party).await, "other-clock");
    assert!(finding.severity == Severity::Warning && finding.what.contains("`g` (held by `child`)"), "{finding}");
    drop(other);
    assert_eq!(examined(&party).await, []);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_file_that_is_renewed_under_another_kernel_is_found_and_one_that_was_left_by_a_restarted_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let (path, boot) = (folder.path().join("leader.db"), folder.path().join("boot"));
    std::fs::write(&boot, "5eed5eed-0000-4000-8000-000000000000\n").unwrap();
    let mut party = Party::join(&path, "a").await.unwrap();
    let script = format!("mount --bind {} /proc/sys/kernel/random/boot_id && exec \"$@\"", boot.display());
    let Some(other) = Other::start(&path, &["unshare", "--mount", "sh", "-c", &script, "sh"], &[]) else { return };
    // It may be what the host left before it was started again.
    assert_eq!(examined(&party).await, []);
    loop {
        assert!(matches!(party.acquire(LONG).await, Ok(Answer::Held(_))));
        // What was announced by then is there by then.
        let heard = tokio::time::timeout(Duration::from_millis(20), party.listener.heard()).await;
        match heard {
            Ok(Some(Announcement::Examine)) => break,
            Ok(Some(_)) | Err(_) => {}
            Ok(None) => panic!("the session is kept"),
        }
    }
    let finding = one(&examined(&party).await, "other-host");
    assert!(finding.severity == Severity::Error && finding.what.contains("`g` (held by `child`)"), "{finding}");
    drop(other);
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_in_a_containers_own_layer_is_found() {
    let disk = tempfile::tempdir().unwrap();
    let script = "set -e; cd \"$1\"; mount -t tmpfs leader-test .; cd \"$1\"; mkdir lower upper work merged; \
                  mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged; shift; exec \"$@\"";
    let folder = disk.path().to_str().unwrap();
    let wrapper = ["unshare", "--mount", "sh", "-c", script, "sh", folder];
    let path = disk.path().join("merged/leader.db");
    let Some(other) = Other::start(&path, &wrapper, &[("NOMAD_ALLOC_ID", "1"), (EXAMINES, "1")]) else { return };
    assert_eq!(other.said, "container-file");
    // On a disk that all can mount, and not all can write to, there is nothing to find, wherever that is.
    let path = disk.path().join("leader.db");
    let script = "mount -t tmpfs -o mode=0755 leader-test \"$1\"; shift; exec \"$@\"";
    let wrapper = ["unshare", "--mount", "sh", "-c", script, "sh", folder];
    let Some(other) = Other::start(&path, &wrapper, &[("NOMAD_ALLOC_ID", "1"), (EXAMINES, "1")]) else { return };
    assert_eq!(other.said, "");
}
