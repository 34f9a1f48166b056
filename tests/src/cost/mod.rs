//! What locks cost; the program `lock-cost`.
//!
//! `bare` is what is compared with: the same scripts, or transactions, and nothing around them. `ours` and `peers` are
//! the locks; `table` measures them in turns.
#![allow(clippy::print_stdout, reason = "a command that people read")]

mod bare;
mod hand_over;
mod ours;
#[cfg(feature = "peers")]
mod peers;
mod table;

use std::error::Error;
use std::process::ExitCode;

use self::table::{Subject, Table};
use crate::redis::RedisServer;

/// Acquire and release, uncontended, may take so many times the two round trips that they make.
const LIMIT: f64 = 3.0;

/// What everything is compared with comes first.
type Subjects = Vec<Subject>;

/// Measures and prints; with `strict`, fails if the limit is missed.
///
/// # Errors
/// If a server or an elector cannot be started.
pub fn run(strict: bool) -> Result<ExitCode, Box<dyn Error>> {
    let Some(redis) = RedisServer::start(&[]) else { return Err("there is no Redis server to measure on".into()) };
    let folder = tempfile::tempdir()?;

    let mut subjects = vec![
        Subject::new("two bare calls of the scripts", bare::scripts(redis.address())?),
        Subject::new("the same from a thread like the driver's", bare::scripts_in_a_thread(redis.address())?),
        Subject::new("leader", ours::pair(&redis.url())?),
        Subject::new("leader, from a task on two workers", ours::pair_in_a_task(&redis.url())?),
    ];
    peers(&mut subjects, &redis)?;
    let ratio = Table::measure(&mut subjects, 30, 100).print("Redis: acquire and release, uncontended")["leader"];
    let ok = ratio <= LIMIT;
    println!(
        "  {} leader takes {ratio:.2} times its round trips (limit {LIMIT})\n",
        if ok { "ok:" } else { "missed:" }
    );

    let mut subjects = vec![
        Subject::timed("a bare call, its message, a bare call", bare::hand_over(redis.address())?),
        Subject::timed("leader", hand_over::ours(&redis.url())?),
    ];
    Table::measure(&mut subjects, 20, 20).print("Redis: one gives the lock back, another one that waits has it");

    #[cfg(feature = "peers")]
    {
        let mut subjects = vec![
            Subject::timed("leader", hand_over::ours(&redis.url())?),
            Subject::timed("rslock", peers::rslock_hand_over(&redis.url())),
            Subject::timed("redlock", peers::redlock_hand_over(&redis.url())),
        ];
        Table::measure(&mut subjects, 15, 1).print("The same beside crates whose waiters ask again and again");
    }

    let url = |name: &str| format!("sqlite://{}", folder.path().join(name).display());
    let mut subjects = vec![
        Subject::new("two bare transactions", bare::transactions(&folder.path().join("bare.db"))?),
        Subject::new("leader", ours::pair(&url("leader.db"))?),
    ];
    // Until each has its -wal in full size, and writes over it: a file that grows takes longer to sync.
    let _ = Table::measure(&mut subjects, 1, 600);
    Table::measure(&mut subjects, 20, 20).print(
        "SQLite: acquire and release, uncontended (one sync of the disk, which others use too: the least counts)",
    );
    let mut subjects = vec![
        Subject::new("two bare transactions", bare::transactions(&folder.path().join("bare.db"))?),
        Subject::timed("leader", hand_over::ours(&url("leader.db"))?),
    ];
    Table::measure(&mut subjects, 10, 20).print("SQLite: one gives the lock back, another one that waits has it");
    Ok(if strict && !ok { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

#[cfg(feature = "peers")]
fn peers(subjects: &mut Subjects, redis: &RedisServer) -> Result<(), Box<dyn Error>> {
    subjects.push(Subject::new("rslock", peers::rslock(&redis.url())?));
    subjects.push(Subject::new("redlock", peers::redlock(&redis.url())));
    Ok(())
}

#[cfg(not(feature = "peers"))]
fn peers(_: &mut Subjects, _: &RedisServer) -> Result<(), Box<dyn Error>> {
    println!("without other crates: build with --features peers\n");
    Ok(())
}
