//! What this process knows of a job and the job's ledger does not hold yet.

use crate::job_key::JobKey;
use decide::{
    Applied,
    ledger::{Ledger, Warned},
    snapshot::Job,
};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// For how long a refused create says that the namespace is being deleted. After that one more is tried: a namespace that
/// was deleted and made again may be refused by an API server that has not seen the new one yet.
const NAMESPACE_TERMINATES: SignedDuration = SignedDuration::from_secs(60);

/// The records of each job, until [`Records::forget`].
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// Objects that are created only once, and warnings, until the job's ledger holds them.
    made: BTreeMap<JobKey, Made>,
    /// Uids of jobs whose namespace is being deleted, so that nothing can be created for them, and until when that counts.
    without_namespace: BTreeMap<JobKey, (String, Timestamp)>,
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

    /// Records, for a minute from `now` on, that the namespace of the job with this uid is being deleted.
    pub(crate) fn record_namespace_terminating(&mut self, key: &JobKey, uid: &str, now: Timestamp) {
        let until = now.checked_add(NAMESPACE_TERMINATES).unwrap_or(now);
        self.without_namespace.insert(key.clone(), (uid.to_owned(), until));
    }

    /// Returns whether the namespace of the job with this uid is being deleted at `now`. Forgets a record that is over.
    pub(crate) fn is_namespace_terminating(&mut self, key: &JobKey, uid: &str, now: Timestamp) -> bool {
        let terminates = self.without_namespace.get(key).is_some_and(|(of, until)| of == uid && now < *until);
        if !terminates {
            self.without_namespace.remove(key);
        }
        terminates
    }

    /// Returns when the record is over that the namespace of the job is being deleted; `None` if there is none.
    pub(crate) fn namespace_terminates_until(&self, key: &JobKey) -> Option<Timestamp> {
        self.without_namespace.get(key).map(|(_, until)| *until)
    }

    /// Forgets all records of a job that is gone.
    pub(crate) fn forget(&mut self, key: &JobKey) {
        self.made.remove(key);
        self.without_namespace.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_key::GroupKind;

    #[test]
    fn a_refusal_of_a_terminating_namespace_counts_for_a_minute_and_for_one_job() {
        let key = JobKey::new(&GroupKind::new("example.com", "Tale"), "ns", "hamlet");
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut records = Records::default();
        records.record_namespace_terminating(&key, "uid", at(0));
        assert!(records.is_namespace_terminating(&key, "uid", at(59)));
        assert_eq!(records.namespace_terminates_until(&key), Some(at(60)));
        assert!(!records.is_namespace_terminating(&key, "uid", at(60)), "the next create is tried");
        assert_eq!(records.namespace_terminates_until(&key), None, "nothing wakes the job again");
        records.record_namespace_terminating(&key, "uid", at(60));
        assert!(records.is_namespace_terminating(&key, "uid", at(119)));
        assert!(!records.is_namespace_terminating(&key, "another", at(119)), "a job of the new namespace");
    }
}
