//! Heavy work of several kinds on several instances: each kind has its group, and each group elects its own leader.
//!
//! Two instances in one process stand for two nodes.

use std::error::Error;
use std::time::Duration;

use leader_core::{Config, Elector, leader_only};

const GROUPS: [&str; 2] = ["reports", "reindex"];

#[leader_only(group = "reports")]
async fn build_reports() -> Option<&'static str> {
    Some("builds the reports")
}

#[leader_only(group = "reindex")]
async fn reindex_search() -> Option<&'static str> {
    Some("rebuilds the search index")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = std::env::var("LEADER_STORE").unwrap_or_else(|_| "memory:".to_owned());
    let nodes = [Elector::start(Config::new(&store)).await?, Elector::start(Config::new(&store)).await?];
    println!("the first to start leads all that is free:");
    run_everywhere(&nodes).await;

    // Followers wait the longer the more they lead, so that groups that become free at different times spread by
    // themselves. An instance that leads too much can also hand a group over:
    if nodes[0].step_down("reindex").await? {
        let mut events = nodes[1].subscribe("reindex")?;
        while !nodes[1].is_leader("reindex") && events.next().await.is_some() {}
    }
    println!("after the first has stepped down from one group:");
    run_everywhere(&nodes).await;

    for node in &nodes {
        node.shutdown(Duration::from_secs(10)).await?;
    }
    Ok(())
}

/// What two instances of one service would do at the same tick.
async fn run_everywhere(nodes: &[Elector]) {
    for (n, node) in nodes.iter().enumerate() {
        // Within the scope, annotated functions ask this elector; a service bootstraps one and needs no scope.
        let work = async { [build_reports().await, reindex_search().await] };
        let done: Vec<&str> = node.scope(work).await.into_iter().flatten().collect();
        let leads: Vec<&str> = GROUPS.into_iter().filter(|group| node.is_leader(group)).collect();
        println!(
            "  instance {n} leads {leads:?}, so it {}",
            if done.is_empty() { "rests".into() } else { done.join(" and ") }
        );
    }
}
