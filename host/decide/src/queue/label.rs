//! The label of a queue where it queues something else than the job: on the templates of pods, of which each is then queued
//! by itself, and on a job whose runs are what a queue admits.

use crate::{
    Snapshot,
    plan::{Plan, Role, Series},
    snapshot::{QUEUE_LABEL, any_object, is_admitted},
};
use serde_json::Value;

/// The label of pods that the queue admits together, without a job.
const GROUP_LABEL: &str = "kueue.x-k8s.io/pod-group-name";

/// Returns where the label of a queue is that does not belong there, and where it belongs, in words.
pub(crate) fn misplaced(snapshot: &Snapshot, plan: &Plan) -> Option<String> {
    let of_runs = plan.series.iter().filter_map(|series| in_series(snapshot, series));
    let parts: Vec<_> = in_roles(snapshot, plan).into_iter().chain(of_runs).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn in_roles(snapshot: &Snapshot, plan: &Plan) -> Option<String> {
    let queued = |role: &&Role| role.most_at_once() > 0 && queues_alone(&role.template);
    let names: Vec<_> = plan.roles.iter().filter(queued).map(|role| &*role.name).collect();
    let roles = match names.as_slice() {
        [] => return None,
        [one] => format!("the pod template of role {one}"),
        more => format!("the pod templates of roles {}", more.join(", ")),
    };
    Some(match snapshot.queue_name() {
        None => format!(
            "the label {QUEUE_LABEL} is on {roles}, where it queues each pod by itself, so that some pods of the job can \
             start without the others; put it in metadata.labels of the job, and take it from there"
        ),
        Some(_) => format!(
            "the label {QUEUE_LABEL} is on {roles}, too, where it queues each pod by itself, a second time; take it from \
             there, since metadata.labels of the job has it"
        ),
    })
}

/// Objects of a series are queued by labels of their own.
fn in_series(snapshot: &Snapshot, series: &Series) -> Option<String> {
    let template = snapshot.job.spec.pointer(&series.template_at)?;
    let labels = format!("spec{}.metadata.labels", series.template_at.replace('/', "."));
    if any_object(&template["spec"], queues_alone) {
        return Some(format!(
            "the label {QUEUE_LABEL} is on a pod template of the {}s, where it queues at most each pod by itself; put it \
             in {labels}, and take it from there",
            series.kind
        ));
    }
    let is_queued = named(&template["metadata"], QUEUE_LABEL).is_some();
    (snapshot.queue_name().is_some() && !is_queued).then(|| {
        format!(
            "the label {QUEUE_LABEL} is in metadata.labels of this job, which has no pods to queue; put it in {labels}, \
             so that each {} is queued",
            series.kind
        )
    })
}

/// Returns whether each pod of this template is queued by itself. Kueue puts the label on the templates of a job that it admits
/// (`AssignQueueLabelsForPods`, on since 0.17).
fn queues_alone(template: &Value) -> bool {
    if is_admitted(template) {
        return false;
    }
    let metadata = &template["metadata"];
    template["spec"]["containers"].is_array()
        && named(metadata, QUEUE_LABEL).is_some()
        && named(metadata, GROUP_LABEL).is_none()
}

fn named<'a>(metadata: &'a Value, label: &str) -> Option<&'a str> {
    metadata["labels"][label].as_str().filter(|name| !name.is_empty())
}
