//! Locks in an SQLite file: what only a file on one host can show.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use leader_core::store::{Announcement, LeaseStore, LockAnswer, LockBatch, LockCommand, LockKey, LockOp, LockOwner};
use leader_core::{Config, Elector, LockError, StoreError, Term};
use rusqlite::Connection;

use crate::party::{LONG, PATIENCE, Party};

const PATH: &str = "LEADER_TEST_LOCK_PATH";
const PLACE: Duration = Duration::from_secs(30);

impl Party {
    fn owner(&self) -> LockOwner {
        LockOwner::new(self.candidate.clone())
    }

    async fn lock_ask(&self, owner: &LockOwner, ttl: Duration, op: LockOp) -> Result<LockAnswer, StoreError> {
        let command = LockCommand { key: LockKey::new("k").unwrap(), owner: owner.clone(), ttl, op };
        let call = self.store.execute_locks(LockBatch { commands: vec![command], timeout: PATIENCE });
        tokio::time::timeout(PATIENCE, call).await.unwrap()?.remove(0)
    }

    async fn lock(&self, owner: &LockOwner, queue: Option<Duration>) -> LockAnswer {
        let op = LockOp::Acquire { floor: Term::default(), queue, once: false };
        self.lock_ask(owner, LONG, op).await.unwrap()
    }

    /// The next owner who is told that a lock is free.
    async fn hears_of_lock(&mut self) -> u128 {
        loop {
            match tokio::time::timeout(PATIENCE, self.listener.heard()).await.unwrap() {
                Some(Announcement::LockFree { nonce }) => return nonce,
                Some(Announcement::Released(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

fn is_won(answer: &LockAnswer) -> bool {
    matches!(answer, LockAnswer::Won { .. })
}

/// Not a test of its own: what the child does.
#[tokio::test]
async fn child_that_locks_and_waits() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let party = Party::join(Path::new(&path), "child").await.unwrap();
    assert!(is_won(&party.lock(&party.owner(), None).await));
    #[allow(clippy::print_stdout)]
    {
        println!("\nlocked");
    }
    // Until the parent's end of the pipe closes: no child outlives its test.
    let _ = std::io::stdin().lines().next();
    std::process::exit(0);
}

/// Not a test of its own: what another child does.
#[tokio::test]
async fn child_that_waits_for_a_lock() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let party = Party::join(Path::new(&path), "child").await.unwrap();
    for _ in 0..2 {
        assert!(!is_won(&party.lock(&party.owner(), Some(PLACE)).await));
    }
    #[allow(clippy::print_stdout)]
    {
        println!("\nlocked");
    }
    let _ = std::io::stdin().lines().next();
    std::process::exit(0);
}

/// Killed at the end, whatever happens.
struct Holder(Child);

impl Holder {
    fn start(path: &Path) -> Self {
        Self::run("child_that_locks_and_waits", path)
    }

    fn run(what: &str, path: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("locks::{what}"), "--nocapture"])
            .env(PATH, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let holder = Self(child);
        assert!(output.lines().any(|line| line.unwrap() == "locked"), "the child ended without the lock");
        holder
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn the_lock_of_a_killed_process_is_free_at_once_and_the_first_who_waits_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let mut party = Party::join(&path, "waits").await.unwrap();
    let mut child = Holder::start(&path);
    let (first, second) = (party.owner(), party.owner());
    for owner in [&first, &second] {
        let LockAnswer::Busy(busy) = party.lock(owner, Some(PLACE)).await else { panic!("a living process holds it") };
        assert_eq!(busy.holder.unwrap().as_str(), "child");
    }
    child.kill();
    assert_eq!(party.hears_of_lock().await, first.nonce);
    assert!(!is_won(&party.lock(&second, Some(PLACE)).await));
    assert!(is_won(&party.lock(&first, Some(PLACE)).await));
    party.leave().await;
}

#[tokio::test]
async fn a_killed_process_that_waits_keeps_nobody_waiting() {
    for release_first in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("leader.db");
        let mut party = Party::join(&path, "a").await.unwrap();
        let (held, waits) = (party.owner(), party.owner());
        assert!(is_won(&party.lock(&held, None).await));
        let mut child = Holder::run("child_that_waits_for_a_lock", &path);
        let LockAnswer::Busy(busy) = party.lock(&waits, Some(PLACE)).await else { panic!("it is held") };
        assert_eq!(busy.ahead, 2);
        let release = LockOp::Release { token: None };
        if release_first {
            party.lock_ask(&held, LONG, release).await.unwrap();
            assert!(!is_won(&party.lock(&waits, Some(PLACE)).await), "the child was first");
            child.kill();
            assert_eq!(party.hears_of_lock().await, waits.nonce);
        } else {
            child.kill();
            party.lock_ask(&held, LONG, release).await.unwrap();
        }
        assert!(is_won(&party.lock(&waits, Some(PLACE)).await));
        party.leave().await;
    }
}

#[tokio::test]
async fn a_release_is_heard_in_another_process_and_survives_no_kill_in_vain() {
    // Two handles have two workers, as two processes do.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let (a, mut b) = (Party::join(&path, "a").await.unwrap(), Party::join(&path, "b").await.unwrap());
    let (held, waits) = (a.owner(), b.owner());
    assert!(is_won(&a.lock(&held, None).await));
    assert!(!is_won(&b.lock(&waits, Some(PLACE)).await));
    assert_eq!(a.lock_ask(&held, LONG, LockOp::Release { token: None }).await, Ok(LockAnswer::Released));
    assert_eq!(b.hears_of_lock().await, waits.nonce);
    assert!(is_won(&b.lock(&waits, None).await));
    a.leave().await;
    b.leave().await;
}

#[tokio::test]
async fn an_elector_that_leaves_keeps_the_lock_that_it_may_hold() {
    const TTL: Duration = Duration::from_millis(600);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let (a, b) = (Party::join(&path, "a").await.unwrap(), Party::join(&path, "b").await.unwrap());
    let acquire = LockOp::Acquire { floor: Term::default(), queue: None, once: false };
    let begin = std::time::Instant::now();
    assert!(is_won(&a.lock_ask(&a.owner(), TTL, acquire).await.unwrap()));
    // From here on its end is waited for.
    let next = b.owner();
    assert!(!is_won(&b.lock(&next, None).await));
    a.leave().await;
    while !is_won(&b.lock(&next, None).await) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(begin.elapsed() >= TTL * 99 / 100);
    b.leave().await;
}

#[tokio::test]
async fn who_asks_is_answered_while_somebody_writes_and_renewals_are_not_lost_in_a_reader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let (a, b) = (Party::join(&path, "a").await.unwrap(), Party::join(&path, "b").await.unwrap());
    a.lock(&a.owner(), None).await;
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(!is_won(&b.lock(&b.owner(), None).await));
    other.execute_batch("ROLLBACK").unwrap();
    a.leave().await;
    b.leave().await;
}

#[tokio::test]
async fn a_file_from_before_there_were_locks_gets_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    Party::join(&path, "a").await.unwrap().leave().await;
    let db = Connection::open(&path).unwrap();
    for table in ["lock", "lock_place", "lock_done", "lock_token"] {
        db.execute_batch(&format!("DROP TABLE {table}")).unwrap();
    }
    drop(db);
    let party = Party::join(&path, "a").await.unwrap();
    assert!(is_won(&party.lock(&party.owner(), None).await));
    party.leave().await;
}

#[tokio::test]
async fn the_lock_of_another_clock_is_taken_only_when_it_stood_unchanged_for_its_ttl() {
    const TTL: Duration = Duration::from_millis(500);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let (a, b) = (Party::join(&path, "a").await.unwrap(), Party::join(&path, "b").await.unwrap());
    let (held, next) = (a.owner(), b.owner());
    let acquire = LockOp::Acquire { floor: Term::default(), queue: None, once: false };
    let LockAnswer::Won { token } = a.lock_ask(&held, TTL, acquire).await.unwrap() else { panic!() };
    let db = Connection::open(&path).unwrap();
    // Another boot, where such instants are long over.
    let elsewhere = || db.execute("UPDATE lock SET boot = 'x', clock = 'x', until_ns = 1", []).unwrap();
    assert_eq!(elsewhere(), 1);
    assert!(!is_won(&b.lock(&next, None).await));
    tokio::time::sleep(TTL * 3 / 4).await;
    // It lives there: it has renewed.
    db.execute("UPDATE lock SET version = version + 1", []).unwrap();
    let changed = std::time::Instant::now();
    while !is_won(&b.lock(&next, None).await) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(changed.elapsed() >= TTL * 99 / 100);
    assert_eq!(a.lock_ask(&held, TTL, LockOp::Renew { token }).await, Ok(LockAnswer::Lost));
    a.leave().await;
    b.leave().await;
}

#[tokio::test]
async fn a_place_of_another_clock_is_waited_for_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let party = Party::join(&path, "a").await.unwrap();
    let (held, gone, waits) = (party.owner(), party.owner(), party.owner());
    party.lock(&held, None).await;
    party.lock(&gone, Some(Duration::from_millis(400))).await;
    let db = Connection::open(&path).unwrap();
    db.execute("UPDATE lock_place SET boot = 'x', clock = 'x', until_ns = 1", []).unwrap();
    party.lock_ask(&held, LONG, LockOp::Release { token: None }).await.unwrap();
    let LockAnswer::Busy(busy) = party.lock(&waits, Some(PLACE)).await else { panic!("one came before") };
    assert_eq!((busy.ahead, busy.holder), (1, None));
    while !is_won(&party.lock(&waits, Some(PLACE)).await) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    party.leave().await;
}

fn remove(path: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        std::fs::remove_file(format!("{}{suffix}", path.display())).unwrap();
    }
}

#[tokio::test]
async fn a_new_file_beside_a_living_holder_gives_no_lock_for_one_ttl() {
    const TTL: Duration = Duration::from_millis(800);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let old = Party::join(&path, "a").await.unwrap();
    assert!(is_won(&old.lock(&old.owner(), None).await));
    remove(&path);
    let begin = std::time::Instant::now();
    let new = Party::join(&path, "b").await.unwrap();
    let (next, op) = (new.owner(), LockOp::Acquire { floor: Term::default(), queue: Some(PLACE), once: false });
    loop {
        match new.lock_ask(&next, TTL, op.clone()).await.unwrap() {
            LockAnswer::Won { .. } => break,
            LockAnswer::Busy(busy) => assert!(busy.holder.is_none() && busy.ahead == 0 && busy.remaining <= TTL),
            other => panic!("{other:?}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(begin.elapsed() >= TTL);
    old.leave().await;
    new.leave().await;
}

#[tokio::test]
async fn who_noticed_that_its_file_is_lost_and_holds_no_lock_makes_nobody_wait() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let old = Party::join(&path, "a").await.unwrap();
    let held = old.owner();
    assert!(is_won(&old.lock(&held, None).await));
    old.lock_ask(&held, LONG, LockOp::Release { token: None }).await.unwrap();
    remove(&path);
    let new = Party::join(&path, "b").await.unwrap();
    let next = new.owner();
    assert!(!is_won(&new.lock(&next, None).await), "it may hold something, for all that is known");
    let acquire = LockOp::Acquire { floor: Term::default(), queue: None, once: false };
    assert!(old.lock_ask(&held, LONG, acquire).await.unwrap_err().is_permanent());
    assert!(is_won(&new.lock(&next, None).await));
    old.leave().await;
    new.leave().await;
}

#[tokio::test]
async fn a_row_that_cannot_be_read_fails_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let party = Party::join(&path, "a").await.unwrap();
    party.lock(&party.owner(), None).await;
    Connection::open(&path).unwrap().execute("UPDATE lock SET nonce = 'no number'", []).unwrap();
    let command = |key: &str| LockCommand {
        key: LockKey::new(key).unwrap(),
        owner: party.owner(),
        ttl: LONG,
        op: LockOp::Acquire { floor: Term::default(), queue: None, once: false },
    };
    let commands = vec![command("k"), command("another")];
    let answers = party.store.execute_locks(LockBatch { commands, timeout: PATIENCE }).await.unwrap();
    assert!(matches!(&answers[..], [Err(_), Ok(LockAnswer::Won { .. })]), "{answers:?}");
    party.leave().await;
}

#[tokio::test]
async fn nothing_stays_of_ten_thousand_locks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let elector = Elector::start(Config::new(format!("sqlite://{}", path.display())).ttl(LONG)).await.unwrap();
    let mut asking = tokio::task::JoinSet::new();
    for n in 0..10_000 {
        let elector = elector.clone();
        asking.spawn(async move { elector.lock(format!("account:{n}")).wait(PATIENCE).acquire().await });
    }
    let guards: Result<Vec<_>, LockError> = asking.join_all().await.into_iter().collect();
    drop(guards.unwrap());
    elector.shutdown(PATIENCE).await.unwrap();
    let db = Connection::open(&path).unwrap();
    for table in ["lock", "lock_place"] {
        let left: u32 = db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
        assert_eq!(left, 0, "{table}");
    }
}
