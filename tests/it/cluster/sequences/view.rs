//! What there is of one job: itself and its pods, as a watch tells it, and what is said of that.

use super::{
    super::objects::{at, text},
    text::rank,
};
use decide::{
    condition::Condition,
    own_conditions::{self, current_true},
};
use serde_json::Value;
use std::collections::BTreeMap;
use tokio::time::Instant;

/// The labels that name the job of a pod, of a Job and of ours.
const OF_JOB: [&str; 2] =
    ["/metadata/labels/batch.kubernetes.io~1job-name", "/metadata/labels/batch.troupe.dev~1job-name"];
/// The annotation with the index of a pod, of a Job and of ours.
const INDEX: [&str; 2] = [
    "/metadata/annotations/batch.kubernetes.io~1job-completion-index",
    "/metadata/annotations/batch.troupe.dev~1job-completion-index",
];

/// One job and its pods at some moment.
#[derive(Debug)]
pub(super) struct View {
    pub(super) job: Value,
    /// By uid.
    pub(super) pods: BTreeMap<String, Value>,
    /// When anything of it last changed.
    pub(super) changed: Instant,
}

impl View {
    pub(super) fn new() -> Self {
        Self { job: Value::Null, pods: BTreeMap::new(), changed: Instant::now() }
    }

    pub(super) fn is_indexed(&self) -> bool {
        text(&self.job, "/spec/completionMode") == "Indexed"
    }

    /// Pods, the oldest first.
    pub(super) fn pods(&self, which: impl Fn(&Value) -> bool) -> Vec<&Value> {
        let mut pods: Vec<_> = self.pods.values().filter(|pod| which(pod)).collect();
        pods.sort_by_key(|pod| (text(pod, "/metadata/creationTimestamp"), text(pod, "/metadata/name")));
        pods
    }

    /// What the job is like, one fact a line.
    pub(super) fn told(&self) -> Vec<String> {
        let status = &self.job["status"];
        let number = |field: &str| status[field].as_i64().unwrap_or_default();
        let optional = |field: &str| status[field].as_i64().map_or("-".to_owned(), |it| it.to_string());
        let mut lines = Vec::new();
        if self.job.is_null() {
            lines.push("gone".to_owned());
            lines.push(format!("pods={}", self.pods.len()));
        } else {
            lines.extend(at(&self.job, "/metadata/deletionTimestamp").as_str().map(|_| "deleting".to_owned()));
            // Of the host's own words only the refusal, which is the API server's for a Job.
            let refused = current_true(status, Condition::Rejected);
            for it in refused.into_iter().chain(own_conditions::of_framework(status)) {
                let of = |field: &str| it[field].as_str().unwrap_or_default().to_owned();
                let message = without_names(&of("message"), text(&self.job, "/metadata/name"));
                lines.push(format!("{}={} {}: {message}", of("type"), of("status"), of("reason")));
            }
            lines.push(format!(
                "active={} ready={} terminating={} succeeded={} failed={}",
                number("active"),
                optional("ready"),
                optional("terminating"),
                number("succeeded"),
                number("failed"),
            ));
            let completed = status["completedIndexes"].as_str().filter(|it| !it.is_empty());
            lines.extend(completed.map(|it| format!("completedIndexes={it}")));
            lines.extend(status["failedIndexes"].as_str().map(|it| format!("failedIndexes={it}")));
            for time in ["startTime", "completionTime"] {
                lines.extend(status[time].as_str().map(|_| format!("{time}=set")));
            }
        }
        let live = self.pods(is_live);
        let mut indexes: Vec<_> = live.iter().filter_map(|pod| index(pod)).collect();
        indexes.sort_unstable();
        let indexes = if self.is_indexed() { format!(" {indexes:?}") } else { String::new() };
        lines.push(format!("live={}{indexes}", live.len()));
        lines.sort_by_key(|line| rank(line));
        lines
    }
}

/// The name of the pod's job; "" if it has none.
pub(super) fn job_of(pod: &Value) -> &str {
    OF_JOB.iter().map(|at| text(pod, at)).find(|name| !name.is_empty()).unwrap_or_default()
}

/// The pod's completion index.
pub(super) fn index(pod: &Value) -> Option<usize> {
    INDEX.iter().find_map(|at| text(pod, at).parse().ok())
}

/// It has neither ended nor been deleted.
pub(super) fn is_live(pod: &Value) -> bool {
    !has_ended(pod) && !is_deleted(pod)
}

pub(super) fn has_ended(pod: &Value) -> bool {
    ["Succeeded", "Failed"].contains(&text(pod, "/status/phase"))
}

pub(super) fn is_deleted(pod: &Value) -> bool {
    !at(pod, "/metadata/deletionTimestamp").is_null()
}

/// It was deleted, and waits for its kubelet.
pub(super) fn is_held(pod: &Value) -> bool {
    is_deleted(pod) && at(pod, "/metadata/deletionGracePeriodSeconds").as_i64() > Some(0)
}

/// A message with `POD` in place of a pod's namespace and name, which are of chance.
fn without_names(message: &str, job: &str) -> String {
    let of_pod = |word: &&str| word.split_once('/').is_some_and(|(_, name)| name.starts_with(&format!("{job}-")));
    message.split(' ').map(|word| if of_pod(&word) { "POD" } else { word }).collect::<Vec<_>>().join(" ")
}
