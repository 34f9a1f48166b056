//! The Redis store's own script, run in virtual time against as much of a server as it uses.

pub mod compare;
pub mod course;
mod interpreter;
pub mod ledger;
pub mod server;

use std::time::Duration;

use leader_core::GroupName;
use leader_core::store::{Answer, Command};
use leader_core::testing::redis_script::{self, Flaw};

pub use interpreter::Interpreter;

use self::server::{Reply, Server};

/// What the names of keys begin with.
pub const PREFIX: &str = "leader:";

/// A server, and the script in it.
#[derive(Debug)]
pub struct ScriptStore {
    interpreter: Interpreter,
    shortest_quarantine: Duration,
    trusts_fresh: bool,
}

impl ScriptStore {
    /// The script as it is, or with a rule broken.
    #[must_use]
    pub fn new(server: Server, flaw: Option<Flaw>, shortest_quarantine: Duration, trusts_fresh: bool) -> Self {
        let text = flaw.map_or_else(|| redis_script::TEXT.to_owned(), |flaw| flaw.in_script(redis_script::TEXT));
        Self { interpreter: Interpreter::new(&text, server), shortest_quarantine, trusts_fresh }
    }

    /// The server.
    pub fn server(&self) -> std::cell::RefMut<'_, Server> {
        self.interpreter.server()
    }

    /// Executes a command of somebody else, such as an operator.
    pub fn call(&self, arguments: &[&str]) -> Reply {
        let arguments: Vec<_> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let mut server = self.server();
        server.begin();
        server.call(&arguments)
    }

    /// Executes a batch at `now`, microseconds of the server's clock. Each command is answered, or has its own error.
    ///
    /// # Panics
    /// If the whole script fails, or its answer is none that it should give.
    pub fn execute(&self, now: u64, commands: &[Command]) -> Vec<Result<Answer, String>> {
        self.server().now = now;
        let (shortest, trusts) = (self.shortest_quarantine, self.trusts_fresh);
        let arguments = redis_script::arguments(commands, PREFIX, shortest, trusts);
        let reply = self.interpreter.eval(arguments).unwrap_or_else(|error| panic!("{commands:?}: {error}"));
        redis_script::answers(reply, commands.len())
    }
}

/// The key of a group's lease.
#[must_use]
pub fn lease_key(group: &GroupName) -> String {
    format!("{PREFIX}{group}")
}

/// The key of a group's record.
#[must_use]
pub fn record_key(group: &GroupName) -> String {
    format!("{{{PREFIX}{group}}}:term")
}
