//! Some parties, the network between them, and what can be done to it.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::loss::{Losses, lost, rules};
use super::namespace::Namespace;
use crate::process::installed;

/// What the system says where it lets nobody do this, or cannot do it.
const REFUSALS: [&str; 3] = ["not permitted", "not supported", "ermission denied"];

/// One machine, as far as the network is concerned: an address, and who runs there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Party {
    address: Ipv4Addr,
    entry: Vec<String>,
}

impl Party {
    /// Its address. It exists in this network only, and so nobody else listens there.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// A program that is started by these words runs there; its process is the same.
    #[must_use]
    pub fn entry(&self) -> &[String] {
        &self.entry
    }

    /// A program that runs there.
    #[must_use]
    pub fn program(&self, program: &Path) -> Command {
        let mut entered = Command::new(&self.entry[0]);
        entered.args(&self.entry[1..]).arg(program);
        entered
    }
}

/// Parties that all reach each other, and nobody else. Dropping it takes it down, under those that still run there.
#[derive(Debug)]
pub struct Network {
    /// Where all cables end.
    hub: Namespace,
    parties: Vec<(Namespace, Party)>,
    /// Where packets are lost.
    losses: Mutex<Vec<Losses>>,
}

/// How it comes about.
impl Network {
    /// A network of so many parties. None, with the reason printed, where this user may not have one, or the programs for it are
    /// not installed.
    ///
    /// # Panics
    /// If these are missing where `CI` is set, or there is something else in the way than want of rights.
    #[must_use]
    #[allow(clippy::print_stderr)]
    pub fn of(parties: usize) -> Option<Self> {
        installed(tool("ip"), "ip", "iproute2")?;
        installed(tool("nft"), "nft", "nftables")?;
        match Self::build(parties) {
            Ok(network) => Some(network),
            Err(error) => {
                assert!(REFUSALS.iter().any(|refusal| error.contains(refusal)), "there is no network: {error}");
                eprintln!("skipped: this user may not have network namespaces ({error})");
                None
            }
        }
    }

    fn build(parties: usize) -> Result<Self, String> {
        let hub = Namespace::new()?;
        hub.tell(&["ip", "-batch", "-"], "link add name hub type bridge\nlink set hub up\n")?;
        let parties: Vec<_> = (0..parties).map(|number| Self::connect(&hub, number)).collect::<Result<_, _>>()?;
        let network = Self { hub, losses: Mutex::new(vec![Losses::new(); parties.len()]), parties };
        // Now, so that what is in the way is found here.
        (0..network.parties.len()).try_for_each(|party| network.try_apply(party, &Losses::new()))?;
        Ok(network)
    }

    fn connect(hub: &Namespace, number: usize) -> Result<(Namespace, Party), String> {
        let namespace = Namespace::new()?;
        let last = u8::try_from(number + 1).map_err(|_| "there are too many parties".to_owned())?;
        let address = Ipv4Addr::new(10, 0, 0, last);
        let (cable, id) = (cable(number), namespace.id());
        let cables = format!(
            "link add name {cable} type veth peer name wire netns {id}\nlink set {cable} master hub\nlink set {cable} up\n"
        );
        hub.tell(&["ip", "-batch", "-"], &cables)?;
        let interfaces = format!("link set lo up\naddress add {address}/24 dev wire\nlink set wire up\n");
        namespace.tell(&["ip", "-batch", "-"], &interfaces)?;
        let entry = namespace.entry();
        Ok((namespace, Party { address, entry }))
    }

    /// One of the parties.
    #[must_use]
    pub fn party(&self, number: usize) -> &Party {
        &self.parties[number].1
    }

    /// How many there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.parties.len()
    }
}

/// Faults. Each is there when the call returns; of what one does for several parties, one after the other.
impl Network {
    /// Of a hundred packets from one party to another, so many are lost; nobody is told.
    ///
    /// # Panics
    /// If the system refuses, as all of these.
    pub fn lose(&self, from: usize, to: usize, percent: u32) {
        let mut losses = self.losses();
        losses[to].insert(self.party(from).address, percent);
        self.apply(to, &losses[to]);
    }

    /// The same of what these parties and all the others send each other, in both directions.
    pub fn lose_around(&self, side: &[usize], percent: u32) {
        let mut losses = self.losses();
        for to in 0..self.size() {
            for from in (0..self.size()).filter(|from| side.contains(from) != side.contains(&to)) {
                losses[to].insert(self.party(from).address, percent);
            }
            self.apply(to, &losses[to]);
        }
    }

    /// These parties reach each other, and none of the others, nor these them.
    pub fn isolate(&self, side: &[usize]) {
        self.lose_around(side, 100);
    }

    /// From now on, nothing is lost.
    pub fn heal(&self) {
        let mut losses = self.losses();
        for (party, losses) in losses.iter_mut().enumerate() {
            losses.clear();
            self.apply(party, losses);
        }
    }

    /// How many packets were lost by the faults that there are, since each party's were last changed.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let listed = self.parties.iter().map(|(namespace, _)| namespace.tell(&["nft", "list", "ruleset"], ""));
        let listed = listed.map(|listed| listed.unwrap_or_else(|error| panic!("the rules cannot be listed: {error}")));
        listed.map(|listed| lost(&String::from_utf8_lossy(&listed.stdout))).sum()
    }

    /// Pulls a party's cable: its interface has no carrier.
    pub fn unplug(&self, party: usize) {
        self.cable(party, "down");
    }

    /// Ends [`unplug`](Self::unplug).
    pub fn plug(&self, party: usize) {
        self.cable(party, "up");
    }

    fn cable(&self, party: usize, state: &str) {
        let lines = format!("link set {} {state}\n", cable(party));
        let done = self.hub.tell(&["ip", "-batch", "-"], &lines);
        done.unwrap_or_else(|error| panic!("the cable of party {party} cannot be set {state}: {error}"));
    }

    fn apply(&self, party: usize, losses: &Losses) {
        let applied = self.try_apply(party, losses);
        applied.unwrap_or_else(|error| panic!("the rules of party {party} cannot be changed: {error}"));
    }

    fn try_apply(&self, party: usize, losses: &Losses) -> Result<(), String> {
        self.parties[party].0.tell(&["nft", "-f", "-"], &rules(losses)).map(drop)
    }

    fn losses(&self) -> MutexGuard<'_, Vec<Losses>> {
        self.losses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// At the hub.
fn cable(party: usize) -> String {
    format!("party{party}")
}

/// Whether there is such a tool. On Debian some are where not everybody looks for programs, but whoever may have namespaces does.
fn tool(name: &str) -> Option<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    folders.any(|folder| folder.join(name).exists()).then_some(())
}
