//! What the file holds of locks, as values.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row as SqlRow, params};

use super::super::files::FileId;
use super::super::host::Host;
use super::super::row::{incarnation, integer, nanos, number, unreadable};
use super::LockWitness;
use crate::clock::BootInstant;
use crate::identity::{Incarnation, InstanceId};
use crate::lease::Term;
use crate::store::LockKey;

/// So many rows that nobody asks for again are removed at once.
const AT_ONCE: u32 = 200;

/// Creates the tables, unless they are there. Programs that do not know them use the file as they always did: it is no reason
/// for another version of it.
pub(in crate::store::sqlite) fn create(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch(
        "CREATE TABLE IF NOT EXISTS lock (
            key TEXT PRIMARY KEY,
            token INTEGER NOT NULL,
            nonce TEXT NOT NULL,
            instance TEXT NOT NULL,
            incarnation TEXT NOT NULL,
            until_ns INTEGER NOT NULL,
            ttl_ns INTEGER NOT NULL,
            boot TEXT NOT NULL,
            clock TEXT NOT NULL,
            life_dev INTEGER NOT NULL,
            life_ino INTEGER NOT NULL,
            version INTEGER NOT NULL
         ) STRICT, WITHOUT ROWID;
         CREATE INDEX IF NOT EXISTS lock_by_incarnation ON lock (incarnation);
         CREATE INDEX IF NOT EXISTS lock_by_end ON lock (clock, until_ns);
         CREATE TABLE IF NOT EXISTS lock_place (
            key TEXT NOT NULL,
            place INTEGER NOT NULL,
            nonce TEXT NOT NULL,
            incarnation TEXT NOT NULL,
            until_ns INTEGER NOT NULL,
            life_ns INTEGER NOT NULL,
            boot TEXT NOT NULL,
            clock TEXT NOT NULL,
            life_dev INTEGER NOT NULL,
            life_ino INTEGER NOT NULL,
            told INTEGER NOT NULL,
            PRIMARY KEY (key, place)
         ) STRICT, WITHOUT ROWID;
         CREATE INDEX IF NOT EXISTS lock_place_by_nonce ON lock_place (nonce);
         CREATE INDEX IF NOT EXISTS lock_place_by_end ON lock_place (clock, until_ns);
         CREATE INDEX IF NOT EXISTS lock_place_by_incarnation ON lock_place (incarnation, told);
         CREATE TABLE IF NOT EXISTS lock_done (
            key TEXT PRIMARY KEY,
            nonce TEXT NOT NULL,
            token INTEGER NOT NULL,
            until_us INTEGER
         ) STRICT, WITHOUT ROWID;
         CREATE INDEX IF NOT EXISTS lock_done_by_end ON lock_done (until_us) WHERE until_us IS NOT NULL;
         CREATE TABLE IF NOT EXISTS lock_token (highest INTEGER NOT NULL) STRICT;",
    )
}

/// A lock that is held, or was when its row was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) token: Term,
    pub(super) nonce: u128,
    pub(super) instance: InstanceId,
    pub(super) incarnation: Incarnation,
    /// When it ends, by the clock of `host`.
    pub(super) until: BootInstant,
    pub(super) ttl: Duration,
    /// Where the holder runs.
    pub(super) host: Host,
    /// The holder's life lock.
    pub(super) life: FileId,
    /// Counts the changes: a row that shows the same one has not been renewed.
    pub(super) version: u64,
}

impl Seat {
    pub(super) fn read(from: &Connection, key: &LockKey) -> rusqlite::Result<Option<Self>> {
        let mut select = from.prepare_cached(
            "SELECT token, nonce, instance, incarnation, until_ns, ttl_ns, boot, clock, life_dev, life_ino, version
             FROM lock WHERE key = ?1",
        )?;
        let seat = |row: &SqlRow<'_>| {
            let instance: String = row.get(2)?;
            Ok(Self {
                token: Term::new(number(row, 0)?),
                nonce: nonce(row, 1)?,
                instance: InstanceId::new(instance).map_err(|error| unreadable(2, error))?,
                incarnation: incarnation(row, 3)?,
                until: BootInstant::from_nanos(number(row, 4)?),
                ttl: Duration::from_nanos(number(row, 5)?),
                host: Host { boot: row.get(6)?, clock: row.get(7)? },
                life: FileId { dev: row.get::<_, i64>(8)? as u64, ino: row.get::<_, i64>(9)? as u64 },
                version: number(row, 10)?,
            })
        };
        select.query_row([key.as_str()], seat).optional()
    }

    pub(super) fn write(&self, to: &Connection, key: &LockKey) -> rusqlite::Result<()> {
        let mut replace = to.prepare_cached(
            "REPLACE INTO lock (key, token, nonce, instance, incarnation, until_ns, ttl_ns, boot, clock, life_dev, life_ino,
                                version)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?;
        replace.execute(params![
            key.as_str(),
            integer(self.token.get()),
            digits(self.nonce),
            self.instance.as_str(),
            self.incarnation.to_string(),
            integer(self.until.as_nanos()),
            integer(nanos(self.ttl)),
            self.host.boot,
            self.host.clock,
            // Any 64 bits are a device or an inode.
            self.life.dev as i64,
            self.life.ino as i64,
            integer(self.version),
        ])?;
        Ok(())
    }
}

pub(super) fn free(to: &Connection, key: &LockKey) -> rusqlite::Result<()> {
    to.prepare_cached("DELETE FROM lock WHERE key = ?1")?.execute([key.as_str()]).map(drop)
}

/// The keys of the locks whose row names `incarnation` as the holder; they may have run out.
pub(super) fn locks_of(from: &Connection, incarnation: Incarnation) -> rusqlite::Result<Vec<LockKey>> {
    let mut select = from.prepare_cached("SELECT key FROM lock WHERE incarnation = ?1")?;
    let keys = select.query_map([incarnation.to_string()], |row| row.get::<_, String>(0))?;
    // What cannot be a key is nobody's to take.
    keys.filter_map(|key| key.map(|key| LockKey::new(key).ok()).transpose()).collect()
}

/// That the work of a key is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) nonce: u128,
    pub(super) token: Term,
    /// By the wall clock, in microseconds, as it is kept over restarts of the host; `None`: for ever.
    pub(super) until: Option<Term>,
}

impl Note {
    pub(super) fn read(from: &Connection, key: &LockKey) -> rusqlite::Result<Option<Self>> {
        let mut select = from.prepare_cached("SELECT nonce, token, until_us FROM lock_done WHERE key = ?1")?;
        let note = |row: &SqlRow<'_>| {
            let until: Option<i64> = row.get(2)?;
            Ok(Self {
                nonce: nonce(row, 0)?,
                token: Term::new(number(row, 1)?),
                until: until.map(|until| Term::new(u64::try_from(until).unwrap_or_default())),
            })
        };
        select.query_row([key.as_str()], note).optional()
    }

    pub(super) fn write(&self, to: &Connection, key: &LockKey) -> rusqlite::Result<()> {
        to.prepare_cached("REPLACE INTO lock_done (key, nonce, token, until_us) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![
                key.as_str(),
                digits(self.nonce),
                integer(self.token.get()),
                self.until.map(|until| integer(until.get())),
            ])
            .map(drop)
    }
}

pub(super) fn forget(to: &Connection, key: &LockKey) -> rusqlite::Result<()> {
    to.prepare_cached("DELETE FROM lock_done WHERE key = ?1")?.execute([key.as_str()]).map(drop)
}

/// The largest token that was given out in this file.
pub(super) fn highest(from: &Connection) -> rusqlite::Result<Term> {
    let mut select = from.prepare_cached("SELECT highest FROM lock_token")?;
    Ok(select.query_row([], |row| number(row, 0)).optional()?.map_or(Term::default(), Term::new))
}

pub(super) fn raise(to: &Connection, token: Term) -> rusqlite::Result<()> {
    let raised =
        to.prepare_cached("UPDATE lock_token SET highest = max(highest, ?1)")?.execute([integer(token.get())])?;
    if raised == 0 {
        to.prepare_cached("INSERT INTO lock_token (highest) VALUES (?1)")?.execute([integer(token.get())])?;
    }
    Ok(())
}

/// Removes locks, places and notes that have ended and that nobody asks for again; a few, so that nobody waits for it. If there
/// are more, the next sweep comes soon.
pub(super) fn sweep(to: &Connection, witness: &mut LockWitness, now: BootInstant, wall: Term) -> rusqlite::Result<()> {
    let mut most = 0;
    let clock = &Host::this().clock;
    for table in ["lock", "lock_place"] {
        // Those of another clock are watched for a while, by whatever they show of their last change.
        let other = format!(
            "SELECT key, nonce, until_ns, {} FROM {table} WHERE clock < ?1 OR clock > ?1 LIMIT {AT_ONCE}",
            if table == "lock" { "ttl_ns" } else { "life_ns" },
        );
        let mut select = to.prepare_cached(&other)?;
        let rows = select.query_map([clock], |row| {
            Ok((row.get::<_, String>(0)?, nonce(row, 1)?, number(row, 2)?, Duration::from_nanos(number(row, 3)?)))
        })?;
        for (key, owner, until, lasts) in rows.collect::<rusqlite::Result<Vec<_>>>()? {
            if witness.seen_in(table, owner, until, now).saturating_add(lasts) <= now {
                let delete = format!("DELETE FROM {table} WHERE key = ?1 AND nonce = ?2");
                to.prepare_cached(&delete)?.execute(params![key, digits(owner)])?;
            }
        }
        let which = if table == "lock" { "key" } else { "(key, place)" };
        let columns = which.trim_matches(['(', ')']);
        let ended = format!(
            "DELETE FROM {table} WHERE {which} IN
                (SELECT {columns} FROM {table} WHERE clock = ?1 AND until_ns <= ?2 LIMIT {AT_ONCE})"
        );
        most = most.max(to.prepare_cached(&ended)?.execute(params![clock, integer(now.as_nanos())])?);
    }
    let ended =
        format!("DELETE FROM lock_done WHERE key IN (SELECT key FROM lock_done WHERE until_us <= ?1 LIMIT {AT_ONCE})");
    most = most.max(to.prepare_cached(&ended)?.execute([integer(wall.get())])?);
    witness.forget_all_but(now);
    if most == AT_ONCE as usize {
        witness.sweep_soon();
    }
    Ok(())
}

pub(super) fn digits(nonce: u128) -> String {
    format!("{nonce:032x}")
}

pub(super) fn nonce(row: &SqlRow<'_>, column: usize) -> rusqlite::Result<u128> {
    let digits: String = row.get(column)?;
    u128::from_str_radix(&digits, 16).map_err(|error| unreadable(column, error))
}

#[cfg(test)]
mod tests {
    use super::super::queue::Place;
    use super::*;

    fn db() -> Connection {
        let db = Connection::open_in_memory().unwrap();
        create(&db).unwrap();
        create(&db).unwrap();
        db
    }

    fn key(name: &str) -> LockKey {
        LockKey::new(name).unwrap()
    }

    fn seat(clock: &str, until: u64) -> Seat {
        Seat {
            token: Term::new(7),
            nonce: u128::MAX,
            instance: InstanceId::new("a").unwrap(),
            incarnation: Incarnation::from_u128(5),
            until: BootInstant::from_nanos(until),
            ttl: Duration::from_nanos(10),
            host: Host { boot: "boot".to_owned(), clock: clock.to_owned() },
            life: FileId { dev: u64::MAX, ino: 3 },
            version: 2,
        }
    }

    #[test]
    fn what_is_written_comes_back() {
        let (db, k) = (db(), key("k"));
        assert_eq!(Seat::read(&db, &k).unwrap(), None);
        let seat = seat("clock", 123);
        seat.write(&db, &k).unwrap();
        assert_eq!(Seat::read(&db, &k).unwrap(), Some(seat));
        assert_eq!(locks_of(&db, Incarnation::from_u128(5)).unwrap(), std::slice::from_ref(&k));
        free(&db, &k).unwrap();
        assert_eq!(Seat::read(&db, &k).unwrap(), None);

        for until in [None, Some(Term::new(9))] {
            let note = Note { nonce: 3, token: Term::new(8), until };
            note.write(&db, &k).unwrap();
            assert_eq!(Note::read(&db, &k).unwrap(), Some(note));
        }
        forget(&db, &k).unwrap();
        assert_eq!(Note::read(&db, &k).unwrap(), None);

        for (token, highest) in [(5, 5), (4, 5), (6, 6)] {
            raise(&db, Term::new(token)).unwrap();
            assert_eq!(super::highest(&db).unwrap(), Term::new(highest));
        }
    }

    #[test]
    fn if_very_much_has_ended_it_is_swept_soon() {
        let (db, here) = (db(), Host::this().clock.clone());
        for n in 0..500 {
            let key = key(&format!("k{n}"));
            Note { nonce: 1, token: Term::new(1), until: Some(Term::new(9)) }.write(&db, &key).unwrap();
            seat(&here, 9).write(&db, &key).unwrap();
        }
        let (mut witness, now) = (LockWitness::default(), BootInstant::from_nanos(10));
        let mut sweeps = 0;
        while witness.is_to_sweep(now, Duration::from_secs(1)) {
            sweep(&db, &mut witness, now, Term::new(10)).unwrap();
            sweeps += 1;
        }
        assert_eq!(sweeps, 3);
        for table in ["lock", "lock_done"] {
            let left: u32 = db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
            assert_eq!(left, 0);
        }
        let plan = "EXPLAIN QUERY PLAN SELECT key FROM lock_done WHERE until_us <= 1 LIMIT 1";
        let plan: String = db.query_row(plan, [], |row| row.get(3)).unwrap();
        assert!(plan.contains("lock_done_by_end"), "notes that are kept for ever are not walked over: {plan}");
    }

    #[test]
    fn what_has_ended_is_swept_and_what_may_not_have_is_not() {
        let (db, here) = (db(), Host::this().clock.clone());
        for (name, clock, until) in
            [("ended", &here, 99), ("stands", &here, 101), ("elsewhere", &"other".to_owned(), 1)]
        {
            seat(clock, until).write(&db, &key(name)).unwrap();
            Note { nonce: 1, token: Term::new(1), until: Some(Term::new(until)) }.write(&db, &key(name)).unwrap();
            let (until, life) = (BootInstant::from_nanos(until), Duration::from_nanos(10));
            let incarnation = Incarnation::from_u128(1);
            let host = Host { boot: "boot".to_owned(), clock: clock.clone() };
            let place = Place { nonce: 1, incarnation, until, life, host, life_lock: FileId::default() };
            place.append(&db, &key(name)).unwrap();
        }
        Note { nonce: 1, token: Term::new(1), until: None }.write(&db, &key("for ever")).unwrap();
        let left = |table: &str| {
            let mut select = db.prepare(&format!("SELECT key FROM {table} ORDER BY key")).unwrap();
            let keys: Vec<String> = select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
            keys.join(", ")
        };
        let mut witness = LockWitness::default();
        let at = BootInstant::from_nanos;
        sweep(&db, &mut witness, at(100), Term::new(100)).unwrap();
        assert_eq!(
            (left("lock"), left("lock_place")),
            ("elsewhere, stands".to_owned(), "elsewhere, stands".to_owned())
        );
        assert_eq!(left("lock_done"), "for ever, stands");
        // For as long as it lasts, it may still be renewed.
        sweep(&db, &mut witness, at(109), Term::new(100)).unwrap();
        assert_eq!(left("lock"), "elsewhere");
        sweep(&db, &mut witness, at(110), Term::new(100)).unwrap();
        assert_eq!((left("lock"), left("lock_place")), (String::new(), String::new()));
    }
}
