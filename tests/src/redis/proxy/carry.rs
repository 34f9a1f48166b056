//! Carries bytes between a client and the server.

use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;

use super::rules::{Verdict, Way};
use super::{Kept, State};
use crate::redis::Port;

/// Accepts clients for as long as the proxy lives, but while it is closed.
pub(super) async fn serve(port: Port, state: Arc<State>) {
    let mut rules = state.rules.subscribe();
    // The state is owned here too: its sender is never gone.
    while rules.wait_for(|rules| rules.open).await.is_ok() {
        let listener = port.listen().expect("the port is reserved");
        listener.set_nonblocking(true).expect("a socket can be made so");
        let listener = TcpListener::from_std(listener).expect("the runtime has a reactor");
        state.listening.send_replace(true);
        loop {
            tokio::select! {
                biased;
                _ = rules.wait_for(|rules| !rules.open) => break,
                accepted = listener.accept() => {
                    // A client that has gone already is no client.
                    let Ok((client, _)) = accepted else { continue };
                    let number = state.begin();
                    tokio::spawn(connection(number, client, Arc::clone(&state)));
                }
            }
        }
        drop(listener);
        state.listening.send_replace(false);
    }
}

async fn connection(number: u64, client: TcpStream, state: Arc<State>) {
    let mut rules = state.rules.subscribe();
    let both = async {
        // A server that is not there: the client sees a connection that ends at once.
        let address = *state.server.borrow();
        let server = TcpStream::connect(address).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        tokio::join!(
            carry(Way::ToServer, number, from_client, to_server, &state),
            carry(Way::ToClient, number, from_server, to_client, &state),
        );
        std::io::Result::Ok(())
    };
    tokio::select! {
        // Either way it is over.
        _ = both => {}
        _ = rules.wait_for(|rules| number <= rules.cut) => {}
    }
    state.end(number);
}

/// What was read at once.
struct Chunk {
    came: Instant,
    bytes: Vec<u8>,
    /// Until it is delivered or lost.
    _kept: Option<Kept>,
}

/// Reads on whatever becomes of what was read: a client may close a connection whose bytes are held.
async fn carry(way: Way, number: u64, from: OwnedReadHalf, to: OwnedWriteHalf, state: &Arc<State>) {
    let (queue, chunks) = unbounded_channel();
    tokio::join!(read(way, number, from, queue, state), deliver(way, number, to, chunks, state));
}

async fn read(way: Way, number: u64, mut from: OwnedReadHalf, queue: UnboundedSender<Chunk>, state: &Arc<State>) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let bytes = buffer[..length].to_vec();
        let kept = state.note_held(way, number, &bytes);
        // Who delivers has given up, if the other side is gone.
        let _ = queue.send(Chunk { came: Instant::now(), bytes, _kept: kept });
    }
}

async fn deliver(way: Way, number: u64, mut to: OwnedWriteHalf, mut chunks: UnboundedReceiver<Chunk>, state: &State) {
    // What a network has lost, it does not make up for by what comes after: then the whole direction is lost.
    let mut lost = false;
    while let Some(chunk) = chunks.recv().await {
        lost = lost || !state.may_pass(way, number, chunk.came).await;
        if lost {
            state.lost[way as usize].send_modify(|lost| *lost += 1);
        } else if to.write_all(&chunk.bytes).await.is_err() {
            return;
        }
    }
    if lost {
        // Nor does the other side hear of the end: dropped, this would tell it.
        to.forget();
    }
}

impl State {
    /// Waits until a chunk may be delivered (`true`) or is lost.
    async fn may_pass(&self, way: Way, number: u64, came: Instant) -> bool {
        let mut rules = self.rules.subscribe();
        loop {
            rules.mark_unchanged();
            let mut verdict = Verdict::Wait;
            // No news for the others.
            self.rules.send_if_modified(|rules| {
                verdict = rules.course(way).judge(number, came);
                false
            });
            match verdict {
                Verdict::Deliver => return true,
                Verdict::Swallow => return false,
                Verdict::Wait => drop(rules.changed().await),
                Verdict::WaitUntil(due) => tokio::select! {
                    () = tokio::time::sleep_until(due) => {}
                    _ = rules.changed() => {}
                },
            }
        }
    }
}
