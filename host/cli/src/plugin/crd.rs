//! Whether a CRD is that of a plugin's kinds, and keeps what the host writes.

use anyhow::{Context, ensure};
use decide::plan::{Descriptor, JobKind};
use install::preflight::schema;
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;
use troupe::out;

/// Checks the CRDs in a file, and prints what they define.
///
/// # Errors
/// The first kind of the plugin that the file does not define as the host needs it.
pub(super) fn check(file: &Path, plugin: &Descriptor) -> anyhow::Result<()> {
    let name = file.display();
    let text = crate::input::text(file)?;
    let documents = serde_norway::Deserializer::from_str(&text).map(Value::deserialize);
    let crds: Vec<Value> = documents.collect::<Result<_, _>>().with_context(|| format!("{name} is no YAML"))?;
    for kind in &plugin.kinds {
        let crd = crds.iter().find(|crd| crd["metadata"]["name"] == kind.crd());
        let crd = crd.with_context(|| {
            format!("{name} does not define {}; the README of the plugin's project says what makes it", kind.crd())
        })?;
        fits(crd, kind).with_context(|| format!("{name}: {}", kind.crd()))?;
        out::line(format_args!("{:<10} {name} defines {} and keeps what the host writes", "crd", kind.crd()));
    }
    Ok(())
}

fn fits(crd: &Value, kind: &JobKind) -> anyhow::Result<()> {
    let named = &crd["spec"]["names"]["kind"];
    ensure!(*named == kind.kind, "spec.names.kind is {named}, and the plugin serves {}", kind.kind);
    let scope = &crd["spec"]["scope"];
    ensure!(scope == "Namespaced", "spec.scope is {scope}; jobs are Namespaced");
    Ok(schema::keeps_what_the_host_writes(crd, &kind.version)?)
}
