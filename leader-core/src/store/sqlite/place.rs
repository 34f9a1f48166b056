//! What kind of file system the database is on.

use std::path::Path;

use crate::doctor::{Finding, is_orchestrated};

/// Where a file shared by processes is not what it seems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileSystem {
    /// Others write to it from other hosts, or across the wall of a virtual machine.
    Network(&'static str),
    /// A program decides what it is.
    Fuse,
    /// As containers have it on top of their image.
    Overlay,
}

impl FileSystem {
    #[cfg(target_os = "linux")]
    pub(super) fn of(path: &Path) -> Option<Self> {
        Self::of_magic(magic_of(path)?)
    }

    /// Elsewhere it is told by names, which differ from system to system.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn of(_: &Path) -> Option<Self> {
        None
    }

    /// By the numbers of Linux, in its `magic.h` and in the sources of those that do not stand there.
    #[cfg(any(target_os = "linux", test))]
    fn of_magic(magic: u32) -> Option<Self> {
        Some(match magic {
            0x6969 => Self::Network("NFS"),
            0x517b | 0xff53_4d42 | 0xfe53_4d42 => Self::Network("SMB/CIFS"),
            0x0102_1997 => Self::Network("9p"),
            0x00c3_6400 => Self::Network("Ceph"),
            0x5346_414f | 0x6b41_4653 => Self::Network("AFS"),
            0x7375_7245 => Self::Network("Coda"),
            0x0116_1970 => Self::Network("GFS2"),
            0x7461_636f => Self::Network("OCFS2"),
            0x0bd0_0bd0 => Self::Network("Lustre"),
            0x786f_4256 => Self::Network("vboxsf"),
            0xbacb_acbc => Self::Network("vmhgfs"),
            0x4750_4653 => Self::Network("GPFS"),
            0x1983_0326 => Self::Network("BeeGFS"),
            0x6573_5546 => Self::Fuse,
            0x794c_7630 => Self::Overlay,
            _ => return None,
        })
    }

    /// `path`: of the database, for the text.
    pub(super) fn judge(self, path: &Path, in_container: bool) -> Option<Finding> {
        let path = path.display();
        Some(match self {
            Self::Network(kind) => Finding::error(
                format!("`{path}` is on a network file system ({kind})"),
                "SQLite's log and the locks by which instances see each other live hold on one host only: two may lead, and \
                 the file may be damaged",
                "put it on a local disk; or for instances on several hosts use a store that hosts share",
            )
            .coded("network-file"),
            Self::Fuse => Finding::warning(
                format!("`{path}` is on a file system in user space (FUSE)"),
                "some of them lead to other hosts, or do not keep locks and mapped memory as SQLite needs them",
                "put it on a local disk, unless you know that this file system keeps both for all processes that use it",
            )
            .coded("network-file"),
            Self::Overlay if in_container => Finding::warning(
                format!("`{path}` is in a container's own layer (overlayfs)"),
                "other containers have a file of their own there, so that each may lead, and this one goes with its \
                 container",
                "put it on a volume that all instances of this host mount",
            )
            .coded("container-file"),
            Self::Overlay => return None,
        })
    }
}

#[cfg(target_os = "linux")]
fn magic_of(path: &Path) -> Option<u32> {
    // Its type is another one on each architecture; all of the numbers have 32 bits.
    Some(rustix::fs::statfs(path).ok()?.f_type as u32)
}

/// By what starts containers, and by the files that Docker and Podman put into them.
pub(super) fn in_container() -> bool {
    is_orchestrated() || ["/.dockerenv", "/run/.containerenv"].iter().any(|path| Path::new(path).exists())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn only_a_disk_of_this_host_is_nothing_to_find() {
        let judged = |magic: u32, in_container| {
            let found = FileSystem::of_magic(magic)?.judge(Path::new("/data/leader.db"), in_container)?;
            Some((found.severity, found.code, found.to_string()))
        };
        let (ext4, xfs, btrfs, tmpfs, zfs) = (0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x2fc1_2fc1);
        for local in [ext4, xfs, btrfs, tmpfs, zfs] {
            assert_eq!(judged(local, true), None, "{local:x}");
        }
        let (severity, code, text) = judged(0x6969, false).unwrap();
        assert_eq!((severity, code), (Severity::Error, "network-file"));
        assert!(text.starts_with("`/data/leader.db` is on a network file system (NFS): "), "{text}");
        let (gpfs, beegfs, vmhgfs) = (0x4750_4653, 0x1983_0326, 0xbacb_acbc);
        for remote in [0x517b, 0xff53_4d42, 0xfe53_4d42, 0x0102_1997, 0x00c3_6400, gpfs, beegfs, vmhgfs] {
            assert_eq!(judged(remote, false).unwrap().0, Severity::Error);
        }
        assert_eq!(judged(0x6573_5546, false).unwrap().0, Severity::Warning);
        assert_eq!(judged(0x794c_7630, true).unwrap().1, "container-file");
        assert_eq!(judged(0x794c_7630, false), None, "a host may have its root there");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_the_system_says_of_a_real_file_is_read() {
        let [proc, nowhere] = ["/proc/self/status", "/nowhere/at/all"].map(Path::new);
        assert_eq!((magic_of(proc), FileSystem::of(proc)), (Some(0x9fa0), None));
        assert_eq!((magic_of(nowhere), FileSystem::of(nowhere)), (None, None));
    }
}
