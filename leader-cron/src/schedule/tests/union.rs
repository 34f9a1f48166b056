//! Intervals, and several schedules as one.

use super::*;

const START: &str = "2026-01-01T00:00:00Z";
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

fn cron(expression: &str) -> Timing<String> {
    Timing::Cron { expression: expression.to_owned(), zone: None }
}

fn cron_in(zone: &str, expression: &str) -> Timing<String> {
    Timing::Cron { expression: expression.to_owned(), zone: Some(zone.to_owned()) }
}

fn union(timings: &[Timing<String>]) -> Schedule {
    Schedule::of(timings).unwrap()
}

fn ticks_of(schedule: &Schedule, after: &str, count: usize) -> Vec<i64> {
    let first = schedule.next_after(seconds(after));
    std::iter::successors(first, |tick| schedule.next_after(*tick)).take(count).collect()
}

fn assert_union(timings: &[Timing<String>], after: &str, expected: &[&str]) {
    let expected: Vec<i64> = expected.iter().map(|tick| seconds(tick)).collect();
    assert_eq!(ticks_of(&union(timings), after, expected.len()), expected, "{timings:?} after {after}");
}

#[test]
fn an_interval_is_counted_from_1970_so_that_a_restart_does_not_move_it() {
    let five_minutes = [Timing::Every(5 * MINUTE)];
    assert_union(&five_minutes, "2026-01-01T00:03:17Z", &["2026-01-01T00:05:00Z", "2026-01-01T00:10:00Z"]);
    // The tick itself is not later than itself.
    assert_union(&five_minutes, "2026-01-01T00:05:00Z", &["2026-01-01T00:10:00Z"]);
    let seven_hours = union(&[Timing::Every(7 * 60 * MINUTE)]);
    let ticks = ticks_of(&seven_hours, START, 10);
    assert!(ticks.iter().all(|tick| tick % (7 * 3600) == 0), "{ticks:?}");
    assert!(ticks.windows(2).all(|pair| pair[1] - pair[0] == 7 * 3600), "{ticks:?}");
    assert_union(&[Timing::Every(DAY)], START, &["2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"]);
    assert_eq!(union(&five_minutes).next_after(-301), Some(-300));
    assert_eq!(union(&five_minutes).next_after(i64::MAX), None);
}

#[test]
fn a_change_of_the_clocks_does_not_concern_an_interval() {
    for after in ["2026-03-29T00:00:00Z", "2026-10-25T00:00:00Z"] {
        let expected: Vec<i64> = (1..=8).map(|n| seconds(after) + n * 1800).collect();
        assert_eq!(ticks_of(&union(&[Timing::Every(30 * MINUTE)]), after, 8), expected);
    }
}

#[test]
fn an_interval_is_whole_seconds_up_to_a_year() {
    for (period, told) in [
        (Duration::from_secs(1), "every 1s"),
        (90 * MINUTE, "every 1h30m"),
        (Duration::from_secs(300), "every 5m"),
        (DAY + MINUTE / 60, "every 1d1s"),
        (366 * DAY, "every 366d"),
    ] {
        let schedule = union(&[Timing::Every(period)]);
        assert_eq!((schedule.expression(), schedule.zone(), &*schedule.text()), (told, "UTC", told));
    }
    for period in [Duration::ZERO, Duration::from_millis(1500), 366 * DAY + MINUTE, Duration::MAX] {
        let refused = Schedule::of::<&str>(&[Timing::Every(period)]).unwrap_err();
        assert_eq!(refused, [ScheduleError::Interval { period }]);
        assert!(refused[0].to_string().contains("whole seconds, from 1 s to 366 days"));
    }
}

#[test]
fn an_instant_that_is_due_in_two_schedules_is_one_tick() {
    let all = [cron("0 */10 * * * *"), Timing::Every(15 * MINUTE), cron("0 0 * * * *")];
    let expected = [
        "2026-01-01T00:10:00Z",
        "2026-01-01T00:15:00Z",
        "2026-01-01T00:20:00Z",
        "2026-01-01T00:30:00Z",
        "2026-01-01T00:40:00Z",
        "2026-01-01T00:45:00Z",
        "2026-01-01T00:50:00Z",
        "2026-01-01T01:00:00Z",
        "2026-01-01T01:10:00Z",
    ];
    assert_union(&all, START, &expected);
}

#[test]
fn each_schedule_of_a_union_keeps_to_its_own_zone_when_the_clocks_change() {
    let nine = |zone| cron_in(zone, "0 0 9 * * *");
    // Nine o'clock in New York moves on 8 March, in Berlin three weeks later.
    let both = [nine("Europe/Berlin"), nine("America/New_York")];
    let expected = ["2026-03-07T14:00:00Z", "2026-03-08T08:00:00Z", "2026-03-08T13:00:00Z", "2026-03-09T08:00:00Z"];
    assert_union(&both, "2026-03-07T12:00:00Z", &expected);
    let expected = ["2026-03-28T13:00:00Z", "2026-03-29T07:00:00Z", "2026-03-29T13:00:00Z"];
    assert_union(&both, "2026-03-28T12:00:00Z", &expected);
    // In the gap: half past two comes at its end, together with three o'clock, and with an interval.
    let berlin = |expression| cron_in("Europe/Berlin", expression);
    let all = [berlin("0 30 2 * * *"), berlin("0 0 3 * * *"), Timing::Every(60 * MINUTE)];
    let expected = ["2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"];
    assert_union(&all, "2026-03-29T00:30:00Z", &expected);
    // In the doubled hour a fixed time comes once, and the interval in both.
    let expected = ["2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z", "2026-10-25T03:00:00Z"];
    assert_union(&all, "2026-10-25T00:00:00Z", &expected);
}

#[test]
fn a_union_has_the_ticks_of_all_its_schedules_and_no_others() {
    let given = [
        cron_in("Europe/Berlin", "0 30 2 * * *"),
        cron_in("Australia/Lord_Howe", "0 */20 1-3 * * *"),
        cron_in("America/Havana", "0 30 0 * * *"),
        Timing::Every(Duration::from_secs(7 * 3600)),
    ];
    let whole = union(&given);
    // A year, with every change of the clocks in it.
    let (from, until) = (seconds(START), seconds("2027-01-01T00:00:00Z"));
    let walk = |schedule: &Schedule| {
        let ticks = std::iter::successors(schedule.next_after(from), |tick| schedule.next_after(*tick));
        ticks.take_while(|tick| *tick <= until).collect::<Vec<_>>()
    };
    let mut expected: Vec<i64> = given.iter().flat_map(|timing| walk(&union(std::slice::from_ref(timing)))).collect();
    expected.sort_unstable();
    expected.dedup();
    assert!(expected.len() > 4000);
    assert_eq!(walk(&whole), expected);
    for (n, until) in expected.iter().enumerate().step_by(97) {
        let before = n.checked_sub(1).map(|n| expected[n]);
        assert_eq!(whole.last_until(from, *until), Some(*until));
        assert_eq!(whole.last_until(from, until - 1), before);
    }
}

#[test]
fn a_schedule_of_a_union_that_has_ended_leaves_the_others_and_costs_nothing() {
    let last_new_year = seconds("2027-01-01T00:00:00Z");
    let whole = union(&[cron("0 0 0 1 1 * 2027"), Timing::Every(366 * DAY)]);
    assert_eq!(whole.ended(seconds(START)).count(), 0);
    let timed = |questions: i64| {
        let asked = std::time::Instant::now();
        assert!((0..questions).all(|n| whole.next_after(last_new_year + n).is_some()));
        asked.elapsed()
    };
    let first = timed(1);
    assert!(timed(1_000) < first * 100, "the end is looked for again at each question");
    let ended: Vec<_> = whole.ended(last_new_year).map(Rule::expression).collect();
    assert_eq!(ended, ["0 0 0 1 1 * 2027"]);
    assert_eq!(
        whole.clone().next_after(last_new_year - 1),
        Some(last_new_year),
        "what is known of the end is not more"
    );
}

#[test]
fn all_that_is_wrong_with_the_schedules_of_a_job_is_told() {
    let wrong = [cron("* *"), cron("@daily"), cron_in("Mars/Base", "@daily"), Timing::Every(Duration::ZERO)];
    let errors = Schedule::of(&wrong).unwrap_err();
    assert!(
        matches!(
            errors[..],
            [ScheduleError::Expression { .. }, ScheduleError::Zone { .. }, ScheduleError::Interval { .. }]
        ),
        "{errors:?}"
    );
}

#[test]
fn the_ledger_knows_one_expression_by_what_it_has_always_kept() {
    for (expression, zone, kept) in
        [("0 * * * * *", None, "0 * * * * * UTC"), (" @Daily ", Some("Europe/Berlin"), "@Daily Europe/Berlin")]
    {
        let schedule = Schedule::parse(expression, zone).unwrap();
        assert_eq!((schedule.expression(), &*schedule.text()), (expression, kept));
    }
    // Twice the same is the same once.
    assert_eq!(union(&[cron("@daily"), cron(" @daily")]).text(), "@daily UTC");
}

#[test]
fn the_order_in_which_schedules_are_written_makes_no_other_union() {
    let berlin = cron_in("Europe/Berlin", "0 0 9 * * *");
    let one = union(&[cron("@daily"), Timing::Every(5 * MINUTE), berlin.clone()]);
    let other = union(&[berlin, cron("@daily"), Timing::Every(5 * MINUTE)]);
    assert_eq!(one.text(), other.text());
    assert_eq!(one.text(), "0 0 9 * * * Europe/Berlin and @daily UTC and every 5m");
    assert_ne!(one.text(), union(&[cron("@daily"), Timing::Every(5 * MINUTE), cron("0 0 9 * * *")]).text());
}

#[test]
fn people_are_told_the_zones_where_there_is_more_than_one() {
    let berlin = |expression| cron_in("Europe/Berlin", expression);
    let same = union(&[berlin("@daily"), berlin("0 0 9 * * *"), Timing::Every(MINUTE)]);
    assert_eq!((same.expression(), same.zone()), ("@daily and 0 0 9 * * * and every 1m", "Europe/Berlin"));
    assert!(same.local_time(seconds(START)).ends_with("CET"));
    let mixed = union(&[berlin("@daily"), cron("@hourly")]);
    assert_eq!((mixed.expression(), mixed.zone()), ("@daily in Europe/Berlin and @hourly in UTC", "UTC"));
}

/// More than the store keeps of a text.
#[test]
fn long_unions_that_begin_alike_are_told_apart() {
    let many = |last: &str| {
        let days = (1..=31).map(|day| cron(&format!("0 0 {} {day} * *", day % 24)));
        union(&days.chain([cron(last)]).collect::<Vec<_>>()).text()
    };
    let (one, other) = (many("@daily"), many("@hourly"));
    assert_eq!(one.len(), TickOp::LONGEST);
    assert_eq!(one[..180], other[..180]);
    assert_ne!(one, other);
    // It may not change from one build to the next.
    assert!(one.ends_with(" #a36603b3ec783461"), "{one}");
    // So is a single expression.
    let seconds = |last: u8| {
        let all: Vec<_> = (0..59).chain([last]).map(|second| second.to_string()).collect();
        Schedule::parse(&format!("{} {} * * * *", all.join(","), all[..20].join(",")), None).unwrap().text()
    };
    assert_eq!(seconds(59).len(), TickOp::LONGEST);
    assert_ne!(seconds(59), seconds(58));
}

#[test]
fn the_shortest_distance_is_found_wherever_the_clock_stands() {
    let all = [cron("0 0,40 * * * *"), Timing::Every(45 * MINUTE)];
    for minute in (0..180).step_by(13) {
        let found = union(&all).shortest_distance(seconds(START) + minute * 60);
        assert_eq!(found, Some(5 * MINUTE), "after minute {minute}");
    }
    assert_eq!(union(&[cron("0 0 0 1 1 * 2027")]).shortest_distance(seconds(START)), None);
}
