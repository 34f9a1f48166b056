use leader_core::{LockError, run_once};

#[run_once]
fn without_key() -> Result<(), LockError> {
    Ok(())
}
#[run_once(key = "migrate:{VERSOIN}")]
async fn misspelt_constant() -> Result<(), LockError> {
    Ok(())
}
#[run_once(key = "k", on_loss = "finish")]
async fn option_of_another_attribute() -> Result<(), LockError> {
    Ok(())
}
#[run_once(key = "k", keep = "0s")]
async fn kept_for_no_time() -> Result<(), LockError> {
    Ok(())
}
#[run_once(key = "k")]
async fn nothing() {}
#[run_once(key = "k", on_busy = "skip", lost = None)]
async fn neither_good_nor_bad() -> Option<u8> {
    Some(1)
}
#[run_once(key = "k")]
fn error_that_cannot_be_made() -> Result<(), String> {
    Ok(())
}
#[run_once(key = "k")]
async fn what_is_returned_if_it_is_done() -> Result<u64, LockError> {
    Ok(1)
}
#[run_once(key = "k")]
const fn constant() {}

const VERSION: u32 = 3;

fn main() {
    let _ = (without_key(), VERSION);
}
