//! The kinds of job that a CronJob runs.

use crate::plan::LABEL;
use troupe_plugin::types::ChildKind;

/// A kind of job.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    plural: &'static str,
}

const fn kind(api_version: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind { api_version, kind, plural }
}

/// The original's kind.
pub(crate) const JOB: &Kind = &KINDS[0];

/// All kinds: Kubernetes' Job, and the jobs that Troupe serves.
pub(crate) const KINDS: [Kind; 10] = [
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

impl Kind {
    /// Returns the kind of these names.
    pub(crate) fn named(api_version: &str, kind: &str) -> Option<&'static Self> {
        KINDS.iter().find(|known| (known.api_version, known.kind) == (api_version, kind))
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
            api_version: self.api_version.into(),
            kind: self.kind.into(),
            plural: self.plural.into(),
            selector: (!is_job).then(|| LABEL.into()),
            keep: KEPT.map(str::to_owned).into(),
            optional: !is_job,
        }
    }
}
