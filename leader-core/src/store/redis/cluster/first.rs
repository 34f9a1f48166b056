//! Several are asked, one after the other and without waiting long for any; the first answer counts.

use std::future::Future;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::super::connection::Failure;

/// So long one has to answer before the next is asked, too.
const HEAD_START: Duration = Duration::from_millis(100);

/// The first answer. If there is none, the failure that tells most: who refuses does not let in anybody else either.
pub(super) async fn first_of<T, F>(attempts: impl IntoIterator<Item = F>) -> Result<T, Failure>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Failure>> + Send + 'static,
{
    let mut attempts = attempts.into_iter();
    let mut under_way = JoinSet::new();
    let mut failure = Failure::Unreachable("there is nobody to ask".to_owned());
    let mut more = true;
    loop {
        if more {
            match attempts.next() {
                Some(attempt) => drop(under_way.spawn(attempt)),
                None => more = false,
            }
        }
        tokio::select! {
            biased;
            done = under_way.join_next() => match done {
                Some(Ok(Ok(answer))) => return Ok(answer),
                Some(Ok(Err(cause))) => {
                    if !says_why(&failure) {
                        failure = cause;
                    }
                }
                // One that panicked or whose runtime ends.
                Some(Err(_)) => {}
                None => return Err(failure),
            },
            () = sleep(HEAD_START), if more => {}
        }
    }
}

fn says_why(failure: &Failure) -> bool {
    matches!(failure, Failure::Server(_) | Failure::Impossible { .. })
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::pin::Pin;

    use super::*;

    type Attempt = Pin<Box<dyn Future<Output = Result<u8, Failure>> + Send>>;

    fn after(wait_ms: u64, outcome: Result<u8, Failure>) -> Attempt {
        Box::pin(async move {
            sleep(Duration::from_millis(wait_ms)).await;
            outcome
        })
    }

    fn gone() -> Failure {
        Failure::Unreachable("gone".to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_silent_holds_up_the_others_for_no_longer_than_its_head_start() {
        let began = tokio::time::Instant::now();
        let attempts = [Box::pin(pending()) as Attempt, after(0, Err(gone())), after(10, Ok(3))];
        assert_eq!(first_of(attempts).await, Ok(3));
        assert_eq!(began.elapsed(), HEAD_START + Duration::from_millis(10));
    }

    #[tokio::test(start_paused = true)]
    async fn who_refuses_is_quoted_rather_than_who_is_not_there() {
        let refused = Failure::Server("WRONGPASS invalid".to_owned());
        let attempts = [after(5, Err(gone())), after(0, Err(refused.clone())), after(5, Err(gone()))];
        assert_eq!(first_of(attempts).await, Err(refused));
        assert_eq!(first_of([after(0, Err(gone()))]).await, Err(gone()));
    }
}
