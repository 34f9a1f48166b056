//! The store of a soak, and what is done to it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::plan::Fault;
use super::servers::{Cluster, Sentinels, Servers};
use super::settings::Place;
use crate::chaos::ground::Ground as Chaos;
use crate::chaos::plan::Fault as OfStore;
use crate::chaos::settings::Place as ChaosPlace;
use crate::process::Mount;
use crate::redis::RedisServer;

/// A server that keeps its memory over a restart.
const KEPT: [(&str, &str); 2] = [("appendonly", "yes"), ("appendfsync", "always")];
/// The disk of an SQLite file: much more than it needs.
const DISK: &str = "32m";
const DISK_BYTES: usize = 32 << 20;

/// A store for several processes.
pub(super) enum Ground {
    /// A server with a proxy for each process, or an SQLite file.
    One(Box<One>),
    /// Several servers.
    Many(Box<dyn Servers>),
    /// Somebody else's.
    Foreign(String),
}

/// One server, or one file.
pub(super) struct One {
    chaos: Chaos,
    /// That of the file, if it could be mounted.
    disk: Option<Mount>,
    /// It stands still, is gone, or answers nobody: what is stopped takes no orders.
    away: bool,
    apart: Vec<bool>,
}

impl Ground {
    /// For so many processes. `None`: no Redis server is installed.
    pub(super) fn open(place: &Place, folder: &Path, processes: usize) -> Result<Option<Self>, String> {
        let one = |chaos, disk| Self::One(Box::new(One { chaos, disk, away: false, apart: vec![false; processes] }));
        Ok(match place {
            Place::Redis => {
                let chaos = Chaos::open(&ChaosPlace::OwnRedis, folder, processes, &KEPT)?;
                chaos.map(|chaos| one(chaos, None))
            }
            Place::Sqlite => {
                let disk = Mount::new(DISK);
                let folder = disk.as_ref().map_or(folder, Mount::path);
                let chaos = Chaos::open(&ChaosPlace::OwnSqlite, folder, processes, &[])?;
                chaos.map(|chaos| one(chaos, disk))
            }
            Place::Sentinel => Sentinels::start(&KEPT).map(|servers| Self::Many(Box::new(servers))),
            Place::Cluster => Cluster::start(&KEPT).map(|servers| Self::Many(Box::new(servers))),
            Place::Foreign(url) => Some(Self::Foreign(url.clone())),
        })
    }

    /// Where the process in this slot finds it.
    pub(super) fn url(&self, slot: usize) -> String {
        match self {
            Self::One(one) => one.chaos.url(slot),
            Self::Many(servers) => servers.url(),
            Self::Foreign(url) => url.clone(),
        }
    }

    /// Where it is found without a proxy.
    pub(super) fn plain_url(&self) -> String {
        match self {
            Self::One(one) => one.chaos.plain_url(),
            Self::Many(servers) => servers.url(),
            Self::Foreign(url) => url.clone(),
        }
    }

    /// The groups besides `default`: in a cluster one for each primary.
    pub(super) fn groups(&self) -> Vec<String> {
        match self {
            Self::Many(servers) => servers.groups(),
            _ => ["reports", "cleanup"].map(str::to_owned).into(),
        }
    }

    /// Keeps a copy of what a server holds now, to go back to.
    pub(super) fn snapshot(&mut self) {
        if let Self::One(one) = self
            && let Some(server) = one.chaos.server()
        {
            server.snapshot();
        }
    }

    /// A fault begins, and this says what ends it; `None` if it cannot strike now.
    pub(super) fn begin(&mut self, fault: Fault, group: &str, lasts: Duration) -> Result<Option<Mend>, String> {
        match self {
            Self::One(one) => one.begin(fault, lasts),
            Self::Many(servers) => Ok(servers.begin(fault, group, lasts)),
            Self::Foreign(_) => Ok(None),
        }
    }

    /// It ends; or what remains of it, to be asked again.
    pub(super) fn end(&mut self, mend: Mend) -> Result<Option<Mend>, String> {
        match self {
            Self::One(one) => one.end(mend).map(|()| None),
            Self::Many(servers) => Ok(servers.end(mend)),
            Self::Foreign(_) => Ok(None),
        }
    }

    /// Which servers are the primaries, where that may change. All have to be well.
    pub(super) fn identity(&self) -> Vec<usize> {
        match self {
            Self::Many(servers) => servers.identity(),
            _ => Vec::new(),
        }
    }

    /// Looks all the time whether a server or a file answers at once, as [`chaos`](Chaos::watch) does. Of several servers this
    /// is not known.
    pub(super) fn watch(&self, note: impl FnMut(Option<(u64, u64)>) -> bool + Send + 'static) {
        if let Self::One(one) = self {
            one.chaos.watch(note);
        }
    }

    /// The servers of its own that are there, to be asked.
    pub(super) fn servers(&mut self) -> Vec<&RedisServer> {
        match self {
            Self::One(one) => one.chaos.server().into_iter().map(|server| &*server).collect(),
            Self::Many(servers) => servers.all(),
            Self::Foreign(_) => Vec::new(),
        }
    }

    /// Writes down the logs of its servers.
    pub(super) fn save_logs(&mut self, folder: &Path) -> io::Result<()> {
        for (number, server) in self.servers().into_iter().enumerate() {
            fs::write(folder.join(format!("server-{number}.log")), server.written())?;
        }
        if let Self::Many(servers) = self {
            for (number, written) in servers.other_logs().into_iter().enumerate() {
                fs::write(folder.join(format!("sentinel-{number}.log")), written)?;
            }
        }
        Ok(())
    }
}

/// What ends a fault of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mend {
    /// Nothing has to be done.
    Nothing,
    /// The fault itself says it.
    Of(Fault),
    /// This server is started again, or goes on, and is waited for.
    Server(Fault, usize),
}

impl One {
    fn begin(&mut self, fault: Fault, lasts: Duration) -> Result<Option<Mend>, String> {
        if let Fault::FillDisk = fault {
            return Ok(self.fill_disk());
        }
        let network = fault.network();
        if network.map_or(self.away, |slot| self.apart[slot]) {
            return Ok(None);
        }
        match (fault, self.chaos.server()) {
            (Fault::Store(of_store), _) => {
                if !self.chaos.begin(of_store, lasts)? {
                    return Ok(None);
                }
                self.away |= matches!(of_store, OfStore::PauseClients | OfStore::HoldFile);
                network.into_iter().for_each(|slot| self.apart[slot] = true);
            }
            (_, None) => return Ok(None),
            (Fault::FlushAll, Some(server)) => server.flush_all(),
            (Fault::ServerStop, Some(server)) => {
                server.stop();
                self.away = true;
            }
            (Fault::ServerKill | Fault::ServerKillEmpty | Fault::RollBack, Some(server)) => {
                server.kill();
                self.away = true;
            }
            _ => return Ok(None),
        }
        Ok(Some(Mend::Of(fault)))
    }

    fn end(&mut self, mend: Mend) -> Result<(), String> {
        let Mend::Of(fault) = mend else { return Ok(()) };
        match (fault, self.chaos.server()) {
            (Fault::Store(of_store), _) => {
                self.chaos.end(of_store);
                match of_store.network() {
                    Some(slot) => self.apart[slot] = false,
                    None => self.away &= !matches!(of_store, OfStore::PauseClients | OfStore::HoldFile),
                }
                return Ok(());
            }
            (Fault::FillDisk, _) => {
                let made_room = self.filler().map_or(Ok(()), fs::remove_file);
                self.away = false;
                return made_room.map_err(|error| format!("making room again: {error}"));
            }
            (Fault::ServerStop, Some(server)) => server.cont(),
            (Fault::ServerKill, Some(server)) => server.start_again(),
            (Fault::ServerKillEmpty, Some(server)) => server.restart_empty(),
            (Fault::RollBack, Some(server)) => server.roll_back(),
            _ => return Ok(()),
        }
        self.away = false;
        Ok(())
    }

    fn filler(&self) -> Option<PathBuf> {
        Some(self.disk.as_ref()?.path().join("filler"))
    }

    fn fill_disk(&mut self) -> Option<Mend> {
        let filler = self.filler().filter(|_| !self.away)?;
        // As much as fits.
        let _ = fs::write(filler, vec![0; DISK_BYTES]);
        self.away = true;
        Some(Mend::Of(Fault::FillDisk))
    }
}
