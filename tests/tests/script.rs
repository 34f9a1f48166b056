//! The Redis store's script against the model of its rules, in virtual time.
#![allow(clippy::print_stdout, reason = "the figures are part of the result")]

use std::collections::BTreeMap;
use std::ops::Range;

use leader_core::testing::redis_script::Flaw;
use leader_tests::script::compare::{compare, shortest};
use leader_tests::script::course::Course;

const STEPS: usize = 400;

/// Looks for a difference in the courses of these seeds, and tells the shortest one found; the answers that came.
fn first_difference(
    seeds: Range<u64>,
    of_script: Option<Flaw>,
    of_model: Option<Flaw>,
) -> (Option<String>, BTreeMap<&'static str, u64>) {
    let mut answers = BTreeMap::new();
    for seed in seeds {
        let course = Course::random(seed, STEPS);
        let comparison = compare(&course, of_script, of_model);
        for (name, count) in comparison.answers {
            *answers.entry(name).or_default() += count;
        }
        if comparison.difference.is_some() {
            let course = shortest(course, of_script, of_model);
            let (_, difference) = compare(&course, of_script, of_model).difference.expect("it is still there");
            return (Some(format!("seed {seed}:\n{course}{difference}")), answers);
        }
    }
    (None, answers)
}

#[test]
fn the_script_answers_what_the_model_answers() {
    let (difference, answers) = first_difference(0..800, None, None);
    println!("{} commands: {answers:#?}", answers.values().sum::<u64>());
    assert!(difference.is_none(), "{}", difference.unwrap_or_default());
    assert_eq!(answers.len(), 18, "some kinds of answers never came: {answers:#?}");
}

#[test]
fn a_script_with_a_broken_rule_answers_otherwise() {
    for flaw in Flaw::ALL {
        let (difference, _) = first_difference(0..100, Some(flaw), None);
        println!("{flaw:?}: {}\n", difference.unwrap_or_else(|| panic!("{flaw:?}: no difference")));
    }
}

/// Or else what the simulation says about a broken rule of one would not be said about the other.
#[test]
fn a_rule_is_broken_alike_in_both() {
    for flaw in Flaw::ALL {
        let (difference, _) = first_difference(0..100, Some(flaw), Some(flaw));
        assert!(difference.is_none(), "{flaw:?}: {}", difference.unwrap_or_default());
    }
}
