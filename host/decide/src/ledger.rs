//! What must outlive a pod or the process, kept in the job's `status.troupe`.

use crate::{
    back_off::{Attempt, Failures},
    digest::RecordedDigest,
    plan::{Clean, Ending, Outcome},
    ranges::Ranges,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// The durable record of a job. A ledger with another uid belongs to an earlier job of the same name and counts as
/// empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Ledger {
    /// Uid of the job.
    pub uid: String,
    /// The digest of the plugin that plans this job.
    pub digest: RecordedDigest,
    /// The last headline that was written.
    pub headline: String,
    /// What the job's printer column shows; "" where it shows the status' own phase.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub step: String,
    /// What was created and is never created again: Secrets by their key, Jobs that remove themselves as `job/` and
    /// their role.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub made: BTreeSet<String>,
    /// Replicas that have succeeded, by role.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub succeeded: BTreeMap<String, Ranges>,
    /// Replicas that are given up, by role.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub given_up: BTreeMap<String, Ranges>,
    /// Failed pods that were replaced, or are going to be, by role.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<String, Failures>,
    /// The attempts of roles that were started again as a whole, by role.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attempts: BTreeMap<String, Attempt>,
    /// Hashes of the templates that the job began with, by role.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub templates: BTreeMap<String, String>,
    /// Whether the host has queued the job, although the queue's own controller knows the kind.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub queued: bool,
    /// Host ports reserved for this job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_ports: Option<HostPorts>,
    /// Warnings of the API server about children created from the current generation of the job.
    #[serde(skip_serializing_if = "Warned::is_empty")]
    pub warned: Warned,
    /// What failed first, of a job that has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_failure: Option<FirstFailure>,
    /// How the job is going to end, once its pods have: `None` before that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// How the job ended; `None` before its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished: Option<Finished>,
}

/// The first failure of a job that has failed, kept since the pod may be gone when somebody asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FirstFailure {
    /// The pod.
    pub pod: String,
    /// The container that ended first with another exit code than 0; "" if the pod failed without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub container: String,
    /// Its exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// CamelCase reason of the container's end, else of the pod's: `OOMKilled`, `Error`, `Evicted`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The message that belongs to the reason, of limited length.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The node of the pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node: String,
}

/// Warnings of the API server about the children of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Warned {
    /// The generation of the job from which the children were created.
    pub generation: i64,
    /// The first child that each warning concerns, by the warning's text.
    pub of: BTreeMap<String, String>,
}

/// Maximum number of different warnings kept for one job.
pub(crate) const MOST_WARNINGS: usize = 8;

impl Warned {
    /// Returns whether there is no warning.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Adds warnings about a generation, and drops those about an earlier one. Equal texts count once, whatever their
    /// child.
    pub fn add(&mut self, generation: i64, of: &BTreeMap<String, String>) {
        if of.is_empty() || generation < self.generation {
            return;
        }
        if generation > self.generation {
            *self = Self { generation, ..Self::default() };
        }
        for (words, child) in of {
            if self.of.len() < MOST_WARNINGS && !self.of.contains_key(words) {
                self.of.insert(words.clone(), child.clone());
            }
        }
    }

    /// Returns whether adding `other` changes nothing.
    #[must_use]
    pub fn has(&self, other: &Self) -> bool {
        let mut all = self.clone();
        all.add(other.generation, &other.of);
        all == *self
    }

    /// Returns the warnings about this generation as a message for the job's user, if there are any.
    #[must_use]
    pub fn message(&self, generation: i64) -> Option<String> {
        let of = self.of.iter().map(|(words, child)| format!("{child}: {words}"));
        let message = (self.generation == generation).then(|| of.collect::<Vec<_>>().join("; "));
        message.filter(|message| !message.is_empty())
    }
}

/// How a job ended, and what is left to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finished {
    /// When the job ended: as the status says, else when the host first observed it.
    pub at: Timestamp,
    /// The generation of the job that this policy belongs to; an edit after the end leads to a new one. `None` in
    /// ledgers of an older host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Succeeded or failed.
    pub outcome: Outcome,
    /// Which pods the host deletes.
    pub clean: Clean,
    /// Whether the verdict said so: then no edit of the job changes it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clean_is_final: bool,
    /// Whether the plugin still counts the pods: the job failed and keeps its pods, and some of them run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counting: bool,
    /// Kinds of object that are deleted after the end.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub clean_kinds: BTreeSet<String>,
    /// When the host deletes the job itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_at: Option<Timestamp>,
}

impl Finished {
    /// Returns whether a job of this generation was edited after its end, so that its policy may be another.
    #[must_use]
    pub fn was_edited(&self, generation: i64) -> bool {
        self.generation.is_some_and(|planned| planned != generation)
    }

    /// Returns whether a plugin is asked about a job of this generation: it was edited, or its pods are still counted.
    #[must_use]
    pub fn needs_plan(&self, generation: i64) -> bool {
        self.counting || self.was_edited(generation)
    }
}

/// A block of consecutive host ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPorts {
    /// The first port.
    pub first: u32,
    /// Number of ports.
    pub count: u32,
}

impl HostPorts {
    /// Returns whether the port is in the block.
    #[must_use]
    pub fn contains(&self, port: u32) -> bool {
        port >= self.first && port - self.first < self.count
    }
}

impl Ledger {
    /// Returns the ledger in a status if it belongs to the job with this uid; else an empty one for that job.
    #[must_use]
    pub fn read(status: &Value, uid: &str) -> Self {
        let kept = status.get("troupe").and_then(|json| serde_json::from_value::<Self>(json.clone()).ok());
        kept.filter(|ledger| ledger.uid == uid).unwrap_or_else(|| Self { uid: uid.to_owned(), ..Self::default() })
    }

    /// Returns whether the replica has succeeded, now or before.
    #[must_use]
    pub fn has_succeeded(&self, role: &str, index: u32) -> bool {
        self.succeeded.get(role).is_some_and(|indices| indices.contains(index))
    }

    /// Records that a replica has succeeded.
    pub fn record_success(&mut self, role: &str, index: u32) {
        self.succeeded.entry(role.to_owned()).or_default().insert(index);
    }

    /// Returns how often the role was started again as a whole.
    #[must_use]
    pub fn attempt(&self, role: &str) -> u32 {
        self.attempts.get(role).map_or(0, |attempt| attempt.count)
    }

    /// Returns whether the replica is given up.
    #[must_use]
    pub fn is_given_up(&self, role: &str, index: u32) -> bool {
        self.given_up.get(role).is_some_and(|indices| indices.contains(index))
    }
}

/// Why a job gets no host ports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NoPorts {
    /// Other jobs hold too many.
    #[default]
    NoneFree,
    /// The jobs of its namespace would exceed their quota.
    Quota {
        /// Number of ports that they hold.
        used: u32,
        /// Number of ports that they may hold.
        most: u32,
    },
}

impl fmt::Display for NoPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoneFree => f.write_str("other jobs have too many"),
            Self::Quota { used, most } => {
                write!(f, "jobs of this namespace have {used} of the {most} that they may have")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit;
    use serde_json::json;

    #[test]
    fn a_ledger_of_an_earlier_job_of_the_same_name_counts_as_empty() {
        let status = json!({ "troupe": { "uid": "old", "digest": testkit::digest("d"), "headline": "Running" } });
        assert_eq!(Ledger::read(&status, "old").digest.digest(), Some(&testkit::digest("d")));
        assert_eq!(Ledger::read(&status, "new"), Ledger { uid: "new".into(), ..Ledger::default() });
    }

    #[test]
    fn failures_are_read_as_they_were_written() {
        let mut failures = Failures { count: 3, ..Failures::default() };
        failures.row.add(Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH);
        failures.pods.insert(7, "uid-7".into());
        failures.settled.insert(8, "uid-8".into());
        failures.replicas.entry(7).or_default().count = 2;
        let mut ledger = Ledger { uid: "u".into(), ending: Some(Ending::Failing), ..Ledger::default() };
        ledger.failures.insert("w".into(), failures);
        ledger.given_up.entry("w".into()).or_default().insert(9);
        ledger.record_success("w", 1);
        assert_eq!(Ledger::read(&json!({ "troupe": ledger }), "u"), ledger);
    }

    #[test]
    fn a_warning_is_kept_once_for_a_generation() {
        let warning = |words: &str, child: &str| BTreeMap::from([(words.to_owned(), child.to_owned())]);
        let mut warned = Warned::default();
        assert_eq!((warned.is_empty(), warned.message(0)), (true, None));
        warned.add(1, &warning("unknown field \"a\"", "pod/x-0"));
        warned.add(1, &warning("unknown field \"a\"", "pod/x-1"));
        warned.add(1, &warning("unknown field \"b\"", "pod/x-1"));
        warned.add(0, &warning("of an earlier generation", "pod/x-0"));
        let message = "pod/x-0: unknown field \"a\"; pod/x-1: unknown field \"b\"";
        assert_eq!((warned.message(1).as_deref(), warned.message(2)), (Some(message), None));
        assert!(warned.has(&warned.clone()) && warned.has(&Warned::default()));
        warned.add(2, &warning("other", "pod/x-0"));
        assert_eq!(warned.message(2).as_deref(), Some("pod/x-0: other"));
        for number in 0..100 {
            warned.add(2, &warning(&number.to_string(), "pod/x-0"));
        }
        assert_eq!(warned.of.len(), MOST_WARNINGS);
    }
}
