//! Jobs as scenarios write them: a line for the common case, a manifest for the rest.

use super::{shorthand::Roles, words};
use anyhow::{Context, bail};
use decide::plan::JobKind;
use serde_json::{Value, json};

/// Returns the manifest of `[namespace/]name field=value ...`. A role with a number becomes the role with a template of
/// one container. Other fields are set in the spec; a role's name at the front is replaced by the role's path.
pub(super) fn line(roles: &Roles, kind: &JobKind, name: &str, fields: &[&str]) -> anyhow::Result<Value> {
    let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
    let mut spec = json!({});
    for role in &roles.always {
        words::set(&mut spec, &roles.place(role), json!({ "template": template(role) }))?;
    }
    for field in fields {
        let (field, value) = field.split_once('=').with_context(|| format!("{field} is no field=value"))?;
        let value = words::value(value);
        match (roles.has(field), value) {
            (true, replicas @ Value::Number(_)) => {
                let role = json!({ "replicas": replicas, "template": template(field) });
                words::set(&mut spec, &roles.place(field), role)?;
            }
            (_, value) => words::set(&mut spec, &roles.place(field), value)?,
        }
    }
    Ok(json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": { "name": name, "namespace": namespace },
        "spec": spec,
    }))
}

/// Parses a YAML manifest.
pub(super) fn yaml(text: &str) -> anyhow::Result<Value> {
    let mut job: Value = serde_norway::from_str(text).context("the manifest")?;
    if words::at(&job, "metadata.name").is_none() {
        bail!("the manifest has no metadata.name");
    }
    if words::at(&job, "metadata.namespace").is_none() {
        words::set(&mut job, "metadata.namespace", json!("default"))?;
    }
    Ok(job)
}

fn template(role: &str) -> Value {
    json!({ "spec": { "containers": [{ "name": role, "image": "image" }] } })
}
