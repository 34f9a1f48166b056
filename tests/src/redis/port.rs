//! Ports that nobody else gets, also while nobody listens on them.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt};

/// From the port of a node of a cluster to the one by which it speaks to the others.
const BUS: u16 = 10_000;

/// A port of the loopback interface, free when it was taken and reserved until this is dropped.
///
/// A server that is restarted needs its old port, and meanwhile nobody else may have got it: not another test's server, nor
/// an outgoing connection, which would be one of the server's own clients that connects to itself.
#[derive(Debug)]
pub struct Port {
    address: SocketAddrV4,
    /// Bound, and never listens.
    _socket: OwnedFd,
}

impl Port {
    /// Any free one.
    ///
    /// # Errors
    /// If the system has none.
    pub fn reserve() -> io::Result<Self> {
        Self::reserve_number(0)
    }

    /// Two, of which the second is the one by which a node of a cluster speaks to the others if the first is its port.
    pub(super) fn reserve_with_bus() -> io::Result<(Self, Self)> {
        loop {
            let port = Self::reserve()?;
            // It may be somebody else's, or no number of a port.
            let bus = port.number().checked_add(BUS).map(Self::reserve_number);
            if let Some(Ok(bus)) = bus {
                return Ok((port, bus));
            }
        }
    }

    fn reserve_number(number: u16) -> io::Result<Self> {
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, number))?;
        // Only now: until here it is free for none but this socket, and from here on for who listens and says the same.
        sockopt::set_socket_reuseaddr(&socket, true)?;
        let address = SocketAddrV4::try_from(getsockname(&socket)?)?;
        Ok(Self { address, _socket: socket })
    }

    /// Its number.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.address.port()
    }

    /// Where to connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address.into()
    }

    /// Listens on it.
    ///
    /// # Errors
    /// If somebody does so already.
    pub fn listen(&self) -> io::Result<TcpListener> {
        TcpListener::bind(self.address)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn a_reserved_port_refuses_connections_until_somebody_listens_and_again_afterwards() {
        let port = Port::reserve().unwrap();
        let refused = || TcpStream::connect(port.address()).unwrap_err().kind();
        assert_eq!(refused(), io::ErrorKind::ConnectionRefused);
        for _ in 0..2 {
            let listener = port.listen().unwrap();
            let client = TcpStream::connect(port.address()).unwrap();
            // The side that closes first waits in the system for a while; that must not be in the way of the next listener.
            drop(listener.accept().unwrap());
            drop(listener);
            assert_eq!(refused(), io::ErrorKind::ConnectionRefused);
            drop(client);
        }
    }

    #[test]
    fn a_reserved_port_is_given_to_nobody_else() {
        let port = Port::reserve().unwrap();
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        assert!(bind(&socket, &port.address).is_err());
    }
}
