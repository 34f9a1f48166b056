//! A connection that listens.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::time::Duration;

use ::redis::aio::{PubSub, PubSubSink, PubSubStream};
use ::redis::{RedisError, ServerError, Value};
use futures_core::Stream;

use super::super::address::Address;
use super::super::client::Listener;
use super::super::connection::{Failure, Heard};
use super::socket::Socket;
use super::{failure, said_all};

/// Its task ends when this is dropped.
pub(in super::super) struct Messages {
    questions: PubSubSink,
    /// Without a bound, but it is always listened to.
    messages: PubSubStream,
}

impl Messages {
    /// Those on these channels, of which the server has confirmed all.
    pub(super) async fn on(socket: Socket, channels: Vec<String>, address: &Address) -> Result<Self, Failure> {
        let refused = |error: RedisError| failure::of(&error, address);
        let (mut questions, messages) = PubSub::new(&said_all(), socket).await.map_err(refused)?.split();
        questions.subscribe(channels).await.map_err(refused)?;
        Ok(Self { questions, messages })
    }
}

impl Listener for Messages {
    async fn next(&mut self) -> Option<Heard> {
        let message = poll_fn(|cx| Pin::new(&mut self.messages).poll_next(cx)).await?;
        Some(Heard::Message {
            channel: message.get_channel_name().to_owned(),
            text: String::from_utf8_lossy(message.get_payload_bytes()).into_owned(),
        })
    }

    fn ask(&self, timeout: Duration) -> impl Future<Output = bool> + Send + 'static {
        let mut questions = self.questions.clone();
        async move {
            match tokio::time::timeout(timeout, questions.ping::<Value>()).await {
                Ok(Ok(_)) => true,
                // An error is an answer: a server that cannot write to its disk refuses each PING.
                Ok(Err(error)) => ServerError::try_from(error).is_ok(),
                Err(_) => false,
            }
        }
    }
}
