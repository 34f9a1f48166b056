//! The files behind a path: which they are, and whether the path still names them.
//!
//! A process that goes on with a database whose path now names another file would lead beside the users of the new one.

use std::fs::{self, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What makes a file the same file, whatever its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct FileId {
    pub(super) dev: u64,
    pub(super) ino: u64,
}

impl From<&Metadata> for FileId {
    fn from(metadata: &Metadata) -> Self {
        Self { dev: metadata.dev(), ino: metadata.ino() }
    }
}

/// The database's path as it was given, and where it leads.
#[derive(Debug, Clone)]
pub(super) struct Place {
    given: PathBuf,
    real: PathBuf,
}

impl Place {
    /// Follows links to the database's real path, and creates the file if there is none.
    pub(super) fn find_or_create(given: &Path) -> io::Result<Self> {
        let real = match fs::canonicalize(given) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let name = given.file_name().ok_or(io::ErrorKind::InvalidInput)?;
                let folder = given.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
                let real = fs::canonicalize(folder)?.join(name);
                match OpenOptions::new().write(true).create_new(true).open(&real) {
                    // Another instance was faster; or the path is a link to nothing, and then this fails again.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::canonicalize(given)?,
                    created => created.map(|_| real)?,
                }
            }
            Err(error) => return Err(error),
        };
        Ok(Self { given: given.to_owned(), real })
    }

    /// The path without links in it.
    pub(super) fn real(&self) -> &Path {
        &self.real
    }

    /// The folder of the life locks and the doorbell.
    pub(super) fn locks(&self) -> PathBuf {
        self.beside("-locks")
    }

    /// The database itself. Looks at the name only: to open and close the file would drop the locks that SQLite has on it.
    pub(super) fn database(&self) -> Result<FileId, String> {
        let metadata = look(&self.given)?;
        if !metadata.is_file() {
            return Err(format!("{} is not a file", self.given.display()));
        }
        if metadata.nlink() != 1 {
            return Err(format!(
                "{} has {} names (hard links), and each would have its own -wal and -locks",
                self.given.display(),
                metadata.nlink()
            ));
        }
        Ok(FileId::from(&metadata))
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut path = self.real.clone().into_os_string();
        path.push(suffix);
        path.into()
    }
}

fn look(path: &Path) -> Result<Metadata, String> {
    fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The files that a connection has open.
#[derive(Debug)]
pub(super) struct Files {
    place: Place,
    database: FileId,
    side: [(PathBuf, FileId); 2],
}

impl Files {
    /// Notes the files of a connection that has just read the database, which has the identity `database`.
    pub(super) fn note(place: Place, database: FileId) -> Result<Self, String> {
        let side = |suffix| {
            let path = place.beside(suffix);
            let id = FileId::from(&look(&path)?);
            Ok::<_, String>((path, id))
        };
        let side = [side("-wal")?, side("-shm")?];
        let files = Self { place, database, side };
        files.verify()?;
        Ok(files)
    }

    /// Which file the database is.
    pub(super) fn database(&self) -> FileId {
        self.database
    }

    /// Whether the -wal may be written. Only this file can be looked at so: to open and close one of the others would drop
    /// the locks that SQLite has on it, and on this one it has none.
    pub(super) fn writable(&self) -> io::Result<()> {
        OpenOptions::new().write(true).open(&self.side[0].0).map(drop)
    }

    /// Whether the paths still name the open files; if not, which does not.
    pub(super) fn verify(&self) -> Result<(), String> {
        if self.place.database()? != self.database {
            return Err(format!("{} is another file than the one that was opened", self.place.given.display()));
        }
        for (path, id) in &self.side {
            if FileId::from(&look(path)?) != *id {
                return Err(format!("{} is another file than the one that was opened", path.display()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(folder: &Path) -> (PathBuf, Files) {
        let path = folder.join("db");
        let place = Place::find_or_create(&path).unwrap();
        for suffix in ["-wal", "-shm"] {
            fs::write(place.beside(suffix), b"").unwrap();
        }
        let id = place.database().unwrap();
        (path, Files::note(place, id).unwrap())
    }

    #[test]
    fn a_file_that_was_replaced_removed_or_linked_is_noticed() {
        for suffix in ["", "-wal", "-shm"] {
            let folder = tempfile::tempdir().unwrap();
            let (path, files) = opened(folder.path());
            let name = path.display().to_string() + suffix;
            assert_eq!(files.verify(), Ok(()));
            fs::rename(&name, folder.path().join("away")).unwrap();
            assert!(files.verify().unwrap_err().contains(&name), "removed");
            fs::write(&name, b"").unwrap();
            assert!(files.verify().unwrap_err().contains("another file"), "replaced");
            assert!(files.writable().is_ok());
            fs::rename(folder.path().join("away"), &name).unwrap();
            assert_eq!(files.verify(), Ok(()));
        }
        let folder = tempfile::tempdir().unwrap();
        let (path, files) = opened(folder.path());
        fs::hard_link(&path, folder.path().join("second")).unwrap();
        assert!(files.verify().unwrap_err().contains("hard links"));
    }

    #[test]
    fn a_link_leads_to_the_file_it_names_and_is_noticed_when_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let (path, _) = opened(folder.path());
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let place = Place::find_or_create(&link).unwrap();
        assert_eq!(place.real(), fs::canonicalize(&path).unwrap());
        let id = place.database().unwrap();
        let files = Files::note(place, id).unwrap();
        fs::write(folder.path().join("other"), b"").unwrap();
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(folder.path().join("other"), &link).unwrap();
        assert!(files.verify().is_err());
    }

    #[test]
    fn a_missing_folder_and_a_link_to_nothing_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Place::find_or_create(&folder.path().join("no/db")).is_err());
        std::os::unix::fs::symlink(folder.path().join("nothing"), folder.path().join("dangling")).unwrap();
        assert!(Place::find_or_create(&folder.path().join("dangling")).is_err());
    }
}
