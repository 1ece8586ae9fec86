//! Reads manifests of jobs. An error names the file, the place and the correction.

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;
use troupe::observe::layout::Layout;

/// Returns the jobs in a file. Fails if no plugin serves the kind of one.
pub(super) fn read(path: &Path, layout: &Layout) -> anyhow::Result<Vec<Value>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    parse(&path.display().to_string(), &text, layout)
}

/// Returns the jobs in a text; errors refer to it as `file`.
pub(super) fn parse(file: &str, text: &str, layout: &Layout) -> anyhow::Result<Vec<Value>> {
    let mut jobs = Vec::new();
    for (number, document) in serde_norway::Deserializer::from_str(text).enumerate() {
        let document = Value::deserialize(document).with_context(|| file.to_owned())?;
        if !document.is_null() {
            jobs.push(job(document, layout).with_context(|| format!("{file}: document {}", number + 1))?);
        }
    }
    if jobs.is_empty() {
        bail!("{file}: there is no job in it");
    }
    Ok(jobs)
}

fn job(mut document: Value, layout: &Layout) -> anyhow::Result<Value> {
    let field = |name: &str| document[name].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (field("apiVersion"), field("kind"));
    if !layout.kinds().values().any(|served| served.kind.kind == kind && served.kind.api_version() == api_version) {
        let known: Vec<_> =
            layout.kinds().values().map(|s| format!("{} {}", s.kind.api_version(), s.kind.kind)).collect();
        bail!(
            "apiVersion {api_version:?} and kind {kind:?} are not served; one of these would be: {}",
            known.join(", ")
        );
    }
    if document["metadata"]["name"].as_str().unwrap_or_default().is_empty() {
        bail!("metadata.name: is required");
    }
    if document["metadata"]["namespace"].is_null() {
        document["metadata"]["namespace"] = json!("default");
    }
    Ok(document)
}
