//! The script and the store in memory, asked the same in the same order, answer the same.

use super::*;
use crate::store::MemoryStore;

/// Answers without what depends on the time.
fn plain(answer: LockAnswer, tokens: &mut Vec<Term>) -> String {
    let mut name = |token: Term| {
        let known = tokens.iter().position(|known| *known == token);
        known.unwrap_or_else(|| {
            tokens.push(token);
            tokens.len() - 1
        })
    };
    match answer {
        LockAnswer::Won { token } => format!("won {}", name(token)),
        LockAnswer::Busy(Busy { holder, token, ahead, .. }) => {
            format!("busy {holder:?} {:?} {ahead}", token.map(&mut name))
        }
        other => format!("{other:?}"),
    }
}

#[tokio::test]
async fn any_commands_are_answered_as_by_the_rules() {
    const OWNERS: usize = 5;
    let Some(server) = Server::start(&[]) else { return };
    let redis = Party::join(store(&server), "a").await;
    let memory = MemoryStore::new();
    for round in 0..40_u64 {
        let seed = fastrand::u64(..);
        let mut random = fastrand::Rng::with_seed(seed);
        let key = format!("round {round} {}", ["", "{x}", "}", "é"][random.usize(..4)]);
        let owners: Vec<LockOwner> = (0..OWNERS).map(|_| redis.owner()).collect();
        let (mut of_redis, mut of_memory) = (Vec::new(), Vec::new());
        let mut asked = Vec::new();
        for _ in 0..60 {
            let owner = &owners[random.usize(..OWNERS)];
            let which = random.usize(..8);
            // One of the tokens that were given out, or none; by its number, as the two have different ones.
            let number = random.usize(..of_redis.len() + 2);
            let op = |tokens: &[Term]| {
                let token = tokens.get(number).copied();
                match which {
                    0 => acquire(None),
                    1 | 2 => acquire(Some(TTL)),
                    3 => LockOp::Acquire { floor: Term::default(), queue: Some(TTL), once: true },
                    4 => LockOp::Renew { token: token.unwrap_or_default() },
                    5 | 6 => LockOp::Release { token },
                    _ if number.is_multiple_of(3) => LockOp::Forget,
                    _ => LockOp::Complete { token: token.unwrap_or_default(), keep: None },
                }
            };
            let command =
                LockCommand { key: LockKey::new(&key).unwrap(), owner: owner.clone(), ttl: TTL, op: op(&of_memory) };
            let theirs = redis.ask(owner, &key, op(&of_redis)).await;
            let batch = LockBatch { commands: vec![command.clone()], timeout: AMPLE };
            let ours = memory.execute_locks(batch).await.unwrap().remove(0).unwrap();
            asked.push(format!("{:x}: {:?}", owner.nonce, command.op));
            let (theirs, ours) = (plain(theirs, &mut of_redis), plain(ours, &mut of_memory));
            assert_eq!(theirs, ours, "seed {seed}, after {asked:#?}");
        }
    }
}
