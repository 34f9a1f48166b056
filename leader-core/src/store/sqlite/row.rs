//! What the file holds, as values: the row of a group, and the note of a suspicion.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row as SqlRow, params};

use super::files::FileId;
use super::host::Host;
use crate::clock::BootInstant;
use crate::group::GroupName;
use crate::identity::{Candidate, Incarnation, InstanceId};
use crate::lease::Term;
use crate::store::rules::{Acquisition, Record};

/// One group's row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) record: Record,
    /// When the lease ends, by the clock of `host`.
    pub(super) until: BootInstant,
    /// Until when an older incarnation of the holder may believe in the lease that was taken over from it, by the same
    /// clock.
    pub(super) older_until: BootInstant,
    /// The longest time for which somebody may believe in the lease without renewing it.
    pub(super) ttl: Duration,
    /// Where the holder runs.
    pub(super) host: Host,
    /// The holder's life lock.
    pub(super) life: FileId,
    /// Counts the changes of the lease: a row that shows the same one has not been renewed.
    pub(super) version: u64,
}

impl Row {
    /// The row of `group`, or an empty one if there is none.
    pub(super) fn read(from: &Connection, group: &GroupName) -> rusqlite::Result<Self> {
        let mut select = from.prepare_cached(
            "SELECT highest, holder, incarnation, term, released, until_ns, ttl_ns, boot, clock, life_dev, life_ino, version,
                    older_until_ns
             FROM lease WHERE grp = ?1",
        )?;
        Ok(select.query_row([group.as_str()], Self::from_sql).optional()?.unwrap_or_default())
    }

    fn from_sql(row: &SqlRow<'_>) -> rusqlite::Result<Self> {
        let last = match row.get::<_, Option<String>>(1)? {
            None => None,
            Some(holder) => Some(Acquisition {
                holder: Candidate {
                    id: InstanceId::new(holder).map_err(|error| unreadable(1, error))?,
                    incarnation: incarnation(row, 2)?,
                },
                term: Term::new(number(row, 3)?),
                released: row.get(4)?,
            }),
        };
        Ok(Self {
            record: Record { highest: Term::new(number(row, 0)?), last },
            until: BootInstant::from_nanos(number(row, 5)?),
            ttl: Duration::from_nanos(number(row, 6)?),
            host: Host { boot: row.get(7)?, clock: row.get(8)? },
            life: FileId { dev: row.get::<_, i64>(9)? as u64, ino: row.get::<_, i64>(10)? as u64 },
            version: number(row, 11)?,
            older_until: BootInstant::from_nanos(number(row, 12)?),
        })
    }

    /// Puts the row in place of the group's present one.
    pub(super) fn write(&self, to: &Connection, group: &GroupName) -> rusqlite::Result<()> {
        let last = self.record.last.as_ref();
        let mut replace = to.prepare_cached(
            "REPLACE INTO lease (grp, highest, holder, incarnation, term, released, until_ns, ttl_ns, boot, clock,
                                 life_dev, life_ino, version, older_until_ns)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        )?;
        replace.execute(params![
            group.as_str(),
            integer(self.record.highest.get()),
            last.map(|last| last.holder.id.as_str()),
            last.map(|last| last.holder.incarnation.to_string()),
            last.map(|last| integer(last.term.get())),
            last.is_some_and(|last| last.released),
            integer(self.until.as_nanos()),
            integer(nanos(self.ttl)),
            self.host.boot,
            self.host.clock,
            // Any 64 bits are a device or an inode.
            self.life.dev as i64,
            self.life.ino as i64,
            integer(self.version),
            integer(self.older_until.as_nanos()),
        ])?;
        Ok(())
    }
}

/// The groups whose row names `incarnation` as the holder: it has not released them, but they may have run out.
pub(super) fn groups_of(from: &Connection, incarnation: Incarnation) -> rusqlite::Result<Vec<GroupName>> {
    let mut select = from.prepare_cached("SELECT grp FROM lease WHERE incarnation = ?1 AND NOT released")?;
    let names = select.query_map([incarnation.to_string()], |row| row.get::<_, String>(0))?;
    // A name that cannot be a group's is nobody's to take.
    names.filter_map(|name| name.map(|name| GroupName::new(name).ok()).transpose()).collect()
}

/// The groups whose lease was released, with the incarnation that did.
pub(super) fn released(from: &Connection) -> rusqlite::Result<Vec<(GroupName, Incarnation)>> {
    let mut select = from.prepare_cached("SELECT grp, incarnation FROM lease WHERE released")?;
    let rows = select.query_map([], |row| Ok((row.get::<_, String>(0)?, incarnation(row, 1)?)))?;
    rows.filter_map(|row| row.map(|(name, by)| GroupName::new(name).ok().map(|group| (group, by))).transpose())
        .collect()
}

/// This file may have taken the place of one with leases in it that somebody still believes in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Suspicion {
    /// When this file began, by the clock of `host`.
    pub(super) since: BootInstant,
    /// The largest ttl of those who asked since.
    pub(super) ttl: Duration,
    pub(super) host: Host,
}

impl Suspicion {
    /// The note, if there is one.
    pub(super) fn read(from: &Connection) -> rusqlite::Result<Option<Self>> {
        let mut select = from.prepare_cached("SELECT since_ns, ttl_ns, boot, clock FROM suspicion")?;
        select
            .query_row([], |row| {
                Ok(Self {
                    since: BootInstant::from_nanos(number(row, 0)?),
                    ttl: Duration::from_nanos(number(row, 1)?),
                    host: Host { boot: row.get(2)?, clock: row.get(3)? },
                })
            })
            .optional()
    }

    /// Puts this note, or none, in place of the present one.
    pub(super) fn write(note: Option<&Self>, to: &Connection) -> rusqlite::Result<()> {
        to.prepare_cached("DELETE FROM suspicion")?.execute([])?;
        if let Some(Self { since, ttl, host }) = note {
            to.prepare_cached("INSERT INTO suspicion (since_ns, ttl_ns, boot, clock) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![integer(since.as_nanos()), integer(nanos(*ttl)), host.boot, host.clock])?;
        }
        Ok(())
    }
}

pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// SQLite's integers have a sign. What does not fit is 292 years of nanoseconds, or a term beyond any wall clock.
pub(super) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn number(row: &SqlRow<'_>, column: usize) -> rusqlite::Result<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, value))
}

pub(super) fn incarnation(row: &SqlRow<'_>, column: usize) -> rusqlite::Result<Incarnation> {
    let digits: String = row.get(column)?;
    u128::from_str_radix(&digits, 16).map(Incarnation::from_u128).map_err(|error| unreadable(column, error))
}

pub(super) fn unreadable(column: usize, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::super::schema;
    use super::*;

    #[test]
    fn rows_and_notes_come_back_as_they_were_written() {
        let db = Connection::open_in_memory().unwrap();
        schema::create(&db).unwrap();
        let group = GroupName::new("g").unwrap();
        assert_eq!(Row::read(&db, &group).unwrap(), Row::default());
        let holder = Candidate { id: InstanceId::new("a").unwrap(), incarnation: Incarnation::random() };
        let row = Row {
            record: Record {
                highest: Term::new(9),
                last: Some(Acquisition { holder: holder.clone(), term: Term::new(7), released: false }),
            },
            until: BootInstant::from_nanos(123),
            older_until: BootInstant::from_nanos(3),
            ttl: Duration::from_millis(5),
            host: Host { boot: "boot".to_owned(), clock: "clock".to_owned() },
            life: FileId { dev: u64::MAX, ino: 3 },
            version: 4,
        };
        row.write(&db, &group).unwrap();
        assert_eq!(Row::read(&db, &group).unwrap(), row);
        assert_eq!(groups_of(&db, holder.incarnation).unwrap(), std::slice::from_ref(&group));
        assert_eq!(groups_of(&db, Incarnation::random()).unwrap(), []);
        assert_eq!(released(&db).unwrap(), []);
        let mut given_back = row.clone();
        given_back.record.last.as_mut().unwrap().released = true;
        given_back.write(&db, &group).unwrap();
        assert_eq!(released(&db).unwrap(), [(group.clone(), holder.incarnation)]);
        assert_eq!(groups_of(&db, holder.incarnation).unwrap(), []);
        let floor_only = Row { record: Record { highest: Term::new(9), last: None }, ..Row::default() };
        floor_only.write(&db, &group).unwrap();
        assert_eq!(Row::read(&db, &group).unwrap(), floor_only);

        assert_eq!(Suspicion::read(&db).unwrap(), None);
        let note = Suspicion { since: BootInstant::from_nanos(5), ttl: Duration::from_secs(1), host: row.host };
        Suspicion::write(Some(&note), &db).unwrap();
        Suspicion::write(Some(&note), &db).unwrap();
        assert_eq!(Suspicion::read(&db).unwrap(), Some(note));
        Suspicion::write(None, &db).unwrap();
        assert_eq!(Suspicion::read(&db).unwrap(), None);
    }
}
