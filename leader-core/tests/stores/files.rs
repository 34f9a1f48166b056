//! Files that are not what they should be.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use leader_core::store::Answer;
use rusqlite::Connection;

use crate::party::{LONG, Party, refused};

/// Why a connect to `path` is refused.
async fn refusal(path: &Path) -> String {
    let text = refused(Party::join(path, "a").await.map(|party| party.candidate));
    assert!(text.contains(&path.display().to_string()), "it names the file: {text}");
    text
}

#[tokio::test]
async fn a_leader_whose_file_was_replaced_leads_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let party = Party::join(&path, "a").await.unwrap();
    let term = party.win().await;
    assert_eq!(party.renew(term).await, Ok(Answer::Renewed));

    let away = folder.path().join("away.db");
    fs::rename(&path, &away).unwrap();
    fs::copy(&away, &path).unwrap();
    let text = refused(party.renew(term).await);
    assert!(text.contains("another file") && text.contains("restart this instance"), "{text}");
    // What others did meanwhile is not known: it stays out, also if the old file comes back.
    fs::rename(&away, &path).unwrap();
    refused(party.renew(term).await);
    refused(party.acquire(LONG).await);
    party.leave().await;
}

#[tokio::test]
async fn a_file_that_was_removed_is_noticed_and_its_closing_leaves_the_new_ones_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let party = Party::join(&path, "a").await.unwrap();
    let term = party.win().await;
    for suffix in ["", "-wal", "-shm"] {
        fs::remove_file(format!("{}{suffix}", path.display())).unwrap();
    }
    let next = Party::join(&path, "b").await.unwrap();
    refused(party.renew(term).await);
    party.leave().await;
    // Its connection is closed by now, and `b`'s files are all there.
    assert!(matches!(next.acquire(LONG).await, Ok(Answer::Quarantined { .. })));
    next.leave().await;
}

#[tokio::test]
async fn another_applications_file_is_refused_and_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("app.db");
    Connection::open(&database).unwrap().execute_batch("CREATE TABLE orders (id)").unwrap();
    let text = folder.path().join("notes.txt");
    fs::write(&text, "Not a database at all. ".repeat(100)).unwrap();
    for (path, reason) in [(&database, "another application"), (&text, "not a SQLite database")] {
        let before = fs::read(path).unwrap();
        let said = refusal(path).await;
        assert!(said.contains(reason) && said.contains("path of its own"), "{said}");
        assert_eq!(fs::read(path).unwrap(), before);
        assert!(!Path::new(&format!("{}-locks", path.display())).exists());
    }
}

#[tokio::test]
async fn another_applications_unfinished_log_is_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let (live, path) = (folder.path().join("live.db"), folder.path().join("app.db"));
    let app = Connection::open(&live).unwrap();
    app.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE orders (id); INSERT INTO orders VALUES (1)").unwrap();
    // As a crash of the application leaves it.
    let copies = ["", "-wal"].map(|suffix| {
        let copy = format!("{}{suffix}", path.display());
        fs::copy(format!("{}{suffix}", live.display()), &copy).unwrap();
        copy
    });
    let before = copies.each_ref().map(|copy| fs::read(copy).unwrap());
    assert!(refusal(&path).await.contains("another application"));
    assert_eq!(copies.map(|copy| fs::read(copy).unwrap_or_default()), before);
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    Party::join(&path, "a").await.unwrap().leave().await;
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 1_000).unwrap();
    let text = refusal(&path).await;
    assert!(text.contains("newer version") && text.contains("update this program"), "{text}");
}

#[tokio::test]
async fn a_path_that_cannot_be_a_file_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let text = refusal(&folder.path().join("missing/leader.db")).await;
    assert!(text.contains("create the folder"), "{text}");
    let text = refusal(folder.path()).await;
    assert!(text.contains("not a file") && text.contains("choose the path of a file"), "{text}");
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let text = refusal(&file.join("leader.db")).await;
    assert!(text.contains("choose the path of a file"), "{text}");
}

#[tokio::test]
async fn a_file_with_two_names_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let party = Party::join(&path, "a").await.unwrap();
    let term = party.win().await;
    fs::hard_link(&path, folder.path().join("second.db")).unwrap();
    assert!(refused(party.renew(term).await).contains("hard links"));
    party.leave().await;
    assert!(refusal(&folder.path().join("second.db")).await.contains("hard links"));
}

#[tokio::test]
async fn a_link_and_the_file_it_names_are_one_store() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("leader.db"), folder.path().join("link.db"));
    let a = Party::join(&path, "a").await.unwrap();
    symlink(&path, &link).unwrap();
    let mut b = Party::join(&link, "b").await.unwrap();
    a.win().await;
    assert!(matches!(b.acquire(LONG).await, Ok(Answer::Held(_))));
    a.ask(LONG, leader_core::store::Op::Release { term: None }).await.unwrap();
    assert_eq!(b.hears().await.as_str(), "g");
    a.leave().await;
    b.leave().await;
}

#[tokio::test]
async fn a_row_that_was_changed_by_hand_fails_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let party = Party::join(&path, "a").await.unwrap();
    party.win().await;
    Connection::open(&path).unwrap().execute("UPDATE lease SET holder = 'with a blank'", []).unwrap();
    let commands = ["g", "other"].map(|group| party.command(group, LONG, crate::party::acquire()));
    let answers = party.batch(commands.into(), crate::party::PATIENCE).await.unwrap();
    assert!(matches!(&answers[..], [Err(_), Ok(Answer::Won(_))]), "{answers:?}");
    let text = refused(answers.into_iter().next().unwrap());
    assert!(text.contains("`g`") && text.contains("changed by hand"), "{text}");
    party.leave().await;
}

#[tokio::test]
async fn nothing_but_the_database_and_its_doorbell_is_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let (a, b) = (Party::join(&path, "a").await.unwrap(), Party::join(&path, "b").await.unwrap());
    a.win().await;
    a.ask(LONG, leader_core::store::Op::Release { term: None }).await.unwrap();
    a.leave().await;
    b.leave().await;
    let names = |folder: &Path| {
        let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(folder.path()), ["leader.db", "leader.db-locks"]);
    assert_eq!(names(&folder.path().join("leader.db-locks")), ["doorbell"]);
}
