//! How fred is set up.

use std::time::Duration;

use ::fred::socket2::TcpKeepalive;
use ::fred::types::RespVersion;
use ::fred::types::config::{
    Config, ConnectionConfig, Options, PerformanceConfig, Server, ServerConfig, TcpConfig, UnresponsiveConfig,
};

use super::super::address::Address;
use super::super::connection::Failure;

/// So many calls wait for one connection at most; the store puts a hundred groups into each.
const CALLS: usize = 1024;
/// So many messages wait for the one who listens, before it is told that it missed some.
const MESSAGES: usize = 1024;
/// A connection that is idle for so long shows a sign of life, so that no firewall forgets it.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// Whom to connect to. Its `Debug` shows the password: it is never formatted.
pub(super) async fn config(address: &Address) -> Result<Config, Failure> {
    let server = Server::new(address.server.host.as_str(), address.server.port);
    Ok(Config {
        // One attempt to connect: the caller makes the next.
        fail_fast: true,
        username: address.access.user.clone(),
        password: address.access.password.clone(),
        server: ServerConfig::Centralized { server },
        // In version 3 a subscription and its confirmations look different, and servers before 6.0 do not have it.
        version: RespVersion::RESP2,
        // A user may be allowed no SELECT, and where no database is named none is needed.
        database: Some(address.access.database).filter(|database| *database > 0),
        #[cfg(feature = "redis-tls")]
        tls: if address.access.tls { Some(super::super::client::tls::config(address).await?.into()) } else { None },
        ..Config::default()
    })
}

pub(super) fn connection(timeout: Duration) -> ConnectionConfig {
    ConnectionConfig {
        connection_timeout: timeout,
        internal_command_timeout: timeout,
        max_command_attempts: 1,
        max_command_buffer_len: CALLS,
        // Not everybody may set a name, and the connection would be refused.
        auto_client_setname: false,
        reconnect_on_auth_error: false,
        // Each write postpones this check: under steady traffic it never fires. Time-outs and pings do its work.
        unresponsive: UnresponsiveConfig { max_timeout: None, ..UnresponsiveConfig::default() },
        tcp: TcpConfig {
            nodelay: Some(true),
            // What the system has not delivered when the connection is dropped is thrown away, not delivered later.
            linger: Some(Duration::ZERO),
            keepalive: Some(TcpKeepalive::new().with_time(KEEPALIVE)),
            ..TcpConfig::default()
        },
        ..ConnectionConfig::default()
    }
}

pub(super) fn performance(timeout: Duration) -> PerformanceConfig {
    PerformanceConfig {
        default_command_timeout: timeout,
        broadcast_channel_capacity: MESSAGES,
        ..PerformanceConfig::default()
    }
}

/// Of one call: it is sent once or not at all, and not after its time is over.
pub(super) fn options(timeout: Duration) -> Options {
    Options { timeout: Some(timeout), max_attempts: Some(1), fail_fast: true, ..Options::default() }
}
