//! What an instance tells its parent, a line of JSON each, on its standard output.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "lowercase")]
pub enum Message {
    /// Its first round is over, and its jobs run.
    Ready { instance: String, store: String },
    /// It led when it started, so its start-up hook ran.
    Warmed,
    /// It may believe until this instant of the boot clock that it leads.
    Renewed { group: String, term: u64, until_ns: u64 },
}

impl Message {
    /// Sends it. A parent that is gone needs no news: the instance ends as soon as it notices.
    pub fn tell(&self) {
        use std::io::Write;
        if let Ok(mut line) = serde_json::to_vec(self) {
            line.push(b'\n');
            let _ = std::io::stdout().lock().write_all(&line);
        }
    }
}
