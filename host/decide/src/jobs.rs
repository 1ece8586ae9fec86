//! The Jobs behind roles: created once their gates are open, with the limits that the job has by now, suspended and resumed
//! with it, suspended when it fails.

use crate::{
    Snapshot, build,
    decision::{Action, Part},
    ledger::Finished,
    names, outdated,
    plan::{Backing, Clean, Outcome, Role},
    snapshot::Child,
    standing::Standing,
    status::merge_patch,
    waiting::Waiting,
};
use serde_json::{Map, Value, json};

/// Fields of a pod spec that may change while a Job is suspended (KEP-2926).
const DIRECTIVES: [&str; 4] = ["nodeSelector", "tolerations", "affinity", "schedulingGates"];

/// The fields of a Job that follow an edit of the job, where the plugin keeps them.
pub(crate) const LIMITS: [&str; 3] = ["backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"];

/// Creates the Job behind each role once its gates are open, and keeps its limits and its suspend switch equal to the job's.
/// While the job is suspended none is created: an edit before the resumption is in it then (M09, Better).
pub(crate) fn jobs(standing: &Standing<'_>) -> (Vec<Action>, Vec<Waiting>) {
    let Standing { snapshot, plan, .. } = standing;
    let mut actions = Vec::new();
    let mut waiting = Vec::new();
    for (place, role) in plan.roles.iter().enumerate() {
        let Backing::Job(body) = &role.backing else { continue };
        let name = names::of_replica(role, &snapshot.job.name, 0);
        if let Some(child) = snapshot.job_behind(role) {
            let held = !standing.open(&role.after);
            let wanted = || build::job(snapshot, plan, role, body, &name);
            actions.extend(suspend_switch(snapshot, child, held, wanted));
            actions.extend(limits(child, body));
            waiting.extend(standing.closed(&role.after).filter(|_| child.job_is_suspended() && !snapshot.suspended()));
        } else if is_lost(snapshot, role) {
            waiting.push(Waiting::Lost { kind: "Job".into(), name });
        } else if snapshot.taken.contains(&("Job".to_owned(), name.clone())) {
            waiting.push(Waiting::Terminating { kind: "Job".into(), name });
        } else if snapshot.suspended() {
            // It comes with the resumption.
        } else if let Some(why) = standing.closed(&role.after) {
            waiting.push(why);
        } else {
            let create = Action::create("batch/v1", "Job", &name, Part::Job { role: place });
            actions.push(create.with_ledger_key(role.removes_itself().then(|| ledger_key(role))));
        }
    }
    (actions, waiting)
}

/// Returns the ledger key of a Job that removes itself.
pub(crate) fn ledger_key(role: &Role) -> String {
    format!("job/{}", role.name)
}

/// Returns whether the Job behind the role was created and is gone, and nobody saw how it ended.
#[must_use]
pub fn is_lost(snapshot: &Snapshot, role: &Role) -> bool {
    role.removes_itself() && snapshot.ledger.made.contains(&ledger_key(role)) && snapshot.job_behind(role).is_none()
}

/// Suspends the Jobs behind the roles of a failed job whose pods are cleaned up: this deletes their pods and keeps
/// their record.
pub(crate) fn stop(snapshot: &Snapshot, finished: &Finished) -> Vec<Action> {
    if finished.outcome != Outcome::Failed || finished.clean == Clean::Keep {
        return vec![];
    }
    suspend_all(snapshot).collect()
}

/// Suspends every Job of this job that is under way.
pub(crate) fn suspend_all(snapshot: &Snapshot) -> impl Iterator<Item = Action> {
    let jobs = snapshot.children.iter().filter(|child| child.kind == "Job");
    let running = jobs.filter(|child| !child.terminating && !child.job_is_over() && !child.job_is_suspended());
    running.map(|child| suspend(child))
}

fn suspend(child: &Child) -> Action {
    Action::patch(child, json!({ "spec": { "suspend": true } }))
}

/// Sets the suspend switch of a Job. A suspended Job is resumed when the job is resumed and the role's gates are open
/// (M11, Better), with the scheduling directives that the job has by then (M09).
fn suspend_switch(snapshot: &Snapshot, child: &Child, held: bool, wanted_job: impl Fn() -> Value) -> Option<Action> {
    let is = child.job_is_suspended();
    let wanted = snapshot.suspended() || (is && held);
    if is == wanted || child.terminating || child.job_is_over() {
        return None;
    }
    if wanted {
        return Some(suspend(child));
    }
    // The directives of a Job with a start time cannot be changed.
    if child.fields.get("/status").is_some_and(|status| !status["startTime"].is_null()) {
        return Some(Action::patch_status(child, json!({ "status": { "startTime": null } })));
    }
    let template = directives(child, &wanted_job()["spec"]["template"]);
    Some(Action::patch(child, json!({ "spec": { "suspend": false, "template": template } })))
}

/// Returns the patch that gives a Job the limits that the job has by now; None where the plugin keeps no limits.
fn limits(child: &Child, body: &Value) -> Option<Action> {
    let has = |field: &str| child.fields.get(&format!("/spec/{field}")).unwrap_or(&Value::Null);
    // The API server gives each Job a back-off limit.
    if has(LIMITS[0]).is_null() || child.terminating || child.job_is_over() {
        return None;
    }
    // What the plan does not say may be another's, such as an admission policy's.
    let wanted = LIMITS.into_iter().filter_map(|field| Some((field, body["spec"].get(field)?)));
    let spec: Map<_, _> = wanted
        .filter(|(field, value)| has(field) != *value)
        .map(|(field, value)| (field.to_owned(), value.clone()))
        .collect();
    (!spec.is_empty()).then(|| Action::patch(child, json!({ "spec": spec })))
}

/// Returns a merge patch that gives the Job the labels, annotations and scheduling directives of a template. Other
/// labels and annotations stay, and so does the name of the template that it was created from; directives that the template
/// lacks are removed.
fn directives(child: &Child, template: &Value) -> Value {
    let spec = DIRECTIVES.map(|field| {
        let has = child.fields.get(&format!("/spec/template/spec/{field}")).unwrap_or(&Value::Null);
        (field.to_owned(), merge_patch(has, &template["spec"][field]))
    });
    let mut patch = json!({ "spec": Map::from_iter(spec) });
    for section in ["labels", "annotations"] {
        if let Some(entries @ Value::Object(_)) = template["metadata"].get(section) {
            patch["metadata"][section] = entries.clone();
        }
    }
    if let Some(annotations) = patch.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(outdated::TEMPLATE_HASH_ANNOTATION);
    }
    patch
}
