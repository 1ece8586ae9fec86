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

/// Returns the rule of a kind's schema that the name of an object begins no name that is too long, and is a DNS label: of
/// `most` characters, that begins with a letter if `letter` says so. It is about new objects alone: one of an older
/// definition can still be changed.
#[must_use]
pub fn name_rule(most: usize, letter: bool) -> Value {
    let first = if letter { "a-z" } else { "a-z0-9" };
    let name = "self.metadata.name";
    let expression = format!(
        "oldSelf.hasValue() || ({name}.size() <= {most} && {name}.matches('^[{first}]([-a-z0-9]*[a-z0-9])?$'))"
    );
    let first = if letter { ", begins with a letter" } else { "" };
    let message = format!(
        "metadata.name must have at most {most} characters of a-z, 0-9 and '-'{first}, and not end with '-': the names of what is \
         made for the job begin with it"
    );
    let mut rule = rule(&expression, &message);
    rule["optionalOldSelf"] = true.into();
    rule
}

/// Returns a schema as JSON.
#[must_use]
pub fn of(schema: fn(&mut SchemaGenerator) -> Schema) -> Value {
    schema(&mut SchemaGenerator::default()).into()
}
