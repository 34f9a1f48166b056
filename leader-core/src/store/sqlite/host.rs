//! Which clock the instants in the file belong to.

use std::sync::OnceLock;

/// Where an instant of the boot clock means something, and where a file lock does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Host {
    /// One run of one kernel: between processes of it, a lock that can be had proves that its owner has ended.
    pub(super) boot: String,
    /// One boot clock of it: a time namespace has its own. Instants compare only within one.
    pub(super) clock: String,
}

impl Host {
    /// This process's.
    pub(super) fn this() -> &'static Self {
        static HOST: OnceLock<Host> = OnceLock::new();
        HOST.get_or_init(|| {
            let boot = boot();
            let clock = if cfg!(target_os = "linux") {
                // A kernel without time namespaces has no such link, and one clock.
                std::fs::read_link("/proc/self/ns/time").map_or_else(|_| String::new(), |to| to.display().to_string())
            } else {
                unique()
            };
            Host { clock: format!("{boot} {clock}"), boot }
        })
    }
}

#[cfg(target_os = "linux")]
fn boot() -> String {
    match std::fs::read_to_string("/proc/sys/kernel/random/boot_id") {
        Ok(id) if !id.trim().is_empty() => id.trim().to_owned(),
        // Nothing is known, so nothing of another process is believed: its lease is watched for a whole ttl.
        _ => unique(),
    }
}

/// No other system tells a boot's identity without unsafe code. A database in WAL mode is on a local disk, so a lock
/// there is this kernel's; instants are compared within this process only, and others' leases watched for a whole ttl.
#[cfg(not(target_os = "linux"))]
fn boot() -> String {
    std::env::consts::OS.to_owned()
}

fn unique() -> String {
    crate::identity::Incarnation::random().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_one_for_the_whole_process() {
        assert_eq!(Host::this(), Host::this());
        assert!(!Host::this().boot.is_empty() && !Host::this().clock.is_empty());
    }
}
