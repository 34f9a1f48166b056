//! A write that comes too late is refused by the database that it goes to.
//!
//! The lock says who may begin. It cannot say who may still end: this program may be stopped after it has read the balance, for
//! longer than its lock lasts, and then go on as if nothing had happened. So every write brings the token of its lock along, and
//! the statement changes no row if a newer one has written.
//!
//! # Try it
//! ```text
//! export LEADER_STORE=sqlite:/tmp/leader.db
//! cargo run -p leader-examples --example fenced_writer -- /tmp/accounts.db
//! ```
//! It asks for Enter. Stop it with Ctrl-Z instead, run a second one to its end, and go on with `fg` and Enter: the first one is
//! refused, and the charge of the second is not lost.

use std::error::Error;
use std::time::Duration;

use leader_core::{Config, Elector, FencingToken};
use rusqlite::{Connection, params};

const ACCOUNT: i64 = 7;
const CHARGE: i64 = 10;

/// Somebody newer has written since.
#[derive(Debug, thiserror::Error)]
#[error("fenced: account {account} was written under a newer token than {token}")]
struct Fenced {
    account: i64,
    token: FencingToken,
}

/// The token of the last write stands beside what was written.
fn open(path: &str) -> rusqlite::Result<Connection> {
    let database = Connection::open(path)?;
    database.busy_timeout(Duration::from_secs(10))?;
    database.execute_batch(
        "CREATE TABLE IF NOT EXISTS accounts (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL, token BIGINT NOT NULL);
         INSERT INTO accounts (id, balance, token) VALUES (7, 100, 0) ON CONFLICT DO NOTHING;",
    )?;
    Ok(database)
}

fn balance(database: &Connection, account: i64) -> rusqlite::Result<i64> {
    database.query_row("SELECT balance FROM accounts WHERE id = $1", [account], |row| row.get(0))
}

/// In one statement: to compare first and write then would be another check that can be too old.
fn set_balance(database: &Connection, account: i64, balance: i64, token: FencingToken) -> Result<(), Box<dyn Error>> {
    let changed = database.execute(
        "UPDATE accounts SET balance = $1, token = $2 WHERE id = $3 AND token <= $2",
        params![balance, i64::try_from(token.get())?, account],
    )?;
    if changed == 0 { Err(Fenced { account, token }.into()) } else { Ok(()) }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = std::env::var("LEADER_STORE").unwrap_or_else(|_| "memory:".to_owned());
    let database = open(&std::env::args().nth(1).unwrap_or_else(|| ":memory:".to_owned()))?;
    let elector = Elector::start(Config::new(store).ttl(Duration::from_secs(3))).await?;

    let lock = elector.lock(format!("account:{ACCOUNT}")).wait(Duration::from_secs(60)).acquire().await?;
    let new = balance(&database, ACCOUNT)? - CHARGE;
    println!("will write {new} under token {}: press Enter", lock.token());
    std::io::stdin().read_line(&mut String::new())?;

    // Whether the lock is still held is not asked: the process could be stopped after that as well.
    set_balance(&database, ACCOUNT, new, lock.token())?;
    println!("wrote {new} under token {}", lock.token());

    lock.release().await?;
    elector.shutdown(Duration::from_secs(5)).await?;
    Ok(())
}
