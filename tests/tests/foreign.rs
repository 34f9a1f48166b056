//! Bytes that others wrote: each property holds for the corpus of its fuzz target, for pieces of that, and for chance.
#![expect(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use leader_tests::foreign::{TARGETS, Target};

/// So many inputs are made for each property, unless that takes too long.
const MADE: usize = 4_000;
/// Of them, the property of a slow one gets as many as fit into this.
const LONGEST: Duration = Duration::from_secs(3);
const MOST_BYTES: usize = 400;

fn corpus(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

fn check((name, property): Target, bytes: &[u8], from: &str) {
    let outcome = catch_unwind(AssertUnwindSafe(|| property(bytes)));
    assert!(outcome.is_ok(), "{name} does not hold for {from}: {:?} (see above)", bytes.escape_ascii().to_string());
}

/// A piece of the corpus, changed in some places; or chance alone.
fn made(random: &mut fastrand::Rng, corpus: &[(PathBuf, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = match random.u8(0..4) {
        0 => (0..random.usize(0..MOST_BYTES)).map(|_| random.u8(..)).collect(),
        _ => corpus[random.usize(0..corpus.len())].1.clone(),
    };
    for _ in 0..random.u8(0..8) {
        let at = random.usize(0..=bytes.len());
        match random.u8(0..5) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, random.u8(..)),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            3 => {
                let other = &corpus[random.usize(0..corpus.len())].1;
                let from = random.usize(0..=other.len());
                let to = random.usize(from..=other.len());
                bytes.splice(at..at, other[from..to].iter().copied());
            }
            _ if at < bytes.len() => bytes[at] = random.u8(..),
            _ => {}
        }
    }
    bytes.truncate(MOST_BYTES);
    bytes
}

fn holds(name: &str) {
    let target = *TARGETS.iter().find(|(known, _)| *known == name).unwrap();
    let corpus = corpus(name);
    assert!(!corpus.is_empty());
    for (path, bytes) in &corpus {
        check(target, bytes, &path.display().to_string());
    }
    let mut random = fastrand::Rng::with_seed(0x1eade2);
    let began = Instant::now();
    for number in 0..MADE {
        if began.elapsed() > LONGEST && number > MADE / 40 {
            break;
        }
        check(target, &made(&mut random, &corpus), &format!("input {number}"));
    }
}

#[test]
fn each_property_has_a_fuzz_target_and_a_corpus() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    let names = |folder: &str| -> Vec<String> {
        let entries = fs::read_dir(fuzz.join(folder)).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    let known = TARGETS.map(|(name, _)| name.to_owned());
    assert_eq!(names("corpus"), known);
    assert_eq!(names("fuzz_targets"), known);
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    for name in known {
        assert_eq!(manifest.matches(&format!("name = \"{name}\"")).count(), 1, "{name}");
    }
}

macro_rules! properties {
    ($($test:ident: $name:literal)*) => {$(
        #[test]
        fn $test() {
            holds($name);
        }
    )*};
}

properties! {
    schedules_are_read_and_their_ticks_come_in_order: "cron_schedule"
    an_environment_that_is_taken_keeps_the_rules_and_shows_no_password: "environment"
    a_line_of_history_is_the_same_when_it_is_written_and_read_again: "history_line"
    a_record_that_can_be_read_is_accepted_by_the_rules: "job_record"
    no_answer_of_a_server_makes_a_view_longer_than_the_lease: "lease_replies"
    a_key_that_compiles_is_a_key_when_it_runs: "lock_key"
    what_is_said_of_a_program_is_understood_and_shown_in_one_line: "program_description"
    whom_a_server_names_can_be_asked: "redis_answers"
    each_command_has_one_answer_whatever_the_server_says: "script_replies"
    no_form_of_a_url_shows_its_password: "store_url"
    no_answer_of_a_ledger_begins_a_claim_twice: "tick_replies"
}
