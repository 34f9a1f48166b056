//! A connection that listens.

use std::sync::Arc;
use std::time::Duration;

use ::fred::types::Message;
use tokio::sync::broadcast::{self, error::RecvError};

use super::super::client::Listener;
use super::super::connection::{Failure, Heard, Request};
use super::connection::Connection;

pub(in super::super) struct Messages {
    connection: Arc<Connection>,
    messages: broadcast::Receiver<Message>,
}

impl Messages {
    /// Those on these channels, of which the server has confirmed all.
    pub(super) async fn on(connection: Connection, channels: Vec<String>, timeout: Duration) -> Result<Self, Failure> {
        let messages = connection.messages();
        connection.subscribe(channels, timeout).await?;
        Ok(Self { connection: Arc::new(connection), messages })
    }
}

impl Listener for Messages {
    async fn next(&mut self) -> Option<Heard> {
        let message = tokio::select! {
            message = self.messages.recv() => message,
            _ = self.connection.ended() => return None,
        };
        match message {
            Ok(message) => Some(Heard::Message {
                channel: message.channel.to_string(),
                text: message.value.into_string().unwrap_or_default(),
            }),
            Err(RecvError::Lagged(_)) => Some(Heard::Gap),
            Err(RecvError::Closed) => None,
        }
    }

    fn ask(&self, timeout: Duration) -> impl Future<Output = bool> + Send + 'static {
        let connection = Arc::clone(&self.connection);
        // An error is an answer: a server that cannot write to its disk refuses each PING.
        async move { connection.call(Request::bare("PING"), timeout).await.is_ok() }
    }
}
