//! Tests of the verdict, as stories of a job and its pods.

use super::*;
use crate::fixtures::{job, launcher_job, launcher_pod, parsed, pi, workers};
use crate::plan::plan;
use troupe_plugin::testkit::{PodFixture, outlook, seen};
use troupe_plugin::types::{ContainerState, RoleFacts};

/// A job over time: each call of `judge` is a second after the last and gets the status that the last returned.
struct Story {
    job: MpiJob,
    seen: Observation,
    suspended: bool,
}

impl Story {
    fn of(spec: &Value) -> Self {
        Self { job: job("pi", spec), seen: seen(vec![]), suspended: false }
    }

    /// Returns pi with all objects created and judged once, and no pod running.
    fn begun() -> Self {
        let mut story = Self::of(&pi());
        story.launcher(&json!({}));
        story.judge();
        story
    }

    /// M03: returns pi with both workers and the launcher running.
    fn running() -> Self {
        let mut story = Self::begun();
        story.pods(2, true);
        story.judge();
        story
    }

    fn launcher(&mut self, status: &Value) {
        self.seen.children = vec![launcher_job(status)];
    }

    fn pods(&mut self, running: u32, launcher: bool) {
        self.seen.pods = workers("pi", running, PodFixture::running_unready);
        self.seen.pods.extend(launcher.then(|| launcher_pod().running()));
    }

    fn judge(&mut self) -> Seen {
        self.seen.now += 1000;
        let outlook = Outlook { suspended: self.suspended, ..outlook(&plan(&self.job).unwrap(), &self.seen) };
        let verdict = judge(&self.job, &self.seen, &outlook);
        self.seen.previous_status = verdict.status.clone();
        Seen { status: parsed(&verdict.status), verdict }
    }

    fn now(&self) -> String {
        rfc3339(self.seen.now)
    }
}

struct Seen {
    status: Value,
    verdict: Verdict,
}

impl Seen {
    fn condition(&self, kind: &str) -> &Value {
        let all = self.status["conditions"].as_array().unwrap();
        all.iter().find(|condition| condition["type"] == kind).unwrap_or_else(|| panic!("no {kind} in {all:?}"))
    }

    fn order(&self) -> Vec<String> {
        let all = self.status["conditions"].as_array().unwrap();
        all.iter().map(|c| format!("{}={}", c["type"].as_str().unwrap(), c["status"].as_str().unwrap())).collect()
    }

    fn counts(&self) -> &Value {
        &self.status["replicaStatuses"]
    }

    fn events(&self) -> Vec<&str> {
        self.verdict.events.iter().map(|event| event.reason.as_str()).collect()
    }
}

fn complete(at: &str) -> Value {
    let conditions = json!([
        { "type": "SuccessCriteriaMet", "status": "True" },
        { "type": "Complete", "status": "True" },
    ]);
    json!({ "conditions": conditions, "completionTime": at, "succeeded": 1 })
}

const T: &str = "2026-02-03T04:05:06Z";

// M01
#[test]
fn a_new_job_has_only_the_condition_created() {
    let mut story = Story::of(&pi());
    let first = story.judge();
    assert_eq!(first.order(), ["Created=True"]);
    assert_eq!(first.condition("Created")["reason"], "MPIJobCreated");
    assert_eq!(first.condition("Created")["message"], "MPIJob default/pi is created.");
    assert_eq!(first.condition("Created")["lastTransitionTime"], story.now());
    assert_eq!(first.counts(), &json!({ "Worker": {} }));
    assert_eq!(first.status["startTime"], story.now());
    assert!(first.status.get("completionTime").is_none());
    assert_eq!(first.events(), ["MPIJobCreated"]);
    assert!(!first.verdict.events[0].warning);
    assert_eq!(first.verdict.outcome, Outcome::Open);
    story.launcher(&json!({}));
    let second = story.judge();
    assert_eq!(second.counts(), &json!({ "Launcher": {}, "Worker": {} }));
    assert_eq!((second.events().len(), &second.verdict.headline), (0, &first.verdict.headline));
    assert_eq!(second.status["startTime"], first.status["startTime"]);
}

// M03
#[test]
fn workers_without_a_launcher_pod_are_active_but_the_job_does_not_run() {
    let mut story = Story::begun();
    story.pods(2, false);
    let seen = story.judge();
    assert_eq!(seen.counts(), &json!({ "Launcher": {}, "Worker": { "active": 2 } }));
    assert_eq!(seen.order(), ["Created=True"]);
}

// M03
#[test]
fn the_job_runs_once_all_workers_and_the_launcher_are_in_phase_running() {
    let mut story = Story::begun();
    story.pods(2, true);
    let seen = story.judge();
    assert_eq!(seen.counts(), &json!({ "Launcher": { "active": 1 }, "Worker": { "active": 2 } }));
    assert_eq!(seen.order(), ["Created=True", "Running=True"]);
    assert_eq!(seen.condition("Running")["reason"], "MPIJobRunning");
    assert_eq!(seen.condition("Running")["message"], "MPIJob default/pi is running.");
    assert_eq!(seen.events(), ["MPIJobRunning"]);
    assert_eq!(seen.verdict.events[0].message, "MPIJob default/pi is running");
    let again = story.judge();
    assert_eq!((again.status, again.verdict.events.len()), (seen.status, 0));
}

// M03
#[test]
fn a_pending_worker_or_a_pending_launcher_keeps_the_job_from_running() {
    let mut story = Story::begun();
    story.pods(1, true);
    story.seen.pods.push(crate::fixtures::worker("pi", 1));
    let seen = story.judge();
    assert_eq!(seen.counts(), &json!({ "Launcher": { "active": 1 }, "Worker": { "active": 1 } }));
    assert_eq!(seen.order(), ["Created=True"]);
    story.pods(2, false);
    story.seen.pods.push(launcher_pod());
    let seen = story.judge();
    assert_eq!(seen.counts()["Launcher"], json!({}));
    assert_eq!(seen.order(), ["Created=True"]);
}

#[test]
fn a_surplus_worker_is_neither_awaited_nor_counted() {
    let mut story = Story::begun();
    story.pods(3, true);
    story.seen.pods[2] = story.seen.pods[2].clone().failed(1);
    let seen = story.judge();
    assert_eq!(seen.counts()["Worker"], json!({ "active": 2 }));
    assert_eq!(seen.order(), ["Created=True", "Running=True"]);
}

// M04
#[test]
fn a_job_succeeds_when_its_launcher_job_is_complete() {
    let mut story = Story::running();
    let running = story.judge();
    story.launcher(&json!({ "conditions": [{ "type": "SuccessCriteriaMet", "status": "True" }] }));
    let met = story.judge();
    assert_eq!((&met.status, met.verdict.outcome), (&running.status, Outcome::Open));
    story.launcher(&complete(T));
    let seen = story.judge();
    assert_eq!(seen.order(), ["Created=True", "Running=False", "Succeeded=True"]);
    let mut ran = running.condition("Running").clone();
    ran["status"] = json!("False");
    assert_eq!(seen.condition("Running"), &ran);
    assert_eq!(seen.condition("Succeeded")["reason"], "MPIJobSucceeded");
    assert_eq!(seen.condition("Succeeded")["message"], "MPIJob default/pi successfully completed.");
    assert_eq!(seen.status["completionTime"], T);
    assert_eq!(seen.counts(), &json!({ "Launcher": { "succeeded": 1 }, "Worker": {} }));
    assert_eq!(seen.events(), ["MPIJobSucceeded"]);
    assert_eq!(seen.verdict.outcome, Outcome::Succeeded);
    // After the TTL the Job is gone.
    story.seen.children = vec![];
    story.seen.pods = vec![];
    let later = story.judge();
    assert_eq!((later.status, later.verdict.outcome), (seen.status, Outcome::Succeeded));
    assert!(later.verdict.events.is_empty());
}

// M05
#[test]
fn a_success_that_was_never_seen_running_sets_running_to_false() {
    let mut story = Story::begun();
    story.pods(2, true);
    story.launcher(&complete(T));
    let seen = story.judge();
    assert_eq!(seen.order(), ["Created=True", "Succeeded=True", "Running=False"]);
    let running = seen.condition("Running");
    assert_eq!(running["reason"], "MPIJobRunning");
    assert_eq!(running["message"], "MPIJob default/pi is finished but Running condition was never set.");
    assert_eq!((&running["lastTransitionTime"], &running["lastUpdateTime"]), (&json!(T), &json!(T)));
    assert_eq!(seen.counts(), &json!({ "Launcher": { "succeeded": 1 }, "Worker": {} }));
    assert_eq!(story.judge().order(), seen.order());
}

// M06
#[test]
fn a_launcher_that_is_retried_has_not_failed() {
    let mut story = Story::running();
    story.pods(2, false);
    story.seen.pods.push(launcher_pod().failed(1));
    story.launcher(&json!({ "failed": 1 }));
    let seen = story.judge();
    assert_eq!(seen.counts(), &json!({ "Launcher": { "failed": 1 }, "Worker": { "active": 2 } }));
    assert_eq!(seen.order(), ["Created=True", "Running=True"]);
    assert_eq!((seen.events().len(), seen.verdict.outcome), (0, Outcome::Open));
}

// M06
#[test]
fn a_job_fails_when_its_launcher_job_fails() {
    let mut story = Story::running();
    story.pods(2, false);
    for (age, name, message) in [(2, "FailedReason2", "second message"), (1, "FailedReason1", "first message")] {
        let mut pod = launcher_pod().failed(1);
        pod.created += age;
        (pod.reason, pod.message) = (name.into(), message.into());
        story.seen.pods.push(pod);
    }
    let condition = json!({ "type": "Failed", "status": "True", "reason": "BackoffLimitExceeded",
        "message": "Job has reached the specified backoff limit" });
    story.launcher(&json!({ "failed": 2, "conditions": [condition] }));
    let seen = story.judge();
    assert_eq!(seen.order(), ["Created=True", "Running=False", "Failed=True"]);
    let failed = seen.condition("Failed");
    assert_eq!(failed["reason"], "BackoffLimitExceeded/FailedReason2");
    assert_eq!(failed["message"], "Job has reached the specified backoff limit: second message");
    assert_eq!(seen.status["completionTime"], story.now());
    assert_eq!(seen.counts(), &json!({ "Launcher": { "failed": 2 }, "Worker": {} }));
    assert_eq!(seen.events(), ["BackoffLimitExceeded/FailedReason2"]);
    assert!(seen.verdict.events[0].warning);
    assert_eq!(seen.verdict.outcome, Outcome::Failed);
}

// M08
#[test]
fn a_job_that_is_created_suspended_has_not_started() {
    let mut story = Story::of(&pi());
    story.suspended = true;
    story.launcher(&json!({}));
    let seen = story.judge();
    assert_eq!(seen.order(), ["Created=True", "Suspended=True", "Running=False"]);
    let (suspended, running) = (seen.condition("Suspended"), seen.condition("Running"));
    assert_eq!((&suspended["reason"], &suspended["message"]), (&json!("MPIJobSuspended"), &json!("MPIJob suspended")));
    assert_eq!(running["reason"], "MPIJobSuspended");
    assert_eq!(running["message"], "MPIJob default/pi is suspended.");
    assert!(seen.status.get("startTime").is_none());
    assert_eq!(seen.events(), ["MPIJobCreated", "MPIJobSuspended"]);
    assert_eq!(seen.counts(), &json!({ "Launcher": {}, "Worker": {} }));
    let again = story.judge();
    assert_eq!((again.status, again.verdict.events.len()), (seen.status, 0));
}

// M09, as far as the status goes
#[test]
fn a_resumed_job_gets_a_new_start_time_and_runs_when_its_pods_run() {
    let mut story = Story::of(&pi());
    story.suspended = true;
    story.launcher(&json!({}));
    story.judge();
    story.suspended = false;
    let seen = story.judge();
    assert_eq!(seen.order(), ["Created=True", "Running=False", "Suspended=False"]);
    assert_eq!(seen.condition("Running")["reason"], "MPIJobSuspended");
    assert_eq!(seen.condition("Suspended")["reason"], "MPIJobResumed");
    assert_eq!(seen.status["startTime"], story.now());
    assert_eq!(seen.events(), ["MPIJobResumed"]);
    story.pods(2, true);
    assert_eq!(story.judge().order(), ["Created=True", "Suspended=False", "Running=True"]);
}

#[test]
fn terminating_pods_neither_run_nor_end_a_resumed_job() {
    let mut story = Story::running();
    story.suspended = true;
    story.judge();
    story.suspended = false;
    story.seen.pods.iter_mut().for_each(|pod| pod.terminating = true);
    assert_eq!(story.judge().order(), ["Created=True", "Running=False", "Suspended=False"]);
    story.seen.pods[0] = story.seen.pods[0].clone().failed(137);
    story.seen.pods[0].reason = "Evicted".into();
    let seen = story.judge();
    assert_eq!(seen.order(), ["Created=True", "Running=False", "Suspended=False"]);
    assert_eq!(seen.counts()["Worker"], json!({ "active": 1, "failed": 1 }));
}

// M10 and its Better: pods that still exist are still counted
#[test]
fn a_running_job_that_is_suspended_counts_its_pods_until_they_are_gone() {
    let mut story = Story::running();
    let start: Value = story.judge().status["startTime"].clone();
    story.suspended = true;
    let seen = story.judge();
    assert_eq!(seen.order(), ["Created=True", "Suspended=True", "Running=False"]);
    assert_eq!(seen.condition("Running")["reason"], "MPIJobSuspended");
    assert_eq!(seen.events(), ["MPIJobSuspended"]);
    assert_eq!(seen.counts(), &json!({ "Launcher": { "active": 1 }, "Worker": { "active": 2 } }));
    assert_eq!(seen.status["startTime"], start);
    story.seen.pods.iter_mut().for_each(|pod| pod.terminating = true);
    assert_eq!(story.judge().counts(), &json!({ "Launcher": { "active": 1 }, "Worker": { "active": 2 } }));
    story.seen.pods = vec![];
    assert_eq!(story.judge().counts(), &json!({ "Launcher": {}, "Worker": {} }));
}

// M11
#[test]
fn a_launcher_that_waits_for_the_workers_has_no_entry() {
    let mut spec = pi();
    spec["launcherCreationPolicy"] = json!("WaitForWorkersReady");
    let mut story = Story::of(&spec);
    assert_eq!(story.judge().counts(), &json!({ "Worker": {} }));
    story.pods(2, false);
    assert_eq!(story.judge().counts(), &json!({ "Worker": { "active": 2 } }));
}

// M12: no Worker entry at all
#[test]
fn a_job_with_only_a_launcher_runs_when_the_launcher_runs() {
    let mut spec = pi();
    spec["runLauncherAsWorker"] = json!(true);
    spec["mpiReplicaSpecs"]["Worker"] = json!(null);
    let mut story = Story::of(&spec);
    story.launcher(&json!({}));
    assert_eq!(story.judge().order(), ["Created=True"]);
    story.pods(0, true);
    let seen = story.judge();
    assert_eq!(seen.order(), ["Created=True", "Running=True"]);
    assert_eq!(seen.counts(), &json!({ "Launcher": { "active": 1 }, "Worker": {} }));
}

/// M16: returns a job whose eight workers and launcher ran, and whose worker 3 then failed for this reason.
fn one_of_eight_workers_fails(reason: &str) -> (Story, Seen) {
    let mut spec = pi();
    spec["mpiReplicaSpecs"]["Worker"]["replicas"] = json!(8);
    let mut story = Story::of(&spec);
    story.launcher(&json!({}));
    story.pods(8, true);
    story.judge();
    story.seen.pods[3] = story.seen.pods[3].clone().failed(137);
    story.seen.pods[3].reason = reason.into();
    story.seen.pods[3].replacement = Replacement::Due;
    if let ContainerState::Terminated(ended) = &mut story.seen.pods[3].containers[0].state {
        ended.at = story.seen.now;
    }
    let seen = story.judge();
    (story, seen)
}

// M16 and its Better
#[test]
fn an_evicted_worker_ends_the_job() {
    let (mut story, seen) = one_of_eight_workers_fails("Evicted");
    assert_eq!(seen.order(), ["Created=True", "Running=False", "Failed=True"]);
    assert_eq!(seen.condition("Failed")["reason"], "MPIJobEvicted");
    assert_eq!(seen.condition("Failed")["message"], "1/8 workers are evicted");
    assert_eq!(seen.condition("Running")["reason"], "MPIJobRunning");
    assert_eq!(seen.counts()["Worker"], json!({ "active": 7, "failed": 1 }));
    assert_eq!((seen.events(), seen.verdict.events[0].warning), (vec!["MPIJobEvicted"], true));
    assert_eq!(seen.status["completionTime"], story.now());
    assert_eq!(seen.verdict.outcome, Outcome::Failed);
    // The launcher no longer changes the status.
    story.launcher(&complete(T));
    let later = story.judge();
    assert_eq!((later.status, later.verdict.outcome), (seen.status, Outcome::Failed));
}

// M23: the failure is reported once
#[test]
fn a_worker_that_failed_for_another_reason_is_counted_and_reported() {
    let (mut story, seen) = one_of_eight_workers_fails("");
    assert_eq!(seen.order(), ["Created=True", "Running=False", "Restarting=True"]);
    assert_eq!(seen.condition("Restarting")["message"], "worker pi-worker-3 was lost while the launcher ran");
    assert_eq!(seen.counts()["Worker"], json!({ "active": 7, "failed": 1 }));
    assert_eq!((seen.events(), seen.verdict.outcome), (vec!["MPIJobWorkerFailed"], Outcome::Open));
    story.seen.pods[3].replacement = Replacement::UnderWay;
    assert!(story.judge().events().is_empty());
}

// M23: the launcher's own start says whether it has lost the worker, also where a kubelet starts it again in place
#[test]
fn a_job_runs_again_with_a_launcher_that_began_after_the_loss() {
    let (mut story, _) = one_of_eight_workers_fails("");
    story.pods(8, true);
    let launcher = story.seen.pods.iter_mut().find(|pod| pod.role == launcher::ROLE).unwrap();
    launcher.containers[0].state = ContainerState::Running(story.seen.now - 5000);
    assert!(story.judge().order().contains(&"Restarting=True".to_owned()), "it has lost the worker");
    let launcher = story.seen.pods.iter_mut().find(|pod| pod.role == launcher::ROLE).unwrap();
    launcher.containers[0].state = ContainerState::Running(story.seen.now + 1000);
    assert_eq!(story.judge().order(), ["Created=True", "Running=True"]);
}

/// Returns pi whose second worker ended at `worker` and whose launcher ended well at `launcher`, in seconds, judged.
fn launcher_ends_well(spec: &Value, annotation: Option<&str>, worker: u64, launcher: u64) -> Seen {
    let mut story = Story::of(spec);
    story.job.view.annotations =
        annotation.map(|value| (lost::ANNOTATION.to_owned(), value.to_owned())).into_iter().collect();
    story.pods(2, true);
    story.launcher(&json!({}));
    story.judge();
    let later = |mut pod: PodRow, seconds: u64| {
        pod.created += seconds * 1000;
        pod
    };
    let worker = later(workers("pi", 2, |pod| pod).remove(1), worker).failed(137);
    story.seen.pods =
        vec![workers("pi", 1, PodFixture::running).remove(0), worker, later(launcher_pod(), launcher).succeeded()];
    story.launcher(&complete(T));
    story.judge()
}

// M21
#[test]
fn a_job_of_open_mpi_that_lost_a_worker_has_not_succeeded() {
    let seen = launcher_ends_well(&pi(), None, 5, 6);
    assert_eq!((seen.events(), seen.verdict.outcome), (vec!["MPIJobWorkerLost"], Outcome::Failed));
    let failed = seen.condition("Failed");
    assert_eq!((&failed["reason"], &failed["status"]), (&json!("MPIJobWorkerLost"), &json!("True")));
    let message = failed["message"].as_str().unwrap();
    assert!(
        message.starts_with("worker pi-worker-1 failed before the launcher ended, whose exit code was 0"),
        "{message}"
    );
    assert!(!seen.status["completionTime"].is_null());
}

// M21
#[test]
fn a_worker_that_ended_after_the_launcher_is_no_loss_and_neither_is_one_of_another_implementation() {
    let succeeded = |seen: Seen| {
        assert_eq!((seen.events(), seen.verdict.outcome), (vec!["MPIJobSucceeded"], Outcome::Succeeded));
        assert_eq!(seen.condition("Succeeded")["message"], "MPIJob default/pi successfully completed.");
    };
    succeeded(launcher_ends_well(&pi(), None, 7, 6));
    let mut story = Story::running();
    story.seen.pods = workers("pi", 2, PodFixture::succeeded);
    story.seen.pods.push(launcher_pod().succeeded());
    story.launcher(&complete(T));
    succeeded(story.judge());
    let mut intel = pi();
    intel["mpiImplementation"] = json!("Intel");
    succeeded(launcher_ends_well(&intel, None, 5, 6));
}

// M21
#[test]
fn a_job_that_may_lose_a_worker_succeeds_with_a_warning() {
    let mut elastic = pi();
    let container = &mut elastic["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0];
    container["args"] = json!(["horovodrun", "--host-discovery-script", "/etc/mpi/discover_hosts.sh"]);
    for seen in [launcher_ends_well(&pi(), Some("warn"), 5, 6), launcher_ends_well(&elastic, None, 5, 6)] {
        assert_eq!(
            (seen.events(), seen.verdict.outcome),
            (vec!["MPIJobWorkerLost", "MPIJobSucceeded"], Outcome::Succeeded)
        );
        let message = seen.condition("Succeeded")["message"].as_str().unwrap();
        assert!(
            message.starts_with("MPIJob default/pi successfully completed. But worker pi-worker-1 failed before"),
            "{message}"
        );
    }
}

#[test]
fn a_job_that_the_original_left_evicted_ends_now_or_as_its_launcher_ended() {
    let evicted = json!({ "startTime": T, "conditions": [
        { "type": "Created", "status": "True", "reason": "MPIJobCreated" },
        { "type": "Failed", "status": "True", "reason": "MPIJobEvicted", "message": "1/2 workers are evicted" },
    ] });
    let mut story = Story::of(&pi());
    story.seen.previous_status = evicted.to_string();
    story.launcher(&json!({}));
    let seen = story.judge();
    assert_eq!((seen.verdict.outcome, &seen.status["completionTime"]), (Outcome::Failed, &json!(story.now())));
    assert!(seen.events().is_empty());
    story.seen.previous_status = evicted.to_string();
    story.launcher(&complete(T));
    let seen = story.judge();
    assert_eq!(seen.order(), ["Created=True", "Failed=False", "Succeeded=True", "Running=False"]);
    assert_eq!(seen.verdict.outcome, Outcome::Succeeded);
}

// Section 5.2, item 1, and its Better: a launcher whose end was not observed is not run again
#[test]
fn a_job_fails_when_its_launcher_was_lost() {
    let mut story = Story::running();
    (story.seen.children, story.seen.pods) = (vec![], workers("pi", 2, PodFixture::running_unready));
    story.seen.roles = vec![RoleFacts {
        role: "launcher".into(),
        succeeded: vec![],
        lost: true,
        failures: 0,
        given_up: vec![],
        attempt: 0,
    }];
    let seen = story.judge();
    assert_eq!(seen.order(), ["Created=True", "Running=False", "Failed=True"]);
    assert_eq!((&seen.condition("Failed")["reason"], seen.verdict.outcome), (&json!("LauncherLost"), Outcome::Failed));
}

#[test]
fn a_launcher_job_deleted_before_its_end_leaves_its_failed_count_only() {
    let mut story = Story::running();
    story.launcher(&json!({ "failed": 1 }));
    story.judge();
    story.seen.children = vec![];
    story.pods(2, false);
    assert_eq!(story.judge().counts()["Launcher"], json!({ "failed": 1 }));
}

#[test]
fn counts_do_not_change_the_headline_and_conditions_of_others_are_dropped() {
    let mut story = Story::begun();
    let before = story.judge().verdict.headline;
    story.pods(1, false);
    let mut previous = parsed(&story.seen.previous_status);
    let theirs = json!({ "type": "Waiting", "status": "True", "reason": "WorkersReady" });
    previous["conditions"].as_array_mut().unwrap().insert(0, theirs);
    previous["troupe"] = json!({ "uid": "u" });
    story.seen.previous_status = previous.to_string();
    let seen = story.judge();
    assert_eq!(seen.verdict.headline, before);
    assert_eq!(seen.order(), ["Created=True"]);
    assert!(seen.status.get("troupe").is_none());
    story.pods(2, true);
    assert_ne!(story.judge().verdict.headline, before);
}

#[test]
fn a_malformed_status_is_replaced() {
    for previous in ["", "null", "7", "{\"conditions\":{},\"replicaStatuses\":3,\"startTime\":null}"] {
        let mut story = Story::of(&pi());
        story.seen.previous_status = previous.into();
        assert_eq!(story.judge().order(), ["Created=True"], "{previous}");
    }
}
