//! One job in virtual time: every tick is accounted for, whatever wakes it, whatever its clocks do, whoever leads.
#![allow(clippy::print_stdout, reason = "the figures are part of the result")]

use std::time::{Duration, Instant};

use leader_cron::Missed;
use leader_cron::testing::Policy;
use leader_tests::one_job::{Broken, Plan, Reign, Reigns, Report, Steps, Wakes, run};

/// 2027-01-15 08:00:00 UTC.
const BEGINS: i64 = 1_800_000_000;
const TICKS: u64 = 100_000;
const ALL_WORLDS: [(Wakes, Steps); 4] = [
    (Wakes::Exact, Steps::None),
    (Wakes::Faulty, Steps::None),
    (Wakes::Faulty, Steps::Store),
    (Wakes::Faulty, Steps::Instances),
];

/// A job each second.
fn plan(missed: Missed, wakes: Wakes, steps: Steps, ticks: u64) -> Plan {
    Plan {
        schedule: "* * * * * *",
        zone: None,
        policy: Policy { missed, ..Policy::DEFAULT },
        begins: BEGINS,
        span: Duration::from_secs(ticks + 60),
        wakes,
        steps,
        reigns: Reigns::Alternating,
        broken: None,
        seed: 1,
    }
}

fn ran(what: &str, plan: &Plan) -> Report {
    let begun = Instant::now();
    let report = run(plan);
    println!("{what}: {report} ({:.1} s)", begun.elapsed().as_secs_f64());
    report
}

#[track_caller]
fn assert_clean(report: &Report) {
    assert!(report.is_clean(), "{:?}", (&report.lost, &report.doubled, &report.early, &report.misreported));
}

#[test]
fn a_hundred_thousand_ticks_run_once_each_and_in_order_whoever_leads_and_whatever_wakes_them() {
    let run_world = |(wakes, steps)| {
        let report = ran(&format!("all, wakes {wakes:?}, steps {steps:?}"), &plan(Missed::All, wakes, steps, TICKS));
        assert_clean(&report);
        assert!(report.told.is_empty(), "{:?}", report.told);
        assert!(report.expected + 100 > TICKS, "{}", report.expected);
        assert!(report.ran.is_sorted_by_key(|ran| ran.tick));
        assert!(report.reigns > 300 && (steps == Steps::None || report.steps > 200));
    };
    std::thread::scope(|scope| {
        for world in ALL_WORLDS {
            scope.spawn(move || run_world(world));
        }
    });
}

#[test]
fn what_once_and_skip_leave_out_is_told_and_bounded_by_what_was_late() {
    for missed in [Missed::Once, Missed::Skip] {
        for (wakes, steps) in [(Wakes::Exact, Steps::None), (Wakes::Exact, Steps::Store)].into_iter().chain(ALL_WORLDS)
        {
            let what = format!("{missed:?}, wakes {wakes:?}, steps {steps:?}");
            let report = ran(&what, &plan(missed, wakes, steps, TICKS / 10));
            assert_clean(&report);
            let left_out: u64 = report.told.values().sum();
            if wakes == Wakes::Exact {
                // A tick may have been claimed by who led, and not begun; and a step of 10 s leaves out 9 ticks, or those that
                // are more than 5 s late.
                let each = if missed == Missed::Once { 10 } else { 5 };
                let steps = report.steps.div_ceil(2) * each;
                assert!(left_out <= report.reigns + steps, "{what}: {report}");
            }
            let reasons: Vec<_> = report.told.keys().copied().collect();
            let expected = if missed == Missed::Once { "coalesced" } else { "too old" };
            assert!(reasons.iter().all(|reason| [expected, "superseded"].contains(reason)), "{what}: {reasons:?}");
        }
    }
}

#[test]
fn whatever_is_broken_shows() {
    for (broken, shows) in [
        (Broken::ClaimForgotten, (|report: &Report| !report.doubled.is_empty()) as fn(&Report) -> bool),
        (Broken::RunSwallowed, |report| !report.lost.is_empty()),
        (Broken::ClockAhead, |report| !report.early.is_empty()),
        (Broken::ToldWrongly, |report| !report.misreported.is_empty()),
    ] {
        let plan = Plan { broken: Some(broken), ..plan(Missed::All, Wakes::Exact, Steps::None, 20_000) };
        let report = ran(&format!("{broken:?}"), &plan);
        assert!(!report.is_clean() && shows(&report), "{broken:?} is not noticed");
    }
}

/// Midnight in UTC of the days on which the clocks of Berlin change: at 1:00 UTC, from 3:00 to 2:00, and from 2:00 to 3:00.
const AUTUMN: i64 = 1_792_886_400;
const SPRING: i64 = 1_806_192_000;

const HOUR: i64 = 3_600;
const MINUTE: i64 = 60;

/// The ticks that ran, in minutes after `day`, and where; instance 0 leads from two hours before it until it is killed, and
/// instance 1 from then on.
fn across(
    day: i64,
    schedule: &'static str,
    missed: Missed,
    killed: i64,
    led_again: i64,
    hours: i64,
) -> Vec<(i64, usize)> {
    let begins = day - 2 * HOUR;
    let report = ran(
        schedule,
        &Plan {
            schedule,
            zone: Some("Europe/Berlin"),
            policy: Policy { missed, within: Some(Duration::from_secs(7_200)), ..Policy::DEFAULT },
            begins,
            span: Duration::from_secs((hours * HOUR + day - begins).unsigned_abs()),
            wakes: Wakes::Exact,
            steps: Steps::None,
            reigns: Reigns::Scripted(vec![
                (begins, Reign::Of(0)),
                (day + killed, Reign::Killed),
                (day + led_again, Reign::Of(1)),
            ]),
            broken: None,
            seed: 1,
        },
    );
    assert_clean(&report);
    assert!(report.told.is_empty() && report.ran.iter().all(|ran| ran.missed == 0), "{:?}", report.told);
    report.ran.iter().map(|ran| ((ran.tick - day) / MINUTE, ran.instance)).collect()
}

#[test]
fn a_fixed_time_in_the_doubled_hour_runs_in_its_first_pass_and_not_again_in_the_second_by_who_leads_then() {
    let night = "0 30 2 * * *";
    // Each day at 2:30: at 0:30 UTC, when it comes for the first time; then a day later, at 1:30 UTC.
    for missed in [Missed::Once, Missed::All, Missed::Skip] {
        let ticks = across(AUTUMN, night, missed, 45 * MINUTE, HOUR + 5 * MINUTE, 27);
        assert_eq!(ticks, [(30, 0), (24 * 60 + 90, 1)], "{missed:?}");
    }
    // Nobody led in the first pass: it is made up for in the second one, once.
    for missed in [Missed::Once, Missed::All] {
        let ticks = across(AUTUMN, night, missed, 29 * MINUTE, HOUR + 5 * MINUTE, 27);
        assert_eq!(ticks, [(30, 1), (24 * 60 + 90, 1)], "{missed:?}");
    }
}

#[test]
fn an_interval_goes_on_through_both_passes_of_the_doubled_hour_across_a_hand_over() {
    for missed in [Missed::Once, Missed::All, Missed::Skip] {
        let ticks = across(AUTUMN, "0 */30 * * * *", missed, 31 * MINUTE, 59 * MINUTE, 3);
        // 2:00 and 2:30 of the first pass here, of the second one there.
        let passes: Vec<_> = ticks.iter().copied().filter(|(minute, _)| (0..120).contains(minute)).collect();
        assert_eq!(passes, [(0, 0), (30, 0), (60, 1), (90, 1)], "{missed:?}");
        let minutes: Vec<_> = ticks.iter().map(|(minute, _)| *minute).collect();
        assert!(minutes.windows(2).all(|pair| pair[1] == pair[0] + 30), "{missed:?}: {minutes:?}");
    }
}

#[test]
fn a_fixed_time_in_the_hour_that_is_left_out_runs_once_at_its_end_by_who_leads_then() {
    for missed in [Missed::Once, Missed::All] {
        let ticks = across(SPRING, "0 30 2 * * *", missed, 59 * MINUTE, HOUR + MINUTE, 26);
        assert_eq!(ticks, [(60, 1), (24 * 60 + 30, 1)], "{missed:?}");
    }
    // Who ran it dies: it does not come again at what would have been its time.
    let ticks = across(SPRING, "0 30 2 * * *", Missed::Once, HOUR + MINUTE, HOUR + 20 * MINUTE, 26);
    assert_eq!(ticks, [(60, 0), (24 * 60 + 30, 1)]);
}
