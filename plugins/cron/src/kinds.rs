//! The kinds of job that a CronJob runs: those that come with the host, and those of the settings.

use crate::plan::LABEL;
use serde::Deserialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use troupe_plugin::types::{ChildKind, OwnedBy};

/// A kind of job.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Kind {
    /// Group and version.
    pub api_version: Cow<'static, str>,
    /// The kind.
    pub kind: Cow<'static, str>,
    /// Its plural, as in a URL. Only the host reads that of a kind of the settings.
    plural: Cow<'static, str>,
}

const fn kind(api_version: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind { api_version: Cow::Borrowed(api_version), kind: Cow::Borrowed(kind), plural: Cow::Borrowed(plural) }
}

/// The original's kind.
pub(crate) const JOB: &Kind = &KINDS[0];

/// Kubernetes' Job, and the jobs of the plugins that come with the host.
pub(crate) const KINDS: &[Kind] = &[
    kind("batch/v1", "Job", "jobs"),
    kind("kubeflow.org/v2beta1", "MPIJob", "mpijobs"),
    kind("batch.paddlepaddle.org/v1", "PaddleJob", "paddlejobs"),
    kind("openrhino.org/v1alpha2", "RhinoJob", "rhinojobs"),
    kind("kubeflow.org/v1", "PyTorchJob", "pytorchjobs"),
    kind("kubeflow.org/v1", "TFJob", "tfjobs"),
    kind("kubeflow.org/v1", "XGBoostJob", "xgboostjobs"),
    kind("kubeflow.org/v1", "JAXJob", "jaxjobs"),
    kind("kubeflow.org/v1", "PaddleJob", "paddlejobs"),
    kind("batch.troupe.dev/v1alpha1", "IndexedJob", "indexedjobs"),
];

/// What is kept of a run.
const KEPT: [&str; 3] = ["/status", "/metadata/creationTimestamp", "/metadata/annotations"];

/// Returns the JSON schema of the setting `kinds`. The host watches the kinds that are named there like those of
/// [`KINDS`], and may remove their objects.
pub(crate) fn schema() -> Value {
    let text = |words: &str| json!({ "description": words, "type": "string", "minLength": 1 });
    json!({
        "description": "Kinds of job that a template may have, beside those that come with Troupe.",
        "type": "array",
        "maxItems": 32,
        "items": {
            "type": "object",
            "required": ["apiVersion", "kind", "plural"],
            "additionalProperties": false,
            "properties": {
                // Runs are no objects of Kubernetes' own groups but Jobs.
                "apiVersion": {
                    "description": "Group and version; the group has a dot.",
                    "type": "string",
                    "pattern": r"^[a-z0-9-]+(\.[a-z0-9-]+)+/[a-z0-9]+$",
                },
                "kind": text("The kind."),
                "plural": text("Its plural, as in a URL."),
            },
        },
        "x-troupe-children": { "selector": LABEL, "keep": KEPT, "deletes": true },
    })
}

impl Kind {
    /// Returns whether the kind has these names.
    pub(crate) fn is(&self, api_version: &str, kind: &str) -> bool {
        (&*self.api_version, &*self.kind) == (api_version, kind)
    }

    /// Returns how a grant calls the kind: `PaddleJob.kubeflow.org`.
    pub(crate) fn grant(&self) -> String {
        let group = self.api_version.split('/').next().unwrap_or_default();
        format!("{}.{group}", self.kind)
    }

    /// Jobs of the original operator carry no label of ours, and the API server always has their kind.
    pub(crate) fn child(&self) -> ChildKind {
        let is_job = self == JOB;
        ChildKind {
            api_version: self.api_version.to_string(),
            kind: self.kind.to_string(),
            plural: self.plural.to_string(),
            selector: (!is_job).then(|| LABEL.into()),
            keep: KEPT.map(str::to_owned).into(),
            optional: !is_job,
            owned_by: OwnedBy::Job,
        }
    }
}
