//! How an application tests what it annotated: without a store, without a fleet, without waiting.
//!
//! ```text
//! cargo test -p leader-examples --example testing --features testing
//! ```

use leader_core::leader_only;
use leader_core::testing::FixedElector;

/// How many invoices were sent, or `None` where another instance leads.
#[leader_only(group = "billing")]
async fn send_invoices(open: &[&str]) -> Option<usize> {
    Some(open.len())
}

#[tokio::main]
async fn main() {
    let elector = FixedElector::leading(["billing"]);
    println!("a leader sends {:?} invoices", elector.scope(send_invoices(&["Ann", "Bob"])).await);
    println!("the tests in this file are the example: cargo test --example testing --features testing");
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: [&str; 2] = ["Ann", "Bob"];

    #[tokio::test]
    async fn the_leader_sends_the_invoices() {
        let elector = FixedElector::leading(["billing"]);
        assert_eq!(elector.scope(send_invoices(&OPEN)).await, Some(2));
    }

    #[tokio::test]
    async fn a_follower_sends_none() {
        let elector = FixedElector::following(["billing"]);
        assert_eq!(elector.scope(send_invoices(&OPEN)).await, None);
    }

    /// The scope may stand around more than the call: a loop, a scheduler, a request.
    #[tokio::test]
    async fn leadership_that_comes_and_goes_is_followed() {
        let elector = FixedElector::following(["billing"]);
        let sent = elector.scope(async {
            let before = send_invoices(&OPEN).await;
            elector.lead("billing");
            let while_leading = send_invoices(&OPEN).await;
            elector.follow("billing");
            [before, while_leading, send_invoices(&OPEN).await]
        });
        assert_eq!(sent.await, [None, Some(2), None]);
    }
}
