//! The course of a job under any answers: no claim begins twice, nothing runs without a claim of ours, and no answer makes it
//! turn in circles.

use std::collections::HashSet;
use std::time::Duration;

use leader_core::store::{RunEnd, RunOutcome};
use leader_core::testing::redis_script::{self, Reply};
use leader_core::{BootInstant, Term};
use leader_cron::__private::{Delivery, Missed, Overlap};
use leader_cron::testing::{Course, Failure, Notice, Policy, Poll, Rules, Schedule, StoreClock};

use super::bytes::Bytes;
use super::replies::{answer, any_answer};

const SLOT: Duration = Duration::from_secs(10);

pub(super) fn property(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    let policy = Policy {
        missed: bytes.choice(&[Missed::Once, Missed::Skip, Missed::All]),
        within: bytes.choice(&[None, None, Some(Duration::from_secs(7200)), Some(Duration::MAX)]),
        overlap: bytes.choice(&[Overlap::Forbid, Overlap::Allow]),
        delivery: bytes.choice(&[Delivery::AtMostOnce, Delivery::AtLeastOnce]),
        jitter: bytes.choice(&[Duration::ZERO, Duration::from_secs(8)]),
        ..Policy::DEFAULT
    };
    let expression = bytes.choice(&["0 * * * * *", "0 0 3 * * *", "0 0 0 1 1 * 2027"]);
    let schedule = Schedule::parse(expression, None).expect("it is an expression");
    let rules = Rules { slot: SLOT, guard: Duration::from_millis(10), operation_timeout: Duration::from_secs(1) };
    let mut course = Course::new(schedule, policy, 7, rules);
    let mut now = BootInstant::from_nanos(3_600_000_000_000);
    let (mut clock, mut nonces, mut notices) = (None, 0_u128, Vec::new());
    let (mut begun, mut on) = (HashSet::new(), Vec::new());
    let mut term = 0;
    let mut outstanding = None;
    // Each step may walk over many ticks.
    for _ in 0..64 {
        if bytes.is_empty() {
            return;
        }
        now = now.saturating_add(bytes.time());
        let mut nonce = || {
            nonces += 1;
            nonces
        };
        match course.poll(now, clock.as_ref(), &mut nonce, &mut notices) {
            Poll::Send(request) => {
                assert_eq!(outstanding, None, "a second request is in flight");
                outstanding = Some(request.no);
            }
            Poll::Wait(_) | Poll::Idle => {}
        }
        match (bytes.below(16), outstanding.take()) {
            (0..10, Some(no)) => {
                let us = bytes.choice(&[1_800_000_000_000_000, 1_800_000_000_000_000, 1_900_000_000_000_000]);
                let us =
                    if bytes.byte().is_multiple_of(16) { bytes.number() } else { us + bytes.time().as_micros() as u64 };
                let reply = match bytes.below(5) {
                    0 => answer("loaded", &mut bytes),
                    1 => answer("registered", &mut bytes),
                    2 => answer("run", &mut bytes),
                    _ => any_answer(&mut bytes),
                };
                let told = vec![Reply::Text(us.to_string()), reply];
                match redis_script::tick_answers(Reply::List(told), 1).remove(0) {
                    Ok(answer) => {
                        clock = Some(StoreClock::new(now, answer.now_us));
                        course.answered(now, no, &answer, &mut notices);
                    }
                    Err(_) => drop(course.failed(now, no, Failure::Passing)),
                }
            }
            (10, Some(no)) => {
                let failure = bytes.choice(&[Failure::Passing, Failure::Permanent]);
                course.failed(now, no, failure);
            }
            (11 | 12, still) => {
                outstanding = still;
                term += 1;
                course.led(now, Term::new(term), Term::new(bytes.choice(&[1, term])));
            }
            (13, still) => {
                outstanding = still;
                course.unled();
            }
            (14, still) => {
                outstanding = still;
                if let Some(nonce) = on.pop() {
                    let end = RunEnd {
                        outcome: RunOutcome::Succeeded,
                        message: String::new(),
                        began_us: 0,
                        took: Duration::ZERO,
                    };
                    if bytes.flag() { course.refused(nonce) } else { course.ended(nonce, end, bytes.flag()) }
                }
            }
            (_, still) => {
                outstanding = still;
                course.look(now);
            }
        }
        for notice in notices.drain(..) {
            if let Notice::Run(claimed) = notice {
                assert!((1..=nonces).contains(&claimed.nonce), "{claimed:?} is no claim of ours");
                assert!(begun.insert(claimed.nonce), "{claimed:?} begins twice");
                on.push(claimed.nonce);
            }
        }
    }
}
