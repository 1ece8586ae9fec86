//! The CRD of RhinoJob: accepts what the original accepts, with its defaults, in both versions.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use troupe_plugin::MAX_REPLICAS;

pub use crate::spec::RhinoJob;

/// The CRD to install: v1alpha2 is stored, v1alpha1 is the same under another name. The API server converts between
/// them by that name alone and drops what the schema of the version that was asked for lacks, so that a change made
/// through a smaller v1alpha1 would reset the memory fields and forget what Troupe knows of the job.
#[must_use]
pub fn crd() -> CustomResourceDefinition {
    let mut crd = troupe_plugin::crd::without_required_spec(
        &RhinoJob::crd(),
        &troupe_plugin::crd::name_rule(63 - "-12345-launcher".len(), false),
    );
    let older = crd.spec.versions.iter().map(|version| {
        let mut older = version.clone();
        (older.name, older.storage) = ("v1alpha1".to_owned(), false);
        older
    });
    crd.spec.versions = older.chain(crd.spec.versions.clone()).collect();
    crd
}

/// What is known of the job.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RhinoJobStatus {
    /// Pending, Running, Failed, Completed or ImageError.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_status: Option<String>,
    /// Names of launcher pods, the newest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launcher_pod_names: Option<Vec<String>>,
    /// Names of worker pods, in order of their index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_pod_names: Option<Vec<String>>,
    /// The state that Troupe keeps of the job: its own conditions, and internal fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "troupe_plugin::crd::ledger")]
    pub troupe: Option<Value>,
}

pub(crate) fn image(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": r"^\S+$" })
}

pub(crate) fn app_exec(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": r"\S" })
}

pub(crate) fn data_server(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "nullable": true, "pattern": r"^\S*$" })
}

/// Kubernetes refuses the pods of a path that is not absolute.
pub(crate) fn data_path(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "nullable": true, "pattern": "^(/.*)?$" })
}

// A field with a default is not nullable: the API server drops a null there and fills in the default.

pub(crate) fn parallelism(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "format": "int32", "minimum": 1, "maximum": MAX_REPLICAS, "default": 1 })
}

pub(crate) fn ttl(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "format": "int32", "minimum": 0, "default": 600 })
}

pub(crate) fn memory_mode(_: &mut SchemaGenerator) -> Schema {
    let modes = ["FixedTotalMemory", "FixedPerCoreMemory"];
    json_schema!({ "type": "string", "enum": modes, "default": "FixedPerCoreMemory" })
}

pub(crate) fn memory_size(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "format": "int32", "minimum": 1, "default": 2 })
}

/// Returns what fields of a job have to do with each other, for the test that breaks each.
#[must_use]
pub fn relations() -> Vec<troupe_plugin::crd::Relation> {
    troupe_plugin::crd::relations(
        "rhinojobs.openrhino.org",
        [
            ("dataServer needs dataPath", json!({ "spec": { "dataPath": null } }), "dataPath"),
            ("the names of pods are labels", json!({ "metadata": { "name": "a".repeat(60) } }), "metadata.name"),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions() -> Vec<Value> {
        serde_json::to_value(crd()).unwrap()["spec"]["versions"].as_array().unwrap().clone()
    }

    fn spec(pointer: &str) -> Value {
        let at = format!("/schema/openAPIV3Schema/properties/spec{pointer}");
        versions()[1].pointer(&at).cloned().unwrap_or_else(|| panic!("nothing at {at}"))
    }

    #[test]
    fn the_names_are_the_originals() {
        let crd = serde_json::to_value(crd()).unwrap();
        assert_eq!(crd["metadata"]["name"], "rhinojobs.openrhino.org");
        assert_eq!(crd["spec"]["scope"], "Namespaced");
        let names = &crd["spec"]["names"];
        assert_eq!(
            (&names["kind"], &names["plural"], &names["singular"]),
            (&json!("RhinoJob"), &json!("rhinojobs"), &json!("rhinojob"))
        );
        assert!(names["shortNames"].as_array().is_none_or(Vec::is_empty));
    }

    // R03: what is written as v1alpha1 is read as v1alpha2 with its defaults
    #[test]
    fn both_versions_are_served_alike_and_the_newer_is_stored() {
        let mut versions = versions();
        let facts = |version: &Value| (version["name"].clone(), version["served"].clone(), version["storage"].clone());
        assert_eq!(facts(&versions[0]), (json!("v1alpha1"), json!(true), json!(false)));
        assert_eq!(facts(&versions[1]), (json!("v1alpha2"), json!(true), json!(true)));
        assert_eq!(versions.len(), 2);
        versions[0]["name"] = json!("v1alpha2");
        versions[0]["storage"] = json!(true);
        assert_eq!(versions[0], versions[1]);
        assert_eq!(versions[0]["subresources"], json!({ "status": {} }));
    }

    // R03
    #[test]
    fn the_defaults_and_limits_are_the_originals_and_survive_a_null() {
        for (field, default) in [
            ("parallelism", json!(1)),
            ("ttl", json!(600)),
            ("memoryAllocationMode", json!("FixedPerCoreMemory")),
            ("memoryAllocationSize", json!(2)),
        ] {
            let field = spec(&format!("/properties/{field}"));
            assert_eq!(field["default"], default);
            assert_ne!(field["nullable"], json!(true));
        }
        let minimum = |field: &str| spec(&format!("/properties/{field}/minimum")).as_f64();
        assert_eq!(
            [minimum("parallelism"), minimum("ttl"), minimum("memoryAllocationSize")],
            [Some(1.0), Some(0.0), Some(1.0)]
        );
        let modes = json!(["FixedTotalMemory", "FixedPerCoreMemory"]);
        assert_eq!(spec("/properties/memoryAllocationMode/enum"), modes);
    }

    #[test]
    fn only_image_and_program_are_required_and_only_inside_a_spec() {
        assert_eq!(spec("/required"), json!(["appExec", "image"]));
        for version in versions() {
            assert!(version.pointer("/schema/openAPIV3Schema/required").is_none());
            assert!(version.pointer("/schema/openAPIV3Schema/properties/status/required").is_none());
        }
    }

    #[test]
    fn the_status_has_room_for_the_hosts_words_and_ledger() {
        let status = versions()[1].pointer("/schema/openAPIV3Schema/properties/status").cloned().unwrap();
        let fields: Vec<_> = status["properties"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(fields, ["jobStatus", "launcherPodNames", "troupe", "workerPodNames"]);
        assert_eq!(status.pointer("/properties/troupe/x-kubernetes-preserve-unknown-fields"), Some(&json!(true)));
    }

    #[test]
    fn kubectl_get_shows_the_originals_columns() {
        let columns = versions()[0]["additionalPrinterColumns"].clone();
        let shown: Vec<_> =
            columns.as_array().unwrap().iter().map(|c| (c["name"].clone(), c["jsonPath"].clone())).collect();
        let expected = [
            ("Parallelism", ".spec.parallelism"),
            ("Status", ".status.jobStatus"),
            ("Age", ".metadata.creationTimestamp"),
        ];
        assert_eq!(shown, expected.map(|(name, path)| (json!(name), json!(path))));
    }
}
