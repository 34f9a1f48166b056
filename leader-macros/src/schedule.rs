//! A check of cron expressions, so that a slip of the pen is found when the program is compiled.
//!
//! It is deliberately small: the parser that the scheduler uses reads the expression again at start, and decides. What that
//! parser takes by accident and nobody means (an empty item of a list, the name of a month in the field of the hour, where
//! a field was forgotten) is refused here.

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
const NICKNAMES: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

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

#[cfg(test)]
mod tests {
    use croner::parser::CronParser;

    use super::*;

    /// What people write, field by field and mark by mark.
    const RIGHT: &[&str] = &[
        "* * * * *",
        "*/5 * * * *",
        "0 0 * * *",
        "0 */5 * * * *",
        "*/10 * * * * *",
        "0 0 * * * *",
        "0 0 3 * * 1-5",
        "0 0 3 * * MON-FRI",
        "0 0 3 * * mon-fri",
        "0 0 3 1,15 * *",
        "0 0 4 * JAN,Jul *",
        "0 0 4 * JAN-MAR,OCT-DEC *",
        "0 0 4 * 1-12/3 *",
        "0 30 9-17 * * *",
        "0 0-30/10,45 9-17/2 * * *",
        "0 0 0 1 1 * 2030",
        "0 0 0 1 1 * 2024-2030/2",
        "0 0 0 29 2 *",
        "0 0 0 30 2 *",
        "0 0 0 L * *",
        "0 0 0 LW * *",
        "0 0 0 15W * *",
        "0 0 0 1,15W,L * *",
        "0 0 0 * * 5L",
        "0 0 0 * * FRIL",
        "0 0 0 * * 5#L",
        "0 0 0 * * FRI#2",
        "0 0 0 * * 1#1,3#3",
        "0 0 0 * * MON-FRI#1",
        "0 0 0 * * 1-5/2#3",
        "0 0 0 ? * 1",
        "0 0 0 1 * ?",
        "0 0 0 ?/2 * ?",
        "0 0 0 13 * +FRI",
        "0 0 0 * * 7",
        "0 0 0 * * FRI-SUN",
        "0 0 0 * * SUN-SAT",
        "0 0 0 * * */2",
        "  0   0 0 *  * SUN ",
        "00 05 007 * * *",
    ];

    /// What nobody means.
    const WRONG: &[&str] = &[
        "",
        "   ",
        "*",
        "* * * *",
        "* * * * * * * *",
        "60 * * * * *",
        "0 60 * * * *",
        "0 0 24 * * *",
        "0 0 0 0 * *",
        "0 0 0 32 * *",
        "0 0 0 * 13 *",
        "0 0 0 * 0 *",
        "0 0 0 * * 8",
        "0 0 0 * * FUN",
        "0 0 0 * * MONDAY",
        "0 0 0 * FOO *",
        "0 0 0 1 1 * 0",
        "0 0 0 1 1 * 5001",
        "0 5-1 * * * *",
        "0 1-2-3 * * * *",
        "0 */0 * * * *",
        "0 */ * * * *",
        "0 /5 * * * *",
        "0 0/5 * * * *",
        "0 5/ * * * *",
        "0 1-70/5 * * * *",
        "0 */5/5 * * * *",
        "0 L * * * *",
        "0 0 0 32W * *",
        "0 0 0 W * *",
        "0 0 0 3L * *",
        "0 0 0 * * 5#6",
        "0 0 0 * * 5#0",
        "0 0 0 * * #2",
        "0 0 0 * L *",
        "0 0 0 * 1#2 *",
        "0 0 0 * * W",
        "0 0 0 1,* * *",
        "0 0 0 * * *#2",
        "? 0 0 * * *",
        "0 0 0 +1 * *",
        "+1 0 0 * * *",
        "0 -1 * * * *",
        "0 1- * * * *",
        "0 0 0 FRI-MON * *",
        "0 0 0 * * FRI-MON",
        "every 5 minutes",
        "@fortnightly",
        "@",
        "0 0 0 * * * @daily",
    ];

    fn croner_accepts(expression: &str) -> bool {
        CronParser::new().parse(expression).is_ok()
    }

    #[test]
    fn what_the_scheduler_can_read_compiles() {
        for expression in RIGHT {
            assert!(croner_accepts(expression), "croner refuses {expression:?}");
            assert_eq!(check(expression), Ok(()), "{expression:?}");
        }
    }

    #[test]
    fn nonsense_is_refused_by_both() {
        for expression in WRONG {
            assert!(!croner_accepts(expression), "croner accepts {expression:?}");
            assert!(check(expression).is_err(), "accepted {expression:?}");
        }
    }

    #[test]
    fn both_say_the_same_of_twenty_thousand_expressions() {
        const ITEMS: &[&str] = &[
            "*", "?", "0", "1", "5", "7", "8", "12", "13", "23", "24", "31", "32", "59", "60", "*/2", "*/0", "?/3",
            "1-5", "5-1", "0-7", "1-5/2", "3/2", "/2", "L", "LW", "W", "15W", "40W", "5L", "5#2", "5#6", "1-3#2",
            "*#2", "*L", "-", "1-", "#", "2030", "5001", "1-5L", "*/2#1", "+3", "+*",
        ];
        const BY_FIELD: [&[&str]; 7] =
            [&[], &[], &[], &[], &["JAN", "FEB-dec", "MAY/2"], &["MON", "FRI-SUN", "SATL", "sun#1"], &[]];
        // A fixed sequence: a failure can be repeated.
        let mut state = 0x2545_F491_4F6C_DD1D_u64;
        let mut below = |n: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state >> 33).unwrap() % n
        };
        let mut right = 0;
        for _ in 0..20_000 {
            let count = 5 + below(3);
            let first = usize::from(count == 5);
            // Most fields are plain, so that a good part of the expressions is right as a whole.
            let fields = (first..first + count).map(|field| {
                let items = (0..=below(4) / 3).map(|_| match (below(3), BY_FIELD[field]) {
                    (0, _) => ITEMS[below(ITEMS.len())],
                    (1, names) if !names.is_empty() => names[below(names.len())],
                    _ => "1",
                });
                items.collect::<Vec<_>>().join(",")
            });
            let expression = fields.collect::<Vec<_>>().join(" ");
            let croner = croner_accepts(&expression);
            right += usize::from(croner);
            assert_eq!(check(&expression).is_ok(), croner, "{expression:?}: {:?}", check(&expression));
        }
        assert!((2_000..18_000).contains(&right), "{right} right ones are no test of both sides");
    }

    #[test]
    fn what_the_scheduler_takes_by_accident_is_refused() {
        for (expression, reason) in [
            ("0 1,,2 * * * *", "a comma too many"),
            ("0 0 MON * * *", "`MON` is not an hour"),
            ("0 0 0 * * MONTUE#1", "`MONTUE#1` is not a day of the week"),
        ] {
            let refused = check(expression).unwrap_err();
            assert!(refused.contains(reason), "{refused}");
        }
    }

    #[test]
    fn the_nicknames_are_known() {
        for name in NICKNAMES {
            assert_eq!(check(name), Ok(()));
        }
        assert_eq!(check(" @Daily "), Ok(()));
        assert!(check("@secondly").unwrap_err().contains("@hourly"));
    }
}
