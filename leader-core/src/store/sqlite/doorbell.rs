//! How a release wakes the followers in other processes: the releaser changes a file that all of them watch.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

const NAME: &str = "doorbell";

/// Rings in other processes, and hears them ring.
#[derive(Debug)]
pub(super) struct Doorbell {
    path: PathBuf,
    /// None if the system gives no watch (on Linux, `fs.inotify.max_user_instances` is soon used up). The follower then
    /// looks again when the lease that it was told of would end, which a release does not hasten.
    _watch: Option<RecommendedWatcher>,
}

impl Doorbell {
    /// Watches the folder for rings, and calls `heard` at each.
    pub(super) fn hang(folder: &Path, heard: impl Fn() + Send + 'static) -> Self {
        let path = folder.join(NAME);
        Self { _watch: watch(&path, folder, heard).ok(), path }
    }

    /// Rings. Best effort: whoever does not hear it looks when the lease that it was told of would end.
    pub(super) fn ring(&self) -> io::Result<()> {
        // One byte, always the same: the file neither grows nor needs a reader.
        OpenOptions::new().write(true).create(true).truncate(false).open(&self.path)?.write_all(b"!")
    }
}

/// The folder is watched and not the file, which may be removed and created again.
fn watch(path: &Path, folder: &Path, heard: impl Fn() + Send + 'static) -> notify::Result<RecommendedWatcher> {
    let path = path.to_owned();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| match event {
        // Life locks come, go and are looked at in the same folder.
        Ok(event) if event.need_rescan() => heard(),
        Ok(event) if matches!(event.kind, EventKind::Modify(_) | EventKind::Create(_)) => {
            if event.paths.contains(&path) {
                heard();
            }
        }
        Ok(_) => {}
        // Events may have been lost.
        Err(_) => heard(),
    })?;
    watcher.watch(folder, RecursiveMode::NonRecursive)?;
    Ok(watcher)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_ring_is_heard_also_after_the_file_was_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (tell, told) = mpsc::channel();
        let listener = Doorbell::hang(folder.path(), move || tell.send(()).unwrap_or_default());
        let ringer = Doorbell::hang(folder.path(), || {});
        for _ in 0..2 {
            ringer.ring().unwrap();
            told.recv_timeout(Duration::from_secs(30)).unwrap();
            while told.recv_timeout(Duration::from_millis(100)).is_ok() {}
            std::fs::remove_file(&ringer.path).unwrap();
        }
        drop(listener);
    }
}
