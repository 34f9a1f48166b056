//! Those who wait for a lock, in the order in which they came.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

use super::super::files::FileId;
use super::super::host::Host;
use super::super::row::{incarnation, integer, nanos, number};
use super::rows::{digits, nonce};
use crate::clock::BootInstant;
use crate::identity::Incarnation;
use crate::store::LockKey;
use crate::store::lock::rules::COUNTED;

/// Where one who waits stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) nonce: u128,
    pub(super) incarnation: Incarnation,
    /// When it ends, by the clock of `host`.
    pub(super) until: BootInstant,
    /// How long it lasts, each time that it is kept.
    pub(super) life: Duration,
    /// Where its owner runs.
    pub(super) host: Host,
    /// Its owner's life lock.
    pub(super) life_lock: FileId,
}

impl Place {
    /// Calls `each` for the places of a queue in order, also for those that have ended, until it says that it is enough.
    pub(super) fn walk(
        from: &Connection,
        key: &LockKey,
        mut each: impl FnMut(Self) -> rusqlite::Result<Walk>,
    ) -> rusqlite::Result<()> {
        let mut select = from.prepare_cached(
            "SELECT nonce, incarnation, until_ns, life_ns, boot, clock, life_dev, life_ino
             FROM lock_place WHERE key = ?1 ORDER BY place",
        )?;
        let mut rows = select.query([key.as_str()])?;
        while let Some(row) = rows.next()? {
            let place = Self {
                nonce: nonce(row, 0)?,
                incarnation: incarnation(row, 1)?,
                until: BootInstant::from_nanos(number(row, 2)?),
                life: Duration::from_nanos(number(row, 3)?),
                host: Host { boot: row.get(4)?, clock: row.get(5)? },
                life_lock: FileId { dev: row.get::<_, i64>(6)? as u64, ino: row.get::<_, i64>(7)? as u64 },
            };
            if each(place)? == Walk::Enough {
                break;
            }
        }
        Ok(())
    }

    /// At the end of the queue.
    pub(super) fn append(&self, to: &Connection, key: &LockKey) -> rusqlite::Result<()> {
        // One that has ended, and that its owner asks for again: it has come anew.
        leave(to, key, self.nonce)?;
        let mut insert = to.prepare_cached(
            "INSERT INTO lock_place (key, place, nonce, incarnation, until_ns, life_ns, boot, clock, life_dev, life_ino, told)
             VALUES (?1, (SELECT coalesce(max(place), 0) + 1 FROM lock_place WHERE key = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8,
                     ?9, 0)",
        )?;
        insert.execute(params![
            key.as_str(),
            digits(self.nonce),
            self.incarnation.to_string(),
            integer(self.until.as_nanos()),
            integer(nanos(self.life)),
            self.host.boot,
            self.host.clock,
            // Any 64 bits are a device or an inode.
            self.life_lock.dev as i64,
            self.life_lock.ino as i64,
        ])?;
        Ok(())
    }

    pub(super) fn keep(&self, to: &Connection, key: &LockKey) -> rusqlite::Result<()> {
        let mut update = to.prepare_cached(
            "UPDATE lock_place SET until_ns = ?3, life_ns = ?4, told = 0 WHERE nonce = ?2 AND key = ?1",
        )?;
        update.execute(params![
            key.as_str(),
            digits(self.nonce),
            integer(self.until.as_nanos()),
            integer(nanos(self.life)),
        ])?;
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Walk {
    On,
    Enough,
}

/// A queue, as one of its owners sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Queue {
    pub(super) queued: bool,
    pub(super) ahead: u32,
    pub(super) first_left: Duration,
}

impl Queue {
    /// `None`: there are places of another clock, which have to be looked at one by one.
    pub(super) fn count(
        from: &Connection,
        key: &LockKey,
        owner: u128,
        now: BootInstant,
    ) -> rusqlite::Result<Option<Self>> {
        let at = integer(now.as_nanos());
        let own: Option<i64> = from
            .prepare_cached("SELECT place FROM lock_place WHERE nonce = ?1 AND key = ?2 AND until_ns > ?3")?
            .query_row(params![digits(owner), key.as_str(), at], |row| row.get(0))
            .optional()?;
        let mut count = from.prepare_cached(
            "SELECT count(*), count(*) FILTER (WHERE clock <> ?4),
                    (SELECT until_ns FROM lock_place WHERE key = ?1 AND until_ns > ?3 ORDER BY place LIMIT 1)
             FROM (SELECT clock FROM lock_place WHERE key = ?1 AND place < ?2 AND (until_ns > ?3 OR clock <> ?4)
                   ORDER BY place LIMIT ?5)",
        )?;
        let here = &Host::this().clock;
        let before = own.unwrap_or(i64::MAX);
        let values = params![key.as_str(), before, at, here, COUNTED as u32];
        let (ahead, strangers, first) = count.query_row(values, |row| {
            Ok((row.get::<_, u32>(0)?, row.get::<_, u32>(1)?, row.get::<_, Option<i64>>(2)?))
        })?;
        let first = BootInstant::from_nanos(first.and_then(|at| u64::try_from(at).ok()).unwrap_or_default());
        let queue = Self { queued: own.is_some(), ahead, first_left: first.saturating_since(now) };
        Ok((strangers == 0).then_some(queue))
    }
}

pub(super) fn leave(to: &Connection, key: &LockKey, owner: u128) -> rusqlite::Result<()> {
    to.prepare_cached("DELETE FROM lock_place WHERE nonce = ?2 AND key = ?1")?
        .execute(params![key.as_str(), digits(owner)])
        .map(drop)
}

/// For the owner's process, which may be another one.
pub(super) fn tell(to: &Connection, key: &LockKey, owner: u128) -> rusqlite::Result<()> {
    to.prepare_cached("UPDATE lock_place SET told = 1 WHERE nonce = ?2 AND key = ?1")?
        .execute(params![key.as_str(), digits(owner)])
        .map(drop)
}

/// The keys for which somebody of this elector waits, or did.
pub(super) fn awaited_by(from: &Connection, elector: Incarnation) -> rusqlite::Result<Vec<LockKey>> {
    let mut select = from.prepare_cached("SELECT DISTINCT key FROM lock_place WHERE incarnation = ?1")?;
    let keys = select.query_map([elector.to_string()], |row| row.get::<_, String>(0))?;
    // What cannot be a key is nobody's to take.
    keys.filter_map(|key| key.map(|key| LockKey::new(key).ok()).transpose()).collect()
}

/// The nonces of those who were told, and have not asked since.
pub(in crate::store::sqlite) fn told(from: &Connection, elector: Incarnation) -> rusqlite::Result<Vec<u128>> {
    let mut select = from.prepare_cached("SELECT nonce FROM lock_place WHERE incarnation = ?1 AND told = 1")?;
    select.query_map([elector.to_string()], |row| nonce(row, 0))?.collect()
}

#[cfg(test)]
mod tests {
    use super::super::rows::create;
    use super::*;

    fn place(nonce: u128, clock: &str, until: u64) -> Place {
        let incarnation = Incarnation::from_u128(nonce);
        let (until, life) = (BootInstant::from_nanos(until), Duration::from_nanos(10));
        let host = Host { boot: "boot".to_owned(), clock: clock.to_owned() };
        Place { nonce, incarnation, until, life, host, life_lock: FileId { dev: u64::MAX, ino: 3 } }
    }

    #[test]
    fn places_keep_their_order_and_a_new_one_is_the_last() {
        let db = Connection::open_in_memory().unwrap();
        create(&db).unwrap();
        let key = |name| LockKey::new(name).unwrap();
        let k = key("k");
        let here = Host::this().clock.as_str();
        let places = || {
            let mut all = Vec::new();
            Place::walk(&db, &k, |place| {
                all.push(place);
                Ok(Walk::On)
            })
            .unwrap();
            all
        };
        let nonces = || places().iter().map(|place| place.nonce).collect::<Vec<_>>();
        let seen = |owner, now| Queue::count(&db, &k, owner, BootInstant::from_nanos(now)).unwrap();
        assert_eq!(seen(1, 0), Some(Queue::default()));
        for (nonce, until) in [(3, 50), (1, 60), (2, 70)] {
            place(nonce, here, until).append(&db, &k).unwrap();
        }
        place(1, here, 5).append(&db, &key("another")).unwrap();
        assert_eq!(nonces(), [3, 1, 2]);
        for (owner, now, queued, ahead, first_left) in [
            (3, 0, true, 0, 50),
            (1, 0, true, 1, 50),
            (1, 50, true, 0, 10),
            (2, 59, true, 1, 1),
            (1, 60, false, 1, 10),
            (9, 0, false, 3, 50),
        ] {
            let first_left = Duration::from_nanos(first_left);
            assert_eq!(seen(owner, now), Some(Queue { queued, ahead, first_left }), "{owner} at {now}");
        }
        let kept = place(3, here, 77);
        kept.keep(&db, &k).unwrap();
        assert_eq!(places()[0], kept);
        place(3, here, 5).append(&db, &k).unwrap();
        assert_eq!(nonces(), [1, 2, 3]);
        leave(&db, &k, 1).unwrap();
        assert_eq!(nonces(), [2, 3]);
        let first = places()[0].clone();
        tell(&db, &k, first.nonce).unwrap();
        let told_to = |elector| told(&db, Incarnation::from_u128(elector)).unwrap();
        assert_eq!((told_to(2), told_to(3)), (vec![2], vec![]));
        assert_eq!(awaited_by(&db, Incarnation::from_u128(1)).unwrap(), [key("another")]);
        first.keep(&db, &k).unwrap();
        assert_eq!(told_to(2), []);
        place(4, "other", 99).append(&db, &k).unwrap();
        assert_eq!((seen(2, 0).is_some(), seen(9, 0)), (true, None));
        let mut walked = 0;
        Place::walk(&db, &k, |_| {
            walked += 1;
            Ok(if walked == 2 { Walk::Enough } else { Walk::On })
        })
        .unwrap();
        assert_eq!(walked, 2);
    }
}
