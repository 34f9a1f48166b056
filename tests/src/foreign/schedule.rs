//! Schedules: what compiles can be read when it runs, and ticks are later than what they are asked after, in order, and the same
//! from whichever second before them they are asked for.

use std::time::Duration;

use leader_cron::__private::Timing;
use leader_cron::testing::Schedule;

use super::bytes::Bytes;

#[path = "../../../leader-macros/src/schedule/check.rs"]
#[allow(unreachable_pub, dead_code, reason = "it is a part of another crate")]
mod check;

const ZONES: [Option<&str>; 6] = [
    None,
    Some("Europe/Berlin"),
    Some("America/Sao_Paulo"),
    Some("Australia/Lord_Howe"),
    Some("Pacific/Kiritimati"),
    Some("Mars/Base"),
];
/// So many ticks are looked at: each may have to be searched for a long time.
const LOOKED_AT: usize = 4;

pub(super) fn property(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    let (zone, after, until) = (bytes.choice(&ZONES), bytes.number().cast_signed(), bytes.number().cast_signed());
    let every = bytes.byte();
    let text = bytes.rest();
    let mut timings = vec![Timing::Cron { expression: text.as_str(), zone }];
    match every % 4 {
        0 => timings.push(Timing::Every(Duration::from_secs(u64::from(every)))),
        1 => timings[0] = Timing::Every(Duration::new(after.unsigned_abs(), u32::from(every == 1))),
        _ => {}
    }
    let schedule = match Schedule::of(&timings) {
        Ok(schedule) => schedule,
        Err(wrong) => {
            assert!(wrong.iter().all(|error| !error.to_string().is_empty()));
            let of_the_text = every % 4 > 1 && zone != Some("Mars/Base");
            assert!(!of_the_text || check::check(&text).is_err(), "{text:?} compiles, and is refused: {wrong:?}");
            return;
        }
    };
    assert!(schedule.text().len() <= 200, "{}", schedule.text());
    let mut at = after;
    for _ in 0..LOOKED_AT {
        let Some(tick) = schedule.next_after(at) else { break };
        assert!(tick > at, "{tick} comes after {at}");
        assert_eq!(schedule.next_after(tick - 1), Some(tick), "as asked one second before it, and after {at}");
        let _ = schedule.local_time(tick);
        at = tick;
    }
    if let Some(last) = schedule.last_until(after, until) {
        assert!(after < last && last <= until, "{last} is not between {after} and {until}");
        let next = schedule.next_after(last);
        assert!(next.is_none_or(|next| next > until), "{next:?} is later than {last}, and not later than {until}");
    }
}
