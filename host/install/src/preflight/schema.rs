//! Whether the CRD of a kind of job keeps all fields that Troupe writes and reads. The API server drops a field that
//! the schema does not know without an error.

use super::{Finding, Read};
use serde_json::{Value, json};

/// How to apply Troupe's CRDs.
const APPLY: &str = "troupe crds | kubectl apply -f -";

/// The definition of a kind in Troupe and in the cluster.
#[derive(Debug)]
pub struct Definition {
    /// Troupe's CustomResourceDefinition.
    pub wanted: Value,
    /// The version that Troupe uses.
    pub version: String,
    /// The cluster's definition, if there is one.
    pub there: Read<Option<Value>>,
}

pub(crate) fn finding(definition: &Definition) -> Finding {
    let Definition { wanted, version, there } = definition;
    let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
    let there = match there {
        Ok(Some(there)) => there,
        Ok(None) => return Finding::in_the_way(format!("{name} is missing"), APPLY),
        Err(why) => {
            let to_do = "run this as somebody who may get customresourcedefinitions.apiextensions.k8s.io";
            return Finding::in_the_way(format!("{name} cannot be read: {why}"), to_do);
        }
    };
    let foreign = versions_not_in(wanted, there);
    if !foreign.is_empty() {
        let (foreign, it) = (foreign.join(", "), format!("customresourcedefinition {name}"));
        let to_do = format!(
            "delete those objects or store them as {version}, take {foreign} out of status.storedVersions of {it}; \
             then {APPLY}"
        );
        return Finding::in_the_way(format!("{name} may hold objects as {foreign}, which Troupe does not know"), to_do);
    }
    let lack = match served(wanted, version) {
        Some(ours) => kept(schema(ours), there, version),
        None => Err(Lack::Version),
    };
    let what = match lack {
        Ok(()) => return Finding::fine(format!("{name} {version} keeps all fields")),
        Err(Lack::Version) => format!("{name} does not serve {version}"),
        Err(Lack::Status) => format!("{name} {version} has no subresource status"),
        Err(Lack::Fields(dropped)) => format!("{name} {version} is too old, it drops {}", dropped.join(", ")),
    };
    Finding::in_the_way(what, APPLY)
}

/// Checks that a definition keeps what the host writes to a job's status, whatever framework it is of.
///
/// # Errors
/// What is missing, and what to do.
pub fn keeps_what_the_host_writes(definition: &Value, version: &str) -> Result<(), KeepsTooLittle> {
    let status = json!({ "properties": { "troupe": { "x-kubernetes-preserve-unknown-fields": true } } });
    kept(&json!({ "properties": { "status": status } }), definition, version).map_err(|lack| {
        let version = version.to_owned();
        match lack {
            Lack::Version => KeepsTooLittle::Version(version),
            Lack::Status => KeepsTooLittle::Status(version),
            Lack::Fields(dropped) => KeepsTooLittle::Fields { version, dropped: dropped.join(", ") },
        }
    })
}

/// The error for a definition of a kind of job in which the host could not write its status.
#[derive(Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum KeepsTooLittle {
    #[error("it does not serve {0}; add that version, with served: true")]
    Version(String),
    #[error("{0} has no subresource status; add subresources: {{ status: {{}} }}")]
    Status(String),
    #[error(
        "{version} drops {dropped}, so that the host could clean up no job; in its schema status.troupe has to be an object \
         with x-kubernetes-preserve-unknown-fields: true"
    )]
    Fields { version: String, dropped: String },
}

/// What a definition lacks.
enum Lack {
    /// It does not serve the version.
    Version,
    /// The version has no subresource status.
    Status,
    /// These fields are dropped.
    Fields(Vec<String>),
}

/// Checks that a version of a definition keeps the fields of this schema.
fn kept(ours: &Value, there: &Value, version: &str) -> Result<(), Lack> {
    let theirs = served(there, version).ok_or(Lack::Version)?;
    if theirs.pointer("/subresources/status").is_none() {
        return Err(Lack::Status);
    }
    let keeps_all = there.pointer("/spec/preserveUnknownFields") == Some(&Value::Bool(true));
    let mut dropped = Vec::new();
    if !keeps_all {
        compare(ours, schema(theirs), "", &mut dropped);
    }
    if dropped.is_empty() { Ok(()) } else { Err(Lack::Fields(dropped)) }
}

/// Returns the stored versions that Troupe's definition lacks: the API server would refuse to apply it.
fn versions_not_in<'a>(wanted: &Value, there: &'a Value) -> Vec<&'a str> {
    let stored = there.pointer("/status/storedVersions").and_then(Value::as_array);
    let stored = stored.into_iter().flatten().filter_map(Value::as_str);
    stored.filter(|stored| versions(wanted).all(|version| version["name"] != **stored)).collect()
}

fn versions(definition: &Value) -> impl Iterator<Item = &Value> {
    definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten()
}

fn served<'a>(definition: &'a Value, version: &str) -> Option<&'a Value> {
    versions(definition).find(|it| it["name"] == version && it["served"] == true)
}

fn schema(version: &Value) -> &Value {
    version.pointer("/schema/openAPIV3Schema").unwrap_or(&Value::Null)
}

/// Adds the fields that `ours` keeps and `theirs` drops; of each branch only the topmost.
fn compare(ours: &Value, theirs: &Value, path: &str, dropped: &mut Vec<String>) {
    if keeps_unknown(theirs) {
        return;
    }
    // What ours leaves open, such as pods, may be spelt out by whatever version of Kubernetes, but not be closed.
    if keeps_unknown(ours) {
        if theirs["properties"].is_null() && theirs["additionalProperties"].is_null() {
            dropped.push(path.to_owned());
        }
        return;
    }
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    for (name, ours) in ours["properties"].as_object().into_iter().flatten() {
        match theirs["properties"].get(name) {
            Some(theirs) => compare(ours, theirs, &below(name), dropped),
            None if theirs["additionalProperties"].is_null() => dropped.push(below(name)),
            None => compare(ours, &theirs["additionalProperties"], &below(name), dropped),
        }
    }
    if ours["additionalProperties"].is_object() {
        match &theirs["additionalProperties"] {
            Value::Null | Value::Bool(false) => dropped.push(below("*")),
            theirs => compare(&ours["additionalProperties"], theirs, &below("*"), dropped),
        }
    }
    if ours["items"].is_object() {
        compare(&ours["items"], &theirs["items"], &format!("{path}[]"), dropped);
    }
}

/// Whether the schema keeps unknown fields; `true` is the schema of any value.
fn keeps_unknown(schema: &Value) -> bool {
    *schema == true || schema["x-kubernetes-preserve-unknown-fields"] == true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preflight::{ReadError, Weight};
    use serde_json::json;

    fn opaque() -> Value {
        json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
    }

    fn object(properties: &Value) -> Value {
        json!({ "type": "object", "properties": properties })
    }

    fn defined(properties: &Value) -> Value {
        json!({
            "metadata": { "name": "echoes.echo.dev" },
            "spec": { "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": object(properties) },
                "subresources": { "status": {} },
            }] },
            "status": { "storedVersions": ["v1"] },
        })
    }

    fn ours() -> Value {
        let container = json!({ "type": "object", "properties": { "name": { "type": "string" } },
            "x-kubernetes-preserve-unknown-fields": true });
        let roles = object(&json!({ "size": { "type": "integer" }, "template": opaque() }));
        let spec = object(&json!({
            "roles": { "type": "object", "additionalProperties": roles },
            "containers": { "type": "array", "items": container },
        }));
        defined(&json!({ "spec": spec, "status": object(&json!({ "phase": {}, "troupe": opaque() })) }))
    }

    fn found(there: Read<Option<Value>>) -> Finding {
        finding(&Definition { wanted: ours(), version: "v1".into(), there })
    }

    /// Returns the finding for our definition after a change.
    fn changed(change: impl FnOnce(&mut Value)) -> Finding {
        let mut there = ours();
        change(&mut there);
        found(Ok(Some(there)))
    }

    const SCHEMA: &str = "/spec/versions/0/schema/openAPIV3Schema/properties";

    #[test]
    fn a_definition_like_ours_is_fine_and_so_is_one_that_keeps_everything() {
        assert_eq!(found(Ok(Some(ours()))), Finding::fine("echoes.echo.dev v1 keeps all fields"));
        let keeping = defined(&json!({ "spec": opaque(), "status": opaque() }));
        assert_eq!(found(Ok(Some(keeping))).weight, Weight::Fine);
        let old = changed(|there| {
            there["spec"]["preserveUnknownFields"] = true.into();
            there["spec"]["versions"][0]["schema"] = Value::Null;
        });
        assert_eq!(old.weight, Weight::Fine);
    }

    #[test]
    fn a_field_that_is_dropped_is_named_by_its_topmost_place() {
        let drops = |name: &str, part: &str| {
            let gone = changed(|there| {
                let parent = there.pointer_mut(&format!("{SCHEMA}{part}")).unwrap();
                parent.as_object_mut().unwrap().remove(name);
            });
            assert_eq!((gone.weight, gone.to_do.as_deref()), (Weight::InTheWay, Some(APPLY)));
            gone.what
        };
        assert_eq!(drops("troupe", "/status/properties"), "echoes.echo.dev v1 is too old, it drops status.troupe");
        assert_eq!(
            drops("properties", "/status"),
            "echoes.echo.dev v1 is too old, it drops status.phase, status.troupe"
        );
        let of_roles = "/spec/properties/roles/additionalProperties/properties";
        assert_eq!(drops("size", of_roles), "echoes.echo.dev v1 is too old, it drops spec.roles.*.size");
        let roles = drops("additionalProperties", "/spec/properties/roles");
        assert_eq!(roles, "echoes.echo.dev v1 is too old, it drops spec.roles.*");
    }

    #[test]
    fn what_ours_leaves_open_may_be_spelt_out_but_not_closed() {
        let place = format!("{SCHEMA}/spec/properties/roles/additionalProperties/properties/template");
        let spelt = changed(|there| {
            *there.pointer_mut(&place).unwrap() = object(&json!({ "spec": { "type": "object" } }));
        });
        assert_eq!(spelt.weight, Weight::Fine);
        let closed = changed(|there| *there.pointer_mut(&place).unwrap() = json!({ "type": "object" }));
        assert_eq!(closed.what, "echoes.echo.dev v1 is too old, it drops spec.roles.*.template");
    }

    #[test]
    fn a_definition_of_any_framework_has_to_keep_what_the_host_writes() {
        let status = |fields: Value| defined(&json!({ "spec": opaque(), "status": object(&fields) }));
        let keeps =
            |crd: &Value, version: &str| keeps_what_the_host_writes(crd, version).map_err(|lacks| lacks.to_string());
        assert_eq!(keeps(&status(json!({ "phase": {}, "troupe": opaque() })), "v1"), Ok(()));
        assert_eq!(keeps(&defined(&json!({ "status": opaque() })), "v1"), Ok(()));
        let lacks = keeps(&status(json!({ "phase": {}, "troupe": { "type": "object" } })), "v1").unwrap_err();
        assert!(lacks.starts_with("v1 drops status.troupe, so that"), "{lacks}");
        assert!(keeps(&status(json!({})), "v2").unwrap_err().starts_with("it does not serve v2"));
        let mut statusless = status(json!({}));
        statusless["spec"]["versions"][0]["subresources"] = Value::Null;
        assert!(keeps(&statusless, "v1").unwrap_err().starts_with("v1 has no subresource status"));
    }

    #[test]
    fn a_definition_that_is_missing_or_of_other_versions_is_in_the_way() {
        assert_eq!(found(Ok(None)), Finding::in_the_way("echoes.echo.dev is missing", APPLY));
        assert!(
            found(Err(ReadError("Forbidden".into()))).what.starts_with("echoes.echo.dev cannot be read: Forbidden")
        );
        let unserved = changed(|there| there["spec"]["versions"][0]["served"] = false.into());
        assert_eq!(unserved, Finding::in_the_way("echoes.echo.dev does not serve v1", APPLY));
        let statusless = changed(|there| there["spec"]["versions"][0]["subresources"] = Value::Null);
        assert_eq!(statusless, Finding::in_the_way("echoes.echo.dev v1 has no subresource status", APPLY));
        let foreign = changed(|there| there["status"]["storedVersions"] = json!(["v0", "v1"]));
        assert_eq!(foreign.what, "echoes.echo.dev may hold objects as v0, which Troupe does not know");
    }
}
