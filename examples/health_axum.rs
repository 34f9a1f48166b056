//! Who leads, for probes, dashboards and whoever is on call:
//!
//! ```text
//! cargo run --example health_axum --features axum
//! curl localhost:3000/leader
//! ```
//!
//! Ctrl-C stops it. It listens on 127.0.0.1:3000, or where LISTEN says.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use leader_core::{Config, Elector, bootstrap};
use serde::Serialize;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = std::env::var("LEADER_STORE").unwrap_or_else(|_| "memory:".to_owned());
    let address = std::env::var("LISTEN").unwrap_or_else(|_| "127.0.0.1:3000".to_owned());
    let leader = bootstrap(Config::new(store).groups(["cleanup"])).await?;
    let listener = tokio::net::TcpListener::bind(&address).await?;
    println!("http://{}/leader says who leads; Ctrl-C stops it", listener.local_addr()?);
    let signal = async {
        if let Err(error) = leader_core::shutdown_signal().await {
            eprintln!("signals cannot be waited for: {error}");
        }
    };
    axum::serve(listener, router(leader.clone())).with_graceful_shutdown(signal).await?;
    leader.shutdown(Duration::from_secs(10)).await?;
    Ok(())
}

fn router(leader: Elector) -> Router {
    Router::new()
        .route("/health/live", get(live))
        .route("/health/ready", get(ready))
        .route("/leader", get(who_leads))
        .with_state(leader)
}

/// Restart this instance? Not because the store is away: that would take the whole fleet down with it.
async fn live(State(leader): State<Elector>) -> (StatusCode, String) {
    answer(leader.live())
}

/// Send requests to this instance? Never made to depend on leading: a rolling update that waits for a new instance to lead
/// would wait for ever.
async fn ready(State(leader): State<Elector>) -> (StatusCode, String) {
    answer(leader.ready())
}

fn answer<E: ToString>(outcome: Result<(), E>) -> (StatusCode, String) {
    match outcome {
        Ok(()) => (StatusCode::OK, "ok".to_owned()),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
    }
}

#[derive(Serialize)]
struct Leadership {
    instance: String,
    groups: BTreeMap<String, Group>,
}

#[derive(Serialize)]
struct Group {
    /// This instance's own view: no I/O, so it can be asked at every request.
    is_leader: bool,
    /// The store's answer, the same on every instance; `null` if nobody leads.
    leader: Option<String>,
}

async fn who_leads(State(leader): State<Elector>) -> Result<Json<Leadership>, (StatusCode, String)> {
    let mut groups = BTreeMap::new();
    for group in leader.groups() {
        let asked = leader.leader_id(group.as_str()).await;
        let id = asked.map_err(|error| (StatusCode::SERVICE_UNAVAILABLE, error.to_string()))?;
        let (is_leader, leader) = (leader.is_leader(group.as_str()), id.map(|id| id.to_string()));
        groups.insert(group.to_string(), Group { is_leader, leader });
    }
    Ok(Json(Leadership { instance: leader.instance_id().to_string(), groups }))
}
