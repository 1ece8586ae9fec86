//! One sync of a Job: counts its pods, decides which to create or delete, and computes the status.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::defaults::remove;
use crate::jobs::{FINALIZER, condition};
use crate::life::is_terminal;
use crate::store::{Location, annotation, deleting, has_finalizer, name, namespace, text, uid};
use crate::world::{parse, stamp};

const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// The first and the maximum back-off after a failed pod, in seconds.
const BACK_OFF: (i64, i64) = (10, 600);

/// One sync of a Job.
pub(crate) struct Sync<'a> {
    job: &'a Value,
    pods: Vec<(Location, Arc<Value>)>,
    now: Timestamp,
    pub(crate) active: i64,
    ready: i64,
    terminating: i64,
    succeeded: i64,
    failed: i64,
    completed: BTreeSet<i64>,
    conditions: Vec<Value>,
    start: Option<Value>,
    completion: Option<Value>,
    pub(crate) counted: Vec<Location>,
    /// Whether the pods to delete are not counted as failed.
    pub(crate) spared: bool,
    pub(crate) again: Option<Duration>,
}

impl<'a> Sync<'a> {
    pub(crate) fn new(job: &'a Value, pods: Vec<(Location, Arc<Value>)>, now: Timestamp) -> Self {
        let status = &job["status"];
        let mut sync = Self {
            job,
            now,
            active: 0,
            ready: 0,
            terminating: 0,
            succeeded: status["succeeded"].as_i64().unwrap_or(0),
            failed: status["failed"].as_i64().unwrap_or(0),
            completed: indexes(text(&status["completedIndexes"])),
            conditions: status["conditions"].as_array().cloned().unwrap_or_default(),
            start: Some(status["startTime"].clone()).filter(Value::is_string),
            completion: None,
            counted: Vec::new(),
            spared: false,
            again: None,
            pods,
        };
        sync.count();
        sync
    }

    fn indexed(&self) -> bool {
        self.job["spec"]["completionMode"] == "Indexed"
    }

    fn suspended(&self) -> bool {
        self.job["spec"]["suspend"] == true
    }

    fn count(&mut self) {
        let indexed = self.indexed();
        for (location, pod) in &self.pods {
            let phase = text(&pod["status"]["phase"]);
            if !is_terminal(pod) {
                if deleting(pod) {
                    self.terminating += 1;
                } else {
                    self.active += 1;
                    self.ready += i64::from(is_ready(pod));
                }
                continue;
            }
            if !has_finalizer(pod, FINALIZER) {
                continue;
            }
            self.counted.push(location.clone());
            match (phase, index(pod)) {
                ("Succeeded", Some(index)) if indexed => {
                    self.completed.insert(index);
                }
                ("Succeeded", _) => self.succeeded += 1,
                _ => self.failed += 1,
            }
        }
        if indexed {
            self.succeeded = self.completed.len() as i64;
        }
    }

    /// Returns the pods to create and those to delete; sets the conditions on the way.
    pub(crate) fn decide(&mut self) -> (Vec<Value>, Vec<Arc<Value>>) {
        if self.start.is_none() && !self.suspended() {
            self.start = Some(json!(stamp(self.now)));
        }
        let verdict = self.verdict();
        if let Some((target, end, reason, message)) = verdict {
            self.set(target, "True", reason, message);
            let doomed = self.doom(|_| true);
            if self.terminating == 0 && self.active == 0 {
                self.set(end, "True", reason, message);
                self.completion = (end == "Complete").then(|| json!(stamp(self.now)));
            }
            return (Vec::new(), doomed);
        }
        if self.suspended() {
            self.spared = true;
            let doomed = self.doom(|_| true);
            if self.set("Suspended", "True", "JobSuspended", "Job suspended") {
                self.start = None;
            }
            return (Vec::new(), doomed);
        }
        let was_suspended = self.conditions.iter().any(|have| have["type"] == "Suspended");
        if was_suspended && self.set("Suspended", "False", "JobResumed", "Job resumed") {
            self.start = Some(json!(stamp(self.now)));
        }
        self.pace()
    }

    /// Returns (interim condition, final condition, reason, message) of a Job that is over.
    fn verdict(&mut self) -> Option<(&'static str, &'static str, &'static str, &'static str)> {
        const SUCCESS: (&str, &str) = ("CompletionsReached", "Reached expected number of succeeded pods");
        const LIMIT: (&str, &str) = ("BackoffLimitExceeded", "Job has reached the specified backoff limit");
        const DEADLINE: (&str, &str) = ("DeadlineExceeded", "Job was active longer than specified deadline");
        let succeeded = |(reason, message)| Some(("SuccessCriteriaMet", "Complete", reason, message));
        let failed = |(reason, message)| Some(("FailureTarget", "Failed", reason, message));
        let spec = &self.job["spec"];
        if condition(self.job, "SuccessCriteriaMet").is_some() {
            return succeeded(SUCCESS);
        }
        if let Some(target) = condition(self.job, "FailureTarget") {
            return failed(if target["reason"] == DEADLINE.0 { DEADLINE } else { LIMIT });
        }
        let limit = spec["backoffLimit"].as_i64().unwrap_or(6);
        if self.failed > limit || self.restarts_exceed(limit) {
            return failed(LIMIT);
        }
        if let (Some(deadline), Some(start), false) =
            (spec["activeDeadlineSeconds"].as_i64(), self.start.as_ref().and_then(parse), self.suspended())
        {
            let left = (start + SignedDuration::from_secs(deadline)).duration_since(self.now);
            match Duration::try_from(left) {
                Ok(left) if !left.is_zero() => self.again = Some(left),
                _ => return failed(DEADLINE),
            }
        }
        let complete = match spec["completions"].as_i64() {
            None => self.succeeded > 0 && self.active == 0,
            Some(completions) => self.succeeded >= completions && self.active == 0,
        };
        if complete { succeeded(SUCCESS) } else { None }
    }

    /// Whether restarts exceed the limit; only for restartPolicy OnFailure, where restarts in place count.
    fn restarts_exceed(&self, limit: i64) -> bool {
        if self.job["spec"]["template"]["spec"]["restartPolicy"] != "OnFailure" {
            return false;
        }
        let restarts: i64 = self
            .pods
            .iter()
            .filter(|(_, pod)| matches!(text(&pod["status"]["phase"]), "Running" | "Pending"))
            .flat_map(|(_, pod)| pod["status"]["containerStatuses"].as_array().into_iter().flatten())
            .map(|status| status["restartCount"].as_i64().unwrap_or(0))
            .sum();
        if limit == 0 { restarts > 0 } else { restarts >= limit }
    }

    /// Creates pods up to the parallelism and the remaining completions, or deletes excess pods.
    fn pace(&mut self) -> (Vec<Value>, Vec<Arc<Value>>) {
        let spec = &self.job["spec"];
        let parallelism = spec["parallelism"].as_i64().unwrap_or(1);
        let wanted = match spec["completions"].as_i64() {
            None if self.succeeded > 0 => self.active,
            None => parallelism,
            Some(completions) => (completions - self.succeeded).clamp(0, parallelism),
        };
        if self.active > wanted {
            self.spared = true;
            let mut surplus = self.active - wanted;
            let doomed = self.doom(move |_| {
                surplus -= 1;
                surplus >= 0
            });
            return (Vec::new(), doomed);
        }
        let only_failed = spec["podReplacementPolicy"] == "Failed";
        let missing = wanted - self.active - if only_failed { self.terminating } else { 0 };
        if missing <= 0 {
            return (Vec::new(), Vec::new());
        }
        let wait = self.back_off();
        if !wait.is_zero() {
            self.again = Some(self.again.map_or(wait, |again| again.min(wait)));
            return (Vec::new(), Vec::new());
        }
        let created: Vec<Value> = if self.indexed() {
            self.free_indexes(missing).into_iter().map(|index| self.pod(Some(index))).collect()
        } else {
            (0..missing).map(|_| self.pod(None)).collect()
        };
        self.active += created.len() as i64;
        (created, Vec::new())
    }

    /// Removes the chosen active pods from the count and returns them: unready first, then by name in descending order.
    fn doom(&mut self, mut chosen: impl FnMut(&Value) -> bool) -> Vec<Arc<Value>> {
        let mut active: Vec<Arc<Value>> =
            self.pods.iter().map(|(_, pod)| pod.clone()).filter(|pod| !is_terminal(pod) && !deleting(pod)).collect();
        active.sort_by_key(|pod| (is_ready(pod), std::cmp::Reverse(name(pod).to_owned())));
        active.retain(|pod| chosen(pod));
        for pod in &active {
            self.active -= 1;
            self.ready -= i64::from(is_ready(pod));
            // A pod without a node is removed at once.
            self.terminating += i64::from(!text(&pod["spec"]["nodeName"]).is_empty());
        }
        active
    }

    /// Returns how long the next pod has to wait after the last failures.
    fn back_off(&self) -> Duration {
        let end = |pod: &Value| {
            let ends = pod["status"]["containerStatuses"].as_array().into_iter().flatten();
            ends.filter_map(|status| parse(&status["state"]["terminated"]["finishedAt"])).max()
        };
        let phase = |pod: &Value, phase: &str| pod["status"]["phase"] == phase;
        let success = self.pods.iter().filter(|(_, pod)| phase(pod, "Succeeded")).filter_map(|(_, pod)| end(pod)).max();
        let failures: Vec<Timestamp> = self
            .pods
            .iter()
            .filter(|(_, pod)| phase(pod, "Failed"))
            .filter_map(|(_, pod)| end(pod))
            .filter(|end| success.is_none_or(|success| *end > success))
            .collect();
        let Some(last) = failures.iter().max() else {
            return Duration::ZERO;
        };
        let doublings = (failures.len() - 1).min(10) as u32;
        let seconds = (BACK_OFF.0 << doublings).min(BACK_OFF.1);
        let left = (*last + SignedDuration::from_secs(seconds)).duration_since(self.now);
        Duration::try_from(left).unwrap_or(Duration::ZERO)
    }

    fn free_indexes(&self, count: i64) -> Vec<i64> {
        let only_failed = self.job["spec"]["podReplacementPolicy"] == "Failed";
        let taken: BTreeSet<i64> = self
            .pods
            .iter()
            .filter(|(_, pod)| !is_terminal(pod) && (only_failed || !deleting(pod)))
            .filter_map(|(_, pod)| index(pod))
            .collect();
        let completions = self.job["spec"]["completions"].as_i64().unwrap_or(0);
        (0..completions)
            .filter(|index| !self.completed.contains(index) && !taken.contains(index))
            .take(usize::try_from(count).unwrap_or(0))
            .collect()
    }

    fn pod(&self, index: Option<i64>) -> Value {
        let mut pod = self.job["spec"]["template"].clone();
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        let base = name(self.job);
        pod["metadata"]["namespace"] = json!(namespace(self.job));
        remove(&mut pod["metadata"], "name");
        pod["metadata"]["generateName"] = match index {
            Some(index) => json!(format!("{base}-{index}-")),
            None => json!(format!("{base}-")),
        };
        pod["metadata"]["finalizers"] = json!([FINALIZER]);
        pod["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "batch/v1", "kind": "Job", "name": base, "uid": uid(self.job),
            "controller": true, "blockOwnerDeletion": true,
        }]);
        if let Some(index) = index {
            pod["metadata"]["labels"][INDEX] = json!(index.to_string());
            pod["metadata"]["annotations"][INDEX] = json!(index.to_string());
            pod["spec"]["hostname"] = json!(format!("{base}-{index}"));
            for list in ["containers", "initContainers"] {
                for container in pod["spec"].get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                    let known = container["env"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .any(|entry| entry["name"] == "JOB_COMPLETION_INDEX");
                    if !container["env"].is_array() {
                        container["env"] = json!([]);
                    }
                    if let (false, Some(env)) = (known, container["env"].as_array_mut()) {
                        env.push(json!({ "name": "JOB_COMPLETION_INDEX", "valueFrom": { "fieldRef": {
                            "apiVersion": "v1", "fieldPath": format!("metadata.labels['{INDEX}']") } } }));
                    }
                }
            }
        }
        pod
    }

    /// Sets a condition; returns whether that changed it.
    fn set(&mut self, kind: &str, status: &str, reason: &str, message: &str) -> bool {
        let at = self.conditions.iter().position(|have| have["type"] == kind);
        if at.is_some_and(|at| self.conditions[at]["status"] == status && self.conditions[at]["reason"] == reason) {
            return false;
        }
        let now = stamp(self.now);
        let condition = json!({
            "type": kind, "status": status, "lastProbeTime": now, "lastTransitionTime": now,
            "reason": reason, "message": message,
        });
        match at {
            Some(at) => self.conditions[at] = condition,
            None => self.conditions.push(condition),
        }
        true
    }

    pub(crate) fn status(&self) -> Value {
        let mut status = json!({
            "ready": self.ready, "terminating": self.terminating, "uncountedTerminatedPods": {},
        });
        for (field, number) in [("active", self.active), ("succeeded", self.succeeded), ("failed", self.failed)] {
            if number > 0 {
                status[field] = json!(number);
            }
        }
        if !self.conditions.is_empty() {
            status["conditions"] = json!(self.conditions);
        }
        for (field, time) in [("startTime", &self.start), ("completionTime", &self.completion)] {
            if let Some(time) = time {
                status[field] = time.clone();
            }
        }
        if !self.completed.is_empty() {
            status["completedIndexes"] = json!(ranges(&self.completed));
        }
        status
    }
}

fn is_ready(pod: &Value) -> bool {
    pod["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn index(pod: &Value) -> Option<i64> {
    annotation(pod, INDEX)?.parse().ok()
}

/// Parses `1,3-5,7`.
fn indexes(text: &str) -> BTreeSet<i64> {
    let mut set = BTreeSet::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>()) {
            set.extend(first..=last);
        }
    }
    set
}

/// Formats a set as `1,3-5,7`.
fn ranges(set: &BTreeSet<i64>) -> String {
    let mut parts: Vec<(i64, i64)> = Vec::new();
    for index in set {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *index => *last = *index,
            _ => parts.push((*index, *index)),
        }
    }
    let parts: Vec<String> = parts
        .into_iter()
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first},{last}"),
            _ => format!("{first}-{last}"),
        })
        .collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completed_indexes_read_and_write_as_the_job_controller_writes_them() {
        for text in ["", "0", "0,1", "0-2", "1,3-5,7", "2,4,6-9"] {
            assert_eq!(ranges(&indexes(text)), text);
        }
    }
}
