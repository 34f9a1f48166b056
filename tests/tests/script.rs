//! The Redis store's script against the model of its rules, in virtual time.
#![allow(clippy::print_stdout, reason = "the figures are part of the result")]

use leader_core::testing::redis_script::{Flaw, TickFlaw};
use leader_tests::script::compare::first_difference;
use leader_tests::script::ledger;

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
        let (difference, _) = first_difference(0..60, Some(flaw), Some(flaw));
        assert!(difference.is_none(), "{flaw:?}: {}", difference.unwrap_or_default());
    }
}

#[test]
fn the_script_of_the_ledger_does_what_the_rules_say() {
    let (difference, answers) = ledger::first_difference(0..150, None);
    println!("{} commands: {answers:#?}", answers.values().sum::<u64>());
    assert!(difference.is_none(), "{}", difference.unwrap_or_default());
    assert_eq!(answers.len(), 26, "some kinds of answers never came: {answers:#?}");
}

#[test]
fn a_script_of_the_ledger_with_a_broken_rule_does_otherwise() {
    for flaw in TickFlaw::ALL {
        let (difference, _) = ledger::first_difference(0..60, Some(flaw));
        println!("{flaw:?}: {}\n", difference.unwrap_or_else(|| panic!("{flaw:?}: no difference")));
    }
}
