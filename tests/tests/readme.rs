//! What the README says of the code is so.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The lines from a headline to the next.
fn section(headline: &str) -> String {
    let readme = read("README.md");
    let lines = readme.lines().skip_while(|line| *line != format!("## {headline}")).skip(1);
    let section: Vec<_> = lines.take_while(|line| !line.starts_with("## ")).collect();
    assert!(!section.is_empty(), "the README has no section {headline}");
    section.join("\n")
}

/// The cells of a section's tables, without the heads.
fn rows(headline: &str) -> Vec<Vec<String>> {
    let section = section(headline);
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// What stands between back-ticks.
fn code(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// What follows each `prefix` in `text`, up to the first character that does not belong to a name.
fn names<'a>(text: &'a str, prefix: &'a str) -> impl Iterator<Item = String> + 'a {
    let name = |rest: &str| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    text.split(prefix).skip(1).map(name)
}

#[test]
fn the_first_program_is_short_and_the_one_among_the_examples() {
    let section = section("A first program");
    let shown = section.split("```rust,no_run\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(shown.lines().count() <= 24);
    let example = read("examples/first.rs");
    let code: Vec<_> = example.lines().skip_while(|line| line.is_empty() || line.starts_with("//!")).collect();
    assert_eq!(shown.lines().collect::<Vec<_>>(), code);
}

#[test]
fn every_setting_and_its_variable_exist_and_none_is_left_out() {
    let rows = rows("Settings");
    let mentioned: BTreeSet<&str> = rows.iter().flat_map(|row| code(&row[0])).collect();
    let config = read("leader-core/src/config.rs");
    // What takes the configuration and returns it is a setting; those under `testing` are none of the README's.
    let settings = config.split("#[cfg(feature = \"testing\")]\nimpl").next().unwrap();
    let signatures = settings.lines().filter_map(|line| line.trim_start().strip_prefix("pub fn "));
    let setters = signatures.filter(|signature| signature.contains("self") && signature.ends_with("-> Self {"));
    let name_of = |signature| str::split(signature, ['(', '<']).next().unwrap();
    let expected: BTreeSet<&str> = setters.map(name_of).chain(["Config::new(url)"]).collect();
    assert_eq!(mentioned, expected);

    let variables: BTreeSet<String> = rows.iter().flat_map(|row| names(&row[1], "LEADER_")).collect();
    let environment = read("leader-core/src/config/env.rs");
    let read: BTreeSet<String> = environment
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix('"')?.split_once("\" => ").map(|(key, _)| key.to_owned()))
        .collect();
    assert_eq!(variables, read);
}

#[test]
fn every_feature_exists_and_none_is_left_out() {
    let mut expected = BTreeSet::new();
    for member in ["leader-core", "leader-cron"] {
        let manifest = read(&format!("{member}/Cargo.toml"));
        let features = manifest.split("[features]").nth(1).unwrap().split("\n[").next().unwrap();
        let names = features.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(" = "));
        expected
            .extend(names.map(|(name, _)| (member.to_owned(), name.to_owned())).filter(|(_, name)| name != "default"));
    }
    let mut found = BTreeSet::new();
    let mut member = String::new();
    for row in rows("Features") {
        if !row[0].is_empty() {
            member.clone_from(&row[0]);
        }
        found.extend(code(&row[1]).map(|feature| (member.clone(), feature.to_owned())));
    }
    assert_eq!(found, expected);
}

#[test]
fn the_log_lines_to_look_for_are_written_somewhere() {
    let mut sources = String::new();
    for member in ["leader-core/src", "leader-cron/src"] {
        read_all(root().join(member), &mut sources);
    }
    // A line of the log may stand in two lines of the source.
    let sources = sources.split("\\\n").map(str::trim_start).collect::<String>();
    let sources = sources.replace("{}", "memory:");
    for row in rows("My job does not run") {
        for line in code(&row[0]) {
            assert!(sources.contains(line), "no message contains `{line}`");
        }
    }
}

fn read_all(folder: PathBuf, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_all(path, text);
        } else {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}
