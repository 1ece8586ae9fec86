//! A PaddleJob's status: counters, phase, mode, times.

use crate::{Job, spec::Role};
use serde_json::{Map, Value, json};
use troupe_plugin::{
    ObservationExt, PodExt, rfc3339,
    types::{Observation, Outcome, PodPhase, PodRow, Verdict},
};

/// The job's whole status. A phase that is final stays, with the counters it was reached with.
pub(crate) fn judge(job: &Job, seen: &Observation) -> Verdict {
    let previous = seen.previous();
    let before = previous["phase"].as_str().unwrap_or_default();
    if let "Completed" | "Failed" = before {
        return verdict(&previous, before);
    }
    let counts: Vec<_> = job.spec.roles().map(|role| (role, Counts::of(&role, seen))).collect();
    let phase = phase(job, &counts, before);
    let mut status = Map::new();
    status.insert("phase".into(), json!(phase));
    status.insert("mode".into(), json!(mode(job)));
    for (role, counts) in &counts {
        if let Some(section) = counts.to_json(role, job, seen) {
            status.insert(role.name.into(), section);
        }
    }
    let mut time = |field: &str, when: bool| {
        match &previous[field] {
            Value::Null if when => status.insert(field.into(), json!(rfc3339(seen.now))),
            Value::Null => None,
            kept => status.insert(field.into(), kept.clone()),
        };
    };
    time("startTime", phase == "Running");
    time("completionTime", phase == "Completed" || phase == "Failed");
    verdict(&Value::Object(status), phase)
}

fn verdict(status: &Value, phase: &str) -> Verdict {
    let outcome = match phase {
        "Completed" => Outcome::Succeeded,
        "Failed" => Outcome::Failed,
        _ => Outcome::Open,
    };
    // The original announces no phase.
    Verdict { status: status.to_string(), headline: phase.to_owned(), outcome, events: vec![] }
}

fn mode(job: &Job) -> &'static str {
    match (&job.spec.ps, &job.spec.worker) {
        (Some(_), _) => "PS",
        (None, Some(worker)) if worker.replicas > 1 => "Collective",
        _ => "Single",
    }
}

/// Failed, Starting and Pending count over all roles together, so that the order of roles decides nothing.
fn phase<'a>(job: &Job, counts: &[(Role<'_>, Counts)], before: &'a str) -> &'a str {
    let any = |count: fn(&Counts) -> u32| counts.iter().any(|(_, counts)| count(counts) > 0);
    let all_of = |covered: fn(&Role<'_>) -> bool, count: fn(&Counts) -> u32| {
        let mut covered = counts.iter().filter(|(role, _)| covered(role));
        let none = !covered.clone().any(|(role, _)| role.replicas() > 0);
        !none && covered.all(|(role, counts)| count(counts) == role.replicas())
    };
    let all = |count| all_of(|_| true, count);
    match before {
        _ if any(|counts| counts.failed) => "Failed",
        // Better, if the cluster operator wants it: servers serve, and do not end by themselves.
        _ if job.config.complete_without_servers && all_of(|role| role.name != "ps", |counts| counts.succeeded) => {
            "Completed"
        }
        _ if any(|counts| counts.starting) => "Starting",
        _ if any(|counts| counts.pending) => "Pending",
        _ if all(|counts| counts.running) => "Running",
        _ if all(|counts| counts.succeeded) => "Completed",
        "" => "Pending",
        before => before,
    }
}

/// Pods of a role by what Paddle's status calls them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    pending: u32,
    starting: u32,
    running: u32,
    failed: u32,
    succeeded: u32,
}

impl Counts {
    fn of(role: &Role<'_>, seen: &Observation) -> Self {
        let mut counts = Self { succeeded: seen.gone_succeeded(role.name), ..Self::default() };
        for pod in seen.pods_of(role.name) {
            let count = match pod.phase {
                PodPhase::Pending if pod.in_init("coord-paddle") => &mut counts.starting,
                PodPhase::Pending => &mut counts.pending,
                PodPhase::Running if pod.up() => &mut counts.running,
                PodPhase::Running => &mut counts.starting,
                // Better: a pod that is being deleted passes through Failed; that is no failure of the job.
                PodPhase::Failed if pod.terminating => continue,
                PodPhase::Failed => &mut counts.failed,
                PodPhase::Succeeded => &mut counts.succeeded,
                PodPhase::Unknown => continue,
            };
            *count += 1;
        }
        counts
    }

    /// None while the role has no pod and never had one that succeeded.
    fn to_json(&self, role: &Role<'_>, job: &Job, seen: &Observation) -> Option<Value> {
        let refs: Vec<_> = seen.pods_of(role.name).map(|pod| reference(job, pod)).collect();
        let mut section = Map::new();
        let counters = [
            ("pending", self.pending),
            ("starting", self.starting),
            ("running", self.running),
            ("failed", self.failed),
            ("succeeded", self.succeeded),
        ];
        section.extend(counters.into_iter().filter(|(_, n)| *n > 0).map(|(name, n)| (name.to_owned(), json!(n))));
        if !refs.is_empty() {
            section.insert("refs".into(), json!(refs));
        }
        (!section.is_empty()).then_some(Value::Object(section))
    }
}

/// Without `resourceVersion`, which would change the status with every touch of a pod.
fn reference(job: &Job, pod: &PodRow) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "namespace": job.namespace(), "name": pod.name, "uid": pod.uid })
}

#[cfg(test)]
mod tests {
    use super::*;
    use troupe_plugin::testkit::{self, PodIs, pod};

    fn role(replicas: u32) -> Value {
        json!({ "replicas": replicas, "template": { "spec": { "containers": [{ "name": "paddle" }] } } })
    }

    fn job(spec: &Value) -> Job {
        Job::parse(testkit::job("PaddleJob", "wide", spec)).unwrap()
    }

    fn status(job: &Job, pods: Vec<PodRow>, previous: &Value) -> Value {
        let mut seen = testkit::seen(pods);
        seen.previous_status = previous.to_string();
        serde_json::from_str(&judge(job, &seen).status).unwrap()
    }

    fn ps(index: u32) -> PodRow {
        pod("ps", index, &format!("wide-ps-{index}"))
    }

    fn worker(index: u32) -> PodRow {
        pod("worker", index, &format!("wide-worker-{index}"))
    }

    // A1: pending, with counters and refs, no start time.
    #[test]
    fn a_new_job_is_pending() {
        let job = job(&json!({ "ps": role(1), "worker": role(1) }));
        let status = status(&job, vec![ps(0), worker(0)], &json!({}));
        assert_eq!(
            (&status["phase"], &status["mode"], &status["startTime"]),
            (&json!("Pending"), &json!("PS"), &Value::Null)
        );
        assert_eq!(
            (&status["ps"]["pending"], &status["worker"]["refs"][0]["name"]),
            (&json!(1), &json!("wide-worker-0"))
        );
        assert_eq!(status["ps"]["refs"][0]["resourceVersion"], Value::Null);
    }

    // A3: the coordinator counts as starting; Running needs every container ready; the start time stays.
    #[test]
    fn starting_and_running_follow_the_containers() {
        let job = job(&json!({ "worker": role(2) }));
        let starting = status(
            &job,
            vec![worker(0).initialising("coord-paddle"), worker(1).initialising("coord-paddle")],
            &json!({}),
        );
        assert_eq!((&starting["phase"], &starting["worker"]["starting"]), (&json!("Starting"), &json!(2)));
        let running = status(&job, vec![worker(0).running(), worker(1).running()], &starting);
        assert_eq!((&running["phase"], &running["startTime"]), (&json!("Running"), &json!("2026-01-01T00:00:00Z")));
        let unready = status(&job, vec![worker(0).running_unready(), worker(1).running()], &running);
        assert_eq!(
            (&unready["phase"], &unready["worker"]["running"], &unready["worker"]["starting"]),
            (&json!("Starting"), &json!(1), &json!(1))
        );
        assert_eq!(unready["startTime"], running["startTime"]);
    }

    // A4: workers done, servers running: still Running; then Completed.
    #[test]
    fn a_job_whose_workers_are_done_stays_running_until_its_servers_are() {
        let job = job(&json!({ "ps": role(1), "worker": role(1) }));
        let running = status(&job, vec![ps(0).running(), worker(0).running()], &json!({}));
        let partly = status(&job, vec![ps(0).running(), worker(0).succeeded()], &running);
        assert_eq!((&partly["phase"], &partly["completionTime"]), (&json!("Running"), &Value::Null));
        let done = status(&job, vec![ps(0).succeeded(), worker(0).succeeded()], &partly);
        assert_eq!((&done["phase"], &done["completionTime"]), (&json!("Completed"), &json!("2026-01-01T00:00:00Z")));
    }

    // A5 (X): the final counters are kept when the pods are gone.
    #[test]
    fn a_final_status_is_kept_as_it_was() {
        let job = job(&json!({ "worker": role(1) }));
        let done = status(&job, vec![worker(0).succeeded()], &json!({}));
        assert_eq!(status(&job, vec![], &done), done);
    }

    // A7: failure is sticky.
    #[test]
    fn a_failed_job_stays_failed() {
        let job = job(&json!({ "worker": role(2) }));
        let failed = status(&job, vec![worker(0).running(), worker(1).failed(1)], &json!({ "phase": "Running" }));
        assert_eq!(failed["phase"], "Failed");
        assert_eq!(status(&job, vec![worker(0).succeeded(), worker(1).running()], &failed), failed);
    }

    // A8: modes.
    #[test]
    fn the_mode_follows_the_roles() {
        for (spec, mode) in [
            (json!({ "worker": role(1) }), "Single"),
            (json!({ "worker": role(2) }), "Collective"),
            (json!({ "ps": role(0), "worker": role(1) }), "PS"),
        ] {
            assert_eq!(status(&job(&spec), vec![], &json!({}))["mode"], mode);
        }
    }

    // A17, A18 (X): a pod that is deleted passes through Failed without failing the job.
    #[test]
    fn a_pod_being_deleted_does_not_fail_the_job() {
        let job = job(&json!({ "worker": role(2) }));
        let before = json!({ "phase": "Running" });
        assert_eq!(status(&job, vec![worker(0).running(), worker(1).failed(143).going()], &before)["phase"], "Running");
    }

    // A19 (X): a role with no replicas does not hold the job up.
    #[test]
    fn a_role_with_zero_replicas_is_always_ready_and_done() {
        let job = job(&json!({ "ps": role(0), "worker": role(1) }));
        assert_eq!(status(&job, vec![worker(0).running()], &json!({}))["phase"], "Running");
        assert_eq!(status(&job, vec![worker(0).succeeded()], &json!({}))["phase"], "Completed");
    }

    #[test]
    fn a_success_counts_although_its_pod_is_gone() {
        let job = job(&json!({ "worker": role(2) }));
        let mut seen = testkit::seen(vec![worker(1).succeeded()]);
        seen.roles =
            vec![troupe_plugin::types::RoleFacts { role: "worker".into(), succeeded: vec![(0, 0)], lost: false }];
        assert_eq!(judge(&job, &seen).outcome, Outcome::Succeeded);
    }
}
