//! Life locks: how the death of an instance is seen at once.
//!
//! Each incarnation creates a file of its own and holds its lock for life; the operating system gives it up when the
//! process ends, however that happens. Whoever gets the lock of such a file knows that its owner has ended. A process that
//! is only stopped keeps it. Nobody else ever takes the lock alone (all others share it), and no name is used twice.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;

use super::card::Card;
use super::files::FileId;
use crate::identity::Incarnation;

/// More than a card has.
const MOST_OF_A_CARD: u64 = 128 * 1024;

/// The own lock. Dropping it tells everybody that this incarnation has ended.
#[derive(Debug)]
pub(super) struct Life {
    path: PathBuf,
    id: FileId,
    /// Locked.
    file: File,
    /// Where its first line ends.
    begin: u64,
}

impl Life {
    /// Creates the file in `folder` and locks it; in it stands which database its owner uses.
    pub(super) fn begin(folder: &Path, incarnation: Incarnation, database: FileId) -> io::Result<Self> {
        let path = folder.join(incarnation.to_string());
        loop {
            let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
            // Before it is locked: a locked file is a whole one.
            let first = format!("{} {}\n", database.dev, database.ino);
            file.write_all(first.as_bytes())?;
            uninterrupted(|| file.lock())?;
            let id = FileId::from(&file.metadata()?);
            // Between its creation and its locking, somebody who tidies up may have taken the file for a dead one's.
            if is_named(&path, id) {
                return Ok(Self { path, id, file, begin: first.len() as u64 });
            }
        }
    }

    /// Which file it is.
    pub(super) fn id(&self) -> FileId {
        self.id
    }

    /// Writes what its owner tells of itself, in place of what it told before. Who reads it meanwhile reads no card.
    pub(super) fn tell(&mut self, card: &Card) -> io::Result<()> {
        let text = card.text();
        self.file.seek(SeekFrom::Start(self.begin))?;
        self.file.write_all(text.as_bytes())?;
        self.file.set_len(self.begin + text.len() as u64)
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        // Before the lock is given up. If it fails, whoever gets the lock removes the file.
        let _ = fs::remove_file(&self.path);
    }
}

/// What another incarnation's file tells.
#[derive(Debug)]
pub(super) enum Sign {
    /// It has ended.
    Dead,
    /// It lives: its file, still locked.
    Alive(File),
    /// Nothing: the file is gone, is another one, or cannot be locked.
    Unknown,
}

/// Looks at the file of `incarnation` in `folder`, which must be `id`; never creates it.
pub(super) fn probe(folder: &Path, incarnation: Incarnation, id: FileId) -> Sign {
    let Ok(file) = File::open(folder.join(incarnation.to_string())) else {
        return Sign::Unknown;
    };
    match file.metadata() {
        Ok(metadata) if FileId::from(&metadata) == id => {}
        _ => return Sign::Unknown,
    }
    match file.try_lock_shared() {
        Ok(()) => Sign::Dead,
        Err(TryLockError::WouldBlock) => Sign::Alive(file),
        Err(TryLockError::Error(_)) => Sign::Unknown,
    }
}

/// Removes the file of an incarnation that has ended.
pub(super) fn bury(folder: &Path, incarnation: Incarnation) {
    // Another follower may have been faster.
    let _ = fs::remove_file(folder.join(incarnation.to_string()));
}

/// An incarnation that has a file in the folder.
#[derive(Debug)]
pub(super) enum Resident {
    /// It has ended, or has just created its file and not locked it yet: the remains tell.
    Dead(Remains),
    /// It lives, and uses this database, if that could be found out.
    Alive(Option<FileId>),
}

/// A file whose lock nobody holds alone. While this value is there, nobody gets it either.
#[derive(Debug)]
pub(super) struct Remains {
    pub(super) incarnation: Incarnation,
    path: PathBuf,
    file: File,
}

impl Remains {
    /// Removes the file. If its owner has just created it, it waits for the lock, finds the file gone, and creates another.
    pub(super) fn bury(self) {
        if self.file.metadata().is_ok_and(|metadata| is_named(&self.path, FileId::from(&metadata))) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Who has a file in `folder`.
pub(super) fn census(folder: &Path) -> io::Result<Vec<Resident>> {
    let mut residents = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Some(incarnation) = incarnation_of(&entry.file_name()) else { continue };
        match File::open(entry.path()) {
            Ok(mut file) => residents.push(match file.try_lock_shared() {
                Ok(()) => Resident::Dead(Remains { incarnation, path: entry.path(), file }),
                // What cannot be looked at may live.
                Err(_) => Resident::Alive(database_in(&mut file)),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => residents.push(Resident::Alive(None)),
        }
    }
    Ok(residents)
}

/// Those who live by this database, or may, with what they tell of themselves, if that can be read now.
pub(super) fn alive(folder: &Path, database: FileId) -> io::Result<BTreeMap<Incarnation, Option<Card>>> {
    let mut alive = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Some(incarnation) = incarnation_of(&entry.file_name()) else { continue };
        let card = match File::open(entry.path()) {
            Ok(mut file) => match file.try_lock_shared() {
                Ok(()) => continue,
                Err(TryLockError::WouldBlock) => match database_in(&mut file) {
                    Some(by) if by != database => continue,
                    Some(_) => card_in(file),
                    None => None,
                },
                Err(TryLockError::Error(_)) => None,
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            // What cannot be looked at may live.
            Err(_) => None,
        };
        alive.insert(incarnation, card);
    }
    Ok(alive)
}

/// Nothing, if it cannot be read now.
fn card_in(mut file: File) -> Option<Card> {
    file.seek(SeekFrom::Start(0)).ok()?;
    let text = io::read_to_string(file.take(MOST_OF_A_CARD)).ok()?;
    Card::read(text.split_once('\n')?.1)
}

fn incarnation_of(name: &OsStr) -> Option<Incarnation> {
    let digits = name.to_str().filter(|digits| digits.len() == 32)?;
    u128::from_str_radix(digits, 16).ok().map(Incarnation::from_u128)
}

/// Those who live by another database than this one, which stands where theirs did.
#[derive(Debug)]
pub(super) struct Strangers {
    folder: PathBuf,
    database: FileId,
}

impl Strangers {
    /// None, if there are none among these, who were found in `folder`.
    pub(super) fn among(residents: &[Resident], folder: &Path, database: FileId) -> Option<Self> {
        let strange = |resident: &Resident| matches!(resident, Resident::Alive(by) if *by != Some(database));
        residents.iter().any(strange).then(|| Self { folder: folder.to_owned(), database })
    }

    /// Whether one of them still lives. They give up their life locks, too, when they have noticed and believe in nothing
    /// any more.
    pub(super) fn live(&self) -> bool {
        census(&self.folder).map_or(true, |residents| Self::among(&residents, &self.folder, self.database).is_some())
    }
}

fn database_in(file: &mut File) -> Option<FileId> {
    let mut text = Vec::new();
    file.take(100).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let (dev, ino) = text.lines().next()?.split_once(' ')?;
    Some(FileId { dev: dev.parse().ok()?, ino: ino.parse().ok()? })
}

fn is_named(path: &Path, id: FileId) -> bool {
    fs::metadata(path).is_ok_and(|metadata| FileId::from(&metadata) == id)
}

type Callback = Box<dyn FnOnce() + Send>;

/// Who waits, and what to call.
type Waiters = Vec<(u64, Callback)>;

/// Who waits for the end of which file's owner; one thread a file in the whole process.
static WAITING: LazyLock<Mutex<HashMap<FileId, Waiters>>> = LazyLock::new(Mutex::default);

/// Calls `then` when the owner of `file` has ended, unless `waiter` [forgets](forget) it before.
///
/// The thread blocks in the operating system until then, and no one can call it back: there is one for each living
/// incarnation that was seen to lead, and they end with the process, which never waits for them.
pub(super) fn when_dead(file: File, id: FileId, waiter: u64, then: Callback) -> io::Result<()> {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(others) = waiting.get_mut(&id) {
        others.push((waiter, then));
        return Ok(());
    }
    // The thread looks into the map only after the lock on it is free, so the entry is there.
    thread::Builder::new().name("leader-life".to_owned()).stack_size(128 * 1024).spawn(move || {
        let dead = uninterrupted(|| file.lock_shared()).is_ok();
        let callbacks = WAITING.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        if dead {
            callbacks.into_iter().flatten().for_each(|(_, then)| then());
        }
    })?;
    waiting.insert(id, vec![(waiter, then)]);
    Ok(())
}

/// Drops all that `waiter` waits for.
pub(super) fn forget(waiter: u64) {
    for callbacks in WAITING.lock().unwrap_or_else(PoisonError::into_inner).values_mut() {
        callbacks.retain(|(by, _)| *by != waiter);
    }
}

/// Tries again when a signal handler ran on this thread.
fn uninterrupted(lock: impl Fn() -> io::Result<()>) -> io::Result<()> {
    loop {
        match lock() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);
    const DATABASE: FileId = FileId { dev: 7, ino: u64::MAX };

    #[test]
    fn the_end_of_an_incarnation_is_seen_and_its_life_too() {
        let folder = tempfile::tempdir().unwrap();
        let incarnation = Incarnation::random();
        let life = Life::begin(folder.path(), incarnation, DATABASE).unwrap();
        let id = life.id();
        let Sign::Alive(file) = probe(folder.path(), incarnation, id) else { panic!("it lives") };
        let residents = census(folder.path()).unwrap();
        assert!(matches!(residents[..], [Resident::Alive(Some(DATABASE))]), "{residents:?}");
        let (tell, told) = mpsc::channel();
        when_dead(file, id, 1, Box::new(move || tell.send(()).unwrap())).unwrap();
        assert!(told.try_recv().is_err());
        drop(life);
        told.recv_timeout(PATIENCE).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn who_cannot_be_looked_at_may_live_and_who_is_gone_or_uses_another_database_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let other = FileId { ino: 1, ..DATABASE };
        let [own, strange, dead, loops, gone] = std::array::from_fn(|_| Incarnation::random());
        let _lives = [(own, DATABASE), (strange, other)].map(|(who, by)| Life::begin(folder.path(), who, by).unwrap());
        fs::write(folder.path().join(dead.to_string()), b"").unwrap();
        // Not even root opens it.
        let path = folder.path().join(loops.to_string());
        std::os::unix::fs::symlink(&path, &path).unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join(gone.to_string())).unwrap();
        let alive = alive(folder.path(), DATABASE).unwrap();
        assert_eq!(alive, BTreeMap::from([(own, None), (loops, None)]));
    }

    #[test]
    fn a_file_that_is_not_the_recorded_one_proves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let incarnation = Incarnation::random();
        let id = Life::begin(folder.path(), incarnation, DATABASE).unwrap().id();
        assert!(matches!(probe(folder.path(), incarnation, id), Sign::Unknown), "it is gone");
        let path = folder.path().join(incarnation.to_string());
        fs::write(&path, b"").unwrap();
        let other = FileId { dev: id.dev, ino: u64::MAX };
        assert!(matches!(probe(folder.path(), incarnation, other), Sign::Unknown), "it is another");
        let planted = FileId::from(&fs::metadata(&path).unwrap());
        assert!(matches!(probe(folder.path(), incarnation, planted), Sign::Dead), "nobody holds it");
    }

    #[test]
    fn a_life_begins_although_somebody_takes_its_new_file_for_a_dead_ones() {
        let folder = tempfile::tempdir().unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        for resident in census(folder.path()).unwrap() {
                            if let Resident::Dead(remains) = resident {
                                remains.bury();
                            }
                        }
                    }
                });
            }
            let all_live = (0..300).all(|_| {
                let incarnation = Incarnation::random();
                let life = Life::begin(folder.path(), incarnation, DATABASE).unwrap();
                thread::yield_now();
                matches!(probe(folder.path(), incarnation, life.id()), Sign::Alive(_))
            });
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(all_live);
        });
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn who_forgets_is_not_called() {
        let folder = tempfile::tempdir().unwrap();
        let incarnation = Incarnation::random();
        let life = Life::begin(folder.path(), incarnation, DATABASE).unwrap();
        let (tell, told) = mpsc::channel();
        for waiter in [11, 12] {
            let Sign::Alive(file) = probe(folder.path(), incarnation, life.id()) else { panic!("it lives") };
            let tell = tell.clone();
            when_dead(file, life.id(), waiter, Box::new(move || tell.send(waiter).unwrap())).unwrap();
        }
        forget(11);
        drop(life);
        drop(tell);
        assert_eq!(told.into_iter().collect::<Vec<_>>(), [12]);
    }
}
