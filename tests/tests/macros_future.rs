//! What the attributes do to the future of a function: when it asks, how it ends, what it weighs.

use std::pin::Pin;
use std::task::{Context, Waker};

use async_trait::async_trait;
use leader_core::{LockError, leader_only, run_once, with_lock};
use leader_tests::future::{block_on, pause, send};
use leader_tests::gate::leads;

#[test]
fn the_gate_is_asked_when_the_future_is_polled() {
    #[leader_only(group = "polled")]
    async fn plain() -> Option<u8> {
        Some(1)
    }
    #[leader_only(group = "polled")]
    #[expect(clippy::manual_async_fn, reason = "this way of writing it is what is tested")]
    fn returned() -> impl Future<Output = Option<u8>> {
        async { Some(1) }
    }
    #[leader_only(group = "polled")]
    fn boxed() -> Pin<Box<dyn Future<Output = Option<u8>>>> {
        Box::pin(async { Some(1) })
    }
    struct Service;
    #[async_trait]
    trait Boxed {
        async fn call(&self) -> Option<u8>;
    }
    #[async_trait]
    impl Boxed for Service {
        #[leader_only(group = "polled")]
        async fn call(&self) -> Option<u8> {
            Some(1)
        }
    }
    let service = Service;
    leads("polled", true);
    let made_as_leader = (plain(), returned(), boxed(), service.call());
    leads("polled", false);
    let (a, b, c, d) = made_as_leader;
    assert_eq!((block_on(a), block_on(b), block_on(c), block_on(d)), (None, None, None, None));
}

#[test]
fn cancellable_work_ends_with_the_lease_and_other_work_does_not() {
    #[leader_only(group = "cancelled", on_loss = "cancel")]
    async fn cancelled() -> Result<Option<u8>, String> {
        pause().await;
        Ok(Some(1))
    }
    #[leader_only(group = "cancelled", on_loss = "cancel", skipped = 99)]
    async fn cancelled_number() -> u8 {
        pause().await;
        1
    }
    #[leader_only(group = "cancelled", on_loss = "finish")]
    async fn finished() -> Option<u8> {
        pause().await;
        Some(1)
    }
    #[leader_only(group = "cancelled", on_loss = "cancel")]
    #[expect(clippy::manual_async_fn, reason = "this way of writing it is what is tested")]
    fn returned() -> impl Future<Output = Option<u8>> + Send {
        async move {
            pause().await;
            Some(1)
        }
    }
    /// Polls once as the leader, then to the end with what is left of the leadership.
    fn run<F: Future>(keep: bool, future: F) -> F::Output {
        leads("cancelled", true);
        block_on(async {
            let mut future = std::pin::pin!(future);
            assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            leads("cancelled", keep);
            future.await
        })
    }
    assert_eq!(run(true, send(cancelled())), Ok(Some(1)));
    assert_eq!(run(false, send(cancelled())), Ok(None));
    assert_eq!(run(false, send(cancelled_number())), 99);
    assert_eq!(run(false, send(returned())), None);
    assert_eq!(run(false, send(finished())), Some(1));
}

#[test]
fn wrapping_adds_little_to_a_future() {
    async fn plain(text: &str) -> Option<u8> {
        let kept = [text.len() as u8; 4096];
        pause().await;
        Some(kept[7])
    }
    #[leader_only(group = "size")]
    async fn gated(text: &str) -> Option<u8> {
        let kept = [text.len() as u8; 4096];
        pause().await;
        Some(kept[7])
    }
    #[leader_only(group = "size", on_loss = "cancel")]
    async fn cancellable(text: &str) -> Option<u8> {
        let kept = [text.len() as u8; 4096];
        pause().await;
        Some(kept[7])
    }
    let (plain, gated, cancellable) = (size_of_val(&plain("")), size_of_val(&gated("")), size_of_val(&cancellable("")));
    // A body that is stored twice on its way through the gate would be twice as large.
    assert!(
        gated < plain + 512 && cancellable < plain + 512,
        "plain {plain}, gated {gated}, cancellable {cancellable}"
    );
}

#[test]
fn a_lock_adds_little_to_a_future() {
    async fn plain(text: &str) -> Result<u8, LockError> {
        let kept = [text.len() as u8; 4096];
        pause().await;
        Ok(kept[7])
    }
    #[with_lock(key = "size:{text}")]
    async fn locked(text: &str) -> Result<u8, LockError> {
        let kept = [text.len() as u8; 4096];
        pause().await;
        Ok(kept[7])
    }
    #[run_once(key = "size:{text}", skipped = Ok(0))]
    async fn once(text: &str) -> Result<u8, LockError> {
        let kept = [text.len() as u8; 4096];
        pause().await;
        Ok(kept[7])
    }
    #[leader_only(group = "size", skipped = Ok(0))]
    #[with_lock(key = "size:{text}")]
    #[run_once(key = "size:{text}", skipped = Ok(0))]
    async fn all(text: &str) -> Result<u8, LockError> {
        let kept = [text.len() as u8; 4096];
        pause().await;
        Ok(kept[7])
    }
    let plain = size_of_val(&plain(""));
    let sizes = [size_of_val(&locked("")), size_of_val(&once("")), size_of_val(&all(""))];
    // A body that is stored twice on its way would be twice as large.
    assert!(sizes.iter().all(|size| *size < plain + 2048), "plain {plain}, others {sizes:?}");
}
