//! Mistakes in the body are shown where they are, as without the attribute.

use leader_core::leader_only;

#[leader_only]
async fn body() -> Result<(), String> {
    let _number: u32 = "text";
    missing().await;
    Ok(5)
}
#[leader_only]
fn no_value() -> Option<u8> {
    let _ = 1;
}
#[leader_only]
async fn no_value_async() -> Option<u8> {
    let _ = 1;
}
#[leader_only]
fn a_value_too_many() {
    5
}
#[leader_only]
async fn a_value_too_many_async() {
    5
}
#[leader_only]
async fn wrong_return() -> Option<u8> {
    if true {
        return 5;
    }
    None
}

fn main() {}
