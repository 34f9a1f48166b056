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

use leader_core::{run_once as once, with_lock as exclusively};
#[leader_only]
#[exclusively(key = "k")]
async fn a_lock_of_another_name() -> Result<(), LockError> {
    Ok(())
}
#[leader_only(skipped = ())]
#[once(key = "k", on_busy = "skip", lost = ())]
fn once_of_another_name() {}
#[with_lock(key = "k")]
#[once(key = "k")]
async fn once_of_another_name_below_a_lock() -> Result<(), LockError> {
    Ok(())
}

fn main() {}
