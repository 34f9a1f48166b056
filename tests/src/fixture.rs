//! Small packages under `tests/fixtures` that a test builds with cargo.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{fs, io};

/// A copy of a fixture, with the versions that the workspace has locked.
///
/// It is a copy, so that no lock file is left among the sources; all copies share one target folder, and cargo keeps
/// what it built there for the next run.
pub struct Fixture {
    home: PathBuf,
    target: PathBuf,
}

impl Fixture {
    /// Copies the fixture `name` into a folder below `tmp`, which is `CARGO_TARGET_TMPDIR`.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn copy(name: &str, tmp: &str) -> io::Result<Self> {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let workspace = tests.parent().expect("the tests are a member of the workspace");
        let all = Path::new(tmp).join("fixtures");
        let home = all.join(name);
        copy_folder(&tests.join("fixtures").join(name), &home, workspace)?;
        write_if_changed(&home.join("Cargo.lock"), &fs::read_to_string(workspace.join("Cargo.lock"))?)?;
        Ok(Self { home, target: all.join("target") })
    }

    /// Runs cargo in it. Nothing is fetched: all that a fixture needs, the workspace needs too.
    ///
    /// # Errors
    /// If cargo cannot be started.
    pub fn cargo(&self, arguments: &[&str]) -> io::Result<Output> {
        Command::new(env!("CARGO"))
            .args(arguments)
            .current_dir(&self.home)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_NET_OFFLINE", "true")
            .env("CARGO_TERM_COLOR", "never")
            // Nobody debugs a fixture, or edits one between two builds.
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_INCREMENTAL", "0")
            .output()
    }

    /// The text of one of its files.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(&self, file: &str) -> io::Result<String> {
        fs::read_to_string(self.home.join(file))
    }
}

fn copy_folder(from: &Path, to: &Path, workspace: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target, workspace)?;
            continue;
        }
        let mut text = fs::read_to_string(entry.path())?;
        if entry.file_name() == "Cargo.toml" {
            // The crates under test lie elsewhere, seen from the copy.
            let there = format!("{}/leader-", workspace.display());
            text = text.replace("../../../../leader-", &there).replace("../../../leader-", &there);
        }
        write_if_changed(&target, &text)?;
    }
    Ok(())
}

/// Leaves an equal file alone: cargo goes by the time of its last change.
fn write_if_changed(path: &Path, text: &str) -> io::Result<()> {
    match fs::read_to_string(path) {
        Ok(old) if old == text => Ok(()),
        _ => fs::write(path, text),
    }
}
