//! Where replicas are waited for, a batch goes out on two ties: the wait blocks a connection, and nothing is to wait behind it
//! that needs no replica.

use std::time::Duration;

use super::connection::Failure;
use super::session::Answered;
use super::tie::{Kind, PART, Tie, strange};
use crate::store::{Answer, Command, Op};

/// Executes the commands, on `aside` those whose answers need no replica. The two parts are of different groups, so their order
/// does not matter.
///
/// # Errors
/// As for [`Tie::batch`]; if both parts have commands, each fails for itself.
pub(super) async fn apart(
    leases: &Tie,
    aside: &Tie,
    commands: &[Command],
    kind: &Kind<'_, Command, Answer>,
    timeout: Duration,
) -> Result<Answered<Answer>, Failure> {
    let (waiting, others): (Vec<Command>, Vec<Command>) = commands.iter().cloned().partition(waits);
    if others.is_empty() {
        return leases.batch(commands, kind, timeout).await;
    }
    if waiting.is_empty() {
        return aside.batch(commands, kind, timeout).await;
    }
    // The silence of one must not cost the other's answers, which are told with it.
    let timeout = timeout.mul_f64(PART);
    let (first, second) = tokio::join!(leases.batch(&waiting, kind, timeout), aside.batch(&others, kind, timeout));
    let mut first = first.unwrap_or_else(|failure| vec![Err(failure); waiting.len()]).into_iter();
    let mut second = second.unwrap_or_else(|failure| vec![Err(failure); others.len()]).into_iter();
    let next = |command| if waits(command) { first.next() } else { second.next() };
    Ok(commands.iter().map(next).map(|answer| answer.unwrap_or_else(|| Err(strange()))).collect())
}

fn waits(command: &Command) -> bool {
    match command.op {
        Op::Acquire { .. } | Op::Renew { .. } => true,
        Op::Release { .. } | Op::Inspect => false,
    }
}
