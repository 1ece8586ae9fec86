//! How a gang scheduler starts the launcher and the workers together.

use crate::validate::{Replicas, Valid};
use crate::{MpiJob, launcher, plan};
use serde_json::Value;
use troupe_plugin::PodTemplate;
use troupe_plugin::json_text;
use troupe_plugin::types::Gang;

/// The setting that selects the cluster's own scheduler, which has another name.
const KUBERNETES: &str = "kubernetes";

/// Sets the scheduler's name, in place of the user's as in the original, if there is a gang scheduler.
pub(crate) fn mark(job: &MpiJob, template: &mut PodTemplate<'_>) {
    let scheduler = job.config.gang_scheduling.as_str();
    if !scheduler.is_empty() && scheduler != KUBERNETES {
        template.set("schedulerName", scheduler);
    }
}

/// Returns the job's gang, if there is a gang scheduler.
pub(crate) fn gang(job: &MpiJob, valid: &Valid<'_>) -> Option<Gang> {
    let policy = job.spec.run_policy.as_ref().and_then(|policy| policy.scheduling_policy.as_ref());
    let policy = |field: &str| policy.and_then(|policy| policy.get(field)).filter(|value| !value.is_null());
    let number = |field: &str| policy(field).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
    let workers = valid.worker.as_ref().map_or(0, |worker| worker.replicas);
    // Better: a launcher that waits for the workers is not a member, since they would wait for each other for ever.
    let launcher = (!(job.spec.launcher_waits_for_workers() && workers > 0)).then_some(launcher::ROLE);
    let annotated = job.view.annotations.iter().find(|(name, _)| name == "scheduling.volcano.sh/queue-name");
    let members = launcher.into_iter().chain([plan::WORKER]);
    Some(Gang {
        min_member: number("minAvailable"),
        min_resources: policy("minResources").map(json_text),
        queue: text(policy("queue")).or_else(|| annotated.map(|(_, queue)| queue.clone())),
        priority_class: text(policy("priorityClass"))
            .or_else(|| priority(&valid.launcher))
            .or_else(|| valid.worker.as_ref().and_then(priority)),
        schedule_timeout: Some(number("scheduleTimeoutSeconds").unwrap_or(0)),
        ..Gang::new(&job.config.gang_scheduling, members)?
    })
}

fn text(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn priority(replicas: &Replicas<'_>) -> Option<String> {
    let template: Value = replicas.template.read()?;
    text(template.pointer("/spec/priorityClassName"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{foo, parsed};
    use crate::spec::Config;
    use crate::validate::validate;
    use serde_json::json;

    fn template(priority: &str) -> Value {
        json!({ "spec": { "priorityClassName": priority, "containers": [{ "name": "c", "image": "i" }] } })
    }

    fn job(launcher: &Value, worker: &Value, fields: &Value) -> MpiJob {
        let mut all = json!({ "mpiReplicaSpecs": {
            "Launcher": { "template": launcher },
            "Worker": { "replicas": 2, "template": worker },
        } });
        for (field, value) in fields.as_object().unwrap() {
            all[field] = value.clone();
        }
        let mut job = foo(&all);
        job.config = serde_json::from_value::<Config>(json!({ "gang-scheduling": "volcano" })).unwrap();
        job
    }

    fn gang_of(job: &MpiJob) -> Gang {
        gang(job, &validate(job).unwrap()).unwrap()
    }

    // M20 (a)
    #[test]
    fn queue_and_priority_are_the_annotations_and_the_launchers() {
        let mut job = job(&template("high"), &template("low"), &json!({}));
        job.view.annotations = vec![("scheduling.volcano.sh/queue-name".into(), "project-x".into())];
        let gang = gang_of(&job);
        assert_eq!(gang.members, ["launcher", "worker"]);
        assert_eq!((gang.queue.as_deref(), gang.priority_class.as_deref()), (Some("project-x"), Some("high")));
        assert_eq!((gang.min_member, gang.min_resources, gang.schedule_timeout), (None, None, Some(0)));
    }

    // M20 (c)
    #[test]
    fn the_scheduling_policy_takes_precedence() {
        let policy = json!({ "minAvailable": 2, "queue": "project-y", "priorityClass": "high",
            "minResources": { "cpu": 3 }, "scheduleTimeoutSeconds": 100 });
        let policy = json!({ "runPolicy": { "schedulingPolicy": policy } });
        let gang = gang_of(&job(&template("low"), &template("low"), &policy));
        assert_eq!((gang.queue.as_deref(), gang.priority_class.as_deref()), (Some("project-y"), Some("high")));
        assert_eq!((gang.min_member, gang.schedule_timeout), (Some(2), Some(100)));
        assert_eq!(parsed(&gang.min_resources.unwrap()), json!({ "cpu": 3 }));
    }

    #[test]
    fn workers_do_not_wait_for_a_launcher_that_waits_for_them() {
        let policy = json!({ "launcherCreationPolicy": "WaitForWorkersReady" });
        assert_eq!(gang_of(&job(&template(""), &template(""), &policy)).members, ["worker"]);
    }

    // M12: a job with only a launcher
    #[test]
    fn a_launcher_without_workers_waits_for_none() {
        let policy = json!({ "launcherCreationPolicy": "WaitForWorkersReady" });
        let mut job = job(&template(""), &template(""), &policy);
        job.spec.mpi_replica_specs.as_mut().unwrap().remove("Worker");
        assert_eq!(gang_of(&job).members, ["launcher", "worker"]);
    }
}
