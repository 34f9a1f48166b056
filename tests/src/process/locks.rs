//! Whether a process holds the writer's lock of an SQLite file.

/// Whether the process has a lock to write in the way of SQLite: a process that is stopped there stops all writers.
/// Unknown, and so no, where the system does not list locks.
#[must_use]
pub fn is_writing(pid: u32) -> bool {
    let listed = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    listed.lines().any(|line| {
        // `1: POSIX  ADVISORY  WRITE 4711 fd:00:123 120 120`
        let mut words = line.split_whitespace().skip(1);
        words.next() == Some("POSIX") && words.any(|word| word == "WRITE") && words.next() == Some(&pid.to_string())
    })
}
