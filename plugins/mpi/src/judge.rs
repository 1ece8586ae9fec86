//! The status of an MPIJob, and when the job is finished.

use crate::MpiJob;
use crate::launcher::{self, Launcher, running_pods};
use crate::lost::{self, Loss};
use crate::plan;
use crate::validate::validate;
use serde_json::{Map, Value, json};
use troupe_plugin::conditions::{Conditions, Step};
use troupe_plugin::types::{Event, Observation, Outcome, Outlook, PodPhase, PodRow, Replacement, Verdict};
use troupe_plugin::{ObservationExt, json_text, parse_rfc3339, rfc3339};

/// The type of the condition of a job that has lost a worker, which is made again. The original never writes it.
const RESTARTING: &str = "Restarting";

/// How often the workers of a job may fail that says nothing: as often as its launcher's pods.
const BACKOFF_LIMIT: i32 = 6;

/// Returns the job's whole status, from the previous status and the observation.
pub(crate) fn judge(job: &MpiJob, seen: &Observation, outlook: &Outlook) -> Verdict {
    let previous: Value = seen.previous();
    let mut status = Status::of(job, &previous, rfc3339(seen.now));
    if status.is_over() {
        return status.verdict(&published_counts(&previous));
    }
    let launcher = Launcher::of(job, seen, outlook);
    let workers = Workers::of(job, seen, outlook, &launcher);
    status.set_created();
    status.set_start_time(outlook);
    status.set_suspended(outlook);
    let lost = status.lost_one(seen);
    let ended = |at: Option<&str>| at.and_then(parse_rfc3339);
    status.apply_launcher(&launcher, |at| Loss::of(job, &validate(job).ok()?, seen, (ended(at), lost.as_deref())));
    status.fail_if_evicted(&workers, outlook);
    status.report_failed_workers(job, &workers, seen, outlook);
    status.set_restarting(&workers, seen, outlook);
    status.tell_of_ended_worker(&workers, &published_counts(&previous), seen);
    status.set_running(job, &workers, seen, outlook);
    status.verdict(&counts(&launcher, &workers, seen, &previous))
}

/// The status while it is computed, with the events of its changes.
struct Status {
    /// `MPIJob <namespace>/<name>`.
    job_name: String,
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
            job_name: format!("MPIJob {}/{}", job.namespace(), job.name()),
            now,
            conditions: Conditions::of(previous),
            start_time: time("startTime"),
            completion_time: time("completionTime"),
            events: vec![],
        }
    }

    /// Returns whether the job is finished and has a completion time. The status then no longer changes.
    fn is_over(&self) -> bool {
        self.conditions.finished() && self.completion_time.is_some()
    }

    fn set_created(&mut self) {
        if self.conditions.is_empty() {
            let message = format!("{} is created.", self.job_name);
            let step = self.conditions.set("Created", true, "MPIJobCreated", &message, &self.now);
            self.emit(step, "MPIJobCreated", message);
        }
    }

    fn set_start_time(&mut self, outlook: &Outlook) {
        if self.start_time.is_none() && !outlook.suspended {
            self.start_time = Some(self.now.clone());
        }
    }

    fn set_suspended(&mut self, outlook: &Outlook) {
        if outlook.suspended {
            let step = self.conditions.set("Suspended", true, "MPIJobSuspended", "MPIJob suspended", &self.now);
            self.emit(step, "MPIJobSuspended", "MPIJob suspended");
        } else if self.conditions.get("Suspended").is_some() {
            let step = self.conditions.set("Suspended", false, "MPIJobResumed", "MPIJob resumed", &self.now);
            if step == Step::New {
                self.start_time = Some(self.now.clone());
            }
            self.emit(step, "MPIJobResumed", "MPIJob resumed");
        }
    }

    fn apply_launcher(&mut self, launcher: &Launcher, loss: impl Fn(Option<&str>) -> Option<Loss>) {
        match launcher {
            Launcher::Absent | Launcher::Going { .. } => {}
            Launcher::Complete { at, .. } => {
                let mut message = format!("{} successfully completed.", self.job_name);
                if !self.conditions.finished() {
                    match loss(at.as_deref()) {
                        Some(Loss::Fails(why)) => return self.fail(lost::REASON, &why),
                        Some(Loss::IsTold(what)) => {
                            message = format!("{message} But {what}.");
                            self.events.push(Event { warning: true, reason: lost::REASON.to_owned(), message: what });
                        }
                        None => {}
                    }
                }
                self.completion_time.get_or_insert_with(|| at.clone().unwrap_or_else(|| self.now.clone()));
                self.conditions.remove(RESTARTING);
                let step = self.conditions.finish("Succeeded", "MPIJobSucceeded", &message, &self.now);
                self.emit(step, "MPIJobSucceeded", message);
            }
            Launcher::Failed { reason, message, .. } => self.fail(reason, message),
        }
    }

    /// Fails the job if a worker was evicted: the worker is not recreated and the others wait for it.
    fn fail_if_evicted(&mut self, workers: &Workers, outlook: &Outlook) {
        if workers.evicted > 0 && !outlook.suspended {
            let message = format!("{}/{} workers are evicted", workers.evicted, workers.wanted);
            self.fail("MPIJobEvicted", &message);
        }
        // A job that the original operator left finished without a completion time gets one now.
        if self.conditions.finished() {
            self.completion_time.get_or_insert_with(|| self.now.clone());
        }
    }

    /// Returns what the newest launcher has lost, if anything: a worker, between its begin and its end.
    fn lost_one(&self, seen: &Observation) -> Option<String> {
        let restarting = self.conditions.get(RESTARTING).filter(|condition| condition.status == "True")?;
        let since = restarting.last_transition_time.as_deref().and_then(parse_rfc3339)?;
        launcher::newest(seen)
            .is_none_or(|pod| ran_at(pod, since))
            .then(|| restarting.message.clone().unwrap_or_default())
    }

    /// Emits an event for each failed worker that is made again, and fails a job that loses too many. Better: the original makes
    /// no failed worker again, so that a launcher that is tried again fails, too.
    fn report_failed_workers(&mut self, job: &MpiJob, workers: &Workers, seen: &Observation, outlook: &Outlook) {
        if outlook.suspended || self.conditions.finished() {
            return;
        }
        for (name, _) in &workers.replaced {
            let message = format!("worker {name} has failed and is made again");
            self.events.push(Event { warning: true, reason: "MPIJobWorkerFailed".to_owned(), message });
        }
        let failures = seen.roles.iter().find(|facts| facts.role == plan::WORKER).map_or(0, |facts| facts.failures);
        let limit = job.spec.run_policy.as_ref().and_then(|policy| policy.backoff_limit).unwrap_or(BACKOFF_LIMIT);
        // Workers may fail for the launcher's end, and an elastic launcher goes on without them.
        let is_done = seen.pods_of(launcher::ROLE).any(|pod| pod.phase == PodPhase::Succeeded);
        if i64::from(failures) > i64::from(limit) && !is_done && !lost::is_elastic(job) {
            let message = format!("{failures} pods of workers have failed, more than the backoffLimit of {limit}");
            self.fail(lost::REASON, &message);
        }
    }

    /// Sets Restarting when a worker of a running job is lost, which is made again.
    fn set_restarting(&mut self, workers: &Workers, seen: &Observation, outlook: &Outlook) {
        if outlook.suspended {
            self.conditions.remove(RESTARTING);
            return;
        }
        if self.conditions.finished() {
            return;
        }
        // Before all have run together the launcher may wait for them by itself. What was deleted before the resumption is of the
        // run before it.
        let has_run = self.conditions.is_true("Running") || self.conditions.is_true(RESTARTING);
        let begun = self.start_time.as_deref().and_then(parse_rfc3339).unwrap_or(0);
        let gone = workers.going.iter().filter(|(_, created, _)| *created >= begun);
        let gone = gone.filter_map(|(name, _, ended)| Some((name, (*ended)?)));
        let failed = workers.replaced.iter().map(|(name, ended)| (name, ended.unwrap_or(seen.now)));
        let newest = launcher::newest(seen);
        let mut lost = failed.chain(gone).filter(|(_, at)| newest.is_some_and(|pod| ran_at(pod, *at)));
        if let Some((name, at)) = lost.next()
            && has_run
            && self.lost_one(seen).is_none()
        {
            let at = rfc3339(at.min(seen.now));
            self.conditions.remove(RESTARTING);
            let message = format!("worker {name} was lost while the launcher ran");
            if self.conditions.is_true("Running") {
                self.conditions.set("Running", false, "MPIJobRestarting", &message, &at);
            }
            self.conditions.set(RESTARTING, true, "MPIJobRestarting", &message, &at);
        }
    }

    /// Emits an event for a worker that has ended with 0 beside a launcher that runs. It stays, since its pod has not failed.
    fn tell_of_ended_worker(&mut self, workers: &Workers, counted: &Value, seen: &Observation) {
        let told = counted.pointer("/Worker/succeeded").and_then(Value::as_u64).unwrap_or(0);
        let runs = seen.live(launcher::ROLE).any(|pod| pod.phase == PodPhase::Running);
        if let Some(name) = workers.last_ended.as_ref().filter(|_| runs && u64::from(workers.succeeded) > told) {
            let message = format!(
                "worker {name} has ended with exit code 0 while the launcher runs; delete its pod to have another"
            );
            self.events.push(Event { warning: true, reason: "MPIJobWorkerEnded".to_owned(), message });
        }
    }

    fn fail(&mut self, reason: &str, message: &str) {
        self.conditions.remove(RESTARTING);
        self.completion_time.get_or_insert_with(|| self.now.clone());
        let step = self.conditions.finish("Failed", reason, message, &self.now);
        if step == Step::New {
            self.events.push(Event { warning: true, reason: reason.to_owned(), message: message.to_owned() });
        }
    }

    /// Sets Running. Once True, it stays True while pods are deleted and created, until the job is suspended or
    /// finished.
    fn set_running(&mut self, job: &MpiJob, workers: &Workers, seen: &Observation, outlook: &Outlook) {
        if outlook.suspended {
            let message = format!("{} is suspended.", self.job_name);
            self.conditions.set("Running", false, "MPIJobSuspended", &message, &self.now);
        } else if self.conditions.finished() {
            self.set_never_ran();
        } else if workers.all_run()
            && seen.live(launcher::ROLE).any(|pod| pod.phase == PodPhase::Running)
            && (self.lost_one(seen).is_none() || lost::is_elastic(job))
        {
            self.conditions.remove(RESTARTING);
            let message = format!("{} is running", self.job_name);
            let step = self.conditions.set("Running", true, "MPIJobRunning", &format!("{message}."), &self.now);
            self.emit(step, "MPIJobRunning", message);
        }
    }

    fn set_never_ran(&mut self) {
        if self.conditions.get("Running").is_none() {
            let at = self.completion_time.as_deref().unwrap_or(&self.now);
            let message = format!("{} is finished but Running condition was never set.", self.job_name);
            self.conditions.set("Running", false, "MPIJobRunning", &message, at);
        }
    }

    fn emit(&mut self, step: Step, reason: &str, message: impl Into<String>) {
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
        Verdict { events: self.events, ..Verdict::new(json_text(&status), self.conditions.headline(), outcome) }
    }
}

/// The workers by phase. Pending workers are not counted.
#[derive(Default)]
struct Workers {
    wanted: u32,
    active: u32,
    succeeded: u32,
    failed: u32,
    /// The active workers that are not terminating.
    running: u32,
    /// The failed workers that were evicted and are not terminating.
    evicted: u32,
    /// The names of failed workers that are made again from now on, and when they ended.
    replaced: Vec<(String, Option<u64>)>,
    /// The names of workers that are being deleted, when they were created, and when they ended.
    going: Vec<(String, u64, Option<u64>)>,
    /// The name of the last worker that has succeeded and is not terminating.
    last_ended: Option<String>,
}

impl Workers {
    /// Counts the wanted workers of a running job, or all existing workers of a suspended job, so that Kueue does not
    /// release their quota too early. Counts no worker of a job whose launcher has ended.
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
            // A terminating pod belongs to the run before a suspension: its state does not affect this run.
            workers.running += u32::from(pod.phase == PodPhase::Running && !pod.terminating);
            let evicted = pod.phase == PodPhase::Failed && pod.reason == "Evicted";
            workers.evicted += u32::from(evicted && !pod.terminating);
            match pod.phase {
                _ if pod.terminating => workers.going.push((pod.name.clone(), pod.created, lost::ended(pod))),
                PodPhase::Failed if pod.replacement == Replacement::Due => {
                    workers.replaced.push((pod.name.clone(), lost::ended(pod)));
                }
                PodPhase::Succeeded => workers.last_ended = Some(pod.name.clone()),
                _ => {}
            }
        }
        workers
    }

    fn all_run(&self) -> bool {
        self.running == self.wanted
    }
}

/// Returns whether the launcher of this pod ran at this time: its program had begun before, and ends later. Times have seconds, and
/// a kubelet starts a program that has failed again within one.
fn ran_at(launcher: &PodRow, at: u64) -> bool {
    launcher.phase != PodPhase::Pending
        && launcher::begun(launcher) < at
        && lost::ended(launcher).is_none_or(|end| at <= end)
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

/// Returns the published counts of a launcher whose Job is gone, without the active count.
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

/// Returns an entry of `replicaStatuses`. Omits counts of zero.
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
mod tests;
