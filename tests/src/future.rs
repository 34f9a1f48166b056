//! Small helpers around futures.

/// Runs a future on this thread.
///
/// # Panics
/// If the system refuses a runtime.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime without I/O and timers");
    runtime.block_on(future)
}

/// Holds a future to what a runtime with several threads asks for.
pub fn send<T: Send>(value: T) -> T {
    value
}

/// Is pending once.
pub async fn pause() {
    tokio::task::yield_now().await;
}
