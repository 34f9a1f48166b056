//! A check of cron expressions, so that a slip of the pen is found when the program is compiled.
//!
//! It is deliberately small: the parser that the scheduler uses reads the expression again at start, and decides. What that
//! parser takes by accident and nobody means (an empty item of a list, the name of a month in the field of the hour, where
//! a field was forgotten) is refused here.

mod check;

pub(crate) use self::check::check;

#[cfg(test)]
mod tests {
    use croner::parser::CronParser;

    use super::check::NICKNAMES;
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
