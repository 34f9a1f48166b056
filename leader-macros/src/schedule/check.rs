//! The check itself, as a function of the text alone: tests that hand in anything include this file.

use std::ops::RangeInclusive;

/// One field of an expression.
struct Field {
    name: &'static str,
    values: RangeInclusive<u16>,
    /// The names of its values, from the first value on.
    names: &'static [&'static str],
    /// Which of `L`, `W`, `#`, `?` and `+` may stand in it.
    marks: &'static str,
}

impl Field {
    const fn number(name: &'static str, values: RangeInclusive<u16>) -> Self {
        Self { name, values, names: &[], marks: "" }
    }
}

const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const DAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const FIELDS: [Field; 7] = [
    Field::number("second", 0..=59),
    Field::number("minute", 0..=59),
    Field::number("hour", 0..=23),
    Field { name: "day of the month", values: 1..=31, names: &[], marks: "LW?" },
    Field { name: "month", values: 1..=12, names: MONTHS, marks: "" },
    Field { name: "day of the week", values: 0..=7, names: DAYS, marks: "L#?+" },
    Field::number("year", 1..=5000),
];

/// Names for expressions that are often wanted.
pub(crate) const NICKNAMES: [&str; 7] =
    ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// Says what is wrong with a cron expression, if anything is.
pub(crate) fn check(expression: &str) -> Result<(), String> {
    let expression = expression.trim();
    if expression.starts_with('@') {
        return match NICKNAMES.iter().any(|name| name.eq_ignore_ascii_case(expression)) {
            true => Ok(()),
            false => Err(format!("there is no `{expression}`; there are {}", NICKNAMES.join(", "))),
        };
    }
    let upper = expression.to_ascii_uppercase();
    let given: Vec<&str> = upper.split_whitespace().collect();
    let fields = match given.len() {
        5 => &FIELDS[1..6],
        6 => &FIELDS[..6],
        7 => &FIELDS[..],
        n => {
            return Err(format!(
                "a cron expression has 5 fields (minute, hour, day of the month, month, day of the week), 6 (a second \
                 before them) or 7 (a year after them); this one has {n}"
            ));
        }
    };
    given.iter().zip(fields).try_for_each(|(text, field)| field.check(text))
}

impl Field {
    fn check(&self, text: &str) -> Result<(), String> {
        let items = if self.marks.contains('+') { text.strip_prefix('+').unwrap_or(text) } else { text };
        if self.is_any(items) {
            return Ok(());
        }
        match items.split(',').find(|item| !self.accepts(item)) {
            None => Ok(()),
            Some(item) => Err(self.describe(item)),
        }
    }

    fn is_any(&self, text: &str) -> bool {
        text == "*" || (text == "?" && self.marks.contains('?'))
    }

    /// Whether one item of a list is right: `5`, `1-5`, `*/10`, `1-5/2`, `MON`, `L`, `LW`, `15W`, `5L`, `FRI#2`.
    fn accepts(&self, item: &str) -> bool {
        if self.marks.contains('L') && (item == "L" || (self.marks.contains('W') && item == "LW")) {
            return true;
        }
        if self.marks.contains('W')
            && let Some(day) = item.strip_suffix('W')
        {
            return self.value(day).is_some();
        }
        let item = self.without_mark(item);
        match item.split_once('/') {
            Some((span, step)) => {
                (self.is_any(span) || self.is_range(span)) && number(step).is_some_and(|step| step > 0)
            }
            None => self.value(item).is_some() || self.is_range(item),
        }
    }

    /// Takes away what chooses one week of the month: `#2`, `#L`, or `L`.
    fn without_mark<'a>(&self, item: &'a str) -> &'a str {
        if !self.marks.contains('#') {
            return item;
        }
        let marked = match item.split_once('#') {
            Some((day, "1" | "2" | "3" | "4" | "5" | "L")) => Some(day),
            Some(_) => None,
            None => item.strip_suffix('L').filter(|day| self.value(day).is_some()),
        };
        marked.unwrap_or(item)
    }

    fn is_range(&self, span: &str) -> bool {
        let Some((from, to)) = span.split_once('-') else { return false };
        // A week that is counted to its Sunday ends with 7.
        let end = if to == "SUN" { Some(7) } else { self.value(to) };
        matches!((self.value(from), end), (Some(from), Some(to)) if from <= to)
    }

    fn value(&self, text: &str) -> Option<u16> {
        let named = || self.names.iter().position(|name| *name == text);
        match number(text) {
            Some(number) => Some(number).filter(|number| self.values.contains(number)),
            None => named().and_then(|position| u16::try_from(position).ok()).map(|n| n + self.values.start()),
        }
    }

    fn describe(&self, item: &str) -> String {
        let (first, last) = (self.values.start(), self.values.end());
        let names = match (self.names.first(), self.names.last()) {
            (Some(first), Some(last)) => format!(" or {first}-{last}"),
            _ => String::new(),
        };
        let hint = match item.split_once('/') {
            Some((start, step)) if number(start).is_some() => format!("; write `{start}-{last}/{step}`"),
            Some(("", step)) => format!("; write `*/{step}`"),
            _ => String::new(),
        };
        if item.is_empty() {
            return format!("an item of the {} is empty: a comma too many", self.name);
        }
        let article = if self.name == "hour" { "an" } else { "a" };
        format!("`{item}` is not {article} {} ({first}-{last}{names}){hint}", self.name)
    }
}

/// A number without a sign: `parse` alone takes `+5`.
fn number(text: &str) -> Option<u16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}
