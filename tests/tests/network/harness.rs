//! What these tests rest upon: a network is there, it loses what it is to lose, and it is gone with its test.

use std::io::{BufRead, BufReader, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use leader_tests::net::Network;
use leader_tests::process::eventually;
use leader_tests::redis::RedisServer;

/// Where the system shows the server's process, and the namespace that it runs in.
fn places(network: &Network, redis: &RedisServer) -> [PathBuf; 2] {
    let info: String = redis.command(&["INFO", "server"]);
    let pid = info.lines().find_map(|line| line.strip_prefix("process_id:")).unwrap();
    let namespace = network.party(0).entry()[1].split_once('=').unwrap().1.to_owned();
    [Path::new("/proc").join(pid), namespace.into()]
}

#[test]
fn a_network_and_what_runs_there_are_gone_when_a_test_fails() {
    let mut seen = None;
    let failed = catch_unwind(AssertUnwindSafe(|| {
        let Some(network) = Network::of(1) else { return };
        let Some(redis) = RedisServer::start_inside(network.party(0), &[]) else { return };
        seen = Some(places(&network, &redis));
        assert!(seen.iter().flatten().all(|place| place.exists()));
        panic!("on purpose");
    }));
    let Some(places) = seen else { return };
    assert!(failed.is_err());
    assert!(!places.iter().any(|place| place.exists()), "{places:?}");
}

/// Tells what it has, and keeps it until it is ended.
#[test]
#[ignore = "is started and killed by another test"]
#[allow(clippy::print_stdout)]
fn holds_a_network() {
    let Some(network) = Network::of(1) else { return };
    let Some(redis) = RedisServer::start_inside(network.party(0), &[]) else { return };
    for place in places(&network, &redis) {
        println!("\nholds:{}", place.display());
    }
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn a_network_and_what_runs_there_are_gone_when_a_test_is_killed() {
    // What it cannot remove any more.
    let folder = tempfile::tempdir().unwrap();
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.env("TMPDIR", folder.path());
    test.args(["--ignored", "--nocapture", "--exact", "harness::holds_a_network"]);
    let mut test = test.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(test.stdout.take().unwrap()).lines().map_while(Result::ok);
    let held = lines.filter_map(|line| line.strip_prefix("holds:").map(PathBuf::from));
    let places: Vec<_> = held.take(2).collect();
    let there = places.iter().all(|place| place.exists());
    test.kill().unwrap();
    test.wait().unwrap();
    // None: it was skipped.
    assert!(there && [0, 2].contains(&places.len()), "{places:?}");
    eventually("all of it is gone", || (!places.iter().any(|place| place.exists())).then_some(()));
}

#[test]
fn packets_are_lost_in_the_one_direction_and_between_the_parties_that_are_named() {
    let Some(network) = Network::of(3) else { return };
    let Some(redis) = RedisServer::start_inside(network.party(0), &[]) else { return };
    let address = redis.address();
    // Without a name service or a client: the shell opens a connection, and the server's answer is all that comes.
    let ask = |party: usize| {
        let script = format!(
            "exec 3<>/dev/tcp/{}/{} && echo PING >&3 && read -t 60 -r <&3 && echo $REPLY",
            address.ip(),
            address.port()
        );
        let mut shell = network.party(party).program(Path::new("bash"));
        shell.args(["-c", &script]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    };
    let answer = |shell: std::process::Child| String::from_utf8(shell.wait_with_output().unwrap().stdout).unwrap();
    network.lose(0, 1, 100);
    // It waits, and what it waits for is what is lost.
    let waiting = ask(1);
    eventually("an answer was lost", || (network.lost() > 0).then_some(()));
    assert_eq!(answer(ask(2)).trim(), "+PONG");
    network.heal();
    assert_eq!(answer(waiting).trim(), "+PONG");
    assert_eq!(network.lost(), 0, "the rules are gone");
}
