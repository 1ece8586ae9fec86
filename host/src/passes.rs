//! Recent passes, for people and for replay: the last one of each job, and the latest of all. Secret data is never in
//! them: the host watches no Secrets.

use crate::{stores::JobKey, weight};
use decide::{Decision, Outlook, Snapshot, decide, plan::Answer};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The latest passes take no more memory than this, by an estimate that counts what they share once for each.
const MOST_BYTES: usize = 32 << 20;

/// No more of the latest passes are kept.
const MOST: usize = 4_000;

/// One pass, as the admin port tells it: enough to ask the plugin again and to decide again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pass {
    /// The plugin's name. Its digest is in the snapshot.
    #[serde(default)]
    pub plugin: String,
    /// The plugin's settings, as it is shown them.
    #[serde(default = "no_settings")]
    pub config: String,
    /// What was seen.
    pub snapshot: Snapshot,
    /// What the host's own rules said, if the plugin had a plan.
    pub outlook: Option<Outlook>,
    /// What the plugin answered.
    pub answer: Answer,
    /// What was decided.
    pub decision: Decision,
}

fn no_settings() -> String {
    "{}".to_owned()
}

/// One pass as it is kept. What was decided follows from the rest.
#[derive(Debug)]
pub struct Noted {
    pub(crate) plugin: String,
    pub(crate) config: String,
    pub(crate) snapshot: Snapshot,
    pub(crate) outlook: Option<Outlook>,
    pub(crate) answer: Answer,
}

impl Noted {
    /// The whole pass, what was decided included.
    #[must_use]
    pub fn told(&self) -> Pass {
        Pass {
            plugin: self.plugin.clone(),
            config: self.config.clone(),
            snapshot: self.snapshot.clone(),
            outlook: self.outlook.clone(),
            answer: self.answer.clone(),
            decision: decide(&self.snapshot, &self.answer),
        }
    }

    fn weight(&self) -> usize {
        512 + self.config.len() + weight::snapshot(&self.snapshot) + weight::answer(&self.answer)
    }
}

/// Recent passes.
#[derive(Debug, Default)]
pub struct Passes {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The last pass of each job.
    last: BTreeMap<JobKey, Arc<Noted>>,
    /// The latest passes over all jobs with their weights, the oldest first.
    latest: VecDeque<(usize, Arc<Noted>)>,
    bytes: usize,
}

impl Kept {
    fn push(&mut self, weight: usize, pass: Arc<Noted>) {
        self.bytes += weight;
        self.latest.push_back((weight, pass));
        while self.bytes > MOST_BYTES || self.latest.len() > MOST {
            let Some((weight, _)) = self.latest.pop_front() else { break };
            self.bytes -= weight;
        }
    }
}

impl Passes {
    /// Keeps a pass in place of the job's last one, and as the latest of all.
    pub(crate) fn note(&self, key: &JobKey, pass: Arc<Noted>) {
        let weight = pass.weight();
        let mut kept = self.lock();
        kept.last.insert(key.clone(), Arc::clone(&pass));
        kept.push(weight, pass);
    }

    /// Forgets the last pass of a job that is gone.
    pub(crate) fn forget(&self, key: &JobKey) {
        self.lock().last.remove(key);
    }

    /// The last pass of a job.
    #[must_use]
    pub fn last(&self, key: &JobKey) -> Option<Pass> {
        let last = self.lock().last.get(key).cloned();
        last.map(|pass| pass.told())
    }

    /// The latest passes over all jobs, of all plugins or of the one of this name, the oldest first.
    #[must_use]
    pub fn latest(&self, plugin: Option<&str>) -> Vec<Arc<Noted>> {
        let kept = self.lock();
        let latest = kept.latest.iter().map(|(_, pass)| pass);
        latest.filter(|pass| plugin.is_none_or(|name| pass.plugin == name)).cloned().collect()
    }

    /// The jobs that have one.
    #[must_use]
    pub fn keys(&self) -> Vec<JobKey> {
        self.lock().last.keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use decide::{plan::Rejection, snapshot::Job, testkit};
    use serde_json::json;

    fn key(name: &str) -> JobKey {
        JobKey { kind: 0, namespace: "ns".into(), name: name.into() }
    }

    fn noted(plugin: &str, name: &str, spec_bytes: usize) -> Arc<Noted> {
        let spec = json!({ "text": "x".repeat(spec_bytes) });
        let snapshot = testkit::snapshot(Job { spec, ..testkit::job(name, "u") });
        let answer = Answer::Rejected(Rejection::Unsupported("tales".into()));
        Arc::new(Noted { plugin: plugin.into(), config: "{}".into(), snapshot, outlook: None, answer })
    }

    fn names(passes: &[Arc<Noted>]) -> Vec<&str> {
        passes.iter().map(|pass| pass.snapshot.job.name.as_str()).collect()
    }

    #[test]
    fn the_latest_passes_are_of_all_jobs_or_of_one_plugin_and_outlive_their_jobs() {
        let passes = Passes::default();
        for (plugin, name) in [("a", "one"), ("b", "two"), ("a", "three")] {
            passes.note(&key(name), noted(plugin, name, 10));
        }
        passes.forget(&key("one"));
        assert!(passes.last(&key("one")).is_none());
        assert_eq!(names(&passes.latest(None)), ["one", "two", "three"]);
        assert_eq!(names(&passes.latest(Some("a"))), ["one", "three"]);
        assert_eq!(names(&passes.latest(Some("c"))), [""; 0]);
    }

    #[test]
    fn the_oldest_passes_go_when_the_bytes_or_the_places_run_out() {
        let passes = Passes::default();
        for number in 0..40 {
            passes.note(&key("large"), noted("a", &format!("large-{number}"), 1 << 20));
        }
        let latest = passes.latest(None);
        assert_eq!(latest.last().map(|pass| pass.snapshot.job.name.as_str()), Some("large-39"));
        assert_eq!(latest.len(), 31, "32 MiB hold 31 of a little more than 1 MiB");
        for _ in 0..MOST + 1 {
            passes.note(&key("small"), noted("a", "small", 0));
        }
        assert_eq!(passes.latest(None).len(), MOST);
        assert!(passes.lock().bytes <= MOST_BYTES);
    }

    #[test]
    fn what_is_told_says_what_was_decided_and_reads_back() {
        let told = noted("a", "one", 0).told();
        let text = serde_json::to_string(&told).unwrap();
        let read: Pass = serde_json::from_str(&text).unwrap();
        assert_eq!(read.decision, decide(&read.snapshot, &read.answer));
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
}
