//! User work that blocks every worker, and a log that nobody reads: neither may cost the lease.

use std::time::Duration;

use leader_core::BootInstant;
use leader_tests::process::{Command, Fleet, Told};

use crate::{LONG_BEFORE, PROGRAM, SHORT, fleet, later, start, took};

#[test]
fn a_leader_whose_workers_are_all_blocked_stays_leader() {
    let mut fleet = fleet(SHORT, &["a", "b"]);
    let reign = fleet.leader("default", 0);
    assert_eq!(reign.label, "a");
    let blocked_for = 3 * SHORT;
    fleet.ask("a", &Command::BlockWorkers { time: blocked_for }).unwrap();
    let blocked = BootInstant::now();
    let view = fleet.still_leads(&reign, "default", blocked.saturating_add(blocked_for));
    // One view, without a gap, from before to after.
    assert!(view.began_ns < blocked.as_nanos());
    // What ran on those workers did not run: heartbeats there would not have been sent.
    let told = fleet.hears("a", "that its workers are free", |t| matches!(t, Told::WorkersFree { .. }));
    let Told::WorkersFree { at_ns } = told else { unreachable!() };
    // The answer came a little after the block began.
    let blocked_at_least = blocked_for - Duration::from_secs(1);
    assert!(at_ns >= blocked.saturating_add(blocked_at_least).as_nanos(), "they were not blocked");
    assert_eq!(fleet.leader("default", 0), reign);
    assert!(fleet.told_by("b").all(|told| told.leads("default").is_none()));
    fleet.assert_safe();
}

#[test]
fn a_leader_whose_log_is_blocked_stays_leader_and_can_still_leave() {
    let mut fleet = Fleet::new(PROGRAM);
    let mut plan = fleet.plan("a", SHORT);
    plan.options.groups = vec!["other".to_owned()];
    plan.blocked_stdout = true;
    fleet.start(&plan);
    start(&mut fleet, SHORT, &["b"]);
    let reign = fleet.leader("default", 0);
    let other = fleet.leader("other", 0);
    fleet.ask("a", &Command::Flood).unwrap();
    // A line that does not fit into the rest of a page begins a new one, so it is never quite full.
    fleet.until("the pipe is full", |fleet| {
        let pipe = fleet.blocked_stdout("a");
        let waiting = usize::try_from(rustix::io::ioctl_fionread(pipe).unwrap()).unwrap();
        (waiting * 3 > rustix::pipe::fcntl_getpipe_size(pipe).unwrap() * 2).then_some(())
    });
    fleet.until("the log stands still", |fleet| {
        let counts = [(); 10].map(|()| fleet.status("a")["flooded"].as_u64().unwrap());
        (counts[0] == counts[9]).then_some(())
    });
    let blocked = BootInstant::now();
    // Something to log, which would have to wait if the driver wrote it.
    fleet.ask("a", &Command::StepDown { group: "other".to_owned() }).unwrap();
    let view = fleet.still_leads(&reign, "default", later(3 * SHORT));
    assert!(view.began_ns < blocked.as_nanos());
    let status = fleet.status("a");
    // No more than the pipe holds: a line is a thousand bytes and some.
    let most = rustix::pipe::fcntl_getpipe_size(fleet.blocked_stdout("a")).unwrap() / 1000;
    assert!(status["flooded"].as_u64().unwrap() < most as u64, "the log was not blocked: {status}");
    assert_eq!(status["live"], true);
    assert!(fleet.told_by("b").all(|told| told.leads("default").is_none()));
    // It took `other` back after its abstention: that was not logged either.
    fleet.leader("other", other.term);

    let ended = BootInstant::now();
    fleet.ask("a", &Command::Shutdown).unwrap();
    let view = fleet.next_view("default", ended, reign.term);
    assert_eq!(view.instance, "b");
    assert!(took(ended, &view) < LONG_BEFORE, "{:?}", took(ended, &view));
    fleet.assert_safe();
}
