//! The status of an MPIJob, and when it counts as finished.

use crate::MpiJob;
use crate::conditions::{Conditions, Step};
use crate::launcher::{self, Launcher, running_pods};
use serde_json::{Map, Value, json};
use troupe_plugin::types::{Event, Observation, Outcome, Outlook, PodPhase, PodRow, Verdict};
use troupe_plugin::{ObservationExt, json_text, rfc3339};

/// The whole status for this instant, from the status before and what was seen.
pub(crate) fn judge(job: &MpiJob, seen: &Observation, outlook: &Outlook) -> Verdict {
    let previous: Value = seen.previous();
    let mut status = Status::of(job, &previous, rfc3339(seen.now));
    if status.is_over() {
        return status.verdict(&published_counts(&previous));
    }
    let launcher = Launcher::of(job, seen);
    let workers = Workers::of(job, seen, outlook, &launcher);
    status.created();
    status.started(outlook);
    status.suspended_or_resumed(outlook);
    status.ended(&launcher);
    status.evicted(&workers, outlook);
    status.lost(&workers, &published_counts(&previous));
    status.ran(&workers, seen, outlook);
    status.verdict(&counts(&launcher, &workers, seen, &previous))
}

/// The status as it grows, with the events its changes are worth.
struct Status {
    /// `MPIJob <namespace>/<name>`.
    who: String,
    now: String,
    conditions: Conditions,
    start_time: Option<String>,
    completion_time: Option<String>,
    events: Vec<Event>,
}

impl Status {
    fn of(job: &MpiJob, previous: &Value, now: String) -> Self {
        let time = |field: &str| previous.get(field).and_then(Value::as_str).map(str::to_owned);
        Self {
            who: format!("MPIJob {}/{}", job.namespace(), job.name()),
            now,
            conditions: Conditions::of(previous),
            start_time: time("startTime"),
            completion_time: time("completionTime"),
            events: vec![],
        }
    }

    /// The job was finished before: nothing about it changes any more.
    fn is_over(&self) -> bool {
        self.conditions.finished() && self.completion_time.is_some()
    }

    fn created(&mut self) {
        if self.conditions.is_empty() {
            let message = format!("{} is created.", self.who);
            let step = self.conditions.set("Created", true, "MPIJobCreated", &message, &self.now);
            self.tell(step, "MPIJobCreated", message);
        }
    }

    fn started(&mut self, outlook: &Outlook) {
        if self.start_time.is_none() && !outlook.suspended {
            self.start_time = Some(self.now.clone());
        }
    }

    fn suspended_or_resumed(&mut self, outlook: &Outlook) {
        if outlook.suspended {
            let step = self.conditions.set("Suspended", true, "MPIJobSuspended", "MPIJob suspended", &self.now);
            self.tell(step, "MPIJobSuspended", "MPIJob suspended");
        } else if self.conditions.get("Suspended").is_some() {
            let step = self.conditions.set("Suspended", false, "MPIJobResumed", "MPIJob resumed", &self.now);
            if step == Step::New {
                self.start_time = Some(self.now.clone());
            }
            self.tell(step, "MPIJobResumed", "MPIJob resumed");
        }
    }

    fn ended(&mut self, launcher: &Launcher) {
        match launcher {
            Launcher::Absent | Launcher::Going { .. } => {}
            Launcher::Complete { at, .. } => {
                let at = at.clone().unwrap_or_else(|| self.now.clone());
                self.completion_time.get_or_insert(at);
                let message = format!("{} successfully completed.", self.who);
                let step = self.conditions.finish("Succeeded", "MPIJobSucceeded", &message, &self.now);
                self.tell(step, "MPIJobSucceeded", message);
            }
            Launcher::Failed { reason, message, .. } => self.failed(reason, message),
        }
    }

    /// A worker that was evicted does not come back and the others wait for it: the job is over.
    fn evicted(&mut self, workers: &Workers, outlook: &Outlook) {
        if workers.evicted > 0 && !outlook.suspended {
            let message = format!("{}/{} workers are evicted", workers.evicted, workers.wanted);
            self.failed("MPIJobEvicted", &message);
        }
        // One that an original operator left failed but without an end ends now.
        if self.conditions.finished() {
            self.completion_time.get_or_insert_with(|| self.now.clone());
        }
    }

    /// Better: the original only counts a worker that failed, and it does not come back.
    fn lost(&mut self, workers: &Workers, counted: &Value) {
        let told = counted.pointer("/Worker/failed").and_then(Value::as_u64).unwrap_or(0);
        if let Some(name) = workers.lost.as_ref().filter(|_| u64::from(workers.failed) > told) {
            let message = format!("worker {name} has failed and is not made again; delete its pod to have another");
            self.events.push(Event { warning: true, reason: "MPIJobWorkerFailed".to_owned(), message });
        }
    }

    fn failed(&mut self, reason: &str, message: &str) {
        self.completion_time.get_or_insert_with(|| self.now.clone());
        let step = self.conditions.finish("Failed", reason, message, &self.now);
        if step == Step::New {
            self.events.push(Event { warning: true, reason: reason.to_owned(), message: message.to_owned() });
        }
    }

    /// Sets Running. Once it is True it stays so while pods come and go, until the job is suspended or finished.
    fn ran(&mut self, workers: &Workers, seen: &Observation, outlook: &Outlook) {
        if outlook.suspended {
            let message = format!("{} is suspended.", self.who);
            self.conditions.set("Running", false, "MPIJobSuspended", &message, &self.now);
        } else if self.conditions.finished() {
            self.never_ran();
        } else if workers.all_run() && seen.live(launcher::ROLE).any(|pod| pod.phase == PodPhase::Running) {
            let message = format!("{} is running", self.who);
            let step = self.conditions.set("Running", true, "MPIJobRunning", &format!("{message}."), &self.now);
            self.tell(step, "MPIJobRunning", message);
        }
    }

    fn never_ran(&mut self) {
        if self.conditions.get("Running").is_none() {
            let at = self.completion_time.as_deref().unwrap_or(&self.now);
            let message = format!("{} is finished but Running condition was never set.", self.who);
            self.conditions.set("Running", false, "MPIJobRunning", &message, at);
        }
    }

    fn tell(&mut self, step: Step, reason: &str, message: impl Into<String>) {
        if step == Step::New {
            self.events.push(Event { warning: false, reason: reason.to_owned(), message: message.into() });
        }
    }

    fn verdict(self, replica_statuses: &Value) -> Verdict {
        let outcome = match self.is_over() {
            true if self.conditions.is_true("Succeeded") => Outcome::Succeeded,
            true => Outcome::Failed,
            false => Outcome::Open,
        };
        let mut status = json!({ "conditions": self.conditions.to_json(), "replicaStatuses": replica_statuses });
        for (field, time) in [("startTime", self.start_time), ("completionTime", self.completion_time)] {
            if let Some(time) = time {
                status[field] = time.into();
            }
        }
        Verdict { status: json_text(&status), headline: self.conditions.headline(), outcome, events: self.events }
    }
}

/// The workers by phase. Pending ones count nowhere.
#[derive(Default)]
struct Workers {
    wanted: u32,
    active: u32,
    succeeded: u32,
    failed: u32,
    /// Those of the active that are not on their way out.
    running: u32,
    /// Those of the failed that their node put out, less those on their way out.
    evicted: u32,
    /// The last of the failed that was not put out and is not on its way out.
    lost: Option<String>,
}

impl Workers {
    /// Of a job that runs, those that are wanted; of a suspended one, all that are still there, so that nobody takes
    /// their place too early; of one that is over, none.
    fn of(job: &MpiJob, seen: &Observation, outlook: &Outlook, launcher: &Launcher) -> Self {
        let wanted = job.spec.workers();
        let mut workers = Self { wanted, ..Self::default() };
        if launcher.is_done() {
            return workers;
        }
        let counted = |pod: &&PodRow| outlook.suspended || pod.index.is_some_and(|index| index < wanted);
        for pod in seen.pods_of("worker").filter(counted) {
            match pod.phase {
                PodPhase::Running => workers.active += 1,
                PodPhase::Succeeded => workers.succeeded += 1,
                PodPhase::Failed => workers.failed += 1,
                PodPhase::Pending | PodPhase::Unknown => {}
            }
            // A pod on its way out belongs to the run before a suspension: what became of it says nothing of this one.
            workers.running += u32::from(pod.phase == PodPhase::Running && !pod.terminating);
            let evicted = pod.phase == PodPhase::Failed && pod.reason == "Evicted";
            workers.evicted += u32::from(evicted && !pod.terminating);
            if pod.phase == PodPhase::Failed && !evicted && !pod.terminating && !outlook.suspended {
                workers.lost = Some(pod.name.clone());
            }
        }
        workers
    }

    fn all_run(&self) -> bool {
        self.running == self.wanted
    }
}

fn counts(launcher: &Launcher, workers: &Workers, seen: &Observation, previous: &Value) -> Value {
    let launcher = match launcher {
        Launcher::Absent => last_launcher(previous),
        Launcher::Going { failed } => Some(entry(running_pods(seen), 0, *failed)),
        Launcher::Complete { failed, .. } => Some(entry(0, 1, *failed)),
        Launcher::Failed { failed, .. } => Some(entry(0, 0, *failed)),
    };
    let worker = entry(workers.active.into(), workers.succeeded.into(), workers.failed.into());
    match launcher {
        Some(launcher) => json!({ "Launcher": launcher, "Worker": worker }),
        None => json!({ "Worker": worker }),
    }
}

/// What was said of a launcher whose Job is gone, except that it runs.
fn last_launcher(previous: &Value) -> Option<Value> {
    let mut last = previous.pointer("/replicaStatuses/Launcher")?.clone();
    if let Some(counts) = last.as_object_mut() {
        counts.remove("active");
    }
    Some(last)
}

fn published_counts(previous: &Value) -> Value {
    previous.get("replicaStatuses").filter(|counts| counts.is_object()).cloned().unwrap_or_else(|| json!({}))
}

/// An entry of `replicaStatuses`; a count of zero is left out.
fn entry(active: u64, succeeded: u64, failed: u64) -> Value {
    let mut entry = Map::new();
    for (name, count) in [("active", active), ("succeeded", succeeded), ("failed", failed)] {
        if count > 0 {
            entry.insert(name.to_owned(), count.into());
        }
    }
    entry.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{job, launcher_job, launcher_pod, parsed, pi, workers};
    use troupe_plugin::testkit::{PodIs, calm, seen};
    use troupe_plugin::types::RoleFacts;

    /// A job over time: each judgement is a second later than the last and sees the status it left.
    struct Story {
        job: MpiJob,
        seen: Observation,
        outlook: Outlook,
    }

    impl Story {
        fn of(spec: &Value) -> Self {
            Self { job: job("pi", spec), seen: seen(vec![]), outlook: calm() }
        }

        /// pi with everything made and judged, and nothing running.
        fn begun() -> Self {
            let mut story = Self::of(&pi());
            story.launcher(&json!({}));
            story.judge();
            story
        }

        /// M03: pi with both workers and the launcher running.
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
            self.seen.pods = workers("pi", running, PodIs::running_unready);
            self.seen.pods.extend(launcher.then(|| launcher_pod().running()));
        }

        fn judge(&mut self) -> Seen {
            self.seen.now += 1000;
            let verdict = judge(&self.job, &self.seen, &self.outlook);
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
    fn a_job_that_has_just_been_made_is_created_and_nothing_more() {
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
    fn a_worker_that_is_to_leave_is_not_waited_for_and_not_counted() {
        let mut story = Story::begun();
        story.pods(3, true);
        story.seen.pods[2] = story.seen.pods[2].clone().failed(1);
        let seen = story.judge();
        assert_eq!(seen.counts()["Worker"], json!({ "active": 2 }));
        assert_eq!(seen.order(), ["Created=True", "Running=True"]);
    }

    // M04
    #[test]
    fn a_complete_launcher_job_is_the_success_of_the_job() {
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
    fn a_success_that_was_never_seen_running_says_so() {
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
    fn a_launcher_that_is_tried_again_has_not_failed() {
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
    fn a_launcher_that_is_given_up_is_the_failure_of_the_job() {
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
        story.outlook.suspended = true;
        story.launcher(&json!({}));
        let seen = story.judge();
        assert_eq!(seen.order(), ["Created=True", "Suspended=True", "Running=False"]);
        let (suspended, running) = (seen.condition("Suspended"), seen.condition("Running"));
        assert_eq!(
            (&suspended["reason"], &suspended["message"]),
            (&json!("MPIJobSuspended"), &json!("MPIJob suspended"))
        );
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
    fn a_resumed_job_starts_anew_and_runs_when_its_pods_do() {
        let mut story = Story::of(&pi());
        story.outlook.suspended = true;
        story.launcher(&json!({}));
        story.judge();
        story.outlook.suspended = false;
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
    fn pods_on_their_way_out_neither_run_nor_end_a_job_that_was_resumed() {
        let mut story = Story::running();
        story.outlook.suspended = true;
        story.judge();
        story.outlook.suspended = false;
        story.seen.pods.iter_mut().for_each(|pod| pod.terminating = true);
        assert_eq!(story.judge().order(), ["Created=True", "Running=False", "Suspended=False"]);
        story.seen.pods[0] = story.seen.pods[0].clone().failed(137);
        story.seen.pods[0].reason = "Evicted".into();
        let seen = story.judge();
        assert_eq!(seen.order(), ["Created=True", "Running=False", "Suspended=False"]);
        assert_eq!(seen.counts()["Worker"], json!({ "active": 1, "failed": 1 }));
    }

    // M10 and its Better: who is still there is still counted
    #[test]
    fn a_running_job_that_is_suspended_counts_its_pods_until_they_are_gone() {
        let mut story = Story::running();
        let start: Value = story.judge().status["startTime"].clone();
        story.outlook.suspended = true;
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
    fn while_the_launcher_waits_for_the_workers_it_has_no_entry() {
        let mut spec = pi();
        spec["launcherCreationPolicy"] = json!("WaitForWorkersReady");
        let mut story = Story::of(&spec);
        assert_eq!(story.judge().counts(), &json!({ "Worker": {} }));
        story.pods(2, false);
        assert_eq!(story.judge().counts(), &json!({ "Worker": { "active": 2 } }));
    }

    // M12: no Worker entry at all
    #[test]
    fn a_job_of_a_launcher_alone_runs_with_it() {
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

    /// M16: eight workers and the launcher run, then worker 3 fails for this reason.
    fn eight_but_one_fails(reason: &str) -> (Story, Seen) {
        let mut spec = pi();
        spec["mpiReplicaSpecs"]["Worker"]["replicas"] = json!(8);
        let mut story = Story::of(&spec);
        story.launcher(&json!({}));
        story.pods(8, true);
        story.judge();
        story.seen.pods[3] = story.seen.pods[3].clone().failed(137);
        story.seen.pods[3].reason = reason.into();
        let seen = story.judge();
        (story, seen)
    }

    // M16 and its Better
    #[test]
    fn an_evicted_worker_ends_the_job() {
        let (mut story, seen) = eight_but_one_fails("Evicted");
        assert_eq!(seen.order(), ["Created=True", "Running=False", "Failed=True"]);
        assert_eq!(seen.condition("Failed")["reason"], "MPIJobEvicted");
        assert_eq!(seen.condition("Failed")["message"], "1/8 workers are evicted");
        assert_eq!(seen.condition("Running")["reason"], "MPIJobRunning");
        assert_eq!(seen.counts()["Worker"], json!({ "active": 7, "failed": 1 }));
        assert_eq!((seen.events(), seen.verdict.events[0].warning), (vec!["MPIJobEvicted"], true));
        assert_eq!(seen.status["completionTime"], story.now());
        assert_eq!(seen.verdict.outcome, Outcome::Failed);
        // Nothing that the launcher does now changes it.
        story.launcher(&complete(T));
        let later = story.judge();
        assert_eq!((later.status, later.verdict.outcome), (seen.status, Outcome::Failed));
    }

    // M16 and its Better: it is told, once
    #[test]
    fn a_worker_that_failed_for_another_reason_is_counted_and_told() {
        let (mut story, seen) = eight_but_one_fails("");
        assert_eq!(seen.order(), ["Created=True", "Running=True"]);
        assert_eq!(seen.counts()["Worker"], json!({ "active": 7, "failed": 1 }));
        assert_eq!((seen.events(), seen.verdict.outcome), (vec!["MPIJobWorkerFailed"], Outcome::Open));
        assert!(story.judge().events().is_empty());
    }

    #[test]
    fn a_job_that_the_original_left_evicted_without_an_end_ends_now_or_as_its_launcher_did() {
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

    // Section 5.2, item 1, and its Better: a job whose end nobody saw is not run again
    #[test]
    fn a_launcher_that_was_lost_is_the_failure_of_the_job() {
        let mut story = Story::running();
        (story.seen.children, story.seen.pods) = (vec![], workers("pi", 2, PodIs::running_unready));
        story.seen.roles = vec![RoleFacts { role: "launcher".into(), succeeded: vec![], lost: true }];
        let seen = story.judge();
        assert_eq!(seen.order(), ["Created=True", "Running=False", "Failed=True"]);
        assert_eq!(
            (&seen.condition("Failed")["reason"], seen.verdict.outcome),
            (&json!("LauncherLost"), Outcome::Failed)
        );
    }

    #[test]
    fn a_launcher_job_that_is_gone_before_the_end_leaves_its_failures_but_no_activity() {
        let mut story = Story::running();
        story.launcher(&json!({ "failed": 1 }));
        story.judge();
        story.seen.children = vec![];
        story.pods(2, false);
        assert_eq!(story.judge().counts()["Launcher"], json!({ "failed": 1 }));
    }

    #[test]
    fn counts_alone_are_no_headline_and_a_condition_of_the_host_is_not_repeated() {
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
    fn a_status_that_makes_no_sense_is_begun_anew() {
        for previous in ["", "null", "7", "{\"conditions\":{},\"replicaStatuses\":3,\"startTime\":null}"] {
            let mut story = Story::of(&json!({}));
            story.seen.previous_status = previous.into();
            assert_eq!(story.judge().order(), ["Created=True"], "{previous}");
        }
    }
}
