//! A store in this process's memory.

/// Leases in the memory of this process: for tests, and for programs that run once.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {}
