//! What this process knows of a job and the job's ledger does not hold yet.

use crate::job_key::JobKey;
use decide::{
    Applied,
    ledger::{Ledger, Warned},
    snapshot::Job,
};
use std::collections::{BTreeMap, BTreeSet};

/// The records of each job, until [`Records::forget`].
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// Objects that are created only once, and warnings, until the job's ledger holds them.
    made: BTreeMap<JobKey, Made>,
    /// Uids of jobs whose namespace is being deleted, so that nothing can be created for them.
    without_namespace: BTreeMap<JobKey, String>,
}

/// What the ledger of the job with this uid does not hold yet.
#[derive(Debug, Default)]
struct Made {
    uid: String,
    made: BTreeSet<String>,
    warned: Warned,
}

impl Records {
    /// Records the job's objects that are created only once, and the warnings, until its ledger holds them.
    pub(crate) fn record_applied(&mut self, key: &JobKey, job: &Job, applied: &Applied) {
        if applied.made.is_empty() && applied.warnings.is_empty() {
            return;
        }
        let known = self.made.entry(key.clone()).or_default();
        if known.uid != job.uid {
            *known = Made { uid: job.uid.clone(), ..Made::default() };
        }
        known.made.extend(applied.made.iter().cloned());
        known.warned.add(job.generation, &applied.warnings);
    }

    /// Forgets the job's recorded objects that are not in `kept`: the next ledger leaves them out.
    pub(crate) fn retain_made(&mut self, key: &JobKey, kept: &BTreeSet<String>) {
        if let Some(known) = self.made.get_mut(key) {
            known.made.retain(|note| kept.contains(note));
        }
    }

    /// Adds to a ledger what was recorded for its job; forgets the records once the ledger holds all of them.
    pub(crate) fn recall_made(&mut self, key: &JobKey, ledger: &mut Ledger) {
        match self.made.get(key) {
            Some(known)
                if known.uid == ledger.uid
                    && !(known.made.is_subset(&ledger.made) && ledger.warned.has(&known.warned)) =>
            {
                ledger.made.extend(known.made.iter().cloned());
                ledger.warned.add(known.warned.generation, &known.warned.of);
            }
            _ => drop(self.made.remove(key)),
        }
    }

    /// Records, until the job is gone, that the namespace of the job with this uid is being deleted.
    pub(crate) fn record_namespace_terminating(&mut self, key: &JobKey, uid: &str) {
        self.without_namespace.insert(key.clone(), uid.to_owned());
    }

    /// Returns whether the namespace of the job with this uid is being deleted.
    pub(crate) fn is_namespace_terminating(&self, key: &JobKey, uid: &str) -> bool {
        self.without_namespace.get(key).is_some_and(|of| of == uid)
    }

    /// Forgets all records of a job that is gone.
    pub(crate) fn forget(&mut self, key: &JobKey) {
        self.made.remove(key);
        self.without_namespace.remove(key);
    }
}
