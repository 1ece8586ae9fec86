//! How a gang scheduler starts a job's pods together.

use crate::{Job, spec::Role};
use serde_json::Value;
use troupe_plugin::{PodTemplate, UserTemplate, json_text, types::Gang};

/// The name of the Volcano scheduler.
const VOLCANO: &str = "volcano";

/// Returns the job's gang: the settings select a scheduler, and no role has another.
pub(crate) fn gang(job: &Job) -> Option<Gang> {
    let gang = Gang::new(&job.config.scheduling, job.spec.roles().map(|role| role.name))?;
    let has_other_scheduler = |role: Role<'_>| {
        let template: Value = role.spec.template.as_ref().and_then(UserTemplate::read).unwrap_or_default();
        let name = template.pointer("/spec/schedulerName").and_then(Value::as_str);
        name.is_some_and(|name| !name.is_empty() && name != job.config.scheduling)
    };
    if job.spec.roles().any(has_other_scheduler) {
        return None;
    }
    let policy = job.spec.scheduling_policy.as_ref();
    let priority = policy.and_then(|policy| policy.priority_class.clone()).filter(|name| !name.is_empty());
    Some(Gang {
        min_member: policy.and_then(|policy| policy.min_available).and_then(|least| u32::try_from(least).ok()),
        min_resources: policy.and_then(|policy| policy.min_resources.as_ref()).map(json_text),
        queue: queue(job).map(str::to_owned),
        priority_class: priority,
        ..gang
    })
}

/// Adds what the original writes for Volcano beside what Volcano reads, if it schedules the job.
pub(crate) fn mark(job: &Job, gang: Option<&Gang>, template: &mut PodTemplate<'_>) {
    if gang.is_some_and(|gang| gang.scheduler == VOLCANO) {
        template.annotation("volcano.sh/job-name", job.name());
        template.annotation("volcano.sh/job-version", "0");
        template.annotation("volcano.sh/queue-name", queue(job).unwrap_or_default());
    }
}

fn queue(job: &Job) -> Option<&str> {
    job.spec.scheduling_policy.as_ref()?.queue.as_deref().filter(|queue| !queue.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use troupe_plugin::testkit;

    fn role(replicas: i64, pod: &Value) -> Value {
        let mut spec = pod.clone();
        spec["containers"] = json!([{ "name": "paddle" }]);
        json!({ "replicas": replicas, "template": { "spec": spec } })
    }

    fn job(config: &str, spec: &Value) -> Job {
        let mut view = testkit::job("PaddleJob", "wide", spec);
        view.config = config.into();
        Job::parse(view).unwrap()
    }

    const ON: &str = r#"{"scheduling":"volcano"}"#;

    // A14
    #[test]
    fn all_roles_start_together() {
        let spec = json!({ "schedulingPolicy": { "queue": "default" }, "ps": role(2, &json!({})), "worker": role(2, &json!({})) });
        let gang = gang(&job(ON, &spec)).unwrap();
        assert_eq!(
            (gang.members, gang.queue.as_deref()),
            (vec!["ps".to_owned(), "worker".to_owned()], Some("default"))
        );
        assert_eq!((gang.min_member, gang.min_resources), (None, None));
    }

    // A16
    #[test]
    fn the_scheduling_policy_takes_precedence() {
        let policy = json!({ "minAvailable": 3, "queue": "q", "priorityClass": "high", "minResources": { "cpu": 7 } });
        let gang = gang(&job(ON, &json!({ "schedulingPolicy": policy, "worker": role(4, &json!({})) }))).unwrap();
        assert_eq!((gang.min_member, gang.queue.as_deref()), (Some(3), Some("q")));
        assert_eq!(
            (gang.priority_class.as_deref(), gang.min_resources.as_deref()),
            (Some("high"), Some(r#"{"cpu":7}"#))
        );
    }

    // A15
    #[test]
    fn another_scheduler_in_one_role_switches_volcano_off() {
        let mine = role(1, &json!({ "schedulerName": "my-sched" }));
        let theirs = role(1, &json!({ "schedulerName": "volcano" }));
        assert_eq!(gang(&job(ON, &json!({ "ps": theirs, "worker": mine }))), None);
        assert!(gang(&job(ON, &json!({ "ps": theirs, "worker": role(1, &json!({})) }))).is_some());
        assert_eq!(gang(&job("{}", &json!({ "worker": theirs }))), None);
    }
}
