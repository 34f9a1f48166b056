//! Before the maintenance of a node: hand its leadership over, and let another instance lead at once instead of after the
//! ttl.
//!
//! Two instances in one process stand for two nodes.

use std::error::Error;
use std::time::Duration;

use leader_core::{Config, Elector, Event};

const GRACE: Duration = Duration::from_secs(10);

const GROUPS: [&str; 2] = ["default", "cleanup"];

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = std::env::var("LEADER_STORE").unwrap_or_else(|_| "memory:".to_owned());
    let config = Config::new(store).groups(["cleanup"]);
    let node = Elector::start(config.clone()).await?;
    let other = Elector::start(config).await?;
    tell("at first", &node).await?;

    // One group: its running work has the grace of the configuration to end, then the lease is released, and this
    // instance does not compete for one ttl. `false`: it was not leading.
    if node.step_down("cleanup").await? {
        wait_until_it_leads(&other, "cleanup").await?;
    }
    tell("after the step-down", &node).await?;

    // The whole node: all groups, until it is told to resume.
    node.drain(GRACE).await?;
    for group in GROUPS {
        wait_until_it_leads(&other, group).await?;
    }
    tell("drained", &node).await?;

    // The maintenance is over: it competes again, and takes nothing away from those who lead.
    node.resume();
    other.shutdown(GRACE).await?;
    for group in GROUPS {
        wait_until_it_leads(&node, group).await?;
    }
    tell("the other one has ended", &node).await?;
    node.shutdown(GRACE).await?;
    Ok(())
}

async fn tell(when: &str, node: &Elector) -> Result<(), Box<dyn Error>> {
    for group in GROUPS {
        // The store's answer, the same on every instance.
        let leader = node.leader_id(group).await?;
        let who = if leader.as_ref() == Some(node.instance_id()) { "this node" } else { "another one" };
        println!("{when}: {group} is led by {}", leader.map_or("nobody", |_| who));
    }
    Ok(())
}

async fn wait_until_it_leads(elector: &Elector, group: &str) -> Result<(), Box<dyn Error>> {
    let mut events = elector.subscribe(group)?;
    while !elector.is_leader(group) {
        if events.next().await.is_none_or(|event| event == Event::Stopped) {
            return Err("the elector has ended".into());
        }
    }
    Ok(())
}
