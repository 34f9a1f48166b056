//! Guarded writes in a Redis server: one script checks the token, writes, and notes the token beside what it wrote.
//!
//! The mark of a key ([`marks`]) says which token wrote last, and in which memory of which server. If it is there, and of the
//! memory that the server has now, it decides. If it is not, newer ones may have been lost; then the server has to name the
//! writer as the holder of its lease or lock, as of now. So no lost memory lets in a writer that is too old.
//!
//! They have connections of their own, opened with the first of them: what users write may be large, and slow.

mod marks;
pub(super) mod script;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

pub(super) use self::script::SET;
use super::RedisStore;
use super::connection::Failure;
use super::failure::{Denied, code, denied};
use super::replicas::Reading;
use super::session::{Call, Script};
use super::slot;
use crate::error::StoreError;
use crate::fence::{Change, GuardedAnswer, GuardedWrite};

/// So many scripts are remembered by the names that servers have for them. Whoever has more makes a new one for each write.
const MOST_SCRIPTS: usize = 256;

/// The scripts that were run, by the text of their body.
pub(super) type Scripts = Arc<Mutex<HashMap<String, Arc<Script>>>>;

impl RedisStore {
    pub(super) async fn execute_guarded_write(&self, write: GuardedWrite) -> Result<GuardedAnswer, StoreError> {
        let inner = &*self.0;
        let timeout = write.timeout;
        let ran = match self.ties(write.candidate.incarnation) {
            Err(failure) => Err(failure),
            Ok(ties) => {
                let script = self.script_with(script::body(&write.change));
                let (arguments, holder) = script::arguments(&write, &inner.keys, &inner.lock_keys);
                if ties.fences.is_of_a_cluster() {
                    self.in_one_slot(&write, &holder)?;
                }
                let arguments = || arguments.clone();
                let call = Call { script: &script, arguments: &arguments, verbatim: true };
                let read = |reply| vec![script::answer(reply)];
                // What users write is not waited for.
                let reading = Reading { read: &read, needs: None };
                ties.fences.call(holder.as_bytes(), call, &reading, Instant::now() + timeout).await
            }
        };
        let ran =
            ran.map(|mut answers| answers.pop().unwrap_or_else(|| Err(Failure::Server(script::STRANGE.to_owned()))));
        match (ran, &write.change) {
            (Ok(Ok(answer)), _) => Ok(answer),
            // What became of a script of the user's is for the user to judge.
            (Ok(Err(Failure::Server(error))), Change::Run(_)) => Ok(GuardedAnswer::Failed(error)),
            (Err(Failure::Server(error)), Change::Run(_)) if error.contains("Error compiling script") => {
                Ok(GuardedAnswer::Failed(error))
            }
            (Ok(Err(failure)) | Err(failure), _) => Err(self.fence_error(failure, &write)),
        }
    }

    /// A script may touch keys of one slot only: the lease or lock, and what is written.
    fn in_one_slot(&self, write: &GuardedWrite, holder: &str) -> Result<(), StoreError> {
        let of_holder = slot::of(holder.as_bytes());
        let Some(key) = write.change.keys().iter().find(|key| slot::of(key) != of_holder) else { return Ok(()) };
        let tag = slot::tag(holder.as_bytes()).map_or(holder, |tag| &holder[tag]);
        Err(StoreError::Refused {
            attempted: format!("{write} on {}", self.0.address),
            cause: format!(
                "the key `{}` and `{holder}` are in different slots of the cluster",
                String::from_utf8_lossy(key)
            ),
            advice: format!(
                "write a key in the slot of the lease or lock, such as `{{{tag}}}:balance`. Nothing was written"
            ),
        })
    }

    pub(super) fn script_with(&self, body: &str) -> Arc<Script> {
        // Held for a look or an assignment only: a poisoned one is whole.
        let mut scripts = self.0.fence_scripts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(script) = scripts.get(body) {
            return Arc::clone(script);
        }
        if scripts.len() >= MOST_SCRIPTS {
            scripts.clear();
        }
        let script = Arc::new(Script::new(script::around(body).into()));
        scripts.insert(body.to_owned(), Arc::clone(&script));
        script
    }

    fn fence_error(&self, failure: Failure, write: &GuardedWrite) -> StoreError {
        let inner = &*self.0;
        let attempted = format!("{write} on {}", inner.address);
        let advice = match &failure {
            // A command that is lacking is one of those for leases: what the body of a script may not do is told in its answer.
            Failure::Server(error) if denied(error) == Some(Denied::Key) => Some(format!(
                "allow the keys that are written and their marks, besides what leases and locks need: ACL SETUSER <user> \
                 ~<key> {}",
                marks::PATTERN
            )),
            Failure::Server(error) if code(error) == "OOM" => {
                Some("the server's memory is full: raise maxmemory, or free memory. Nothing was written".to_owned())
            }
            Failure::Server(error) if code(error) == "WRONGTYPE" || error.contains("was written by somebody else") => {
                Some(format!(
                    "another application uses the key with this name and `{}` behind it, where the newest token is kept: \
                     choose another key, or delete that one if nobody needs it",
                    marks::SUFFIX
                ))
            }
            Failure::Server(error) if ["CROSSSLOT", "MOVED", "ASK"].contains(&code(error)) => Some(
                "this server is part of a cluster: write redis-cluster:// in the URL, and keys in the slot of the lease or lock"
                    .to_owned(),
            ),
            _ => None,
        };
        match (failure, advice) {
            (Failure::Server(cause), Some(advice)) => StoreError::Refused { attempted, cause, advice },
            (failure, _) => inner.store_error(failure, attempted, write.timeout),
        }
    }
}
