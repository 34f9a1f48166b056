//! What the compiler says where an attribute is used wrongly: text and place of every message.
//!
//! Here, and not with the tests of several crates: the sample programs are built with all that their package depends on.

#[test]
fn every_mistake_has_its_message() {
    let cases = trybuild::TestCases::new();
    for case in [
        "leader_only_options",
        "leader_only_functions",
        "leader_only_items",
        "leader_only_futures",
        "leader_only_skipped",
        "leader_only_body",
        "with_lock_options",
        "with_lock_types",
        "with_lock_items",
        "with_lock_body",
        "run_once",
        "nesting",
        "cron_options",
        "cron_expressions",
        "cron_functions",
        "cron_types",
        "cron_not_send",
        "every",
        "cron_methods",
        "cron_jobs",
        "cron_jobs_types",
    ] {
        cases.compile_fail(format!("tests/ui/{case}.rs"));
    }
}
