//! One instance of the fleet: what a service with two jobs and a start-up hook would look like.

use std::error::Error;
use std::future::Future;
use std::io::{self, Read};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use leader_core::{BootInstant, Config, bootstrap, leader_only};
use leader_cron::{Scheduler, Tick, cron};
use tokio::sync::oneshot;

use crate::cli::InstanceOptions;
use crate::log::Log;
use crate::message::Message;
use crate::sampler::Sampler;

/// How long running work may take to end.
const GRACE: Duration = Duration::from_secs(1);

/// An instance that is still there so long after its parent ended it ends the hard way.
const LAST_GRACE: Duration = Duration::from_secs(4);

#[cron("* * * * * *", missed = "all")]
#[leader_only]
async fn report(log: &Log, tick: Tick) -> io::Result<()> {
    log.ran("report", &tick, BootInstant::now())
}

#[cron("*/2 * * * * *", missed = "all")]
#[leader_only(group = "cleanup")]
async fn cleanup(log: &Log, tick: Tick) -> io::Result<()> {
    log.ran("cleanup", &tick, BootInstant::now())
}

/// The start-up hook: every instance calls it, and where another one leads it does nothing.
#[leader_only]
async fn warm_up() -> Option<()> {
    Message::Warmed.tell();
    Some(())
}

/// On a server that others use too, the demonstration must not take part in their elections.
fn prefix() -> String {
    std::env::var("LEADER_PREFIX").unwrap_or_else(|_| "leader-fleet:".to_owned())
}

/// Runs until it is asked to end.
pub fn run(options: &InstanceOptions) -> Result<(), Box<dyn Error>> {
    continue_if_parent_dies();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(serve(options))
}

async fn serve(options: &InstanceOptions) -> Result<(), Box<dyn Error>> {
    let mut end = pin!(asked_to_end()?);
    let leader = tokio::select! {
        started = bootstrap(Config::new(&options.store).ttl(options.ttl).prefix(prefix())) => started?,
        ended = &mut end => return Ok(ended?),
    };
    let log = Arc::new(Log::open(&options.log, leader.instance_id().to_string())?);
    let sampler = Sampler::start(leader.clone(), Arc::clone(&log))?;
    let _jobs = Scheduler::new(&leader).data_arc(log).start()?;
    let status = leader.status();
    Message::Ready { instance: status.instance.to_string(), store: status.store }.tell();
    warm_up().await;

    end.await?;
    leader.shutdown(GRACE).await?;
    Ok(sampler.stop()?)
}

/// Resolves at SIGTERM or Ctrl-C, or when the parent closes our standard input: by its death at the latest.
fn asked_to_end() -> io::Result<impl Future<Output = io::Result<()>>> {
    let (closed, parent_is_gone) = oneshot::channel();
    std::thread::Builder::new().name("parent".to_owned()).spawn(move || {
        // Nothing is ever written to it, and an error means its end as well.
        let _ = io::stdin().lock().read(&mut [0]);
        let _ = closed.send(());
        std::thread::sleep(LAST_GRACE);
        std::process::exit(3);
    })?;
    Ok(async {
        tokio::select! {
            signal = leader_core::shutdown_signal() => signal,
            _ = parent_is_gone => Ok(()),
        }
    })
}

/// A stopped process cannot notice that its parent died: the system continues it then.
fn continue_if_parent_dies() {
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
    {
        use rustix::process::{Signal, set_parent_process_death_signal};
        // Where it is not possible, the system hangs up on stopped processes without a parent.
        let _ = set_parent_process_death_signal(Some(Signal::CONT));
    }
}
