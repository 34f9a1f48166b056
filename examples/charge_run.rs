//! Charging accounts: scheduled on every instance, run by the leader, and by no two at a time.
//!
//! # Why the leader needs a lock
//! The lease says who begins. It does not say that an older leader is through: one that has just lost its lease may still be in
//! the middle of its run, and the next leader would begin beside it. The lock is held until the run has ended, wherever that is,
//! and is renewed for as long as it takes; 240 s after its instance has died, the next run can begin. A follower asks for no
//! lock, in whatever order the attributes are written.
//!
//! # What a lock is not
//! A process that stands still for longer than its lock lasts finds that out in its next step, and runs no further; but a
//! write that it had sent before can still arrive. So what is written to gets the token, and refuses older ones.
//!
//! Runs for some seconds. Start it twice with `LEADER_STORE=sqlite:///tmp/charge.db` to see only one of them work.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leader_core::{Config, FencingToken, LockError, bootstrap, held_lock, leader_only, with_lock};
use leader_cron::{Scheduler, Tick, cron};

/// Where the charges are written.
#[derive(Default)]
struct Ledger {
    newest_token: AtomicU64,
}

impl Ledger {
    /// What a database does in one statement: `UPDATE … SET …, token = :token WHERE … AND token <= :token`.
    async fn charge(&self, account: u64, hour: i64, token: FencingToken) -> Result<(), ChargeError> {
        if self.newest_token.fetch_max(token.get(), Ordering::SeqCst) > token.get() {
            return Err(ChargeError::Fenced { account });
        }
        println!("charged account {account} for {hour}");
        Ok(())
    }
}

#[derive(Debug, thiserror::Error)]
enum ChargeError {
    /// What `#[with_lock]` needs, to say that the lock was lost while the run was on.
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error("account {account} was charged by a later run")]
    Fenced { account: u64 },
}

/// Each hour (here: each second). An older run that is still on is no error: this one is skipped.
#[cron("* * * * * *")]
#[leader_only(group = "billing")]
#[with_lock(key = "billing:charge-run", ttl = "240s", on_busy = "skip")]
async fn charge_run(ledger: &Ledger, tick: Tick) -> Result<(), ChargeError> {
    let Some(lock) = held_lock() else { unreachable!("the body runs under its lock") };
    for account in [17, 4] {
        ledger.charge(account, tick.unix_seconds(), lock.token()).await?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = std::env::var("LEADER_STORE").unwrap_or_else(|_| "memory:".to_owned());
    let leader = bootstrap(Config::new(store)).await?;
    // What an older leader does that is not through with its run.
    let older_run = leader.lock("billing:charge-run").acquire().await;
    let _jobs = Scheduler::new(&leader).data(Ledger::default()).start()?;

    if let Ok(older_run) = older_run {
        tokio::time::sleep(Duration::from_secs(2)).await;
        println!("the older run ends");
        older_run.release().await?;
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    // Waits for a run that is on.
    leader.shutdown(Duration::from_secs(10)).await?;
    Ok(())
}
