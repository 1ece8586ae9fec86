//! The PodGroup by which Volcano schedules a job's pods: it starts `minAvailable` pods together (by default all), or
//! none.

use crate::{Job, spec::Role};
use serde_json::{Value, json};
use troupe_plugin::{
    PodTemplate, UserTemplate, field_is, job_name,
    quantity::{self, Missing, Resources},
    types::{Body, Gate, Moment, Object, Upkeep},
};

/// The PodGroup's key in the plan.
const KEY: &str = "pod-group";
/// The name of the Volcano scheduler.
const VOLCANO: &str = "volcano";
/// The pointer of a PodGroup's phase.
const PHASE: &str = "/status/phase";
/// The pointer of what Volcano says of a PodGroup, which the host reports while the job waits for the phase.
const CONDITIONS: &str = "/status/conditions";
/// The pointers of a PodGroup that the host keeps.
pub(crate) const KEEP: [&str; 6] =
    [PHASE, CONDITIONS, "/spec/minMember", "/spec/minResources", "/spec/queue", "/spec/priorityClassName"];

/// Returns whether Volcano schedules the job: the settings select it, and no role has another scheduler.
pub(crate) fn is_on(job: &Job) -> bool {
    let has_other_scheduler = |role: Role<'_>| {
        let template: Value = role.spec.template.as_ref().and_then(UserTemplate::read).unwrap_or_default();
        let name = template.pointer("/spec/schedulerName").and_then(Value::as_str);
        name.is_some_and(|name| !name.is_empty() && name != VOLCANO)
    };
    job.config.scheduling == VOLCANO && !job.spec.roles().any(has_other_scheduler)
}

/// Adds the scheduler name and the annotations that Volcano reads.
pub(crate) fn mark(job: &Job, role: &Role<'_>, template: &mut PodTemplate<'_>) {
    template.set("schedulerName", VOLCANO);
    template.annotation("scheduling.k8s.io/group-name", job.name());
    template.annotation("volcano.sh/task-spec", role.name);
    template.annotation("volcano.sh/job-name", job.name());
    template.annotation("volcano.sh/job-version", "0");
    template.annotation("volcano.sh/queue-name", queue(job).unwrap_or_default());
}

/// Returns the gate that opens when the PodGroup is admitted.
pub(crate) fn admitted() -> Gate {
    field_is(KEY, PHASE, &["Inqueue", "Running"])
}

/// Returns the job's PodGroup. Better: it follows the job's scale, which the original's does not.
pub(crate) fn pod_group(job: &Job) -> Object {
    let policy = job.spec.scheduling_policy.as_ref();
    let total: u32 = job.spec.roles().map(|role| role.replicas()).sum();
    let mut spec =
        json!({ "minMember": policy.and_then(|policy| policy.min_available).map_or(json!(total), |n| json!(n)) });
    spec["minResources"] = match policy.and_then(|policy| policy.min_resources.as_ref()) {
        Some(given) => json!(given),
        None => resources(job),
    };
    let priority = policy.and_then(|policy| policy.priority_class.as_deref()).filter(|name| !name.is_empty());
    for (field, text) in [("queue", queue(job)), ("priorityClassName", priority)] {
        if let Some(text) = text {
            spec[field] = json!(text);
        }
    }
    let fields = spec.as_object().into_iter().flat_map(|fields| fields.keys());
    let follow = fields.map(|field| format!("/spec/{field}")).collect();
    Object {
        key: KEY.into(),
        api_version: "scheduling.volcano.sh/v1beta1".into(),
        kind: "PodGroup".into(),
        name: vec![job_name()],
        per_pod_of: None,
        body: Body::Fixed((json!({ "spec": spec }).to_string(), vec![])),
        upkeep: Upkeep::Follow(follow),
        after: vec![],
        remove_when: vec![Moment::Finished],
    }
}

fn queue(job: &Job) -> Option<&str> {
    job.spec.scheduling_policy.as_ref()?.queue.as_deref().filter(|queue| !queue.is_empty())
}

fn resources(job: &Job) -> Value {
    let mut sum = Resources::new();
    for role in job.spec.roles() {
        let template: Value = role.spec.template.as_ref().and_then(UserTemplate::read).unwrap_or_default();
        quantity::add(&mut sum, &quantity::requests(&template, Missing::All), role.replicas());
    }
    sum.into_iter().map(|(name, amount)| (name, json!(amount.to_string()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Map;
    use troupe_plugin::testkit;

    fn role(replicas: u32, pod: &Value) -> Value {
        let mut spec = pod.clone();
        spec["containers"] = json!([{ "name": "paddle", "resources": pod["resources"] }]);
        json!({ "replicas": replicas, "template": { "spec": spec } })
    }

    fn job(config: &str, spec: &Value) -> Job {
        let mut view = testkit::job("PaddleJob", "wide", spec);
        view.config = config.into();
        Job::parse(view).unwrap()
    }

    fn spec_of(object: &Object) -> Map<String, Value> {
        let Body::Fixed((body, _)) = &object.body else { panic!("a PodGroup does not depend on what is seen") };
        serde_json::from_str::<Value>(body).unwrap()["spec"].as_object().unwrap().clone()
    }

    const ON: &str = r#"{"scheduling":"volcano"}"#;

    // A14: the sum over roles of the requests, or of the limits of a container without requests.
    #[test]
    fn a_pod_group_asks_for_all_pods_and_their_requests() {
        let ps = role(2, &json!({ "resources": { "requests": { "cpu": "200m" } } }));
        let worker = role(2, &json!({ "resources": { "limits": { "cpu": "300m" } } }));
        let job = job(ON, &json!({ "schedulingPolicy": { "queue": "default" }, "ps": ps, "worker": worker }));
        let spec = json!({ "minMember": 4, "queue": "default", "minResources": { "cpu": "1" } });
        assert_eq!(json!(spec_of(&pod_group(&job))), spec);
    }

    // A16
    #[test]
    fn the_scheduling_policy_takes_precedence() {
        let policy = json!({ "minAvailable": 3, "queue": "q", "priorityClass": "high", "minResources": { "cpu": 7 } });
        let job = job(ON, &json!({ "schedulingPolicy": policy, "worker": role(4, &json!({})) }));
        let spec = json!({ "minMember": 3, "queue": "q", "priorityClassName": "high", "minResources": { "cpu": 7 } });
        assert_eq!(json!(spec_of(&pod_group(&job))), spec);
    }

    // A15
    #[test]
    fn another_scheduler_in_one_role_switches_volcano_off() {
        let mine = role(1, &json!({ "schedulerName": "my-sched" }));
        let theirs = role(1, &json!({ "schedulerName": "volcano" }));
        assert!(!is_on(&job(ON, &json!({ "ps": theirs, "worker": mine }))));
        assert!(is_on(&job(ON, &json!({ "ps": theirs, "worker": role(1, &json!({})) }))));
        assert!(!is_on(&job("{}", &json!({ "worker": theirs }))));
    }
}
