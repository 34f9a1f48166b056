//! What is unsafe about the place where this process runs, whatever state the store is in.

use super::{Finding, Severity};
use crate::shared::Shared;
use crate::store::Guarantees;

/// What runs a fleet, and how a process can tell: a variable that its vendor documents.
struct Orchestrator {
    name: &'static str,
    variable: &'static str,
    /// With it, one instance alone is the exception: rolling updates begin the next before the last has ended.
    severity: Severity,
}

const ORCHESTRATORS: [Orchestrator; 7] = [
    // https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
    Orchestrator { name: "Kubernetes", variable: "KUBERNETES_SERVICE_HOST", severity: Severity::Error },
    // https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs-environment-variables.html
    Orchestrator { name: "Amazon ECS", variable: "ECS_CONTAINER_METADATA_URI_V4", severity: Severity::Warning },
    // https://developer.hashicorp.com/nomad/docs/runtime
    Orchestrator { name: "Nomad", variable: "NOMAD_ALLOC_ID", severity: Severity::Warning },
    // https://cloud.google.com/run/docs/container-contract#env-vars
    Orchestrator { name: "Cloud Run", variable: "K_REVISION", severity: Severity::Warning },
    Orchestrator { name: "Cloud Run", variable: "CLOUD_RUN_JOB", severity: Severity::Warning },
    // https://learn.microsoft.com/azure/container-apps/environment-variables
    Orchestrator { name: "Azure Container Apps", variable: "CONTAINER_APP_REPLICA_NAME", severity: Severity::Warning },
    // https://fly.io/docs/machines/runtime-environment
    Orchestrator { name: "Fly.io", variable: "FLY_MACHINE_ID", severity: Severity::Warning },
];

/// What is unsafe in this place, whatever state the store is in.
pub(crate) fn of_the_place(shared: &Shared) -> Vec<Finding> {
    not_shared(orchestrator(is_set), shared.store.guarantees(), &shared.address).into_iter().collect()
}

/// Something starts instances of this program where it sees fit.
#[cfg(feature = "sqlite")]
pub(crate) fn is_orchestrated() -> bool {
    orchestrator(is_set).is_some()
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some()
}

fn orchestrator(is_set: impl Fn(&str) -> bool) -> Option<&'static Orchestrator> {
    ORCHESTRATORS.iter().find(|orchestrator| is_set(orchestrator.variable))
}

fn not_shared(orchestrator: Option<&Orchestrator>, guarantees: Guarantees, address: &str) -> Option<Finding> {
    let Orchestrator { name, severity, .. } = orchestrator.filter(|_| !guarantees.between_hosts)?;
    let finding = Finding::error(
        format!("this looks like {name}, but instances in different places cannot share `{address}`"),
        "each may lead",
        "use a store that hosts share, unless there is never more than one instance, also during an update",
    );
    Some(Finding { severity: *severity, ..finding }.coded("not-shared"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{LeaseStore, MemoryStore};

    #[test]
    fn only_instances_of_a_fleet_that_cannot_share_their_store_are_warned() {
        let alone = MemoryStore::new().guarantees();
        let shared = Guarantees { between_processes: true, between_hosts: true, ..alone };
        let found = |variable: &str, guarantees| {
            not_shared(orchestrator(|asked| asked == variable), guarantees, "memory:")
                .map(|finding| (finding.severity, finding.to_string()))
        };
        for (variable, name, severity) in [
            ("KUBERNETES_SERVICE_HOST", "Kubernetes", Severity::Error),
            ("ECS_CONTAINER_METADATA_URI_V4", "Amazon ECS", Severity::Warning),
            ("NOMAD_ALLOC_ID", "Nomad", Severity::Warning),
            ("K_REVISION", "Cloud Run", Severity::Warning),
            ("CLOUD_RUN_JOB", "Cloud Run", Severity::Warning),
            ("CONTAINER_APP_REPLICA_NAME", "Azure Container Apps", Severity::Warning),
            ("FLY_MACHINE_ID", "Fly.io", Severity::Warning),
        ] {
            let (found_severity, text) = found(variable, alone).unwrap();
            assert_eq!(found_severity, severity, "{variable}");
            assert!(text.starts_with(&format!("this looks like {name}, ")) && text.contains("`memory:`"), "{text}");
            assert_eq!(found(variable, shared), None, "{variable}");
        }
        assert_eq!(found("HOME", alone), None);
    }
}
