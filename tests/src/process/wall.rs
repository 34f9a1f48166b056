//! Wall clocks that jump, and that run fast or slow. They are faked by libfaketime (Debian: package `faketime`).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use leader_core::BootInstant;

use super::fleet::{Fleet, Spawn};
use super::needed::installed;

/// The wall clock of one node, moved by writing a file.
#[derive(Debug)]
pub struct Wall {
    library: PathBuf,
    file: PathBuf,
    label: String,
}

impl Wall {
    /// The clock of the node `label`, true at first. None, with the reason printed, without libfaketime.
    ///
    /// # Panics
    /// If libfaketime is missing where `CI` is set.
    #[must_use]
    pub fn of(fleet: &Fleet, label: &str) -> Option<Self> {
        Self::in_folder(fleet.folder(), label)
    }

    /// The same for a process of no fleet; `folder` is for the file.
    ///
    /// # Panics
    /// As [`of`](Self::of).
    #[must_use]
    pub fn in_folder(folder: &Path, label: &str) -> Option<Self> {
        let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
        let found = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1")).find(|path| path.exists());
        let library = installed(found, "libfaketime", "faketime")?;
        let file = folder.join(format!("{label}.faketime"));
        let wall = Self { library, file, label: label.to_owned() };
        wall.jump_to(0);
        Some(wall)
    }

    /// The node is to be started with this clock.
    ///
    /// CLOCK_MONOTONIC stays true, and so does CLOCK_BOOTTIME as [`BootInstant`] reads it, without the C library: no wall
    /// clock moves these. If the clock does not run true, the sleeps of the process are longer or shorter accordingly.
    #[must_use]
    pub fn plan(&self, mut plan: Spawn) -> Spawn {
        plan.environment.extend(self.environment());
        plan
    }

    /// What is added to the environment of a process that is to be started with this clock.
    #[must_use]
    pub fn environment(&self) -> Vec<(String, String)> {
        let settings = [
            ("LD_PRELOAD", self.library.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.display().to_string()),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ];
        settings.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// So many seconds from the true time, from now on.
    pub fn jump_to(&self, offset_s: i64) {
        self.write(&format!("{offset_s:+}"));
    }

    /// The same in milliseconds.
    pub fn jump_to_ms(&self, offset_ms: i64) {
        self.write(&format!("{:+.3}", offset_ms as f64 / 1e3));
    }

    /// At this rate, as if it had run like that since the process began: `0.5` is half as fast as the truth.
    pub fn run_at(&self, rate: f64) {
        self.write(&format!("+0 x{rate}"));
    }

    fn write(&self, setting: &str) {
        // Renamed into its place: a process never reads half of it.
        let draft = self.file.with_extension("draft");
        fs::write(&draft, setting).expect("the folder can be written");
        fs::rename(&draft, &self.file).expect("the folder can be written");
    }

    /// The fake is effective: the process reads a wall clock that is so far from ours. And it is not in what is measured:
    /// the process reads our boot clock.
    ///
    /// # Panics
    /// If not.
    pub fn assert_reads(&self, fleet: &mut Fleet, offset_s: i64) {
        let label = &self.label;
        let before = BootInstant::now().as_nanos();
        let status = fleet.status(label);
        let boot = status["boot_clock_ns"].as_u64();
        let is_ours = boot.is_some_and(|boot| (before..=BootInstant::now().as_nanos()).contains(&boot));
        assert!(is_ours, "the boot clock of {label} is another");
        let ahead = ahead_s(&status["wall_clock_s"]);
        assert!((ahead - offset_s).abs() < 60, "the wall clock of {label} is {ahead} s ahead, not {offset_s}");
    }
}

/// How far a wall clock that was just read is ahead of ours.
fn ahead_s(wall_clock_s: &serde_json::Value) -> i64 {
    let truth = SystemTime::now().duration_since(UNIX_EPOCH).expect("this machine's clock is set").as_secs();
    wall_clock_s.as_i64().expect("a node tells its wall clock") - i64::try_from(truth).expect("it is not that late")
}
