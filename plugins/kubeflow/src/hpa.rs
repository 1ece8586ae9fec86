//! The HorizontalPodAutoscaler of an elastic PyTorchJob, which scales its workers by the job's scale subresource.

use crate::family::Family;
use crate::kind::Framework;
use crate::pytorch;
use serde::Serialize;
use serde_json::value::RawValue;
use troupe_plugin::types::{Body, ChildKind, Moment, Object, OwnedBy, Upkeep};
use troupe_plugin::{job_name, json_text};

const KEEP: [&str; 3] = ["/spec/minReplicas", "/spec/maxReplicas", "/spec/metrics"];

/// Returns the kind of child.
pub(crate) fn child() -> ChildKind {
    ChildKind {
        api_version: "autoscaling/v2".into(),
        kind: "HorizontalPodAutoscaler".into(),
        plural: "horizontalpodautoscalers".into(),
        // The original's carry no label.
        selector: None,
        keep: KEEP.map(String::from).into(),
        optional: true,
        owned_by: OwnedBy::Job,
    }
}

#[derive(Serialize)]
struct Autoscaler<'a> {
    spec: Spec<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    scale_target_ref: Target<'a>,
    min_replicas: i64,
    max_replicas: i64,
    metrics: &'a RawValue,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Target<'a> {
    api_version: &'static str,
    kind: &'static str,
    name: &'a str,
}

/// Returns the autoscaler, if the job says by which metrics it is scaled.
pub(crate) fn of(family: &Family<'_>) -> Option<Object> {
    let metrics = family.job.spec.elastic_policy.as_ref()?.metrics.as_deref()?;
    let (least, most) = pytorch::limits(family)?;
    if family.kind.framework != Framework::PyTorch || metrics.get() == "[]" {
        return None;
    }
    let target = Target { api_version: crate::API_VERSION, kind: family.kind.name, name: family.job.name() };
    let spec = Spec { scale_target_ref: target, min_replicas: least, max_replicas: most, metrics };
    Some(Object {
        key: "autoscaler".into(),
        api_version: "autoscaling/v2".into(),
        kind: "HorizontalPodAutoscaler".into(),
        name: vec![job_name()],
        per_pod_of: None,
        body: Body::Fixed((json_text(&Autoscaler { spec }), vec![])),
        upkeep: Upkeep::Follow(KEEP.map(String::from).into()),
        after: vec![],
        // Better: the original keeps it for a finished job.
        remove_when: vec![Moment::Suspended, Moment::Finished],
    })
}
