//! MPIJob `kubeflow.org/v2beta1`: what the framework is called, and which file answers which question.

mod conditions;
#[cfg(all(feature = "crd", not(target_family = "wasm")))]
pub mod crd;
mod env;
#[cfg(test)]
mod fixtures;
mod gang;
mod hostfile;
mod judge;
mod launcher;
#[cfg(all(feature = "crd", not(target_family = "wasm")))]
pub mod original;
mod plan;
mod pods;
mod spec;
mod validate;

pub use spec::{Config, MpiJobSpec, ReplicaSpec, RunPolicy};

use serde_json::json;
use troupe_plugin::types::{
    Bindings, ChildKind, Descriptor, JobPlan, KindInfo, Observation, Outlook, Refusal, Switches, Verdict,
};
use troupe_plugin::{Framework, Job};

/// An MPIJob as this plugin reads it.
pub(crate) type MpiJob = Job<MpiJobSpec, Config>;

/// The framework MPIJob.
#[derive(Debug)]
pub struct Mpi;

troupe_plugin::export!(Mpi);

impl Framework for Mpi {
    type Spec = MpiJobSpec;
    type Config = Config;

    fn describe() -> Descriptor {
        Descriptor {
            name: "mpi".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            kinds: vec![mpijob()],
            children: [
                child("v1", "Pod", "pods", pods::JOB_NAME, &[]),
                child("v1", "Service", "services", "app", &[]),
                child("v1", "ConfigMap", "configmaps", "app", &["/data"]),
                child(
                    "batch/v1",
                    "Job",
                    "jobs",
                    "app",
                    &["/status", "/spec/suspend", "/spec/template/spec/nodeSelector"],
                ),
            ]
            .into_iter()
            .chain(gang::children())
            .collect(),
            config_schema: config_schema(),
            event_source: "mpi-job-controller".into(),
        }
    }

    fn plan(job: &MpiJob) -> Result<JobPlan, Refusal> {
        plan::plan(job)
    }

    fn bind(job: &MpiJob, seen: &Observation, wanted: &[String]) -> Result<Bindings, Refusal> {
        let wanted = wanted.iter().filter(|key| *key == hostfile::KEY);
        let bodies = wanted.map(|key| Ok((key.clone(), hostfile::config_map(job, seen)?)));
        Ok(Bindings { bodies: bodies.collect::<Result<_, Refusal>>()? })
    }

    fn judge(job: &MpiJob, seen: &Observation, outlook: &Outlook) -> Result<Verdict, Refusal> {
        Ok(judge::judge(job, seen, outlook))
    }
}

fn mpijob() -> KindInfo {
    KindInfo {
        group: "kubeflow.org".into(),
        version: "v2beta1".into(),
        kind: "MPIJob".into(),
        plural: "mpijobs".into(),
        switches: Switches {
            suspend: Some("/runPolicy/suspend".into()),
            managed_by: Some("/runPolicy/managedBy".into()),
        },
        own_manager: Some(spec::OWN_MANAGER.into()),
        retired_finalizers: vec![],
    }
}

fn child(api_version: &str, kind: &str, plural: &str, selector: &str, keep: &[&str]) -> ChildKind {
    ChildKind {
        api_version: api_version.into(),
        kind: kind.into(),
        plural: plural.into(),
        selector: Some(selector.into()),
        keep: keep.iter().map(ToString::to_string).collect(),
        optional: false,
    }
}

fn config_schema() -> String {
    let domain = "Domain of the cluster, appended to host names; empty leaves them at `.svc`.";
    let gang =
        "`volcano`, or the name of a scheduler with the scheduler-plugins' PodGroup; empty is no gang scheduling.";
    let ttl = "ttlSecondsAfterFinished deletes the MPIJob too, not its launcher's Job alone.";
    json!({
        "type": "object",
        "properties": {
            "cluster-domain": { "type": "string", "default": "", "description": domain },
            "gang-scheduling": { "type": "string", "default": "", "description": gang },
            "ttl-deletes-mpijob": { "type": "boolean", "default": false, "description": ttl },
        },
        "additionalProperties": false,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    // M18: the host reads the switch itself; these facts are all it needs to leave the job alone.
    #[test]
    fn another_manager_is_told_from_this_one() {
        let descriptor = Mpi::describe();
        let kind = &descriptor.kinds[0];
        assert_eq!(kind.switches.managed_by.as_deref(), Some("/runPolicy/managedBy"));
        assert_eq!(kind.own_manager.as_deref(), Some("kubeflow.org/mpi-operator"));
        assert_eq!(kind.switches.suspend.as_deref(), Some("/runPolicy/suspend"));
        assert!(kind.retired_finalizers.is_empty());
        assert_eq!(
            (&*kind.group, &*kind.version, &*kind.kind, &*kind.plural),
            ("kubeflow.org", "v2beta1", "MPIJob", "mpijobs")
        );
        assert_eq!((&*descriptor.name, &*descriptor.event_source), ("mpi", "mpi-job-controller"));
    }

    #[test]
    fn children_are_watched_by_a_label_that_the_original_sets_too_and_secrets_are_not_watched() {
        let children = Mpi::describe().children;
        let watched: Vec<_> = children.iter().map(|c| (&*c.kind, c.selector.as_deref().unwrap_or(""))).collect();
        let expected = [
            ("Pod", "training.kubeflow.org/job-name"),
            ("Service", "app"),
            ("ConfigMap", "app"),
            ("Job", "app"),
            ("PodGroup", ""),
            ("PodGroup", ""),
        ];
        assert_eq!(watched, expected);
    }

    #[test]
    fn the_config_schema_is_json() {
        let schema: serde_json::Value = serde_json::from_str(&Mpi::describe().config_schema).unwrap();
        assert!(schema.pointer("/properties/cluster-domain").is_some());
    }
}
