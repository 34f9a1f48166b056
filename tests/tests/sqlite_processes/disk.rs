//! Disks that are full, and files that cannot be written.

use std::fs;

use leader_tests::process::{Fleet, Mount};

use crate::{PROGRAM, SHORT, later, start};

#[test]
fn a_full_disk_is_told_and_passes_when_there_is_room_again() {
    let Some(disk) = Mount::new("256k") else { return };
    let mut fleet = Fleet::on(PROGRAM, &disk.path().join("leader.db"));
    start(&mut fleet, SHORT, &["a", "b"]);
    let reign = fleet.leader("default", 0);
    let filler = disk.path().join("filler");
    // As much as fits.
    assert!(fs::write(&filler, vec![0; 1 << 20]).is_err());
    fleet.hears(&reign.label, "that its lease is lost", |t| t.is_event("default", "lost"));
    let problems = fleet.until("the status of the instances says what to do", |fleet| {
        let problems = ["a", "b"].map(|label| fleet.problems(label));
        let clear = |text: &String| text.contains("make room") || text.contains("may be full");
        problems.iter().any(clear).then_some(problems)
    });
    assert!(problems.iter().any(|text| text.contains("trying again")), "{problems:?}");
    fs::remove_file(&filler).unwrap();
    let next = fleet.leader("default", reign.term);
    fleet.still_leads(&next, "default", later(SHORT));
    assert_eq!(fleet.problems(&next.label), "[]");
    fleet.assert_safe();
}
