use std::future::{Future, ready};
use std::pin::Pin;

use leader_core::leader_only;

#[leader_only]
fn not_a_block() -> impl Future<Output = ()> {
    ready(())
}
#[leader_only]
fn boxed_not_a_block() -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(ready(()))
}
#[leader_only]
fn one_of_two(early: bool) -> Pin<Box<dyn Future<Output = ()>>> {
    if early { Box::pin(async {}) } else { Box::pin(async {}) }
}
#[leader_only]
fn returns_before_the_gate(early: bool) -> Pin<Box<dyn Future<Output = ()>>> {
    if early {
        return Box::pin(async { println!("not gated") });
    }
    Box::pin(async {})
}
#[leader_only]
fn made_up() -> impl Iterator<Item = u8> {
    [1].into_iter()
}
#[leader_only]
async fn made_up_async() -> impl Iterator<Item = u8> {
    [1].into_iter()
}

fn main() {}
