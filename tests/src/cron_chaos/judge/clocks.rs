//! Which bodies began too early, and whether clocks showed what they were set to.

use std::collections::BTreeMap;

use super::bodies::Body;
use super::{Counts, Evidence, Violation};

/// So long after its claim at most does a body begin: what two calls of the store may take, and a busy machine.
const CLAIM_NS: u64 = 3_000_000_000;
/// Clocks of one host that are read one after the other, on a busy machine, half the time.
const NEAR_US: i64 = 50_000;

pub(super) fn check(evidence: &Evidence, bodies: &[Body<'_>], counts: &mut [Counts], found: &mut Vec<Violation>) {
    let mut shifts: BTreeMap<&str, Vec<(u64, u64, i64)>> = BTreeMap::new();
    for shift in &evidence.shifts {
        let of = shifts.entry(&shift.member).or_default();
        if let Some((_, until, _)) = of.last_mut() {
            *until = shift.at.to_ns;
        }
        of.push((shift.at.from_ns, u64::MAX, shift.offset_us));
    }
    // In which each of these was right: those that may have been when the tick was claimed.
    let offsets = |body: &Body<'_>, since_ns: u64| {
        let all = shifts.get(body.member).map_or(&[][..], Vec::as_slice);
        let then: Vec<_> = all.iter().filter(|(from, to, _)| *from <= body.at_ns && since_ns <= *to).collect();
        if then.is_empty() { vec![0] } else { then.iter().map(|(.., offset)| *offset).collect() }
    };
    let mut wrong: BTreeMap<&str, (u64, u64, String)> = BTreeMap::new();
    let mut boot: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for body in bodies {
        let ahead = if evidence.bounds.own_clocks {
            offsets(body, body.at_ns.saturating_sub(CLAIM_NS)).into_iter().max().unwrap_or(0)
        } else {
            0
        };
        let by_us = body.tick * 1_000_000 - (body.true_us + ahead);
        if by_us > 0 && evidence.bounds.ledger && evidence.is_news(body.at_ns) {
            counts[body.job].early += 1;
            found.push(Violation::Early { body: body.to_string(), by_us });
        }
        let shown = body.own_us - body.true_us;
        let (right, all, what) = wrong.entry(body.member).or_default();
        *all += 1;
        if offsets(body, body.at_ns).iter().any(|offset| (shown - offset).abs() < NEAR_US) {
            *right += 1;
        } else {
            *what = format!("{shown} µs ahead at {}, and was set to {:?}", body.at_ns, offsets(body, body.at_ns));
        }
        boot.entry(body.member).or_default().push(body.true_us - i64::try_from(body.at_ns / 1_000).unwrap_or(i64::MAX));
    }
    for (member, (right, all, what)) in wrong {
        if right * 2 < all {
            found.push(Violation::WrongClock { member: member.to_owned(), what });
        }
    }
    let middle = |mut all: Vec<i64>| {
        all.sort_unstable();
        all[all.len() / 2]
    };
    let middles: Vec<_> = boot.into_iter().map(|(member, all)| (member, middle(all))).collect();
    let Some((first, of_first)) = middles.first() else { return };
    for (member, of_member) in middles.iter().filter(|(_, of_member)| (of_member - of_first).abs() > NEAR_US) {
        let what = format!("its boot clock is {} µs from that of {first}", of_member - of_first);
        found.push(Violation::WrongClock { member: (*member).to_owned(), what });
    }
}
