//! What shows only in a build of its own: lints in a user's crate, what the linker keeps, two versions of the core.

use std::collections::BTreeSet;
use std::process::Output;

use leader_tests::fixture::Fixture;
use serde_json::Value;

fn fixture(name: &str) -> Fixture {
    Fixture::copy(name, env!("CARGO_TARGET_TMPDIR")).expect("the target folder can be written to")
}

fn text(output: &Output) -> (String, String) {
    let utf8 = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (utf8(&output.stdout), utf8(&output.stderr))
}

#[test]
fn no_lint_sees_the_expansion_and_none_is_kept_from_the_user() {
    let lints = fixture("lints");
    let checked = lints.cargo(&["clippy", "--message-format=json"]).unwrap();
    let (stdout, stderr) = text(&checked);
    assert!(checked.status.success(), "{stderr}");
    let messages = stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let reported: BTreeSet<(u64, String)> = messages
        .filter(|message| message["target"]["name"] == "lints")
        .filter_map(|message| {
            let lint = message["message"]["code"]["code"].as_str()?.to_owned();
            let spans = message["message"]["spans"].as_array()?;
            let place = spans.iter().find(|span| span["is_primary"] == true)?;
            Some((place["line_start"].as_u64()?, lint))
        })
        .collect();
    let source = lints.read("src/lib.rs").unwrap();
    let marked: BTreeSet<(u64, String)> = (1..)
        .zip(source.lines())
        .filter_map(|(line, text)| Some((line, text.split_once("//~ ")?.1.to_owned())))
        .collect();
    assert!(marked.len() > 10, "the marks were not found");
    let leaked: Vec<_> = reported.difference(&marked).collect();
    let hidden: Vec<_> = marked.difference(&reported).collect();
    assert!(
        leaked.is_empty() && hidden.is_empty(),
        "reported but not marked: {leaked:?}; marked but not reported: {hidden:?}"
    );
}

#[test]
fn a_library_has_its_groups_and_jobs_once_it_is_mentioned() {
    let linker = fixture("linker");
    let groups = |binary: &str| {
        let run = linker.cargo(&["run", "--quiet", "--bin", binary]).unwrap();
        let (stdout, stderr) = text(&run);
        assert!(run.status.success(), "{stderr}");
        stdout.trim().to_owned()
    };
    assert_eq!(groups("mentions"), r#"["generic", "job", "method", "private"], 2 jobs"#);
    // The compiler never loads it: the reason why the documentation asks for `use the_library as _;`.
    assert_eq!(groups("never_mentions"), "[], 0 jobs");
}

#[test]
fn cargo_refuses_two_versions_of_the_core() {
    let resolved = fixture("two-versions").cargo(&["metadata", "--format-version=1"]).unwrap();
    let (_, stderr) = text(&resolved);
    assert!(!resolved.status.success(), "two registries in one program: some groups would never be led");
    assert!(stderr.contains("links to the native library `leader-core`"), "{stderr}");
}
