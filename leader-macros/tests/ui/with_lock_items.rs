use std::future::{Future, ready};

use leader_core::{LockError, with_lock};

#[with_lock(key = "k")]
struct Struct;

trait Work {
    #[with_lock(key = "k")]
    fn work(&self);
}

#[with_lock(key = "k")]
const fn constant() -> Result<(), LockError> {
    Ok(())
}
#[with_lock(key = "k", on_busy = "skip", lost = ())]
unsafe fn dangerous() {}
#[with_lock(kye = "k")]
extern "C" fn all_at_once() -> ! {
    loop {}
}
#[with_lock(key = "k")]
fn not_a_block() -> impl Future<Output = Result<(), LockError>> {
    ready(Ok(()))
}
// Mistakes in the body are shown where they are.
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

fn main() {
    let _ = (Struct, constant());
}
