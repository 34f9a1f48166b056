//! What a peer speaks, asked when a connection to it does not come about: plain text at a TLS port and TLS at a plain port
//! look like any other peer that closes or is silent.
//!
//! These are connections of their own, on which nothing is sent but a few fixed bytes.

use std::future::{Future, pending};
use std::io;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::super::address::{Address, Server};
use super::super::connection::Failure;
use super::failure;

/// The beginning of a TLS handshake that is too short to be one: a TLS server answers with an alert.
const STUB: &[u8] = &[0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0];

/// What `attempt` opens within `timeout`; and if it opens nothing, what the peer's silence or end means, where that can be found
/// out.
pub(super) async fn open<T>(
    address: &Address,
    timeout: Duration,
    attempt: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let began = Instant::now();
    let opened = tokio::select! {
        biased;
        opened = tokio::time::timeout(timeout, attempt) => opened.unwrap_or(Err(Failure::TimedOut)),
        cause = plain(address, timeout) => Err(cause),
    };
    // What a TLS port does with plain text.
    let suspect = [failure::closed(address), failure::no_redis(address)];
    if opened.as_ref().is_err_and(|cause| suspect.contains(cause)) {
        let left = timeout.saturating_sub(began.elapsed()).min(timeout / 2);
        if tokio::time::timeout(left, speaks_tls(address)).await.unwrap_or(false) {
            return Err(failure::tls_only(address));
        }
    }
    opened
}

/// Resolves if TLS is spoken to a Redis that does not speak it. Without TLS, and if the peer does not show to be one, never.
///
/// Such a server takes what it gets for the beginning of a line and waits for its end, so it is asked when half of the time
/// has passed. One that stands still does not answer this either.
async fn plain(address: &Address, timeout: Duration) -> Failure {
    if address.access.tls {
        sleep(timeout / 2).await;
        // `+PONG`, or `-NOAUTH Authentication required.`
        if matches!(first_answer(&address.server, b"PING\r\n").await, Ok(b'+' | b'-')) {
            return failure::no_tls(address);
        }
    }
    pending().await
}

/// Whether a peer that was spoken to in plain text, and closed the connection, speaks TLS.
async fn speaks_tls(address: &Address) -> bool {
    // An alert, or a handshake.
    !address.access.tls && matches!(first_answer(&address.server, STUB).await, Ok(0x15 | 0x16))
}

async fn first_answer(server: &Server, question: &[u8]) -> io::Result<u8> {
    let mut socket = TcpStream::connect((server.host.as_str(), server.port)).await?;
    socket.write_all(question).await?;
    socket.read_u8().await
}
