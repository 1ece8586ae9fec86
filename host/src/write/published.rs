//! What this process last wrote to the status of each job.

use crate::job_key::{GroupKind, JobKey};
use decide::status::Published;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};

/// The last write of each job's status, with the uid of the job. A write to an earlier job of the name does not count.
#[derive(Debug, Default)]
pub(crate) struct PublishedStatuses(Mutex<Statuses>);

#[derive(Debug, Default)]
struct Statuses {
    last: BTreeMap<JobKey, (String, Published)>,
    /// Kinds whose CRD pruned the latest write to a job of theirs.
    pruned: BTreeSet<GroupKind>,
}

impl PublishedStatuses {
    /// Returns what was last written to the status of the job with this uid.
    pub(super) fn of(&self, key: &JobKey, uid: &str) -> Option<Published> {
        self.0.lock().last.get(key).filter(|(of, _)| of == uid).map(|(_, published)| published.clone())
    }

    /// Returns whether the CRD pruned what was last written to the status of the job with this uid.
    pub(super) fn is_pruned(&self, key: &JobKey, uid: &str) -> bool {
        self.0.lock().last.get(key).is_some_and(|(of, published)| of == uid && published.is_pruned())
    }

    /// Records what was written to the status of the job with this uid.
    pub(super) fn record(&self, key: &JobKey, uid: &str, published: Published) {
        let mut statuses = self.0.lock();
        match published.is_pruned() {
            true => statuses.pruned.insert(key.kind.clone()),
            false => statuses.pruned.remove(&key.kind),
        };
        statuses.last.insert(key.clone(), (uid.to_owned(), published));
    }

    /// Forgets the last write: the job is gone, or the result of a write is unknown.
    pub(super) fn forget(&self, key: &JobKey) {
        self.0.lock().last.remove(key);
    }

    /// Returns whether the CRD of this kind pruned the latest write to the status of a job of it.
    pub(crate) fn prunes(&self, kind: &GroupKind) -> bool {
        self.0.lock().pruned.contains(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_key::GroupKind;
    use jiff::Timestamp;
    use serde_json::json;

    #[test]
    fn what_was_said_of_an_earlier_job_of_the_name_was_not_said_of_this_one() {
        let key = JobKey::new(&GroupKind::new("example.com", "Tale"), "ns", "hamlet");
        let published = Published::new(Timestamp::UNIX_EPOCH, &json!({}), &json!({}), 2);
        let statuses = PublishedStatuses::default();
        statuses.record(&key, "u", published.clone());
        assert!(statuses.is_pruned(&key, "u"), "its CRD kept no ledger");
        assert!(statuses.prunes(&key.kind));
        assert_eq!(statuses.of(&key, "u"), Some(published.clone()));
        // The job is deleted and created again between two passes.
        assert!(!statuses.is_pruned(&key, "v"));
        assert_eq!(statuses.of(&key, "v"), None);
        statuses.forget(&key);
        assert_eq!(statuses.of(&key, "u"), None);
        assert!(statuses.prunes(&key.kind), "nothing was kept since");
        statuses.record(&key, "v", Published::new(Timestamp::UNIX_EPOCH, &json!({}), &json!({ "troupe": {} }), 2));
        assert!(!statuses.prunes(&key.kind), "the CRD was put right");
    }
}
