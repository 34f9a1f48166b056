//! The connection: opening the file, and transactions on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use super::failure::Failure;
use super::files::{FileId, Files, Place};
use super::host::Host;
use super::life::{self, Resident, Strangers};
use super::locks;
use super::row::{Suspicion, groups_of};
use super::{schema, ticks};
use crate::clock::BootInstant;
use crate::config::FreshStore;

/// An open database that is ours.
#[derive(Debug)]
pub(super) struct Database {
    connection: Connection,
    files: Files,
    locks: PathBuf,
    /// Which file it is, as the ledger tells files apart.
    identity: String,
    strangers: Option<Strangers>,
}

/// How much a commit survives.
///
/// In WAL mode both survive the death of any process; only a power failure or a crash of the kernel may undo commits
/// that were not synced, and never damages the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    /// Nothing is synced. Enough for a renew or a release: what ends with the power, ends with every process that could
    /// believe in it, and its lease belongs to a clock that is no more.
    Process,
    /// Synced before it counts. For an acquisition: its term may be known to other systems as a fencing token, and must
    /// not come again after a power failure on a machine whose wall clock then starts in the past.
    Power,
}

impl Database {
    /// Opens the file at `path`, or creates it; whatever stands there that is not ours stays untouched.
    pub(super) fn open(path: &Path, fresh: FreshStore, deadline: BootInstant) -> Result<Self, Failure> {
        let shown = path.display().to_string();
        let place = Place::find_or_create(path).map_err(|error| Failure::of_file(&shown, &error))?;
        let unusable = |cause| Failure::permanent(cause, "choose the path of a file of its own");
        let before = place.database().map_err(unusable)?;
        let mut connection = Connection::open_with_flags(
            place.real(),
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW,
        )?;
        // The last connection to close writes the -wal back and removes it: not before it is known that it is ours, and
        // not any more once the path names another file. See `drop`.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        let id = place.database().map_err(Failure::moved)?;
        if id != before {
            return Err(Failure::Passing(format!("{shown} was replaced while it was being opened")));
        }
        if connection.is_readonly("main")? {
            return Err(Failure::read_only());
        }
        // All statements there are.
        connection.set_prepared_statement_cache_capacity(64);
        // They stay so: otherwise SQLite prepares some of them anew whenever their parameters change, in search of a plan for
        // these, which takes longer than to execute them.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        wait_at_most(&connection, deadline)?;
        let empty = match schema::kind(&connection)? {
            schema::Kind::Empty => true,
            schema::Kind::Ours => false,
            other => return Err(refusal(&other)),
        };
        let locks = place.locks();
        let folder = |error| Failure::of_file(&locks.display().to_string(), &error);
        match fs::create_dir(&locks) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            created => created.map_err(folder)?,
        }
        write_ahead(&connection, deadline)?;
        if empty {
            create(&mut connection, deadline)?;
        } else if schema::lacks_tables(&connection)? {
            add_tables(&mut connection, deadline)?;
        }
        let identity = ticks::identity(place.real(), id);
        ticks::note_file(&mut connection, &identity)?;
        let residents = life::census(&locks).map_err(folder)?;
        // A new file, an old copy: whoever lives by another file may hold leases that this one knows nothing of. Everybody
        // who opens it looks for himself, before his first command. Who starts at the same time uses the same file.
        let strangers = Strangers::among(&residents, &locks, id).filter(|_| fresh == FreshStore::Wait);
        if strangers.is_some() {
            suspect(&mut connection, deadline)?;
        }
        tidy(&connection, residents)?;
        let files = Files::note(place, id).map_err(Failure::moved)?;
        Ok(Self { connection, files, locks, identity, strangers })
    }

    /// Those who may hold leases and locks by another file, the first time that this is asked.
    pub(super) fn take_strangers(&mut self) -> Option<Strangers> {
        self.strangers.take()
    }

    /// Which file it is.
    pub(super) fn id(&self) -> FileId {
        self.files.database()
    }

    /// Which file it is, as the ledger tells files apart.
    pub(super) fn identity(&self) -> &str {
        &self.identity
    }

    /// The folder of the life locks and the doorbell.
    pub(super) fn locks(&self) -> &Path {
        &self.locks
    }

    /// Whether the path still names the files that are open.
    pub(super) fn verify(&self) -> Result<(), Failure> {
        self.files.verify().map_err(Failure::moved)
    }

    /// What is behind a failed transaction. SQLite tells an I/O error and keeps to itself why: a disk that became read-only
    /// after an error does not pass like one that is full.
    pub(super) fn explain(&self, failure: Failure) -> Failure {
        match (failure, self.files.writable()) {
            (Failure::Passing(_), Err(error)) if is_read_only(&error) => Failure::read_only(),
            (failure, _) => failure,
        }
    }

    /// For reading alone, outside any transaction of ours.
    pub(super) fn reader(&self) -> &Connection {
        &self.connection
    }

    /// A snapshot, without the writer's lock.
    pub(super) fn look(&mut self, deadline: BootInstant) -> Result<Transaction<'_>, Failure> {
        // To wait for a recovery after somebody was killed.
        wait_at_most(&self.connection, deadline)?;
        Ok(self.connection.transaction_with_behavior(TransactionBehavior::Deferred)?)
    }

    /// A transaction that holds the writer's lock from its begin.
    pub(super) fn write(&mut self, durability: Durability, deadline: BootInstant) -> Result<Transaction<'_>, Failure> {
        wait_at_most(&self.connection, deadline)?;
        let synchronous = match durability {
            Durability::Process => "NORMAL",
            Durability::Power => "FULL",
        };
        self.connection.pragma_update(None, "synchronous", synchronous)?;
        Ok(self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if self.verify().is_ok() {
            // If it cannot be set, the -wal stays for whoever opens the file next.
            let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
        }
    }
}

fn is_read_only(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem)
}

fn refusal(kind: &schema::Kind) -> Failure {
    match kind {
        schema::Kind::Newer(version) => Failure::permanent(
            format!("a newer version of leader-core has written the file (its tables have version {version})"),
            "update this program",
        ),
        _ => Failure::foreign(),
    }
}

fn wait_at_most(connection: &Connection, deadline: BootInstant) -> Result<(), Failure> {
    // SQLite counts in whole milliseconds, and zero would not wait at all.
    let left = deadline.saturating_since(BootInstant::now());
    Ok(connection.busy_timeout(left.clamp(Duration::from_millis(1), Duration::from_secs(3600)))?)
}

/// Switches to WAL, in which readers and the writer do not wait for each other.
fn write_ahead(connection: &Connection, deadline: BootInstant) -> Result<(), Failure> {
    loop {
        match connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0)) {
            Ok(mode) if mode.eq_ignore_ascii_case("wal") => return Ok(()),
            Ok(mode) => {
                return Err(Failure::permanent(
                    format!("the file cannot be switched to WAL mode and stays in {mode}"),
                    "choose a path on a local file system",
                ));
            }
            // Two instances that switch the same fresh file at once: SQLite does not wait then by itself.
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && BootInstant::now() < deadline =>
            {
                thread::sleep(Duration::from_millis(2));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Makes an empty file ours, unless another instance was faster.
fn create(connection: &mut Connection, deadline: BootInstant) -> Result<(), Failure> {
    wait_at_most(connection, deadline)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    match schema::kind(&transaction)? {
        schema::Kind::Empty => schema::create(&transaction)?,
        schema::Kind::Ours => {}
        other => return Err(refusal(&other)),
    }
    Ok(transaction.commit()?)
}

/// Locks and the ledger came later than leases: a file may have been made without them.
fn add_tables(connection: &mut Connection, deadline: BootInstant) -> Result<(), Failure> {
    wait_at_most(connection, deadline)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    schema::add(&transaction)?;
    Ok(transaction.commit()?)
}

/// Notes that leases may be believed in that stand in another file.
fn suspect(connection: &mut Connection, deadline: BootInstant) -> Result<(), Failure> {
    wait_at_most(connection, deadline)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let ttl = Suspicion::read(&transaction)?.map_or(Duration::ZERO, |note| note.ttl);
    let note = Suspicion { since: BootInstant::now(), ttl, host: Host::this().clone() };
    Suspicion::write(Some(&note), &transaction)?;
    Ok(transaction.commit()?)
}

/// Removes the locks of incarnations that have ended and that no lease names: nobody needs them as a proof any more.
fn tidy(connection: &Connection, residents: Vec<Resident>) -> Result<(), Failure> {
    for resident in residents {
        if let Resident::Dead(remains) = resident
            && groups_of(connection, remains.incarnation)?.is_empty()
            && !locks::name(connection, remains.incarnation)?
        {
            remains.bury();
        }
    }
    Ok(())
}
