//! The tables, and how a file is known to be ours.

use rusqlite::Connection;

use super::{locks, ticks};

/// Stands in the file's header, so that nobody's database is taken for ours: `Ledr` in ASCII.
const APPLICATION_ID: i32 = 0x4c65_6472;
/// The version of the tables. A file with an older one is brought up to date, one with a newer one is refused.
const VERSION: i32 = 1;

/// What a file is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing is in it yet.
    Empty,
    /// Ours, with the present tables.
    Ours,
    /// Ours, written by a later version.
    Newer(i32),
    /// Another application's.
    Foreign,
}

/// Looks into the file; changes nothing.
pub(super) fn kind(db: &Connection) -> rusqlite::Result<Kind> {
    // In one statement, so that what it finds was there at one moment.
    let (application, version, tables): (i32, i32, u32) = db.query_row(
        "SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),
                (SELECT count(*) FROM sqlite_schema)",
        [],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    Ok(match (application, version, tables) {
        (APPLICATION_ID, VERSION, _) => Kind::Ours,
        (APPLICATION_ID, version, _) if version > VERSION => Kind::Newer(version),
        (0, 0, 0) => Kind::Empty,
        _ => Kind::Foreign,
    })
}

/// Whether the file was written by a version without locks, or without the ledger.
pub(super) fn lacks_tables(db: &Connection) -> rusqlite::Result<bool> {
    let count = "SELECT count(*) < 2 FROM sqlite_schema WHERE name IN ('lock', 'job_file')";
    db.query_row(count, [], |row| row.get(0))
}

/// Creates what later versions have added, unless it is there.
pub(super) fn add(db: &Connection) -> rusqlite::Result<()> {
    locks::create(db)?;
    ticks::create(db)
}

/// Creates the tables, inside the caller's transaction.
pub(super) fn create(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch(
        "CREATE TABLE lease (
            grp TEXT PRIMARY KEY,
            highest INTEGER NOT NULL,
            holder TEXT,
            incarnation TEXT,
            term INTEGER,
            released INTEGER NOT NULL,
            until_ns INTEGER NOT NULL,
            older_until_ns INTEGER NOT NULL,
            ttl_ns INTEGER NOT NULL,
            boot TEXT NOT NULL,
            clock TEXT NOT NULL,
            life_dev INTEGER NOT NULL,
            life_ino INTEGER NOT NULL,
            version INTEGER NOT NULL
         ) STRICT, WITHOUT ROWID;
         CREATE INDEX lease_by_incarnation ON lease (incarnation);
         CREATE TABLE suspicion (
            since_ns INTEGER NOT NULL,
            ttl_ns INTEGER NOT NULL,
            boot TEXT NOT NULL,
            clock TEXT NOT NULL
         ) STRICT;",
    )?;
    add(db)?;
    db.pragma_update(None, "application_id", APPLICATION_ID)?;
    db.pragma_update(None, "user_version", VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(sql: &str) -> Kind {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(sql).unwrap();
        kind(&db).unwrap()
    }

    #[test]
    fn only_an_empty_file_or_our_own_is_used() {
        assert_eq!(with(""), Kind::Empty);
        assert_eq!(with("CREATE TABLE t (x)"), Kind::Foreign);
        assert_eq!(with("PRAGMA user_version = 3"), Kind::Foreign);
        assert_eq!(with("PRAGMA application_id = 7"), Kind::Foreign);
        let db = Connection::open_in_memory().unwrap();
        create(&db).unwrap();
        assert_eq!(kind(&db).unwrap(), Kind::Ours);
        assert!(!lacks_tables(&db).unwrap());
        db.execute_batch("DROP TABLE job_file").unwrap();
        assert!(lacks_tables(&db).unwrap());
        db.pragma_update(None, "user_version", VERSION + 1).unwrap();
        assert_eq!(kind(&db).unwrap(), Kind::Newer(VERSION + 1));
    }
}
