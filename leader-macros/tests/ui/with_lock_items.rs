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
fn main() {
    let _ = (Struct, constant());
}
