//! The PodGroup by which a gang scheduler starts the launcher and the workers together.

use crate::MpiJob;
use crate::validate::{Replicas, Valid};
use serde_json::{Value, json};
use troupe_plugin::PodTemplate;
use troupe_plugin::gang::PodGroup;
use troupe_plugin::quantity::{self, Missing, Resources};
use troupe_plugin::types::{ChildKind, Moment, Object};

/// The fields of a PodGroup that the host keeps.
const KEEP: [&str; 5] =
    ["/spec/minMember", "/spec/minResources", "/spec/queue", "/spec/priorityClassName", "/spec/scheduleTimeoutSeconds"];

/// Returns the kinds of PodGroup.
pub(crate) fn children() -> impl Iterator<Item = ChildKind> {
    PodGroup::children(&KEEP)
}

fn group(job: &MpiJob) -> Option<PodGroup> {
    PodGroup::of(&job.config.gang_scheduling)
}

/// Adds the scheduler name and the reference to the PodGroup, if there is a gang scheduler.
pub(crate) fn mark(job: &MpiJob, template: &mut PodTemplate<'_>) {
    if let Some(group) = group(job) {
        group.mark(template, job.name());
        template.set("schedulerName", job.config.gang_scheduling.as_str());
    }
}

/// Returns the job's PodGroup, if there is a gang scheduler.
pub(crate) fn pod_group(job: &MpiJob, valid: &Valid<'_>) -> Option<Object> {
    let group = group(job)?;
    Some(group.object(&spec(job, valid, group), vec![Moment::Suspended, Moment::Cleaned]))
}

fn spec(job: &MpiJob, valid: &Valid<'_>, group: PodGroup) -> Value {
    let policy = job.spec.run_policy.as_ref().and_then(|policy| policy.scheduling_policy.as_ref());
    let policy = |field: &str| policy.and_then(|policy| policy.get(field)).filter(|value| !value.is_null());
    let workers = valid.worker.as_ref().map_or(0, |worker| worker.replicas);
    // Better: a launcher that waits for the workers is not a member, since they would wait for each other for ever.
    let launchers = u32::from(!(job.spec.launcher_waits_for_workers() && workers > 0));
    let given = policy("minAvailable").and_then(Value::as_u64).and_then(|least| u32::try_from(least).ok());
    let members = given.unwrap_or(workers + launchers);
    let mut spec = json!({ "minMember": members });
    let least = policy("minResources").cloned().or_else(|| resources(valid, launchers, workers, members));
    if let Some(least) = least {
        spec["minResources"] = least;
    }
    match group {
        PodGroup::SchedulerPlugins => {
            spec["scheduleTimeoutSeconds"] = policy("scheduleTimeoutSeconds").cloned().unwrap_or_else(|| json!(0));
        }
        PodGroup::Volcano => {
            let annotated = job.view.annotations.iter().find(|(name, _)| name == "scheduling.volcano.sh/queue-name");
            let queue = text(policy("queue")).or_else(|| annotated.map(|(_, queue)| queue.clone()));
            let priority = text(policy("priorityClass"))
                .or_else(|| priority(&valid.launcher))
                .or_else(|| valid.worker.as_ref().and_then(priority));
            for (field, text) in [("queue", queue), ("priorityClassName", priority)] {
                if let Some(text) = text {
                    spec[field] = json!(text);
                }
            }
        }
    }
    spec
}

fn text(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn priority(replicas: &Replicas<'_>) -> Option<String> {
    let template: Value = replicas.template.read()?;
    text(template.pointer("/spec/priorityClassName"))
}

/// Returns the sum of the requests of this number of members: first the launcher, then workers. Unlike in the original,
/// priorities do not matter, since no job starts without its launcher.
fn resources(valid: &Valid<'_>, launchers: u32, workers: u32, members: u32) -> Option<Value> {
    if members == 0 {
        return None;
    }
    let launchers = launchers.min(members);
    let workers = workers.min(members - launchers);
    let mut sum = Resources::new();
    for (replicas, count) in [(Some(&valid.launcher), launchers), (valid.worker.as_ref(), workers)] {
        let template: Value = replicas.and_then(|replicas| replicas.template.read()).unwrap_or_default();
        quantity::add(&mut sum, &quantity::requests(&template, Missing::Names), count);
    }
    Some(sum.into_iter().map(|(name, amount)| (name, json!(amount.to_string()))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{foo, parsed};
    use crate::spec::Config;
    use crate::validate::validate;
    use troupe_plugin::types::Body;

    fn template(cpu: &str, memory: &str, priority: &str) -> Value {
        let requests = json!({ "requests": { "cpu": cpu, "memory": memory } });
        let container = json!({ "name": "c", "image": "i", "resources": requests });
        json!({ "spec": { "priorityClassName": priority, "containers": [container] } })
    }

    fn gang(scheduler: &str, launcher: &Value, worker: (u32, &Value), fields: &Value) -> MpiJob {
        let mut all = json!({ "mpiReplicaSpecs": {
            "Launcher": { "template": launcher },
            "Worker": { "replicas": worker.0, "template": worker.1 },
        } });
        for (field, value) in fields.as_object().unwrap() {
            all[field] = value.clone();
        }
        let mut job = foo(&all);
        job.config = serde_json::from_value::<Config>(json!({ "gang-scheduling": scheduler })).unwrap();
        job
    }

    fn spec_of(job: &MpiJob) -> Value {
        let Body::Fixed((body, _)) = pod_group(job, &validate(job).unwrap()).unwrap().body else {
            panic!("a PodGroup does not depend on what is seen")
        };
        parsed(&body)["spec"].clone()
    }

    // M20 (a)
    #[test]
    fn volcano_gets_queue_priority_and_the_sum_of_all_pods() {
        let (launcher, worker) = (template("1", "2Gi", "high"), template("10", "20Gi", ""));
        let mut job = gang("volcano", &launcher, (2, &worker), &json!({}));
        job.view.annotations = vec![("scheduling.volcano.sh/queue-name".into(), "project-x".into())];
        let expected = json!({ "minMember": 3, "queue": "project-x", "priorityClassName": "high",
            "minResources": { "cpu": "21", "memory": "42Gi" } });
        assert_eq!(spec_of(&job), expected);
    }

    // M20 (b)
    #[test]
    fn another_scheduler_gets_the_pod_group_of_the_scheduler_plugins() {
        let (launcher, worker) = (template("1", "2Gi", "high"), template("10", "20Gi", ""));
        let job = gang("scheduler-plugins-scheduler", &launcher, (2, &worker), &json!({}));
        let expected = json!({ "minMember": 3, "scheduleTimeoutSeconds": 0,
            "minResources": { "cpu": "21", "memory": "42Gi" } });
        assert_eq!(spec_of(&job), expected);
        assert_eq!(group(&job), Some(PodGroup::SchedulerPlugins));
    }

    // M20 (c)
    #[test]
    fn the_scheduling_policy_takes_precedence() {
        let policy = json!({ "minAvailable": 2, "queue": "project-y", "priorityClass": "high",
            "minResources": { "cpu": 3 }, "scheduleTimeoutSeconds": 100 });
        let policy = json!({ "runPolicy": { "schedulingPolicy": policy } });
        let pods = template("1", "2Gi", "low");
        let expected =
            json!({ "minMember": 2, "queue": "project-y", "priorityClassName": "high", "minResources": { "cpu": 3 } });
        assert_eq!(spec_of(&gang("volcano", &pods, (2, &pods), &policy)), expected);
        let expected = json!({ "minMember": 2, "minResources": { "cpu": 3 }, "scheduleTimeoutSeconds": 100 });
        assert_eq!(spec_of(&gang("s", &pods, (2, &pods), &policy)), expected);
    }

    // M20 (f), and (g), Better: the launcher is always a member
    #[test]
    fn a_gang_smaller_than_the_job_has_the_launcher_and_some_workers() {
        let policy = json!({ "runPolicy": { "schedulingPolicy": { "minAvailable": 2 } } });
        for (launcher, worker) in [("high", "low"), ("low", "high")] {
            let job = gang("volcano", &template("2", "4Gi", launcher), (100, &template("20", "64Gi", worker)), &policy);
            assert_eq!(spec_of(&job)["minResources"], json!({ "cpu": "22", "memory": "68Gi" }));
        }
    }

    #[test]
    fn workers_do_not_wait_for_a_launcher_that_waits_for_them() {
        let pods = template("1", "1Gi", "");
        let job = gang("volcano", &pods, (2, &pods), &json!({ "launcherCreationPolicy": "WaitForWorkersReady" }));
        let expected = json!({ "minMember": 2, "minResources": { "cpu": "2", "memory": "2Gi" } });
        assert_eq!(spec_of(&job), expected);
    }

    // M12: a job with only a launcher
    #[test]
    fn a_job_without_workers_is_a_gang_of_one() {
        let mut job = gang("volcano", &template("1", "1Gi", ""), (1, &template("1", "1Gi", "")), &json!({}));
        job.spec.mpi_replica_specs.as_mut().unwrap().remove("Worker");
        assert_eq!(spec_of(&job)["minMember"], 1);
    }
}
