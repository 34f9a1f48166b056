//! Where a server listens.

use std::net::{IpAddr, SocketAddr};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use super::port::Port;
use crate::net::Party;

/// An address that nobody else gets as long as this is there.
#[derive(Debug)]
pub(super) enum Seat {
    /// Of the loopback interface.
    Here {
        port: Port,
        /// By which a node of a cluster speaks to the others; reserved for as long as the other one is.
        _bus: Option<Port>,
    },
    /// At a party of a network, where all others open connections from ports that are much larger.
    At(Party, u16),
}

impl Seat {
    pub(super) fn here() -> Self {
        Self::Here { port: Port::reserve().expect("there is a free port"), _bus: None }
    }

    pub(super) fn of_node() -> Self {
        let (port, bus) = Port::reserve_with_bus().expect("there are two free ports");
        Self::Here { port, _bus: Some(bus) }
    }

    pub(super) fn address(&self) -> SocketAddr {
        match self {
            Self::Here { port, .. } => port.address(),
            Self::At(party, port) => (IpAddr::from(party.address()), *port).into(),
        }
    }

    /// How a server's program is started. Wherever that can be had, the system ends it with the test, also if that is killed; the
    /// process is the same.
    pub(super) fn program(&self, binary: &Path) -> Command {
        let setpriv = Path::new("/usr/bin/setpriv");
        let mut words = Vec::new();
        if setpriv.exists() {
            words.extend([setpriv.into(), "--pdeathsig".into(), "KILL".into(), "--".into()]);
        }
        if let Self::At(party, _) = self {
            words.extend(party.entry().iter().map(Into::into));
        }
        words.push(binary.to_owned());
        let mut program = Command::new(&words[0]);
        program.args(&words[1..]);
        // Whoever stops us at the console stops it by us: by itself it would save, and end.
        program.process_group(0);
        program
    }
}
