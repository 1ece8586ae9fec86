//! The CRD of MPIJob: accepts what the original accepts, with its defaults.

use crate::spec::{self, ReplicaSpec};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use troupe_plugin::crd as shared;

pub use crate::spec::MPIJob;

/// Returns the CRD to install.
#[must_use]
pub fn crd() -> CustomResourceDefinition {
    shared::without_required_spec(&MPIJob::crd(), &shared::name_rule(63 - "-worker-0".len(), true))
}

/// What is known of the job.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MpiJobStatus {
    /// The steps that the job has taken, by type, such as Created, Running or Succeeded; and what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "troupe_plugin::crd::conditions")]
    pub conditions: Option<Vec<Value>>,
    /// Pods by phase, for Launcher and Worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "replica_statuses")]
    pub replica_statuses: Option<Value>,
    /// When the job was first seen, or resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time")]
    pub start_time: Option<String>,
    /// When the job was finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time")]
    pub completion_time: Option<String>,
    /// Never written; the original's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time")]
    pub last_reconcile_time: Option<String>,
    /// What Troupe remembers of the job. Not for others: it changes between versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "troupe_plugin::crd::ledger")]
    pub troupe: Option<Value>,
}

/// How a gang scheduler sees the job.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SchedulingPolicy {
    /// The least number of pods to start with. Defaults to all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "min_available")]
    pub min_available: Option<i32>,
    /// The queue. Defaults to the annotation scheduling.volcano.sh/queue-name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "queue")]
    pub queue: Option<String>,
    /// The resources that have to be free before any pod starts, by resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "troupe_plugin::crd::quantities")]
    pub min_resources: Option<BTreeMap<String, Value>>,
    /// The PriorityClass of the group of pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "priority_class")]
    pub priority_class: Option<String>,
    /// Seconds that the group may wait to be scheduled; scheduler-plugins alone knows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schedule_timeout")]
    pub schedule_timeout_seconds: Option<i32>,
}

// A field with a default is not nullable: the API server drops a null there and fills in the default.

pub(crate) fn slots_per_worker(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "format": "int32", "minimum": spec::SLOTS_PER_WORKER.least, "default": 1 })
}

pub(crate) fn off(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "boolean", "default": false })
}

pub(crate) fn ssh_auth_mount_path(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "default": crate::spec::ROOT_SSH })
}

/// The schema has no enum, since the original accepts any text.
pub(crate) fn launcher_creation_policy(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "default": spec::AT_STARTUP })
}

pub(crate) fn mpi_implementation(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": spec::IMPLEMENTATION.words, "default": "OpenMPI" })
}

pub(crate) fn replicas(_: &mut SchemaGenerator) -> Schema {
    shared::number(&spec::REPLICAS)
}

pub(crate) fn restart_policy(_: &mut SchemaGenerator) -> Schema {
    shared::word(&spec::RESTART_POLICY)
}

pub(crate) fn clean_pod_policy(_: &mut SchemaGenerator) -> Schema {
    shared::word(&spec::CLEAN_POD_POLICY)
}

pub(crate) fn ttl(_: &mut SchemaGenerator) -> Schema {
    shared::number(&spec::TTL)
}

pub(crate) fn deadline(_: &mut SchemaGenerator) -> Schema {
    shared::number(&spec::DEADLINE)
}

pub(crate) fn backoff_limit(_: &mut SchemaGenerator) -> Schema {
    shared::number(&spec::BACKOFF_LIMIT)
}

pub(crate) fn managed_by(_: &mut SchemaGenerator) -> Schema {
    shared::word(&spec::MANAGED_BY)
}

fn min_available(_: &mut SchemaGenerator) -> Schema {
    shared::number(&spec::MIN_AVAILABLE)
}

fn schedule_timeout(_: &mut SchemaGenerator) -> Schema {
    shared::number(&spec::SCHEDULE_TIMEOUT)
}

fn queue(_: &mut SchemaGenerator) -> Schema {
    shared::name(&spec::QUEUE)
}

fn priority_class(_: &mut SchemaGenerator) -> Schema {
    shared::name(&spec::PRIORITY_CLASS)
}

/// The schema allows any keys, as the original does. Keys other than Launcher and Worker have no effect. What must be there is
/// the original's.
pub(crate) fn replica_specs(generator: &mut SchemaGenerator) -> Schema {
    let one = "!('Launcher' in self) || !has(self.Launcher.replicas) || self.Launcher.replicas == 1";
    let some = "!('Worker' in self) || has(self.Worker.replicas)";
    let pods = |entry: &str| {
        let spec = format!("self.{entry}.template.spec");
        format!(
            "!('{entry}' in self) || (has(self.{entry}.template) && has({spec}) && has({spec}.containers) \
             && size({spec}.containers) > 0)"
        )
    };
    json_schema!({
        "type": "object",
        "maxProperties": 16,
        "additionalProperties": generator.subschema_for::<ReplicaSpec>(),
        "x-kubernetes-validations": [
            shared::rule("'Launcher' in self", "Launcher is required"),
            shared::rule(one, "Launcher.replicas must be 1"),
            shared::rule(some, "Worker.replicas is required: at least 1"),
            shared::rule(&pods("Launcher"), "Launcher.template.spec.containers must have at least one container"),
            shared::rule(&pods("Worker"), "Worker.template.spec.containers must have at least one container"),
        ],
    })
}

fn replica_statuses(_: &mut SchemaGenerator) -> Schema {
    let count = |words: &str| json!({ "description": words, "type": "integer", "format": "int32" });
    let selector = "The pods as a label selector. Never written; the original's.";
    json_schema!({
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "properties": {
                "active": count("Pods that run."),
                "succeeded": count("Pods that succeeded."),
                "failed": count("Pods that failed."),
                "selector": { "description": selector, "type": "string" },
                "labelSelector": {
                    "description": selector, "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                },
            },
        },
    })
}

fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

/// Returns what fields of a job have to do with each other, for the test that breaks each.
#[must_use]
pub fn relations() -> Vec<shared::Relation> {
    let entries = |entries: Value| json!({ "spec": { "mpiReplicaSpecs": entries } });
    let gang = json!({ "spec": { "runPolicy": { "schedulingPolicy": { "minAvailable": 9 } } } });
    let name = json!({ "metadata": { "name": "a".repeat(60) } });
    shared::relations(
        "mpijobs.kubeflow.org",
        [
            ("there is a launcher", entries(json!({ "Launcher": null })), "Launcher"),
            ("there is one launcher", entries(json!({ "Launcher": { "replicas": 2 } })), "Launcher"),
            ("the number of workers is said", entries(json!({ "Worker": { "replicas": null } })), "Worker"),
            ("the entries are known", entries(json!({ "Boss": {} })), "Boss"),
            ("minAvailable is no more than the pods", gang, spec::MIN_AVAILABLE.path),
            ("the names of pods are labels", name, "metadata.name"),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version() -> Value {
        serde_json::to_value(crd()).unwrap()["spec"]["versions"][0].clone()
    }

    fn spec(pointer: &str) -> Value {
        let at = format!("/schema/openAPIV3Schema/properties/spec{pointer}");
        version().pointer(&at).cloned().unwrap_or_else(|| panic!("nothing at {at}"))
    }

    #[test]
    fn the_names_are_the_originals() {
        let crd = serde_json::to_value(crd()).unwrap();
        assert_eq!(crd["metadata"]["name"], "mpijobs.kubeflow.org");
        assert_eq!(crd["spec"]["scope"], "Namespaced");
        let names = &crd["spec"]["names"];
        assert_eq!(
            (&names["kind"], &names["plural"], &names["singular"]),
            (&json!("MPIJob"), &json!("mpijobs"), &json!("mpijob"))
        );
        assert_eq!(version()["name"], "v2beta1");
        assert_eq!(version()["subresources"], json!({ "status": {} }));
    }

    #[test]
    fn the_defaults_are_the_originals_and_survive_a_null() {
        let defaults = [
            ("/properties/slotsPerWorker", json!(1)),
            ("/properties/runLauncherAsWorker", json!(false)),
            ("/properties/sshAuthMountPath", json!("/root/.ssh")),
            ("/properties/launcherCreationPolicy", json!("AtStartup")),
            ("/properties/mpiImplementation", json!("OpenMPI")),
            ("/properties/runPolicy/properties/suspend", json!(false)),
        ];
        for (pointer, default) in defaults {
            let field = spec(pointer);
            assert_eq!(field["default"], default, "{pointer}");
            assert_ne!(field["nullable"], json!(true), "{pointer}");
        }
        assert_eq!(spec("/properties/mpiImplementation/enum"), json!(["OpenMPI", "Intel", "MPICH"]));
        assert!(spec("/properties/launcherCreationPolicy").get("enum").is_none());
    }

    #[test]
    fn only_the_replica_specs_are_required_and_only_inside_a_spec() {
        assert_eq!(spec("/required"), json!(["mpiReplicaSpecs"]));
        assert!(version().pointer("/schema/openAPIV3Schema/required").is_none());
        assert!(spec("/properties/mpiReplicaSpecs/additionalProperties").get("required").is_none());
        assert!(spec("/properties/runPolicy").get("required").is_none());
    }

    #[test]
    fn a_pod_template_of_any_kubernetes_version_is_accepted() {
        let template = spec("/properties/mpiReplicaSpecs/additionalProperties/properties/template");
        assert_eq!(template.pointer("/properties/spec/x-kubernetes-preserve-unknown-fields"), Some(&json!(true)));
    }

    #[test]
    fn the_schema_is_small_and_the_status_keeps_the_ledger() {
        assert!(serde_json::to_string(&crd()).unwrap().len() < 200 * 1024);
        let status = version().pointer("/schema/openAPIV3Schema/properties/status").cloned().unwrap();
        let fields: Vec<_> = status["properties"].as_object().unwrap().keys().cloned().collect();
        let expected = ["completionTime", "conditions", "lastReconcileTime", "replicaStatuses", "startTime", "troupe"];
        assert_eq!(fields, expected);
        assert_eq!(status.pointer("/properties/troupe/x-kubernetes-preserve-unknown-fields"), Some(&json!(true)));
    }

    #[test]
    fn kubectl_get_shows_the_step_that_the_host_computes() {
        let columns = version()["additionalPrinterColumns"].clone();
        assert_eq!(columns[0]["jsonPath"], ".status.troupe.step");
        assert_eq!(columns[1]["jsonPath"], ".metadata.creationTimestamp");
    }
}
