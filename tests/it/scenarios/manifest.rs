//! Jobs as scenarios write them: a line for the usual, a manifest for the rest.

use super::words;
use anyhow::{Context, bail};
use decide::plan::JobKind;
use serde_json::{Value, json};

/// `[namespace/]name field=value ...` as a manifest. A role with a number is the role with a template of one
/// container; other fields are set in the spec, where a role's name at the front stands for the role's place.
pub(super) fn shorthand(framework: &str, kind: &JobKind, name: &str, fields: &[String]) -> anyhow::Result<Value> {
    let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
    let mut spec = json!({});
    if framework == "mpi" {
        words::set(&mut spec, &place(framework, "launcher"), json!({ "template": template("launcher") }))?;
    }
    for field in fields {
        let (field, value) = field.split_once('=').with_context(|| format!("{field} is no field=value"))?;
        let value = words::value(value);
        match (is_role(framework, field), value) {
            (true, replicas @ Value::Number(_)) => {
                let role = json!({ "replicas": replicas, "template": template(field) });
                words::set(&mut spec, &place(framework, field), role)?;
            }
            (_, value) => words::set(&mut spec, &place(framework, field), value)?,
        }
    }
    Ok(json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": { "name": name, "namespace": namespace },
        "spec": spec,
    }))
}

/// A manifest in YAML.
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

/// The roles of the frameworks that a line can describe, and where each stands in the spec.
const ROLES: [(&str, &str, &str); 5] = [
    ("paddle", "ps", "ps"),
    ("paddle", "worker", "worker"),
    ("paddle", "heter", "heter"),
    ("mpi", "launcher", "mpiReplicaSpecs.Launcher"),
    ("mpi", "worker", "mpiReplicaSpecs.Worker"),
];

fn is_role(framework: &str, field: &str) -> bool {
    ROLES.iter().any(|(of, role, _)| *of == framework && *role == field)
}

fn place(framework: &str, field: &str) -> String {
    let (first, rest) = field.split_once('.').map_or((field, ""), |(first, rest)| (first, rest));
    let role = ROLES.iter().find(|(of, role, _)| *of == framework && *role == first);
    match (role, rest) {
        (None, _) => field.to_owned(),
        (Some((_, _, place)), "") => (*place).to_owned(),
        (Some((_, _, place)), rest) => format!("{place}.{rest}"),
    }
}

fn template(role: &str) -> Value {
    json!({ "spec": { "containers": [{ "name": role, "image": "image" }] } })
}
