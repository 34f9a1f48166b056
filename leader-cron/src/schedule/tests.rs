//! Cron expressions, on ordinary days and on those on which the clocks change.

mod union;

use super::*;

fn seconds(instant: &str) -> i64 {
    DateTime::parse_from_rfc3339(instant).unwrap().timestamp()
}

/// The ticks after an instant, one computed from the other.
fn ticks(expression: &str, zone: &str, after: &str, count: usize) -> Vec<i64> {
    let schedule = Schedule::parse(expression, Some(zone)).unwrap();
    let first = schedule.next_after(seconds(after));
    std::iter::successors(first, |tick| schedule.next_after(*tick)).take(count).collect()
}

fn assert_ticks(expression: &str, zone: &str, after: &str, expected: &[&str]) {
    let expected: Vec<i64> = expected.iter().map(|tick| seconds(tick)).collect();
    assert_eq!(ticks(expression, zone, after, expected.len()), expected, "{expression} in {zone} after {after}");
}

#[test]
fn an_expression_has_five_six_or_seven_fields_or_a_nickname() {
    for (expression, expected) in [
        ("*/5 * * * *", "2026-01-01T00:05:00Z"),
        ("*/5 * * * * *", "2026-01-01T00:00:05Z"),
        ("0 0 12 1 7 * 2030", "2030-07-01T12:00:00Z"),
        ("0 0 0 29 2 *", "2028-02-29T00:00:00Z"),
        ("0 0 0 L * *", "2026-01-31T00:00:00Z"),
        ("0 0 9 * * MON#1", "2026-01-05T09:00:00Z"),
        ("@hourly", "2026-01-01T01:00:00Z"),
        ("@daily", "2026-01-02T00:00:00Z"),
        ("@midnight", "2026-01-02T00:00:00Z"),
        ("@weekly", "2026-01-04T00:00:00Z"),
        ("@monthly", "2026-02-01T00:00:00Z"),
        ("@yearly", "2027-01-01T00:00:00Z"),
        (" @Annually ", "2027-01-01T00:00:00Z"),
    ] {
        assert_ticks(expression, "UTC", "2026-01-01T00:00:00Z", &[expected]);
    }
}

#[test]
fn either_day_field_is_enough_if_both_are_given() {
    let expected = ["2026-02-06T00:00:00Z", "2026-02-13T00:00:00Z", "2026-02-15T00:00:00Z"];
    assert_ticks("0 0 0 15 * FRI", "UTC", "2026-02-01T00:00:00Z", &expected);
}

#[test]
fn a_time_that_the_change_skips_comes_once_at_the_end_of_the_gap() {
    let expected = ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"];
    assert_ticks("0 30 2 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", &expected);
}

#[test]
fn a_time_in_the_hour_before_the_gap_comes_once() {
    let expected = ["2026-03-29T00:30:00Z", "2026-03-29T23:30:00Z"];
    assert_ticks("0 30 1 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", &expected);
}

#[test]
fn a_time_that_comes_twice_is_taken_the_first_time() {
    let expected = ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"];
    assert_ticks("0 30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", &expected);
}

#[test]
fn an_interval_goes_on_through_a_doubled_and_a_skipped_hour() {
    let half_hours = |first: &str, count| (0..count).map(|n| seconds(first) + n * 1800).collect::<Vec<_>>();
    for after in ["2026-10-25T00:00:00Z", "2026-03-29T00:00:00Z"] {
        let expected = &half_hours(after, 9)[1..];
        assert_eq!(ticks("*/30 * * * *", "Europe/Berlin", after, 8), expected, "{after}");
    }
}

#[test]
fn zones_of_both_hemispheres_follow_their_own_changes() {
    let expected = ["2026-03-07T08:30:00Z", "2026-03-08T07:30:00Z"];
    assert_ticks("0 30 3 * * *", "America/New_York", "2026-03-06T12:00:00Z", &expected);
    // Lord Howe moves by half an hour.
    let expected = ["2026-04-03T14:45:00Z", "2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"];
    assert_ticks("0 45 1 * * *", "Australia/Lord_Howe", "2026-04-03T12:00:00Z", &expected);
}

/// Both days of five zones: a fixed time in the gap, one in the doubled hour, one outside of both, and each hour.
#[test]
fn the_days_on_which_clocks_change_have_each_tick_once() {
    let cases: &[(&str, &str, &str, &[&str])] = &[
        ("Europe/Berlin", "0 30 2 * * *", "2026-03-28T12:00:00Z", &["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]),
        ("Europe/Berlin", "0 30 2 * * *", "2026-10-24T12:00:00Z", &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]),
        ("Europe/Berlin", "0 0 9 * * *", "2026-03-28T12:00:00Z", &["2026-03-29T07:00:00Z", "2026-03-30T07:00:00Z"]),
        ("Europe/Berlin", "0 0 * * * *", "2026-03-28T23:30:00Z", &["2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z"]),
        ("Europe/Berlin", "0 0 * * * *", "2026-10-24T23:30:00Z", &["2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"]),
        ("Europe/London", "0 30 1 * * *", "2026-03-28T12:00:00Z", &["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]),
        ("Europe/London", "0 30 1 * * *", "2026-10-24T12:00:00Z", &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]),
        ("Europe/London", "0 0 * * * *", "2026-10-24T23:30:00Z", &["2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"]),
        // The clocks change at midnight.
        (
            "America/Sao_Paulo",
            "0 30 0 * * *",
            "2018-11-03T12:00:00Z",
            &["2018-11-04T03:00:00Z", "2018-11-05T02:30:00Z"],
        ),
        (
            "America/Sao_Paulo",
            "0 30 23 * * *",
            "2018-02-17T12:00:00Z",
            &["2018-02-18T01:30:00Z", "2018-02-19T02:30:00Z"],
        ),
        ("America/Havana", "0 30 0 * * *", "2026-03-07T12:00:00Z", &["2026-03-08T05:00:00Z", "2026-03-09T04:30:00Z"]),
        ("America/Havana", "0 30 0 * * *", "2026-10-31T12:00:00Z", &["2026-11-01T04:30:00Z", "2026-11-02T05:30:00Z"]),
        // By half an hour.
        (
            "Australia/Lord_Howe",
            "0 15 2 * * *",
            "2026-10-03T12:00:00Z",
            &["2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"],
        ),
        (
            "Australia/Lord_Howe",
            "0 45 1 * * *",
            "2026-04-04T12:00:00Z",
            &["2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"],
        ),
        (
            "Australia/Lord_Howe",
            "0 0 * * * *",
            "2026-04-04T13:30:00Z",
            &["2026-04-04T14:00:00Z", "2026-04-04T15:30:00Z"],
        ),
    ];
    for (zone, expression, after, expected) in cases {
        assert_ticks(expression, zone, after, expected);
    }
}

#[test]
fn each_minute_of_a_doubled_hour_is_a_tick_both_times() {
    for (zone, after) in [
        ("Europe/Berlin", "2026-10-24T23:59:00Z"),
        ("Europe/London", "2026-10-24T23:59:00Z"),
        ("America/Sao_Paulo", "2018-02-18T00:59:00Z"),
        ("America/Havana", "2026-11-01T03:59:00Z"),
        ("Australia/Lord_Howe", "2026-04-04T13:59:00Z"),
    ] {
        let first = seconds(after);
        let expected: Vec<i64> = (1..=180).map(|minute| first + minute * 60).collect();
        assert_eq!(ticks("* * * * *", zone, after, 180), expected, "{zone}");
    }
}

#[test]
fn what_never_comes_has_no_next_tick() {
    for expression in ["0 0 0 30 2 *", "0 0 0 1 1 * 2020"] {
        let schedule = Schedule::parse(expression, None).unwrap();
        assert_eq!(schedule.next_after(seconds("2026-01-01T00:00:00Z")), None, "{expression}");
    }
}

#[test]
fn the_last_tick_of_a_span_is_found_whatever_lies_before() {
    for (expression, until, expected) in [
        ("* * * * * *", "2036-01-01T00:00:00Z", Some("2036-01-01T00:00:00Z")),
        ("0 0 0 1 1 *", "2031-06-01T00:00:00Z", Some("2031-01-01T00:00:00Z")),
        ("* * 3 * * *", "2026-01-05T12:00:00Z", Some("2026-01-05T03:59:59Z")),
        ("0 0 12 * * *", "2026-01-01T12:00:00Z", Some("2026-01-01T12:00:00Z")),
        ("0 0 12 * * *", "2026-01-01T11:59:59Z", None),
    ] {
        let schedule = Schedule::parse(expression, None).unwrap();
        let last = schedule.last_until(seconds("2026-01-01T00:00:00Z"), seconds(until));
        assert_eq!(last, expected.map(seconds), "{expression} until {until}");
    }
}

#[test]
fn whatever_second_is_asked_about_ticks_are_those_that_the_ledger_can_tell() {
    let schedules = [
        Schedule::parse("0 0 0 1 1 *", Some("Pacific/Kiritimati")).unwrap(),
        Schedule::parse("* * * * * *", Some("America/New_York")).unwrap(),
        Schedule::of(&[Timing::<&str>::Every(Duration::from_secs(3600))]).unwrap(),
    ];
    for schedule in schedules {
        let mut instants = vec![i64::MIN, -8_334_601_228_800, -1, 0, TickOp::LATEST - 1, TickOp::LATEST, i64::MAX];
        // Where the calendar ends.
        instants.extend([8_210_266_876_798, 8_210_266_876_799, 8_210_266_876_800]);
        for after in &instants {
            let next = schedule.next_after(*after);
            let possible = |tick| tick > *after && tick <= TickOp::LATEST;
            assert!(next.is_none_or(possible), "{next:?} after {after}");
            for until in &instants {
                let last = schedule.last_until(*after, *until);
                assert!(last.is_none_or(|last| possible(last) && last <= *until), "{last:?} of {after} ..= {until}");
            }
        }
        assert_eq!(schedule.next_after(TickOp::LATEST), None);
    }
}

#[test]
fn an_error_says_what_to_write_instead() {
    let refused = |expression, zone| Schedule::parse(expression, zone).unwrap_err().to_string();
    for expression in ["", "* * *", "99 * * * * *", "@secondly", "0 0 0 * FOO *"] {
        let text = refused(expression, None);
        assert!(text.contains("no cron expression") && text.contains("5 fields"), "{text}");
    }
    for (zone, advice) in
        [("Mars/Base", "such as `Europe/Berlin`"), ("europe/berlin", "write `Europe/Berlin`"), ("Tokyo", "Asia/Tokyo")]
    {
        let text = refused("@daily", Some(zone));
        assert!(text.contains(zone) && text.contains(advice), "{text}");
    }
}

#[test]
fn an_expression_with_both_day_fields_is_warned_about_unless_it_says_how_it_is_meant() {
    for (expression, is_ambiguous) in [
        ("0 0 13 * FRI", true),
        ("0 0 0 13 * FRI", true),
        ("0 0 0 1-7 * MON 2030", true),
        ("0 0 13 * +FRI", false),
        ("0 0 13 * *", false),
        ("0 0 ? * FRI", false),
        ("@weekly", false),
    ] {
        let schedule = Schedule::parse(expression, None).unwrap();
        let warnings: Vec<_> = schedule.warnings(0).collect();
        assert_eq!(warnings.len(), usize::from(is_ambiguous), "{expression}: {warnings:?}");
        assert!(warnings.iter().all(|warning| warning.contains(expression) && warning.contains("`+`")));
    }
    // With the plus both have to fit.
    let both = Schedule::parse("0 0 13 * +FRI", None).unwrap();
    let first = both.next_after(1_800_000_000).unwrap();
    assert!(both.local_time(first).starts_with("2027-08-13"), "{}", both.local_time(first));
}

#[test]
fn a_union_of_which_one_schedule_has_ended_goes_on_and_says_so() {
    let timings = |expressions: &[&'static str]| -> Vec<_> {
        expressions.iter().map(|expression| Timing::Cron { expression: *expression, zone: None }).collect()
    };
    let now = 1_900_000_000;
    for (expressions, never, warned) in [
        (&["@daily", "0 0 0 1 1 * 2026"][..], 0, 1),
        (&["@daily", "0 0 30 2 *"], 1, 1),
        (&["0 0 0 1 1 * 2026"], 1, 1),
        (&["@daily"], 0, 0),
    ] {
        let schedule = Schedule::of(&timings(expressions)).unwrap();
        assert_eq!(schedule.never(now).count(), never, "{expressions:?}");
        assert_eq!(schedule.warnings(now).count(), warned, "{expressions:?}");
    }
}
