//! A mistake in one of several attributes is one message, and the others take effect.

use leader_core::{LockError, leader_only, run_once, with_lock};

#[leader_only(gruop = "a")]
#[with_lock(key = "k")]
async fn in_the_first() -> Result<(), LockError> {
    Ok(())
}
#[leader_only]
#[with_lock(kye = "k")]
async fn in_the_second() -> Result<(), LockError> {
    Ok(())
}
#[leader_only(group = "a:b")]
#[with_lock(key = "")]
#[run_once(key = "{}")]
async fn in_all() -> Result<(), LockError> {
    Ok(())
}
#[leader_only]
#[with_lock(key = "k")]
async fn in_the_body() -> Result<(), LockError> {
    missing().await;
    Ok(())
}
#[leader_only]
#[with_lock(key = "k")]
#[run_once(key = "k")]
async fn in_the_type() -> Result<u8, LockError> {
    Ok(1)
}

fn main() {}
