//! Mistakes in the body are shown where they are, as without the attribute.

use leader_core::{LockError, with_lock};

#[with_lock(key = "k")]
async fn body() -> Result<u8, LockError> {
    let _number: u32 = "text";
    missing().await;
    Ok(())
}
#[with_lock(key = "k")]
fn body_sync() -> Result<u8, LockError> {
    5
}
#[with_lock(key = "k")]
async fn no_value() -> Result<u8, LockError> {
    let _ = 1;
}
#[with_lock(key = "k", on_busy = "skip", lost = ())]
async fn a_value_too_many() {
    5
}
#[with_lock(key = "k")]
async fn a_question_too_many(text: &str) -> Result<u8, LockError> {
    Ok(text.parse()?)
}

fn main() {}
