//! The locks of this library.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use leader_core::{Config, Elector, FreshStore};
use tokio::runtime::{Builder, Runtime};

/// An elector, and the runtime that its caller runs on. Its locks do not end while they are measured.
pub(super) struct Ours {
    pub(super) elector: Elector,
    pub(super) runtime: Runtime,
}

impl Ours {
    pub(super) fn start(url: &str, runtime: Runtime) -> Result<Self, Box<dyn Error>> {
        let config = Config::new(url).fresh_store(FreshStore::Trust);
        let elector = runtime.block_on(Elector::start(config))?;
        Ok(Self { elector, runtime })
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        // What is measured afterwards is not to be disturbed by it.
        let _ = self.runtime.block_on(self.elector.shutdown(Duration::ZERO));
    }
}

/// Takes a lock and gives it back, on a thread that sleeps meanwhile.
pub(super) fn pair(url: &str) -> Result<impl FnMut() + 'static, Box<dyn Error>> {
    let ours = Ours::start(url, Builder::new_current_thread().enable_time().build()?)?;
    Ok(move || ours.runtime.block_on(take_and_give_back(&ours.elector, "pair")))
}

/// The same in a task, on a runtime with more than one thread.
pub(super) fn pair_in_a_task(url: &str) -> Result<impl FnMut() + 'static, Box<dyn Error>> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    let ours = Arc::new(Ours::start(url, runtime)?);
    Ok(move || {
        let elector = ours.elector.clone();
        let task = ours.runtime.spawn(async move { take_and_give_back(&elector, "pair in a task").await });
        ours.runtime.block_on(task).expect("it does not panic");
    })
}

async fn take_and_give_back(elector: &Elector, key: &str) {
    let guard = elector.lock(key).acquire().await.expect("nobody else wants it");
    guard.release().await.expect("it is held");
}
