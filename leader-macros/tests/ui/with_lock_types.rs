use leader_core::{LockError, with_lock};

struct Report;

// That it was not had.

#[with_lock(key = "k")]
fn nothing() {}
#[with_lock(key = "k")]
async fn nothing_as_a_type() -> () {}
#[with_lock(key = "k", lost = ())]
async fn nothing_but_a_value_for_lost() {}
#[with_lock(key = "k")]
async fn no_result() -> Option<u8> {
    Some(1)
}
#[with_lock(key = "k")]
fn error_that_cannot_be_made() -> Result<(), String> {
    Ok(())
}
#[with_lock(key = "k")]
async fn generic<T, E>(value: T) -> Result<T, E> {
    Ok(value)
}
#[with_lock(key = "k")]
fn made_up() -> impl Iterator<Item = u8> {
    [1].into_iter()
}
#[with_lock(key = "k")]
fn error_of_what_cannot_be_named() -> Result<impl Fn(), String> {
    Ok(|| ())
}

// That it was lost.

#[with_lock(key = "k", on_busy = "skip")]
async fn nothing_skipped() {}
#[with_lock(key = "k", on_busy = "skip")]
fn option_skipped() -> Option<u8> {
    Some(1)
}
#[with_lock(key = "k", on_busy = "skip")]
async fn error_skipped() -> Result<(), String> {
    Ok(())
}
#[with_lock(key = "k", on_busy = "skip", lost = 5)]
fn value_of_another_type() -> Option<u8> {
    Some(1)
}
#[with_lock(key = "k", on_busy = "skip", lost = Some(name))]
async fn value_that_the_body_used_up(name: String) -> Option<String> {
    Some(name)
}

// That it is skipped.

#[with_lock(key = "k", on_busy = "skip")]
async fn own_type() -> Result<Report, LockError> {
    Ok(Report)
}
#[with_lock(key = "k", on_busy = "skip", lost = 1)]
fn number() -> u32 {
    1
}

// What is right.

#[with_lock(key = "k")]
async fn boxed() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    Ok(())
}

fn main() {}
