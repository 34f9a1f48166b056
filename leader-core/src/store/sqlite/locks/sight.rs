//! What is seen of a lock at the moment of a decision: rows, clocks, and who has ended.

use std::time::Duration;

use rusqlite::Connection;

use super::super::host::Host;
use super::queue::{Place, Queue, Walk};
use super::rows::{self, Note, Seat};
use super::{Eyes, Phase};
use crate::clock::BootInstant;
use crate::identity::Incarnation;
use crate::store::lock::rules::{Held, Seen};
use crate::store::rules::wall_clock;
use crate::store::{LockCommand, LockKey, LockOp};

/// So many who wait are looked at, to see whether they live: whoever stands behind them has to wait in any case.
const LOOKED_AT: u32 = 16;

pub(super) fn see(
    from: &Connection,
    eyes: &mut Eyes<'_>,
    command: &LockCommand,
    asker: Incarnation,
    phase: Phase,
) -> rusqlite::Result<(BootInstant, Option<Seat>, Seen)> {
    let (key, owner) = (&command.key, command.owner.nonce);
    let seat = Seat::read(from, key)?;
    let note = Note::read(from, key)?;
    let highest = rows::highest(from)?;
    // Read after the rows: under the writer's lock nothing changes any more, and without it nothing is decided by it.
    let (now, wall) = (BootInstant::now(), wall_clock());
    let held = seat.as_ref().and_then(|seat| seat.held(eyes, asker, now));
    let Queue { queued, ahead, first_left } = match command.op {
        // The others do not care who waits.
        LockOp::Renew { .. } | LockOp::Complete { .. } | LockOp::Forget => Queue::default(),
        // Its place is written in any case, wherever that is.
        LockOp::Acquire { queue: Some(_), .. } if held.is_some() && phase == Phase::Look => Queue::default(),
        LockOp::Acquire { .. } | LockOp::Release { .. } => match Queue::count(from, key, owner, now)? {
            Some(queue) if held.is_some() || queue.ahead == 0 => queue,
            // If the lock is free, those who came before may have ended.
            Some(queue) => without_the_dead(queue, from, eyes, key, owner, now)?,
            None => walk(from, eyes, key, owner, now)?,
        },
    };
    let closed = match command.op {
        LockOp::Acquire { .. } if held.is_none() => eyes.locks.closed(command.ttl, now),
        _ => Duration::ZERO,
    };
    let done = note.filter(|note| note.until.is_none_or(|until| wall < until)).map(|note| (note.nonce, note.token));
    Ok((now, seat, Seen { held, queued, ahead, first_left, closed, done, highest, wall }))
}

/// Looks at the first places of a queue one by one, until some are found whose owners live.
fn without_the_dead(
    mut queue: Queue,
    from: &Connection,
    eyes: &mut Eyes<'_>,
    key: &LockKey,
    owner: u128,
    now: BootInstant,
) -> rusqlite::Result<Queue> {
    let (mut living, mut dead) = (0, 0);
    Place::walk(from, key, |place| {
        if place.nonce == owner {
            return Ok(Walk::Enough);
        }
        let left = place.left(eyes, now);
        if !left.is_zero() {
            queue.first_left = if living == 0 { left } else { queue.first_left };
            living += 1;
        } else if place.until > now {
            dead += 1;
        }
        Ok(if living == LOOKED_AT { Walk::Enough } else { Walk::On })
    })?;
    // Those behind were counted by their time alone.
    queue.ahead = if living < LOOKED_AT { living } else { queue.ahead.saturating_sub(dead).max(living) };
    Ok(queue)
}

/// Looks at the places of a queue one by one.
fn walk(
    from: &Connection,
    eyes: &mut Eyes<'_>,
    key: &LockKey,
    owner: u128,
    now: BootInstant,
) -> rusqlite::Result<Queue> {
    let mut queue = Queue::default();
    Place::walk(from, key, |place| {
        let left = place.left(eyes, now);
        if !left.is_zero() && place.nonce == owner {
            queue.queued = true;
            return Ok(Walk::Enough);
        }
        if !left.is_zero() {
            if queue.ahead == 0 {
                queue.first_left = left;
            }
            queue.ahead += 1;
        }
        Ok(Walk::On)
    })?;
    Ok(queue)
}

impl Seat {
    /// As the rules see it: nothing, if it has run out, or its holder's end is proved.
    fn held(&self, eyes: &mut Eyes<'_>, asker: Incarnation, now: BootInstant) -> Option<Held> {
        let left = if self.host.clock == Host::this().clock {
            eyes.locks.forget(self.nonce);
            self.until.saturating_since(now)
        } else {
            // Another clock's instants say nothing here. But who has not renewed for a whole ttl of its own believes no more.
            eyes.locks.seen(self.nonce, self.version, now).saturating_add(self.ttl).saturating_since(now)
        };
        if left.is_zero() {
            return None;
        }
        if self.incarnation != asker && eyes.witness.has_ended(self.incarnation, &self.host.boot, self.life) {
            return None;
        }
        Some(Held { nonce: self.nonce, instance: self.instance.clone(), token: self.token, left })
    }
}

impl Place {
    /// Nothing, if its owner's end is proved.
    pub(super) fn left(&self, eyes: &mut Eyes<'_>, now: BootInstant) -> Duration {
        let left = if self.host.clock == Host::this().clock {
            self.until.saturating_since(now)
        } else {
            // Who waits there asks again and again, and each time changes its place.
            eyes.locks.seen(self.nonce, self.until.as_nanos(), now).saturating_add(self.life).saturating_since(now)
        };
        let ended = !left.is_zero()
            && !eyes.own.contains(&self.incarnation)
            && eyes.witness.has_ended(self.incarnation, &self.host.boot, self.life_lock);
        if ended { Duration::ZERO } else { left }
    }
}
