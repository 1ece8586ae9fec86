//! The parts of a CRD that are the same for every kind, as JSON.

use crate::types::KindInfo;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

/// Returns the CRD of a kind. Its one version is served and stored; `schema` is that of the whole object.
#[must_use]
pub fn document(kind: &KindInfo, schema: &Value, subresources: &Value, columns: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{}.{}", kind.plural, kind.group) },
        "spec": {
            "group": kind.group,
            "names": { "kind": kind.kind, "plural": kind.plural, "singular": kind.kind.to_lowercase() },
            "scope": "Namespaced",
            "versions": [{
                "name": kind.version,
                "served": true,
                "storage": true,
                "subresources": subresources,
                "additionalPrinterColumns": columns,
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}

/// Returns a rule of `x-kubernetes-validations`: what must hold, as CEL, and what is said where it does not.
#[must_use]
pub fn rule(expression: &str, message: &str) -> Value {
    json!({ "rule": expression, "message": message })
}

/// Returns a schema as JSON.
#[must_use]
pub fn of(schema: fn(&mut SchemaGenerator) -> Schema) -> Value {
    schema(&mut SchemaGenerator::default()).into()
}
