//! The socket of a connection.

use std::io;
use std::pin::Pin;
#[cfg(feature = "redis-tls")]
use std::sync::Arc;
use std::time::Duration;

use ::redis::io::tcp::socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
#[cfg(feature = "redis-tls")]
use tokio_rustls::{TlsConnector, rustls::pki_types::ServerName};

use super::super::address::Address;
use super::super::client::failure;
#[cfg(feature = "redis-tls")]
use super::super::client::tls;
use super::super::connection::Failure;

/// A connection that is idle for so long shows a sign of life, so that no firewall forgets it.
const KEEPALIVE: Duration = Duration::from_secs(10);
/// From one sign that nobody answers to the next.
const REMINDER: Duration = Duration::from_secs(1);

pub(super) trait Stream: AsyncRead + AsyncWrite + Send {}

impl<S: AsyncRead + AsyncWrite + Send> Stream for S {}

/// In plain text, or TLS in it.
pub(super) type Socket = Pin<Box<dyn Stream>>;

/// Connects. A peer of which nothing is heard for longer than `patience`, while there is something to hear, is gone.
pub(super) async fn open(address: &Address, patience: Duration) -> Result<Socket, Failure> {
    let of_system = |error: io::Error| failure::of_io(&format!("{error:?}"), address);
    #[cfg(feature = "redis-tls")]
    let tls = Tls::of(address).await?;
    let socket = TcpStream::connect((address.server.host.as_str(), address.server.port)).await.map_err(of_system)?;
    set_up(&socket, patience).map_err(of_system)?;
    #[cfg(feature = "redis-tls")]
    if let Some(Tls { connector, name }) = tls {
        return Ok(Box::pin(connector.connect(name, socket).await.map_err(of_system)?));
    }
    Ok(Box::pin(socket))
}

fn set_up(socket: &TcpStream, patience: Duration) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let socket = SockRef::from(socket);
    // What the system has not delivered when the connection is dropped is thrown away, not delivered later.
    socket.set_linger(Some(Duration::ZERO))?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE).with_interval(REMINDER))?;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        socket.set_tcp_user_timeout(Some(patience))?;
        // One command at a time is on its way, and it has no time for pauses that double each time it gets lost. It is no more
        // than a help, and not every sandbox knows it.
        let _ = socket.set_tcp_thin_linear_timeouts(true);
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = patience;
    Ok(())
}

/// Whom to trust, and who it has to be.
#[cfg(feature = "redis-tls")]
struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

#[cfg(feature = "redis-tls")]
impl Tls {
    /// Nothing for plain text.
    async fn of(address: &Address) -> Result<Option<Self>, Failure> {
        if !address.access.tls {
            return Ok(None);
        }
        let config = tls::config(address).await?;
        let host = &address.server.host;
        let name = ServerName::try_from(host.clone()).map_err(|_| Failure::Impossible {
            cause: format!("`{host}` is no name that a certificate could be for"),
            advice: "use a host name or an address in the URL".to_owned(),
        })?;
        Ok(Some(Self { connector: TlsConnector::from(Arc::new(config)), name }))
    }
}
