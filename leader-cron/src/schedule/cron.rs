//! A cron expression in a time zone.
//!
//! In the night of a time change: a fixed time that does not exist comes once, at the end of the gap; one that exists twice
//! comes once, the first time; an interval such as `*/30` goes on through both hours.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, TimeZone};
use chrono_tz::Tz;
use croner::errors::CronError;
use croner::parser::{CronParser, Seconds, Year};

use super::ScheduleError;

#[derive(Debug, Clone)]
pub(super) struct Cron {
    cron: croner::Cron,
    zone: Tz,
    expression: String,
    /// After this second none comes, as far as it was asked. To find that out again takes a tenth of a second, and a union in
    /// which one of several schedules has ended is asked for each tick of the others.
    ended: Arc<AtomicI64>,
}

impl Cron {
    pub(super) fn parse(expression: &str, zone: Option<&str>) -> Result<Self, ScheduleError> {
        let zone = zone.map_or(Ok(Tz::UTC), parse_zone)?;
        let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Optional).build();
        // The one nickname of the crontab that croner does not know.
        let readable = match expression.trim() {
            nickname if nickname.eq_ignore_ascii_case("@midnight") => "@daily",
            other => other,
        };
        let cron = parser.parse(readable).map_err(|error| ScheduleError::Expression {
            expression: expression.to_owned(),
            reason: error.to_string().trim_end_matches('.').to_owned(),
        })?;
        Ok(Self { cron, zone, expression: expression.to_owned(), ended: Arc::new(AtomicI64::new(i64::MAX)) })
    }

    /// As it was written.
    pub(super) fn expression(&self) -> &str {
        &self.expression
    }

    /// Both day fields say something, and either is enough: some would have it that both have to fit.
    pub(super) fn is_ambiguous(&self) -> bool {
        let fields: Vec<_> = self.expression.split_whitespace().collect();
        let (day, weekday) = match fields[..] {
            [_, _, day, _, weekday] | [_, _, _, day, _, weekday] | [_, _, _, day, _, weekday, _] => (day, weekday),
            // A nickname.
            _ => return false,
        };
        !["*", "?"].contains(&day) && !["*", "?"].contains(&weekday) && !weekday.starts_with('+')
    }

    pub(super) fn zone(&self) -> Tz {
        self.zone
    }

    pub(super) fn next_after(&self, after: i64) -> Option<i64> {
        if after >= self.ended.load(Ordering::Relaxed) {
            return None;
        }
        let instant = self.zone.from_utc_datetime(&DateTime::from_timestamp(after, 0)?.naive_utc());
        match self.cron.find_next_occurrence(&instant, false) {
            Ok(next) => Some(next.timestamp()),
            Err(CronError::TimeSearchLimitExceeded) => {
                self.ended.fetch_min(after, Ordering::Relaxed);
                None
            }
            Err(_) => None,
        }
    }

    pub(super) fn last_until(&self, after: i64, until: i64) -> Option<i64> {
        let comes = |after| self.next_after(after).filter(|next| *next <= until);
        let mut last = comes(after)?;
        // Whether a tick comes between `x` and `until` is true up to the second before the last tick, and false from it on.
        let (mut come, mut gone) = (last - 1, until);
        while gone - come > 1 {
            let middle = come + (gone - come) / 2;
            match comes(middle) {
                Some(tick) => (come, last) = (middle, last.max(tick)),
                None => gone = middle,
            }
        }
        Some(last)
    }
}

fn parse_zone(name: &str) -> Result<Tz, ScheduleError> {
    Tz::from_str(name).map_err(|_| {
        let city = |zone: &'static str| zone.rsplit('/').next().unwrap_or(zone);
        let alike = |zone: &&'static str| zone.eq_ignore_ascii_case(name) || city(zone).eq_ignore_ascii_case(name);
        let known = chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name());
        let advice = known.clone().find(alike).map_or_else(
            || "write the name of the IANA database, such as `Europe/Berlin`, `America/New_York` or `UTC`".to_owned(),
            |zone| format!("write `{zone}`"),
        );
        ScheduleError::Zone { zone: name.to_owned(), advice }
    })
}
