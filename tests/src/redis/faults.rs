//! What can be done to a server that runs.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use redis::RedisResult;

use super::server::RedisServer;
use crate::process::eventually;

/// A server that is busy with one command and answers nobody. Dropping it waits for the end.
#[derive(Debug)]
#[must_use]
pub struct Busy(Option<JoinHandle<RedisResult<()>>>);

impl Busy {
    /// Waits until the server is free again.
    ///
    /// # Panics
    /// If the command failed.
    pub fn wait(mut self) {
        let thread = self.0.take().expect("it is waited for once");
        thread.join().expect("the thread does not panic").expect("the server did what it was told");
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // A test that does not look at the outcome may have killed the server.
        let _ = self.0.take().map(JoinHandle::join);
    }
}

/// Faults of the server itself.
impl RedisServer {
    /// Delays all commands of everybody for so long.
    pub fn pause_clients(&self, time: Duration) {
        self.command::<()>(&["CLIENT", "PAUSE", &time.as_millis().to_string(), "ALL"]);
    }

    /// Ends all connections but the one that says so; returns how many these were.
    pub fn kill_clients(&self) -> usize {
        let mut client = self.client().expect("the server runs");
        let kinds = ["normal", "pubsub"];
        let kill = |kind| client.command::<usize>(&["CLIENT", "KILL", "TYPE", kind]);
        kinds.map(kill).into_iter().map(|killed| killed.expect("the server runs")).sum()
    }

    /// Runs a script that does not end by itself. For `silent` the server reads nothing; then it answers BUSY, and after
    /// `refusing` the script is killed.
    pub fn busy_script(&self, silent: Duration, refusing: Duration) -> Busy {
        self.command::<()>(&["CONFIG", "SET", "busy-reply-threshold", &silent.as_millis().to_string()]);
        // Each connected before the script begins, and this returns: what the caller does next comes after it.
        let [mut busy, mut killer] = [(); 2].map(|()| self.client().expect("the server runs"));
        Busy(Some(thread::spawn(move || {
            let script = thread::spawn(move || busy.command::<()>(&["EVAL", "while true do end", "0"]));
            thread::sleep(silent + refusing);
            // Answered when the server refuses others; an error if the script has not begun.
            while killer.command::<()>(&["SCRIPT", "KILL"]).is_err_and(|error| error.code() == Some("NOTBUSY")) {}
            let killed = script.join().expect("the thread does not panic");
            assert!(killed.is_err(), "it does not end by itself");
            Ok(())
        })))
    }

    /// Does nothing at all for so long.
    pub fn sleep(&self, time: Duration) -> Busy {
        let mut client = self.client().expect("the server runs");
        let seconds = time.as_secs_f64().to_string();
        Busy(Some(thread::spawn(move || client.command(&["DEBUG", "SLEEP", &seconds]))))
    }

    /// Lets no write pass, as if somebody had made it a replica of a server that is gone.
    pub fn become_replica(&self) {
        // Nobody listens on this port.
        self.command::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
    }

    /// Ends [`become_replica`](Self::become_replica).
    pub fn become_primary(&self) {
        self.command::<()>(&["REPLICAOF", "NO", "ONE"]);
    }

    /// Has no memory left for anything new.
    pub fn exhaust_memory(&self) {
        self.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    }

    /// Ends [`exhaust_memory`](Self::exhaust_memory).
    pub fn relieve_memory(&self) {
        self.command::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
    }
}

/// Faults of its disk, which is small: see [`start_on`](RedisServer::start_on).
impl RedisServer {
    /// Has more than its disk holds, and has tried to save it: with an option such as `("save", "3600 1")` it lets no write
    /// pass from here on.
    pub fn fill_disk(&self, size: usize) {
        self.command::<()>(&["CONFIG", "SET", "rdbcompression", "no"]);
        self.command::<()>(&["SET", "ballast", &"x".repeat(size)]);
        self.save_in_background("err");
    }

    /// Ends [`fill_disk`](Self::fill_disk).
    pub fn clear_disk(&self) {
        // A deletion is a write: that comes after the error has passed.
        self.command::<()>(&["CONFIG", "SET", "stop-writes-on-bgsave-error", "no"]);
        self.delete("ballast");
        self.save_in_background("ok");
        self.command::<()>(&["CONFIG", "SET", "stop-writes-on-bgsave-error", "yes"]);
    }

    fn save_in_background(&self, outcome: &str) {
        self.command::<()>(&["BGSAVE"]);
        eventually(&format!("the server has saved, with the outcome {outcome}"), || {
            let info: String = self.command(&["INFO", "persistence"]);
            let says = |line: String| info.lines().any(|known| known == line);
            let over = says("rdb_bgsave_in_progress:0".to_owned()) && says(format!("rdb_last_bgsave_status:{outcome}"));
            over.then_some(())
        });
    }
}

/// Faults of what it holds, and of who may do what.
impl RedisServer {
    /// Forgets all keys.
    pub fn flush_all(&self) {
        self.command::<()>(&["FLUSHALL"]);
    }

    /// Has had to make room, and has thrown away all keys for it.
    pub fn evict_all(&self) {
        self.command::<()>(&["CONFIG", "SET", "maxmemory-policy", "allkeys-random", "maxmemory", "1"]);
        eventually("all keys are evicted", || (self.command::<u64>(&["DBSIZE"]) == 0).then_some(()));
        self.command::<()>(&["CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "0"]);
    }

    /// Forgets all scripts.
    pub fn flush_scripts(&self) {
        self.command::<()>(&["SCRIPT", "FLUSH"]);
    }

    /// Deletes a key; returns whether it was there.
    pub fn delete(&self, key: &str) -> bool {
        self.command(&["DEL", key])
    }

    /// Changes what the user `default` may do, as whom nodes come: `-eval`, `+@all`, `resetpass`.
    pub fn permit(&self, rules: &[&str]) {
        self.command::<()>(&[&["ACL", "SETUSER", "default"], rules].concat());
    }
}

/// What it knows of its clients and of what they did.
impl RedisServer {
    /// How many connections the user `default` has.
    #[must_use]
    pub fn connections(&self) -> usize {
        let list: String = self.command(&["CLIENT", "LIST"]);
        list.lines().filter(|line| line.split(' ').any(|field| field == "user=default")).count()
    }

    /// How much memory it uses, in bytes.
    #[must_use]
    pub fn used_memory(&self) -> u64 {
        let info: String = self.command(&["INFO", "memory"]);
        let used = info.lines().find_map(|line| line.strip_prefix("used_memory:")?.trim().parse().ok());
        used.unwrap_or_default()
    }

    /// How often each command was called since the server began or this was reset by `CONFIG RESETSTAT`, by its name in
    /// small letters. Calls inside of scripts count too.
    #[must_use]
    pub fn calls(&self, command: &str) -> u64 {
        let stats: String = self.command(&["INFO", "commandstats"]);
        let line =
            stats.lines().find_map(|line| line.strip_prefix("cmdstat_")?.strip_prefix(command)?.strip_prefix(':'));
        let calls = line.and_then(|line| line.strip_prefix("calls=")?.split(',').next()?.parse().ok());
        calls.unwrap_or_default()
    }
}
