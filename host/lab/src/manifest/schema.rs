//! What the definition of a kind says about a job: the check that the API server and kubectl make.

use anyhow::Context;
use decide::plan::JobKind;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use serde_json::{Value, json};

/// A version of a kind of job, as its CustomResourceDefinition serves it.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) kind: String,
    pub(super) api_version: String,
    /// The version that the plugin plans.
    planned: String,
    schema: Value,
}

impl Definition {
    /// Returns a definition for each version of this kind that these definitions serve. A kind that they lack is known by
    /// its plugin alone, which says no more than the version that it plans.
    pub(super) fn of(kind: &JobKind, crds: &[CustomResourceDefinition]) -> Vec<Self> {
        let crds = crds.iter().filter(|crd| crd.metadata.name.as_deref() == Some(&kind.crd()));
        let versions = crds.flat_map(|crd| &crd.spec.versions).filter(|version| version.served);
        let definition = |version: &CustomResourceDefinitionVersion| {
            let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
            Self {
                kind: kind.kind.clone(),
                api_version: format!("{}/{}", kind.group, version.name),
                planned: kind.api_version(),
                schema: serde_json::to_value(schema).unwrap_or_default(),
            }
        };
        let known: Vec<_> = versions.map(definition).collect();
        if !known.is_empty() {
            return known;
        }
        let (kind, planned) = (kind.kind.clone(), kind.api_version());
        vec![Self { kind, api_version: planned.clone(), planned, schema: json!({}) }]
    }

    /// Returns what the schema refuses, as JSON pointer and reason, in the order of the schema.
    ///
    /// # Errors
    /// If the definition has no valid schema.
    pub(super) fn objections(&self, job: &Value) -> anyhow::Result<Vec<(String, String)>> {
        let schema = jsonschema::validator_for(&self.schema).with_context(|| format!("the schema of {}", self.kind))?;
        let job = without_nulls(job);
        let invalid = schema.iter_errors(&job);
        let mut wrong: Vec<_> =
            invalid.map(|error| (error.instance_path().as_str().to_owned(), error.to_string())).collect();
        unknown(&self.schema, &job, "", &mut wrong);
        Ok(wrong)
    }

    /// Returns the job in the version that its plugin plans. The schemas of all versions are alike: none is converted.
    pub(super) fn stored(&self, mut job: Value) -> Value {
        job["apiVersion"] = self.planned.as_str().into();
        job
    }
}

/// Returns a JSON pointer as people write a field: `spec.worker.replicas`.
pub(super) fn field(pointer: &str) -> String {
    if pointer.is_empty() {
        "the job".to_owned()
    } else {
        decide::rejection::field_of_spec(&[pointer]).replacen("spec.", "", 1)
    }
}

/// The API server takes null for a value that is not there.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        Value::Array(all) => all.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

/// Adds the fields that the schema does not know. The API server drops them, kubectl refuses them.
fn unknown(schema: &Value, value: &Value, at: &str, wrong: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            let (known, others) = (&schema["properties"], &schema["additionalProperties"]);
            // Kubernetes' own fields are in no schema of a kind.
            let is_open =
                |name: &str| at == "/metadata" || (at.is_empty() && ["apiVersion", "kind", "metadata"].contains(&name));
            for (name, value) in fields {
                let below = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
                match known.get(name).or_else(|| others.as_object().map(|_| others)) {
                    Some(schema) => unknown(schema, value, &below, wrong),
                    None if is_open(name) || keeps_unknown(schema) || *others == Value::Bool(true) => {}
                    None => wrong.push((below, "there is no such field".to_owned())),
                }
            }
        }
        Value::Array(all) => {
            for (index, value) in all.iter().enumerate() {
                unknown(&schema["items"], value, &format!("{at}/{index}"), wrong);
            }
        }
        _ => {}
    }
}

fn keeps_unknown(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == true
        || schema["x-kubernetes-embedded-resource"] == true
        || schema["properties"].is_null() && schema["additionalProperties"].is_null()
}
