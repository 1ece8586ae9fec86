//! What must outlive a pod or the process: kept in the job's `status.troupe`.

use crate::plan::{Clean, Outcome};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The job's memory. One that carries another uid belongs to an earlier job of the name and counts as empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Ledger {
    /// The uid of the job it belongs to.
    pub uid: String,
    /// The digest of the plugin that plans this job.
    pub digest: String,
    /// The last headline that was written.
    pub headline: String,
    /// What the job's column shows; "" where that is the status' own phase or the headline.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub step: String,
    /// What was made and is never made again: secrets by their key, Jobs that remove themselves as `job/` and their role.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub made: BTreeSet<String>,
    /// Replicas that have succeeded, by role: first and last index of each range.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub succeeded: BTreeMap<String, Vec<(u32, u32)>>,
    /// The ports of the nodes that are this job's alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_ports: Option<HostPorts>,
    /// What the API server warned of when children were made of the job as it is.
    #[serde(skip_serializing_if = "Warned::is_empty")]
    pub warned: Warned,
    /// How the job ended, once it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished: Option<Finished>,
}

/// What the API server warned of when children of a job were made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Warned {
    /// The generation of the job that they were made of.
    pub generation: i64,
    /// The first child that each warning came with, by the warning's words.
    pub of: BTreeMap<String, String>,
}

/// So many different warnings of one job are kept.
const MOST_WARNINGS: usize = 8;

impl Warned {
    /// Nobody warned of anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Adds warnings about a generation. Those about an earlier one are forgotten; the same words count once, whatever
    /// children they come with.
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

    /// The same with these added is still the same.
    #[must_use]
    pub fn has(&self, other: &Self) -> bool {
        let mut all = self.clone();
        all.add(other.generation, &other.of);
        all == *self
    }

    /// In words for the job's user, if there is a warning about this generation.
    #[must_use]
    pub fn told(&self, generation: i64) -> Option<String> {
        let of = self.of.iter().map(|(words, child)| format!("{child}: {words}"));
        let told = (self.generation == generation).then(|| of.collect::<Vec<_>>().join("; "));
        told.filter(|told| !told.is_empty())
    }
}

/// How a job ended and what is left to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finished {
    /// When: the status says so, or it was seen then for the first time.
    pub at: Timestamp,
    /// The generation of the job whose policy this is; one that is edited after its end gets another. None in ledgers that
    /// an older host wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Succeeded or failed.
    pub outcome: Outcome,
    /// Which pods are removed.
    pub clean: Clean,
    /// It failed and keeps its pods, and some of them still run: the plugin goes on to count them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counting: bool,
    /// Kinds of object that go with the pods.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub clean_kinds: BTreeSet<String>,
    /// When the job itself is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_at: Option<Timestamp>,
}

/// Consecutive ports of the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPorts {
    /// The first.
    pub first: u32,
    /// How many.
    pub count: u32,
}

impl HostPorts {
    /// This port is one of them.
    #[must_use]
    pub fn contains(&self, port: u32) -> bool {
        port >= self.first && port - self.first < self.count
    }
}

impl Ledger {
    /// The ledger in a status, if it belongs to the job with this uid; else an empty one of that job.
    #[must_use]
    pub fn read(status: &Value, uid: &str) -> Self {
        let kept = status.get("troupe").and_then(|json| serde_json::from_value::<Self>(json.clone()).ok());
        kept.filter(|ledger| ledger.uid == uid).unwrap_or_else(|| Self { uid: uid.to_owned(), ..Self::default() })
    }

    /// The replica has succeeded, now or at some time before.
    #[must_use]
    pub fn has_succeeded(&self, role: &str, index: u32) -> bool {
        let ranges = self.succeeded.get(role).map_or(&[][..], Vec::as_slice);
        ranges.iter().any(|(first, last)| (*first..=*last).contains(&index))
    }

    /// Notes that a replica has succeeded.
    pub fn note_success(&mut self, role: &str, index: u32) {
        if self.has_succeeded(role, index) {
            return;
        }
        let ranges = self.succeeded.entry(role.to_owned()).or_default();
        ranges.push((index, index));
        ranges.sort_unstable();
        let mut folded: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges.drain(..) {
            match folded.last_mut() {
                Some(before) if before.1 + 1 >= first => before.1 = before.1.max(last),
                _ => folded.push((first, last)),
            }
        }
        *ranges = folded;
    }
}

/// Why a job is given no ports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NoPorts {
    /// Other jobs have too many.
    #[default]
    NoneFree,
    /// The jobs of its namespace would have more than they may.
    Quota {
        /// How many they have.
        used: u32,
        /// How many they may have.
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
    use serde_json::json;

    #[test]
    fn a_ledger_of_an_earlier_job_of_the_name_counts_as_empty() {
        let status = json!({ "troupe": { "uid": "old", "digest": "d", "headline": "Running" } });
        assert_eq!(Ledger::read(&status, "old").digest, "d");
        assert_eq!(Ledger::read(&status, "new"), Ledger { uid: "new".into(), ..Ledger::default() });
    }

    #[test]
    fn a_warning_is_kept_once_for_a_generation() {
        let warning = |words: &str, child: &str| BTreeMap::from([(words.to_owned(), child.to_owned())]);
        let mut warned = Warned::default();
        assert_eq!((warned.is_empty(), warned.told(0)), (true, None));
        warned.add(1, &warning("unknown field \"a\"", "pod/x-0"));
        warned.add(1, &warning("unknown field \"a\"", "pod/x-1"));
        warned.add(1, &warning("unknown field \"b\"", "pod/x-1"));
        warned.add(0, &warning("of an earlier generation", "pod/x-0"));
        let told = "pod/x-0: unknown field \"a\"; pod/x-1: unknown field \"b\"";
        assert_eq!((warned.told(1).as_deref(), warned.told(2)), (Some(told), None));
        assert!(warned.has(&warned.clone()) && warned.has(&Warned::default()));
        warned.add(2, &warning("other", "pod/x-0"));
        assert_eq!(warned.told(2).as_deref(), Some("pod/x-0: other"));
        for number in 0..100 {
            warned.add(2, &warning(&number.to_string(), "pod/x-0"));
        }
        assert_eq!(warned.of.len(), MOST_WARNINGS);
    }

    #[test]
    fn successes_fold_into_ranges() {
        let mut ledger = Ledger::default();
        for index in [0, 2, 1, 5, 1] {
            ledger.note_success("worker", index);
        }
        assert_eq!(ledger.succeeded["worker"], vec![(0, 2), (5, 5)]);
        assert!(ledger.has_succeeded("worker", 2) && !ledger.has_succeeded("worker", 3));
    }
}
