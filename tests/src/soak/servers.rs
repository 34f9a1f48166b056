//! Stores of several servers: by Sentinel, and a cluster. One fault of them at a time, and the next not before all is whole.

use std::time::Duration;

use super::ground::Mend;
use super::plan::Fault;
use crate::chaos::plan::Fault as OfStore;
use crate::redis::{RedisCluster, RedisServer, Watched};

/// Several servers, of which some are primaries.
pub(super) trait Servers {
    /// Where they are found.
    fn url(&self) -> String;
    /// The groups besides `default`.
    fn groups(&self) -> Vec<String>;
    /// All.
    fn all(&self) -> Vec<&RedisServer>;
    /// The logs of what is beside them.
    fn other_logs(&self) -> Vec<String>;
    /// A fault begins.
    fn begin(&mut self, fault: Fault, group: &str, lasts: Duration) -> Option<Mend>;
    /// It ends; or what remains of it, to be asked again.
    fn end(&mut self, mend: Mend) -> Option<Mend>;
    /// Who the primaries are: if it changes, what the store knew may be lost.
    fn identity(&self) -> Vec<usize>;
}

/// What strikes all primaries alike.
fn strike(primaries: &[&RedisServer], fault: Fault, lasts: Duration) -> bool {
    match fault {
        Fault::Store(OfStore::KillClients) => primaries.iter().for_each(|server| {
            server.kill_clients();
        }),
        Fault::Store(OfStore::PauseClients) => primaries.iter().for_each(|server| server.pause_clients(lasts)),
        Fault::Store(OfStore::FlushScripts) => primaries.iter().for_each(|server| server.flush_scripts()),
        Fault::FlushAll => primaries.iter().for_each(|server| server.flush_all()),
        _ => return false,
    }
    true
}

fn info(server: &RedisServer) -> String {
    server.try_command(&["INFO", "replication"]).unwrap_or_default()
}

/// A primary, two replicas, three sentinels.
pub(super) struct Sentinels {
    watched: Watched,
    /// Not all is whole.
    struck: bool,
}

impl Sentinels {
    pub(super) fn start(options: &[(&str, &str)]) -> Option<Self> {
        Watched::start(options, &[], None).map(|watched| Self { watched, struck: false })
    }

    fn primary(&self) -> Option<usize> {
        let mut servers = self.watched.servers.iter();
        servers.position(|server| server.id().is_some() && info(server).contains("role:master"))
    }

    /// One primary, whom the others follow, and whom all sentinels name.
    fn is_whole(&self) -> bool {
        let primaries = self.watched.servers.iter().filter(|server| info(server).contains("role:master")).count();
        let followed = self.primary().is_some_and(|number| {
            info(&self.watched.servers[number]).matches("state=online").count() == self.watched.servers.len() - 1
        });
        primaries == 1 && followed && self.watched.all_know()
    }
}

impl Servers for Sentinels {
    fn url(&self) -> String {
        self.watched.url()
    }

    fn groups(&self) -> Vec<String> {
        ["reports", "cleanup"].map(str::to_owned).into()
    }

    fn all(&self) -> Vec<&RedisServer> {
        self.watched.servers.iter().collect()
    }

    fn other_logs(&self) -> Vec<String> {
        self.watched.sentinels.iter().map(crate::redis::Sentinel::written).collect()
    }

    fn identity(&self) -> Vec<usize> {
        self.primary().into_iter().collect()
    }

    fn begin(&mut self, fault: Fault, _: &str, lasts: Duration) -> Option<Mend> {
        let number = self.primary().filter(|_| !self.struck)?;
        let server = &mut self.watched.servers[number];
        let mend = match fault {
            Fault::PrimaryKill => {
                server.kill();
                Mend::Server(fault, number)
            }
            Fault::PrimaryStop | Fault::ServerStop => {
                server.stop();
                Mend::Server(fault, number)
            }
            Fault::Failover => {
                // A sentinel refuses while it is not sure that all are well.
                if !self.watched.try_fail_over() {
                    return None;
                }
                Mend::Server(fault, number)
            }
            _ if strike(&[server], fault, lasts) => Mend::Of(fault),
            _ => return None,
        };
        self.struck = true;
        Some(mend)
    }

    fn end(&mut self, mend: Mend) -> Option<Mend> {
        match mend {
            Mend::Server(fault @ (Fault::PrimaryKill | Fault::PrimaryStop), old) => {
                let mut others = self.watched.servers.iter().enumerate().filter(|(number, _)| *number != old);
                if !others.any(|(_, server)| info(server).contains("role:master")) {
                    return Some(mend);
                }
                if fault == Fault::PrimaryKill {
                    self.watched.servers[old].start_again();
                } else {
                    self.watched.servers[old].cont();
                }
                return self.end(Mend::Nothing);
            }
            Mend::Server(Fault::ServerStop, old) => {
                self.watched.servers[old].cont();
                return self.end(Mend::Nothing);
            }
            _ => {}
        }
        self.struck = !self.is_whole();
        self.struck.then_some(Mend::Nothing)
    }
}

/// Three primaries, three replicas.
pub(super) struct Cluster {
    cluster: RedisCluster,
    /// Not all is whole.
    struck: bool,
}

impl Cluster {
    pub(super) fn start(options: &[(&str, &str)]) -> Option<Self> {
        // A slot without a node does not stop the others.
        let options = [options, &[("cluster-require-full-coverage", "no")]].concat();
        RedisCluster::start(&options).map(|cluster| Self { cluster, struck: false })
    }

    /// As seen by whoever answers.
    fn owner(&self, key: &str) -> Option<usize> {
        let asked = (0..self.cluster.nodes().len()).find(|number| self.cluster.node(*number).id().is_some())?;
        let slot = self.cluster.slot(asked, key);
        self.cluster.owner(asked, slot)
    }

    fn primaries(&self) -> Vec<usize> {
        let nodes = self.cluster.nodes();
        (0..nodes.len()).filter(|number| info(&nodes[*number]).contains("role:master")).collect()
    }

    /// The replica in step of a primary.
    fn replica_of(&self, primary: usize) -> Option<usize> {
        let port = format!("master_port:{}\r", self.cluster.node(primary).address().port());
        (0..self.cluster.nodes().len()).find(|number| {
            let info = info(self.cluster.node(*number));
            info.contains("role:slave") && info.contains(&port) && info.contains("master_link_status:up")
        })
    }
}

impl Servers for Cluster {
    fn url(&self) -> String {
        self.cluster.url_of(&[0, 1, 2, 3, 4, 5], "")
    }

    fn groups(&self) -> Vec<String> {
        self.cluster.groups().into()
    }

    fn all(&self) -> Vec<&RedisServer> {
        self.cluster.nodes().iter().collect()
    }

    fn other_logs(&self) -> Vec<String> {
        Vec::new()
    }

    fn identity(&self) -> Vec<usize> {
        self.primaries()
    }

    fn begin(&mut self, fault: Fault, group: &str, lasts: Duration) -> Option<Mend> {
        if self.struck {
            return None;
        }
        let key = format!("leader:{group}");
        let owner = self.owner(&key)?;
        let replica = self.replica_of(owner)?;
        let mend = match fault {
            Fault::PrimaryKill => {
                self.cluster.node_mut(owner).kill();
                Mend::Server(fault, owner)
            }
            Fault::PrimaryStop | Fault::ServerStop => {
                self.cluster.node(owner).stop();
                Mend::Server(fault, owner)
            }
            Fault::Failover => {
                self.cluster.node(replica).command::<()>(&["CLUSTER", "FAILOVER"]);
                Mend::Server(fault, owner)
            }
            Fault::MoveSlot => {
                let to = self.primaries().into_iter().find(|number| *number != owner)?;
                let slot = self.cluster.slot(owner, &key);
                self.cluster.move_slot(slot, owner, to);
                Mend::Of(fault)
            }
            _ => {
                let primaries: Vec<_> = self.primaries().into_iter().map(|number| self.cluster.node(number)).collect();
                if !strike(&primaries, fault, lasts) {
                    return None;
                }
                Mend::Of(fault)
            }
        };
        self.struck = true;
        Some(mend)
    }

    fn end(&mut self, mend: Mend) -> Option<Mend> {
        if let Mend::Server(fault, old) = mend {
            let replaced = self.primaries_beside(old);
            match fault {
                Fault::PrimaryKill if replaced < 3 => return Some(mend),
                Fault::PrimaryKill => self.cluster.node_mut(old).start_again(),
                Fault::PrimaryStop if replaced < 3 => return Some(mend),
                Fault::PrimaryStop | Fault::ServerStop => self.cluster.node(old).cont(),
                Fault::Failover if replaced < 3 => return Some(mend),
                _ => {}
            }
            return self.end(Mend::Nothing);
        }
        self.struck = !self.cluster.is_whole();
        self.struck.then_some(Mend::Nothing)
    }
}

impl Cluster {
    /// How many primaries there are beside this node.
    fn primaries_beside(&self, old: usize) -> usize {
        let nodes = self.cluster.nodes().iter().enumerate().filter(|(number, _)| *number != old);
        nodes.filter(|(_, node)| info(node).contains("role:master")).count()
    }
}
