//! The status of a PaddleJob: counters, phase, mode and times.

use crate::{Job, env, spec::Role};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use troupe_plugin::{
    ObservationExt, PodExt, PodTemplate, ends_for_good, json_text, rfc3339,
    types::{Observation, Outcome, Outlook, PodPhase, PodRow, Replacement, Verdict},
};

/// The fields of the last published status that the next status depends on.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Before {
    phase: Value,
    start_time: Value,
    completion_time: Value,
    ps: Value,
    worker: Value,
    heter: Value,
}

impl Before {
    /// Returns whether every counted pod had ended.
    fn all_pods_ended(&self) -> bool {
        let roles = [&self.ps, &self.worker, &self.heter];
        let counts = roles.into_iter().flat_map(|role| [&role["pending"], &role["starting"], &role["running"]]);
        counts.into_iter().all(|count| count.as_u64().unwrap_or(0) == 0)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    phase: &'a str,
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ps: Option<Section<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<Section<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    heter: Option<Section<'a>>,
    #[serde(skip_serializing_if = "Value::is_null")]
    start_time: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    completion_time: Value,
}

/// A role's part of the status. Counters of zero are omitted.
#[derive(Serialize)]
struct Section<'a> {
    #[serde(flatten)]
    counts: Counts,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refs: Vec<Reference<'a>>,
}

/// The maximum number of pods that the status lists per role. Better: the original lists every pod, so that the status
/// of a job with thousands of pods exceeds the size limit of an object. The counters include all pods.
const MOST_REFS: usize = 1000;

/// A reference to a pod, without `resourceVersion`, which would change the status with each change of a pod.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reference<'a> {
    api_version: &'static str,
    kind: &'static str,
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
}

/// Returns the job's whole status. A final phase does not change; the counters of a failed job change until its pods
/// have ended.
pub(crate) fn judge(job: &Job, seen: &Observation, outlook: &Outlook) -> Verdict {
    let before: Before = seen.previous();
    let phase_before = before.phase.as_str().unwrap_or_default();
    let over = matches!(phase_before, "Completed" | "Failed");
    if phase_before == "Completed" || (over && before.all_pods_ended()) {
        return verdict(seen.previous_status.clone(), phase_before);
    }
    let counts: Vec<_> = job.spec.roles().map(|role| (role, Counts::of(job, &role, seen))).collect();
    let phase = if over { phase_before } else { phase(job, &counts, outlook, phase_before) };
    let section = |name: &str| counts.iter().find(|(role, _)| role.name == name)?.1.section(name, job, seen);
    let time = |kept: &Value, when: bool| match kept {
        Value::Null if when => Value::String(rfc3339(seen.now)),
        kept => kept.clone(),
    };
    let status = Status {
        phase,
        mode: mode(job),
        ps: section("ps"),
        worker: section("worker"),
        heter: section("heter"),
        start_time: time(&before.start_time, phase == "Running"),
        completion_time: time(&before.completion_time, phase == "Completed" || phase == "Failed"),
    };
    verdict(json_text(&status), phase)
}

fn verdict(status: String, phase: &str) -> Verdict {
    let outcome = match phase {
        "Completed" => Outcome::Succeeded,
        "Failed" => Outcome::Failed,
        _ => Outcome::Open,
    };
    // The original emits no event for a phase.
    Verdict::new(status, phase, outcome)
}

fn mode(job: &Job) -> &'static str {
    match (&job.spec.ps, &job.spec.worker) {
        (Some(_), _) => "PS",
        (None, Some(worker)) if worker.replicas > 1 => "Collective",
        _ => "Single",
    }
}

/// Returns the phase. Failed, Starting and Pending are computed over all roles, so the order of roles does not matter.
fn phase<'a>(job: &Job, counts: &[(Role<'_>, Counts)], outlook: &Outlook, before: &'a str) -> &'a str {
    let any = |count: fn(&Counts) -> u32| counts.iter().any(|(_, counts)| count(counts) > 0);
    let wanted = counts.iter().any(|(role, _)| role.replicas() > 0);
    let all_run = wanted && counts.iter().all(|(role, counts)| counts.running == role.replicas());
    match before {
        _ if any(|counts| counts.failed) => "Failed",
        _ if is_complete(job, counts) => "Completed",
        _ if any(|counts| counts.starting) => "Starting",
        _ if any(|counts| counts.pending) => "Pending",
        _ if all_run => "Running",
        // Better: a job without pods that its queue holds back does not say that it runs.
        _ if outlook.suspended && !any(|counts| counts.running) => "Pending",
        "" => "Pending",
        before => before,
    }
}

/// Returns whether all pods have succeeded, or all but the servers where the cluster operator says so.
fn is_complete(job: &Job, counts: &[(Role<'_>, Counts)]) -> bool {
    // Better, if the setting is on: servers do not end by themselves.
    let without_servers = job.config.complete_without_servers;
    let mut needed =
        counts.iter().filter(|(role, _)| role.replicas() > 0 && !(without_servers && role.name == "ps")).peekable();
    needed.peek().is_some() && needed.all(|(role, counts)| counts.succeeded >= role.replicas())
}

/// The pods of a role by their state in Paddle's status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
struct Counts {
    #[serde(skip_serializing_if = "is_zero")]
    pending: u32,
    #[serde(skip_serializing_if = "is_zero")]
    starting: u32,
    #[serde(skip_serializing_if = "is_zero")]
    running: u32,
    #[serde(skip_serializing_if = "is_zero")]
    failed: u32,
    #[serde(skip_serializing_if = "is_zero")]
    succeeded: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Counts {
    fn of(job: &Job, role: &Role<'_>, seen: &Observation) -> Self {
        let mut counts = Self { succeeded: seen.succeeded_without_pod(role.name), ..Self::default() };
        // The state of a replica that was scaled down does not count.
        let wanted = |pod: &&PodRow| pod.index.is_some_and(|index| index < role.replicas());
        for pod in seen.pods_of(role.name).filter(wanted) {
            let count = match pod.phase {
                // Better: the container of the program decides, whatever a sidecar does after it.
                PodPhase::Running | PodPhase::Failed if !pod.terminating && has_done_its_work(job, role, pod) => {
                    &mut counts.succeeded
                }
                PodPhase::Pending if pod.in_init("coord-paddle") => &mut counts.starting,
                PodPhase::Pending => &mut counts.pending,
                PodPhase::Running if pod.is_running_and_ready() => &mut counts.running,
                PodPhase::Running => &mut counts.starting,
                // Better: a pod that is being deleted passes through Failed without failing the job.
                PodPhase::Failed if pod.terminating => continue,
                PodPhase::Failed => &mut counts.failed,
                // Better: so does one that was deleted while it ran pass through Succeeded.
                PodPhase::Succeeded if pod.replacement != Replacement::None => continue,
                PodPhase::Succeeded => &mut counts.succeeded,
                PodPhase::Unknown => continue,
            };
            *count += 1;
        }
        counts
    }

    /// Returns None if the role has no pod and no replica that has succeeded.
    fn section<'a>(self, role: &str, job: &'a Job, seen: &'a Observation) -> Option<Section<'a>> {
        let reference = |pod: &'a PodRow| Reference {
            api_version: "v1",
            kind: "Pod",
            namespace: job.namespace(),
            name: &pod.name,
            uid: &pod.uid,
        };
        let refs: Vec<_> = seen.pods.iter().filter(|pod| pod.role == role).map(reference).take(MOST_REFS).collect();
        let empty = self == Self::default() && refs.is_empty();
        (!empty).then_some(Section { counts: self, refs })
    }
}

/// Returns whether the first container, which runs the program, has ended with 0 for good, beside others that go on or fail.
fn has_done_its_work(job: &Job, role: &Role<'_>, pod: &PodRow) -> bool {
    let has_ended_well = |name: &str| pod.exit_code(name) == Some(0);
    let is_alone = pod.containers.iter().filter(|row| !row.init).count() < 2;
    // The template is read for few pods.
    if is_alone || pod.is_disrupted() || !pod.containers.iter().any(|row| has_ended_well(&row.name)) {
        return false;
    }
    let Ok(mut template) = PodTemplate::from_user(role.spec.template.as_ref(), "") else { return false };
    template.first_container().name().is_some_and(|name| has_ended_well(&name))
        && ends_for_good(0, &env::restart_policy(job, role, &template))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::plan;
    use serde_json::json;
    use troupe_plugin::testkit::{self, PodFixture, pod};

    fn role(replicas: u32) -> Value {
        json!({ "replicas": replicas, "template": { "spec": { "containers": [{ "name": "paddle" }] } } })
    }

    fn job(spec: &Value) -> Job {
        Job::parse(testkit::job("PaddleJob", "wide", spec)).unwrap()
    }

    fn judged(job: &Job, seen: &Observation) -> Verdict {
        judge(job, seen, &testkit::outlook(&plan(job).unwrap(), seen))
    }

    fn status(job: &Job, pods: Vec<PodRow>, previous: &Value) -> Value {
        let mut seen = testkit::seen(pods);
        seen.previous_status = previous.to_string();
        serde_json::from_str(&judged(job, &seen).status).unwrap()
    }

    fn ps(index: u32) -> PodRow {
        pod("ps", index, &format!("wide-ps-{index}"))
    }

    fn worker(index: u32) -> PodRow {
        pod("worker", index, &format!("wide-worker-{index}"))
    }

    #[test]
    fn a_large_role_lists_some_pods_and_counts_all() {
        let pods = (0..5000).map(|index| worker(index).running()).collect();
        let status = status(&job(&json!({ "worker": role(5000) })), pods, &json!({}));
        let listed = status["worker"]["refs"].as_array().unwrap().len();
        assert_eq!((listed, &status["worker"]["running"], &status["phase"]), (1000, &json!(5000), &json!("Running")));
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

    // A4: Running while the workers have succeeded and servers run; then Completed.
    #[test]
    fn a_job_whose_workers_are_done_stays_running_until_its_servers_are() {
        let job = job(&json!({ "ps": role(1), "worker": role(1) }));
        let running = status(&job, vec![ps(0).running(), worker(0).running()], &json!({}));
        let partly = status(&job, vec![ps(0).running(), worker(0).succeeded()], &running);
        assert_eq!((&partly["phase"], &partly["completionTime"]), (&json!("Running"), &Value::Null));
        let done = status(&job, vec![ps(0).succeeded(), worker(0).succeeded()], &partly);
        assert_eq!((&done["phase"], &done["completionTime"]), (&json!("Completed"), &json!("2026-01-01T00:00:00Z")));
    }

    // A5 (X): the final counters are kept after the pods are deleted.
    #[test]
    fn a_final_status_does_not_change() {
        let job = job(&json!({ "worker": role(1) }));
        let done = status(&job, vec![worker(0).succeeded()], &json!({}));
        assert_eq!(status(&job, vec![], &done), done);
    }

    // A7: failure is sticky.
    #[test]
    fn a_failed_job_stays_failed() {
        let job = job(&json!({ "worker": role(2) }));
        let failed = status(&job, vec![worker(0).running(), worker(1).failed(1)], &json!({ "phase": "Running" }));
        assert_eq!((&failed["phase"], &failed["worker"]["running"]), (&json!("Failed"), &json!(1)));
        let ended = status(&job, vec![worker(0).succeeded(), worker(1).failed(1)], &failed);
        assert_eq!((&ended["phase"], &ended["completionTime"]), (&json!("Failed"), &failed["completionTime"]));
        let worker_counts = ["running", "failed", "succeeded"].map(|count| ended["worker"][count].clone());
        assert_eq!(worker_counts, [json!(null), json!(1), json!(1)]);
        assert_eq!(status(&job, vec![worker(0).running()], &ended), ended, "the counters are final");
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

    // A19 (X): a role without replicas does not block the job.
    #[test]
    fn a_role_with_zero_replicas_does_not_block_the_job() {
        let job = job(&json!({ "ps": role(0), "worker": role(1) }));
        assert_eq!(status(&job, vec![worker(0).running()], &json!({}))["phase"], "Running");
        assert_eq!(status(&job, vec![worker(0).succeeded()], &json!({}))["phase"], "Completed");
    }

    #[test]
    fn a_replica_that_was_scaled_down_does_not_count() {
        let job = job(&json!({ "worker": role(1) }));
        for scaled_down in [worker(1).succeeded().going(), worker(1).failed(1), worker(1).running()] {
            let status = status(&job, vec![worker(0).succeeded(), scaled_down], &json!({ "phase": "Running" }));
            assert_eq!((&status["phase"], &status["worker"]["succeeded"]), (&json!("Completed"), &json!(1)));
        }
    }

    #[test]
    fn a_success_counts_after_its_pod_is_deleted() {
        let job = job(&json!({ "worker": role(2) }));
        let mut seen = testkit::seen(vec![worker(1).succeeded()]);
        seen.roles = vec![troupe_plugin::types::RoleFacts {
            role: "worker".into(),
            succeeded: vec![(0, 0)],
            lost: false,
            failures: 0,
            given_up: vec![],
            attempt: 0,
        }];
        assert_eq!(judged(&job, &seen).outcome, Outcome::Succeeded);
    }
}
