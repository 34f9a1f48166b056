//! A peer between client and server that can go silent.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// Passes on what comes, unless told to be silent; connections stay open then, as behind a firewall that drops packets.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    silent: watch::Sender<bool>,
    left: mpsc::UnboundedReceiver<()>,
    _task: JoinSet<()>,
}

impl Proxy {
    pub(crate) async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let silent = watch::Sender::new(false);
        let (leaves, left) = mpsc::unbounded_channel();
        let (tells, mut task) = (silent.clone(), JoinSet::new());
        task.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
                let (leaves, silent) = (leaves.clone(), tells.subscribe());
                connections.spawn(pass(from_server, to_client, silent.clone()));
                connections.spawn(async move {
                    pass(from_client, to_server, silent).await;
                    // The test may have ended.
                    let _ = leaves.send(());
                });
            }
        });
        Self { address, silent, left, _task: task }
    }

    pub(crate) fn silence(&self, silent: bool) {
        self.silent.send_replace(silent);
    }

    /// Waits until a client closes its connection.
    pub(crate) async fn left(&mut self) {
        self.left.recv().await.unwrap();
    }
}

/// While it is silent it goes on receiving, and so it notices the end.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut silent: watch::Receiver<bool>) {
    let mut held = Vec::new();
    loop {
        tokio::select! {
            // An error is an end too.
            read = from.read_buf(&mut held) => if read.unwrap_or(0) == 0 { return },
            speaks = async { silent.wait_for(|silent| !silent).await.is_ok() }, if !held.is_empty() => {
                if !speaks || to.write_all(&held).await.is_err() {
                    return;
                }
                held.clear();
            }
        }
    }
}
