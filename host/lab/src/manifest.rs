//! Reads manifests of jobs. An error names the file, the place and the correction.

mod line;
mod schema;

use anyhow::{Context, bail};
use install::crds;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use schema::Definition;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;
use troupe::{files, observe::layout::Layout};

/// An example of each of three frameworks: what the demo runs when no file is named.
pub(crate) const EXAMPLES: [(&str, &str); 3] = [
    ("deploy/examples/paddlejob.yaml", include_str!("../../../deploy/examples/paddlejob.yaml")),
    ("deploy/examples/mpijob.yaml", include_str!("../../../deploy/examples/mpijob.yaml")),
    ("deploy/examples/pytorchjob.yaml", include_str!("../../../deploy/examples/pytorchjob.yaml")),
];

/// The largest file of manifests, in bytes.
const LARGEST: usize = 16 << 20;

/// Returns the jobs in a file. Fails if no plugin serves the kind of one.
pub(crate) fn read(path: &Path, layout: &Layout) -> anyhow::Result<Vec<Value>> {
    let text = files::text(path, LARGEST)?;
    parse(&path.display().to_string(), &text, layout)
}

/// Returns the jobs in a text, each in the version that its plugin plans; errors refer to it as `file`.
pub(crate) fn parse(file: &str, text: &str, layout: &Layout) -> anyhow::Result<Vec<Value>> {
    let mut jobs = Vec::new();
    let crds = crds::all();
    for (number, document) in serde_norway::Deserializer::from_str(text).enumerate() {
        let document = Value::deserialize(document).with_context(|| file.to_owned())?;
        if !document.is_null() {
            let (job, definition) =
                job(document, layout, &crds).with_context(|| format!("{file}: document {}", number + 1))?;
            let wrong = definition.objections(&job)?;
            if !wrong.is_empty() {
                let lines = wrong.iter().map(|(at, why)| match line::of(text, number, at) {
                    Some(line) => format!("{file}:{line}: {}: {why}", schema::field(at)),
                    None => format!("{file}: {}: {why}", schema::field(at)),
                });
                bail!("{}", lines.collect::<Vec<_>>().join("\n"));
            }
            jobs.push(definition.stored(job));
        }
    }
    if jobs.is_empty() {
        bail!("{file}: there is no job in it");
    }
    Ok(jobs)
}

/// Returns the job, and the definition of its kind.
fn job(mut document: Value, layout: &Layout, crds: &[CustomResourceDefinition]) -> anyhow::Result<(Value, Definition)> {
    let field = |name: &str| document[name].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (field("apiVersion"), field("kind"));
    let all = || layout.kinds().values().flat_map(|served| Definition::of(&served.kind, crds));
    let Some(definition) = all().find(|it| it.kind == kind && it.api_version == api_version) else {
        let known: Vec<_> = all().map(|it| format!("{} {}", it.api_version, it.kind)).collect();
        bail!(
            "apiVersion {api_version:?} and kind {kind:?} are not served; one of these would be: {}",
            known.join(", ")
        );
    };
    if document["metadata"]["name"].as_str().unwrap_or_default().is_empty() {
        bail!("metadata.name: is required");
    }
    if document["metadata"]["namespace"].is_null() {
        document["metadata"]["namespace"] = json!("default");
    }
    Ok((document, definition))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandbox::{Executor, Plugins};
    use troupe::observe::layout::Route;

    fn layout() -> Layout {
        let mut layout = Layout::default();
        for (framework, digest) in Plugins::builtin(Executor::Inline).unwrap().frameworks() {
            layout.add(&framework, &digest);
            layout.route(&framework.name, &Route::to(&digest));
        }
        layout
    }

    const WRONG: &str = "\
# A comment.
apiVersion: batch.paddlepaddle.org/v1
kind: PaddleJob
metadata: {name: first}
spec: {worker: {replicas: 1, template: {spec: {containers: []}}}}
---
apiVersion: batch.paddlepaddle.org/v1
kind: PaddleJob
metadata:
  name: second
spec:
  worker:
    replicas: three
    templat:
      spec: {}
";

    #[test]
    fn every_wrong_value_is_reported_with_its_line() {
        let error = parse("job.yaml", WRONG, &layout()).unwrap_err().to_string();
        let lines: Vec<_> = error.lines().collect();
        let replicas =
            lines.iter().filter(|line| line.starts_with("job.yaml:13: spec.worker.replicas: \"three\" is not "));
        assert_eq!(replicas.count(), 1, "{error}");
        assert_eq!(lines.last(), Some(&"job.yaml:14: spec.worker.templat: there is no such field"));
    }

    #[test]
    fn every_version_that_a_definition_serves_is_taken() {
        let text =
            |version: &str| format!("apiVersion: openrhino.org/{version}\nkind: RhinoJob\nmetadata: {{name: r}}\n");
        let layout = layout();
        for version in ["v1alpha1", "v1alpha2"] {
            let jobs = parse("r.yaml", &text(version), &layout);
            let jobs = jobs.unwrap_or_else(|error| panic!("{version}: {error:#}"));
            assert_eq!(jobs[0]["apiVersion"], "openrhino.org/v1alpha2", "as the API server stores it");
        }
        let refused = format!("{:#}", parse("r.yaml", &text("v1"), &layout).unwrap_err());
        assert!(refused.contains("openrhino.org/v1alpha1 RhinoJob, openrhino.org/v1alpha2 RhinoJob"), "{refused}");
    }

    #[test]
    fn the_examples_have_no_wrong_value() {
        let layout = layout();
        for (file, text) in EXAMPLES {
            assert_eq!(parse(file, text, &layout).unwrap().len(), 1);
        }
    }
}
