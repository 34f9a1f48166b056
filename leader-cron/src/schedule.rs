//! When a job is due: one schedule or several, asked for the next whole second after another one.
//!
//! Pure. The answer depends on nothing but the second that was asked about, so every instance gets the same ticks.

mod cron;
mod interval;
#[cfg(test)]
mod tests;

use std::time::Duration;

use chrono::DateTime;
use chrono_tz::Tz;
use leader_core::store::TickOp;

use self::cron::Cron;
use self::interval::Interval;
use crate::fnv::fnv1a;

/// So many ticks are looked at for their distances: the first two of `0,1,30 * * * *` alone say something else at another
/// minute of the hour.
const LOOKED_AT: usize = 20;

/// The first second of the year 1, before which there is no year for an expression.
const EARLIEST: i64 = -62_135_596_800;

/// Why a job has no ticks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The expression cannot be read.
    #[error(
        "`{expression}` is no cron expression: {reason}; write 5 fields (minute, hour, day of the month, month, day of the \
         week), 6 (a second before them), 7 (a year after them), or one of @hourly, @daily, @weekly, @monthly, @yearly"
    )]
    Expression {
        /// The expression.
        expression: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The expression names no instant that is still to come.
    #[error(
        "`{expression}` never comes: no day from now on is like that (30 February? a year gone by?); change it, or take the \
         job out"
    )]
    Never {
        /// The expression.
        expression: String,
    },
    /// There is no such time zone.
    #[error("there is no time zone `{zone}`; {advice}")]
    Zone {
        /// The name.
        zone: String,
        /// What to write instead.
        advice: String,
    },
    /// A time zone was given where there is no cron expression that it could be of.
    #[error(
        "the time zone `{zone}` is of no cron expression: an interval has none, its ticks are counted from 1970 in UTC; call \
         `tz` after the expression that it is meant for, or leave it out"
    )]
    StrayZone {
        /// The name.
        zone: String,
    },
    /// A period that no interval has.
    #[error("an interval of {period:?} is not possible: write whole seconds, from 1 s to 366 days")]
    Interval {
        /// The period.
        period: Duration,
    },
}

/// One schedule of a job, as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Timing<S> {
    /// A cron expression, and the name of its time zone, if it has one.
    Cron {
        /// The expression.
        expression: S,
        /// The name.
        zone: Option<S>,
    },
    /// An interval.
    Every(Duration),
}

impl Timing<&str> {
    pub(crate) fn to_owned(&self) -> Timing<String> {
        match *self {
            Self::Cron { expression, zone } => {
                Timing::Cron { expression: expression.to_owned(), zone: zone.map(str::to_owned) }
            }
            Self::Every(period) => Timing::Every(period),
        }
    }
}

/// The schedules of a job, as one: an instant that is due in two of them is one tick.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// In the order in which they were given; each once.
    rules: Vec<Rule>,
    expression: String,
    zone: Tz,
}

#[derive(Debug, Clone)]
enum Rule {
    Cron(Box<Cron>),
    Every(Interval),
}

impl Schedule {
    /// A cron expression, in UTC if no zone is given. Nicknames such as `@daily` are taken too.
    #[cfg(any(test, feature = "testing"))]
    pub fn parse(expression: &str, zone: Option<&str>) -> Result<Self, ScheduleError> {
        Ok(Self::union(vec![Rule::Cron(Box::new(Cron::parse(expression, zone)?))]))
    }

    /// All of `timings`, which are one at least; or what is wrong with them.
    pub fn of<S: AsRef<str>>(timings: &[Timing<S>]) -> Result<Self, Vec<ScheduleError>> {
        let (mut rules, mut wrong) = (Vec::new(), Vec::new());
        for timing in timings {
            let rule = match timing {
                Timing::Cron { expression, zone } => Cron::parse(expression.as_ref(), zone.as_ref().map(AsRef::as_ref))
                    .map(|cron| Rule::Cron(Box::new(cron))),
                Timing::Every(period) => Interval::new(*period).map(Rule::Every),
            };
            match rule {
                Ok(rule) => rules.push(rule),
                Err(error) => wrong.push(error),
            }
        }
        if wrong.is_empty() { Ok(Self::union(rules)) } else { Err(wrong) }
    }

    fn union(given: Vec<Rule>) -> Self {
        let mut rules: Vec<Rule> = Vec::with_capacity(given.len());
        for rule in given {
            if rules.iter().all(|other| other.text() != rule.text()) {
                rules.push(rule);
            }
        }
        let mut zones = rules.iter().filter_map(Rule::zone);
        let first = zones.next().unwrap_or(Tz::UTC);
        let common = zones.all(|zone| zone == first);
        let told = |rule: &Rule| match rule {
            Rule::Cron(cron) if common => cron.expression().to_owned(),
            Rule::Cron(cron) => format!("{} in {}", cron.expression(), cron.zone().name()),
            Rule::Every(interval) => interval.to_string(),
        };
        let expression = rules.iter().map(told).collect::<Vec<_>>().join(" and ");
        Self { rules, expression, zone: if common { first } else { Tz::UTC } }
    }

    /// As it was written; the schedules of a union with `and` between them, and with their time zones where those differ.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// The name of its time zone: the one that all cron expressions in it have, or else UTC.
    pub fn zone(&self) -> &'static str {
        self.zone.name()
    }

    /// What tells it from another schedule, also in the store, which keeps no more than so much. The order in which the
    /// schedules of a union are written makes no other one of it.
    pub fn text(&self) -> String {
        let mut texts: Vec<_> = self.rules.iter().map(Rule::text).collect();
        texts.sort_unstable();
        shortened(texts.join(" and "))
    }

    /// A tick in the zone, for people.
    pub fn local_time(&self, tick: i64) -> String {
        DateTime::from_timestamp(tick, 0).map_or_else(String::new, |time| time.with_timezone(&self.zone).to_string())
    }

    /// The first tick, in Unix seconds, that is later than `after`; `None` if none comes any more.
    pub fn next_after(&self, after: i64) -> Option<i64> {
        self.rules.iter().filter_map(|rule| rule.next_after(after)).min()
    }

    /// The last tick that is later than `after` and not later than `until`, without walking over those between.
    pub fn last_until(&self, after: i64, until: i64) -> Option<i64> {
        self.rules.iter().filter_map(|rule| rule.last_until(after, until)).max()
    }

    /// What is no mistake, and may not be meant, for people.
    pub(crate) fn warnings(&self, now: i64) -> impl Iterator<Item = String> {
        let ended = self.ended(now).map(|rule| format!("`{}` has no tick any more: take it out", rule.expression()));
        let ambiguous = self.rules.iter().filter_map(|rule| match rule {
            Rule::Cron(cron) if cron.is_ambiguous() => Some(format!(
                "`{}` names days of the month and days of the week, and runs on each day that is one of them; if both have to \
                 fit, write a `+` before the day of the week; if not, two schedules say it more clearly",
                cron.expression()
            )),
            Rule::Cron(_) | Rule::Every(_) => None,
        });
        ended.chain(ambiguous)
    }

    /// Those of its schedules that have no tick after `now`, and never had one; or all of them, if none has one.
    pub(crate) fn never(&self, now: i64) -> impl Iterator<Item = ScheduleError> {
        let all = self.next_after(now).is_none();
        let never = self.ended(now).filter(move |rule| all || rule.next_after(0).is_none());
        never.map(|rule| ScheduleError::Never { expression: rule.expression() })
    }

    fn ended(&self, now: i64) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(move |rule| rule.next_after(now).is_none())
    }

    /// The shortest distance of two ticks, among the next ones after `now`; `None` if there is at most one.
    pub(crate) fn shortest_distance(&self, now: i64) -> Option<Duration> {
        let ticks = std::iter::successors(self.next_after(now), |tick| self.next_after(*tick));
        let ticks: Vec<_> = ticks.take(LOOKED_AT).collect();
        ticks.windows(2).map(|pair| Duration::from_secs(pair[1].abs_diff(pair[0]))).min()
    }
}

impl Rule {
    /// Whatever second it is asked about, such as one that somebody has written into a history: ticks are those that the
    /// ledger can tell, and calendars end not far from there.
    fn next_after(&self, after: i64) -> Option<i64> {
        if after >= TickOp::LATEST {
            return None;
        }
        let after = after.max(EARLIEST);
        let next = match self {
            Self::Cron(cron) => cron.next_after(after),
            Self::Every(interval) => interval.next_after(after),
        };
        next.filter(|tick| *tick <= TickOp::LATEST)
    }

    fn last_until(&self, after: i64, until: i64) -> Option<i64> {
        let (after, until) = (after.max(EARLIEST), until.min(TickOp::LATEST));
        if after >= until {
            return None;
        }
        match self {
            Self::Cron(cron) => cron.last_until(after, until),
            Self::Every(interval) => interval.last_until(after, until),
        }
    }

    fn zone(&self) -> Option<Tz> {
        match self {
            Self::Cron(cron) => Some(cron.zone()),
            Self::Every(_) => None,
        }
    }

    fn expression(&self) -> String {
        match self {
            Self::Cron(cron) => cron.expression().to_owned(),
            Self::Every(interval) => interval.to_string(),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Cron(cron) => format!("{} {}", cron.expression().trim(), cron.zone().name()),
            Self::Every(interval) => interval.to_string(),
        }
    }
}

/// A text that the store keeps whole: of two long ones that begin alike it would keep the same.
fn shortened(text: String) -> String {
    if text.len() <= TickOp::LONGEST {
        return text;
    }
    let hash = format!(" #{:016x}", fnv1a(text.bytes()));
    let mut end = TickOp::LONGEST - hash.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{hash}", &text[..end])
}
