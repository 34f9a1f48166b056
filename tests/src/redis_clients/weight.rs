//! What a build carries by one client alone.

use std::collections::BTreeSet;
use std::error::Error;
use std::process::{Command, Stdio};
use std::time::Duration;

use leader_core::RedisClient;

/// What the system counts times of processes in.
const TICK: Duration = Duration::from_millis(10);

fn feature(client: RedisClient) -> String {
    match client {
        RedisClient::Fred => "redis-fred".to_owned(),
        other => other.to_string(),
    }
}

fn cargo(arguments: &[&str], client: RedisClient) -> Command {
    let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    cargo.args(arguments).args([
        "--offline",
        "-p",
        "leader-core",
        "--no-default-features",
        "--features",
        &feature(client),
    ]);
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
    cargo
}

/// How many crates leader-core depends on.
pub(super) fn crates(client: RedisClient) -> Result<usize, Box<dyn Error>> {
    let tree = cargo(&["tree", "-e", "normal", "--prefix", "none", "--format", "{p}"], client).output()?;
    if !tree.status.success() {
        return Err(String::from_utf8_lossy(&tree.stderr).into());
    }
    let crates: BTreeSet<String> = String::from_utf8(tree.stdout)?.lines().map(str::to_owned).collect();
    // Without itself.
    Ok(crates.len() - 1)
}

/// How much of a processor a build from nothing takes.
pub(super) fn build(client: RedisClient) -> Result<Duration, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let before = children()?;
    let target = folder.path().display().to_string();
    let built = cargo(&["build", "--quiet", "--target-dir", &target], client).env("CARGO_INCREMENTAL", "0").status()?;
    if !built.success() {
        return Err(format!("leader-core was not built with {client}: {built}").into());
    }
    Ok(children()?.saturating_sub(before))
}

/// The user time of the processes that this one has waited for, and of theirs.
fn children() -> Result<Duration, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // Behind the name, which may have blanks in it: the 16th field of all, the 14th of the rest.
    let (_, rest) = stat.rsplit_once(") ").ok_or("that is no process")?;
    let ticks: u32 = rest.split(' ').nth(13).ok_or("that is no process")?.parse()?;
    Ok(TICK * ticks)
}
