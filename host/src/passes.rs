//! The last pass of each job, for people: what was seen, answered and decided. Secret data is never in it.

use crate::stores::JobKey;
use decide::{Decision, Outlook, Snapshot, plan::Answer};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// One pass.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pass {
    /// What was seen.
    pub snapshot: Snapshot,
    /// What the host's own rules said, if the plugin had a plan.
    pub outlook: Option<Outlook>,
    /// What the plugin answered.
    pub answer: Answer,
    /// What was decided.
    pub decision: Decision,
}

/// The last pass of each job.
#[derive(Debug, Default)]
pub struct Passes {
    kept: Mutex<BTreeMap<JobKey, Pass>>,
}

impl Passes {
    /// Keeps a pass in place of the job's last one.
    pub(crate) fn note(&self, key: &JobKey, pass: impl FnOnce() -> Pass) {
        self.lock().insert(key.clone(), pass());
    }

    /// Forgets a job that is gone.
    pub(crate) fn forget(&self, key: &JobKey) {
        self.lock().remove(key);
    }

    /// The last pass of a job.
    #[must_use]
    pub fn last(&self, key: &JobKey) -> Option<Pass> {
        self.lock().get(key).cloned()
    }

    /// The jobs that have one.
    #[must_use]
    pub fn keys(&self) -> Vec<JobKey> {
        self.lock().keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<JobKey, Pass>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
