//! The Redis store's script against the model of its rules, in virtual time.
#![allow(clippy::print_stdout, reason = "the figures are part of the result")]

use leader_core::testing::redis_script::Flaw;
use leader_tests::script::compare::{compare, shortest};
use leader_tests::script::course::Course;

/// Looks for a difference in the courses of these seeds.
fn first_difference(seeds: std::ops::Range<u64>, flaw: Option<Flaw>) -> Option<String> {
    let mut commands = 0;
    for seed in seeds.clone() {
        let course = Course::random(seed, 400);
        let (difference, asked) = compare(&course, flaw);
        commands += asked;
        if difference.is_some() {
            let course = shortest(course, flaw);
            let difference = compare(&course, flaw).0.expect("it is still there");
            return Some(format!("seed {seed}:\n{course}{}", difference.what));
        }
    }
    println!("{commands} commands in {} courses", seeds.end - seeds.start);
    None
}

#[test]
fn the_script_answers_what_the_model_answers() {
    if let Some(difference) = first_difference(0..2000, None) {
        panic!("{difference}");
    }
}
