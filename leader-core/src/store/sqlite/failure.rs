//! What SQLite and the system say, as errors that tell what to do.

use std::io;

use rusqlite::ErrorCode;

use crate::error::StoreError;

/// Why something failed, before it is known what was attempted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// It may pass by itself.
    Passing(String),
    /// Somebody has to do something.
    Permanent { cause: String, advice: &'static str },
}

const RESTART: &str = "put the right file in place and restart this instance; it does not lead until then";
const WRITABLE: &str = "give this process the right to write the file and its folder, or choose another path";
const OWN_FILE: &str = "choose a path of its own for the leader database";

impl Failure {
    pub(super) fn permanent(cause: impl Into<String>, advice: &'static str) -> Self {
        Self::Permanent { cause: cause.into(), advice }
    }

    /// The path names another file than the one that is open.
    pub(super) fn moved(cause: String) -> Self {
        Self::permanent(cause, RESTART)
    }

    pub(super) fn foreign() -> Self {
        Self::permanent("the file is a database of another application", OWN_FILE)
    }

    pub(super) fn read_only() -> Self {
        Self::permanent("the file is read-only", WRITABLE)
    }

    /// Of a file or folder: `what` names it.
    pub(super) fn of_file(what: &str, error: &io::Error) -> Self {
        let cause = format!("{what}: {error}");
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::Passing(format!("{cause} (make room on the disk)"))
            }
            io::ErrorKind::NotFound => Self::permanent(cause, "create the folder, or choose another path"),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::permanent(cause, WRITABLE),
            io::ErrorKind::Unsupported => {
                Self::permanent(cause, "choose a path on a local file system that can lock files")
            }
            io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory | io::ErrorKind::InvalidInput => {
                Self::permanent(cause, "choose the path of a file")
            }
            _ => Self::Passing(cause),
        }
    }

    pub(super) fn attempted(self, attempted: String) -> StoreError {
        match self {
            Self::Passing(cause) => StoreError::Unavailable { attempted, cause },
            Self::Permanent { cause, advice } => StoreError::Refused { attempted, cause, advice: advice.to_owned() },
        }
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        let cause = error.to_string();
        let Some(code) = error.sqlite_error_code() else {
            // A value that is none of ours: somebody else has written into the file.
            return Self::permanent(cause, "the database was changed by hand: remove the row, or the file");
        };
        match code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
                Self::Passing(format!(
                    "{cause} (another process has been writing all the time, or stands still while it does)"
                ))
            }
            ErrorCode::DiskFull => Self::Passing(format!("{cause} (make room on the disk)")),
            ErrorCode::SystemIoFailure => {
                Self::Passing(format!("{cause} (look at the disk: it may be full, or broken)"))
            }
            ErrorCode::ReadOnly => Self::read_only(),
            ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied => {
                Self::permanent(cause, WRITABLE)
            }
            ErrorCode::NotADatabase => Self::permanent("the file is not a SQLite database", OWN_FILE),
            ErrorCode::DatabaseCorrupt => Self::permanent(
                cause,
                "the file is damaged: stop all instances, remove it and the files beside it, and start them again",
            ),
            ErrorCode::OutOfMemory | ErrorCode::OperationInterrupted | ErrorCode::SchemaChanged => Self::Passing(cause),
            _ => Self::permanent(
                cause,
                "SQLite does not know how to go on with this file: use another one, and report this",
            ),
        }
    }
}
