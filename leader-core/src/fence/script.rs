//! A script of the user's, to be run under a token.

use std::borrow::Cow;

/// A Lua script for [`Fence::run`](super::Fence::run): the text of a function's body, and what it finds in `KEYS` and `ARGV`.
///
/// - `redis.call` and all else is as in `EVAL`, but the text may not begin with a line `#!lua`, nor `SELECT` another database:
///   the marks would be set there. It shares nothing with the script around it.
/// - Name every key that it writes: these are checked and marked. A script without keys is run only if the store knows the
///   acquisition as the present holder.
/// - Let the text be the same at each call, and hand over what changes as arguments: servers keep each text that they have
///   seen.
///
/// ```
/// use leader_core::fence::Script;
///
/// let withdraw = Script::new(
///     "local left = redis.call('GET', KEYS[1]) - ARGV[1]
///      if left < 0 then return redis.error_reply('POOR there is less') end
///      redis.call('SET', KEYS[1], left)
///      return left",
/// )
/// .key("balance:7")
/// .arg("250");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "it does nothing until it is run"]
pub struct Script {
    text: Cow<'static, str>,
    keys: Vec<Vec<u8>>,
    args: Vec<Vec<u8>>,
}

impl Script {
    /// A script without keys and arguments.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self { text: text.into(), keys: Vec::new(), args: Vec::new() }
    }

    /// One key more.
    pub fn key(mut self, key: impl AsRef<[u8]>) -> Self {
        self.keys.push(key.as_ref().to_vec());
        self
    }

    /// One argument more.
    pub fn arg(mut self, arg: impl AsRef<[u8]>) -> Self {
        self.args.push(arg.as_ref().to_vec());
        self
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its keys.
    #[must_use]
    pub fn keys(&self) -> &[Vec<u8>] {
        &self.keys
    }

    /// Its arguments.
    #[must_use]
    pub fn args(&self) -> &[Vec<u8>] {
        &self.args
    }
}
