//! What the file holds of jobs, as values.

use std::path::Path;
use std::time::UNIX_EPOCH;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::super::failure::Failure;
use super::super::files::FileId;
use super::super::row::{integer, number};
use crate::clock::BootInstant;
use crate::group::GroupName;
use crate::store::ledger::history::{entry, line};
use crate::store::ledger::record::{Record, Texts, seconds};
use crate::store::rules::wall_clock;
use crate::store::{HistoryEntry, JobName, TickOp};

/// Creates the tables, unless they are there. Programs that do not know them use the file as they always did.
pub(in crate::store::sqlite) fn create(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch(
        r#"CREATE TABLE IF NOT EXISTS job (
            grp TEXT NOT NULL,
            name TEXT NOT NULL,
            "since" TEXT NOT NULL,
            "last" TEXT NOT NULL,
            "schedule" TEXT NOT NULL,
            "server" TEXT NOT NULL,
            "open" TEXT NOT NULL,
            "slot" TEXT NOT NULL,
            "others" TEXT NOT NULL,
            "returned" TEXT NOT NULL,
            "done" TEXT NOT NULL,
            "paused" TEXT NOT NULL,
            slot_end_ns INTEGER NOT NULL,
            clock TEXT NOT NULL,
            PRIMARY KEY (grp, name)
         ) STRICT, WITHOUT ROWID;
         CREATE TABLE IF NOT EXISTS job_history (
            grp TEXT NOT NULL,
            name TEXT NOT NULL,
            number INTEGER NOT NULL,
            line TEXT NOT NULL,
            PRIMARY KEY (grp, name, number)
         ) STRICT, WITHOUT ROWID;
         CREATE TABLE IF NOT EXISTS job_file (identity TEXT NOT NULL, lost INTEGER NOT NULL) STRICT;"#,
    )
}

/// The jobs of a group that have a record, each with the last tick that was claimed; without those that are none of ours.
pub(in crate::store::sqlite) fn jobs_of(from: &Connection, group: &GroupName) -> rusqlite::Result<Vec<(JobName, i64)>> {
    let mut select = from.prepare_cached(r#"SELECT name, "last" FROM job WHERE grp = ?1"#)?;
    let rows = select.query_map([group.as_str()], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
    let ours = |(name, last): (String, String)| Some((JobName::new(name).ok()?, seconds(&last)?));
    rows.filter_map(|row| row.map(ours).transpose()).collect()
}

/// Which file this is, also after the host was started again: another one with the same records is a copy, such as a backup
/// that was put in place, and may have forgotten claims.
///
/// Inode and time of creation tell files of one file system apart. The device is told only where there is no such time: its
/// number may be another one after each start of the host, or of a container.
pub(in crate::store::sqlite) fn identity(path: &Path, id: FileId) -> String {
    let created = std::fs::metadata(path).and_then(|metadata| metadata.created()).ok();
    match created.and_then(|created| created.duration_since(UNIX_EPOCH).ok()) {
        Some(created) => format!("{:x}:{}", id.ino, created.as_nanos()),
        None => format!("{:x}:{:x}", id.dev, id.ino),
    }
}

/// Since when it is known which file this is. What was claimed before in another one may not stand in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    pub(super) identity: String,
    /// In seconds.
    pub(super) lost: i64,
}

impl File {
    pub(super) fn read(from: &Connection) -> rusqlite::Result<Option<Self>> {
        let mut select = from.prepare_cached("SELECT identity, lost FROM job_file")?;
        select.query_row([], |row| Ok(Self { identity: row.get(0)?, lost: row.get(1)? })).optional()
    }

    pub(super) fn write(&self, to: &Connection) -> rusqlite::Result<()> {
        to.prepare_cached("DELETE FROM job_file")?.execute([])?;
        let mut insert = to.prepare_cached("INSERT INTO job_file (identity, lost) VALUES (?1, ?2)")?;
        insert.execute(params![self.identity, self.lost]).map(drop)
    }
}

/// Notes that the file is this one from now on, unless it is known to be.
pub(in crate::store::sqlite) fn note_file(connection: &mut Connection, identity: &str) -> Result<(), Failure> {
    let is_known = |db: &Connection| Ok::<_, Failure>(File::read(db)?.is_some_and(|file| file.identity == identity));
    if is_known(connection)? {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another instance may have been faster.
    if !is_known(&transaction)? {
        let lost = i64::try_from(wall_clock().get() / 1_000_000).unwrap_or(TickOp::LATEST).min(TickOp::LATEST);
        File { identity: identity.to_owned(), lost }.write(&transaction)?;
    }
    Ok(transaction.commit()?)
}

/// One job's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Job {
    /// The record; or which of its texts is none of ours.
    pub(super) record: Result<Option<Record>, &'static str>,
    /// When the slot of the open run ends, by the boot clock that is meant by `clock`.
    pub(super) slot_end: BootInstant,
    pub(super) clock: String,
}

impl Job {
    pub(super) fn read(from: &Connection, group: &GroupName, name: &JobName) -> rusqlite::Result<Self> {
        let mut select = from.prepare_cached(
            r#"SELECT "since", "last", "schedule", "server", "open", "slot", "others", "returned", "done", "paused",
                      slot_end_ns, clock
               FROM job WHERE grp = ?1 AND name = ?2"#,
        )?;
        let job = select.query_row([group.as_str(), name.as_str()], |row| {
            let mut texts = Texts::default();
            for (place, text) in texts.iter_mut().enumerate() {
                *text = row.get(place)?;
            }
            Ok(Self {
                record: Record::of_texts(texts.each_ref().map(String::as_str)),
                slot_end: BootInstant::from_nanos(number(row, 10)?),
                clock: row.get(11)?,
            })
        });
        let nothing = || Self { record: Ok(None), slot_end: BootInstant::default(), clock: String::new() };
        Ok(job.optional()?.unwrap_or_else(nothing))
    }

    /// Writes the record, if there is one.
    pub(super) fn write(&self, to: &Connection, group: &GroupName, name: &JobName) -> rusqlite::Result<()> {
        let Ok(Some(record)) = &self.record else { return Ok(()) };
        let [since, last, schedule, server, open, slot, others, returned, done, paused] = record.texts();
        let mut replace = to.prepare_cached(
            r#"REPLACE INTO job (grp, name, "since", "last", "schedule", "server", "open", "slot", "others", "returned",
                                 "done", "paused", slot_end_ns, clock)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"#,
        )?;
        let end = integer(self.slot_end.as_nanos());
        let (group, name, clock) = (group.as_str(), name.as_str(), &self.clock);
        let values =
            params![group, name, since, last, schedule, server, open, slot, others, returned, done, paused, end, clock];
        replace.execute(values).map(drop)
    }
}

/// The last tick of a job, if there is one; or that its text is none of ours.
pub(super) fn last(
    from: &Connection,
    group: &GroupName,
    name: &JobName,
) -> rusqlite::Result<Result<Option<i64>, &'static str>> {
    let mut select = from.prepare_cached(r#"SELECT "last" FROM job WHERE grp = ?1 AND name = ?2"#)?;
    let text = select.query_row([group.as_str(), name.as_str()], |row| row.get::<_, String>(0)).optional()?;
    Ok(match text.as_deref() {
        None | Some("") => Ok(None),
        Some(text) => seconds(text).map(Some).ok_or("last"),
    })
}

pub(super) fn raise(to: &Connection, group: &GroupName, name: &JobName, last: i64) -> rusqlite::Result<()> {
    to.prepare_cached(r#"UPDATE job SET "last" = ?3 WHERE grp = ?1 AND name = ?2"#)?
        .execute(params![group.as_str(), name.as_str(), last.to_string()])
        .map(drop)
}

/// The last lines of a job's history, the oldest first; without those that are none of ours.
pub(super) fn history(
    from: &Connection,
    group: &GroupName,
    name: &JobName,
    limit: u32,
) -> rusqlite::Result<Vec<HistoryEntry>> {
    let mut select =
        from.prepare_cached("SELECT line FROM job_history WHERE grp = ?1 AND name = ?2 ORDER BY number DESC LIMIT ?3")?;
    let lines = select.query_map(params![group.as_str(), name.as_str(), limit], |row| row.get::<_, String>(0))?;
    let mut entries: Vec<_> =
        lines.filter_map(|line| line.map(|line| entry(&line)).transpose()).collect::<rusqlite::Result<_>>()?;
    entries.reverse();
    Ok(entries)
}

/// Adds lines, and removes the oldest of more than are kept.
pub(super) fn append(
    to: &Connection,
    group: &GroupName,
    name: &JobName,
    entries: impl Iterator<Item = HistoryEntry>,
) -> rusqlite::Result<()> {
    let (group, name) = (group.as_str(), name.as_str());
    for entry in entries {
        to.prepare_cached(
            "INSERT INTO job_history (grp, name, number, line)
             SELECT ?1, ?2, coalesce(max(number), 0) + 1, ?3 FROM job_history WHERE grp = ?1 AND name = ?2",
        )?
        .execute(params![group, name, line(&entry)])?;
        to.prepare_cached(
            "DELETE FROM job_history WHERE grp = ?1 AND name = ?2 AND number <=
                (SELECT max(number) - ?3 FROM job_history WHERE grp = ?1 AND name = ?2)",
        )?
        .execute(params![group, name, TickOp::HISTORY])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn db() -> Connection {
        let db = Connection::open_in_memory().unwrap();
        create(&db).unwrap();
        create(&db).unwrap();
        db
    }

    fn names() -> (GroupName, JobName) {
        (GroupName::new("g").unwrap(), JobName::new("j").unwrap())
    }

    #[test]
    fn rows_come_back_as_they_were_written_and_what_is_none_of_ours_is_named() {
        let (db, (g, j)) = (db(), names());
        assert_eq!(Job::read(&db, &g, &j).unwrap().record, Ok(None));
        let record = Record { last: 7, ..Record::begin(5, "s", "file", None) };
        let job = Job { record: Ok(Some(record)), slot_end: BootInstant::from_nanos(9), clock: "boot".to_owned() };
        job.write(&db, &g, &j).unwrap();
        assert_eq!(Job::read(&db, &g, &j).unwrap(), job);
        assert_eq!(last(&db, &g, &j).unwrap(), Ok(Some(7)));
        raise(&db, &g, &j, 8).unwrap();
        assert_eq!(last(&db, &g, &j).unwrap(), Ok(Some(8)));
        db.execute_batch(r#"UPDATE job SET "last" = 'x'"#).unwrap();
        assert_eq!(Job::read(&db, &g, &j).unwrap().record, Err("last"));
        assert_eq!(last(&db, &g, &j).unwrap(), Err("last"));
    }

    #[test]
    fn a_file_is_known_from_when_it_was_first_opened() {
        let mut db = db();
        note_file(&mut db, "a").unwrap();
        let first = File::read(&db).unwrap().unwrap();
        assert!(first.identity == "a" && first.lost > 0);
        File { lost: 5, ..first }.write(&db).unwrap();
        note_file(&mut db, "a").unwrap();
        assert_eq!(File::read(&db).unwrap().unwrap().lost, 5);
        note_file(&mut db, "b").unwrap();
        assert!(File::read(&db).unwrap().unwrap().lost > 5);
    }

    #[test]
    fn a_copy_is_another_file_and_a_file_that_was_moved_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name| folder.path().join(name);
        let named = |name| identity(&path(name), FileId::from(&std::fs::metadata(path(name)).unwrap()));
        std::fs::write(path("a"), "x").unwrap();
        let before = named("a");
        std::fs::rename(path("a"), path("b")).unwrap();
        assert_eq!(named("b"), before);
        std::fs::write(path("b"), "y").unwrap();
        assert_eq!(named("b"), before);
        std::fs::copy(path("b"), path("a")).unwrap();
        assert_ne!(named("a"), before);
    }
}
