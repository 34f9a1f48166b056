//! What a renewal costs to which nothing happens.

use std::error::Error;
use std::time::{Duration, Instant};

use leader_core::store::{Answer, Batch, Command, LeaseStore, Op, RedisStore, SameId};
use leader_core::{Candidate, GroupName, RedisClient, Term};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Runtime};

use super::CLIENTS;
use super::caller::connected;
use crate::redis::RedisServer;

const ROUNDS: usize = 12;
const RENEWALS: u32 = 300;
const TTL: Duration = Duration::from_secs(3600);
const TIMEOUT: Duration = Duration::from_secs(10);

/// Of one call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    pub(super) time: Duration,
    /// Of the thread that makes the calls, and runs the connection.
    pub(super) cpu: Duration,
}

/// Of a call that renews so many groups: the least of several rounds, in which the clients take turns.
pub(super) fn measure(groups: usize) -> Result<[Cost; 2], Box<dyn Error>> {
    let redis = RedisServer::start(&[]).ok_or("there is no Redis server to measure on")?;
    let leaders = [Leader::on(&redis, CLIENTS[0], groups)?, Leader::on(&redis, CLIENTS[1], groups)?];
    let mut least = [Cost { time: Duration::MAX, cpu: Duration::MAX }; 2];
    for _ in 0..ROUNDS {
        for (leader, least) in leaders.iter().zip(&mut least) {
            let cost = leader.renew()?;
            *least = Cost { time: least.time.min(cost.time), cpu: least.cpu.min(cost.cpu) };
        }
    }
    Ok(least)
}

struct Leader {
    runtime: Runtime,
    store: RedisStore,
    batch: Vec<Command>,
}

impl Leader {
    fn on(redis: &RedisServer, client: RedisClient, groups: usize) -> Result<Self, Box<dyn Error>> {
        // As the driver has it.
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (store, candidate) = runtime.block_on(connected(client, &redis.url()))?;
        let command = |name: &GroupName, op| Command {
            group: name.clone(),
            candidate: Candidate::clone(&candidate),
            ttl: TTL,
            op,
        };
        let names = (0..groups).map(|n| GroupName::new(format!("{client}-{n}"))).collect::<Result<Vec<_>, _>>()?;
        let acquire = Op::Acquire { floor: Term::default(), continues: false, same_id: SameId::Leave };
        let commands = names.iter().map(|name| command(name, acquire.clone())).collect();
        let won = runtime.block_on(LeaseStore::execute(&store, Batch { commands, timeout: TIMEOUT }))?;
        let mut batch = Vec::new();
        for (name, answer) in names.iter().zip(won) {
            let Answer::Won(won) = answer? else { return Err("somebody else has the lease".into()) };
            batch.push(command(name, Op::Renew { term: won.term }));
        }
        Ok(Self { runtime, store, batch })
    }

    fn renew(&self) -> Result<Cost, Box<dyn Error>> {
        self.runtime.block_on(async {
            let (began, cpu) = (Instant::now(), cpu());
            for _ in 0..RENEWALS {
                let batch = Batch { commands: self.batch.clone(), timeout: TIMEOUT };
                LeaseStore::execute(&self.store, batch).await?.into_iter().collect::<Result<Vec<_>, _>>()?;
            }
            Ok(Cost { time: began.elapsed() / RENEWALS, cpu: (self::cpu() - cpu) / RENEWALS })
        })
    }
}

/// What this thread has taken of a processor so far.
fn cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}
