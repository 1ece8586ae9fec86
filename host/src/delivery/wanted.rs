//! Digests that jobs need and that are not loaded: asked for by passes, sought by the delivery.

use crate::job_key::JobKey;
use decide::Digest;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::Notify;

/// Each digest once, with the jobs that wait for it.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    waiting: Mutex<Waiting>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    jobs: BTreeMap<Digest, BTreeSet<JobKey>>,
    /// Digests that nobody has taken notice of so far.
    new: BTreeSet<Digest>,
}

impl Wanted {
    /// The job needs this one.
    pub(crate) fn add(&self, digest: Digest, job: &JobKey) {
        let mut waiting = self.waiting.lock();
        let jobs = waiting.jobs.entry(digest.clone()).or_default();
        if jobs.insert(job.clone()) && jobs.len() == 1 {
            waiting.new.insert(digest);
            self.changed.notify_one();
        }
    }

    /// Those that were asked for since the last time; returns once there are any.
    pub(super) async fn take(&self) -> BTreeSet<Digest> {
        loop {
            let digests = std::mem::take(&mut self.waiting.lock().new);
            if !digests.is_empty() {
                return digests;
            }
            self.changed.notified().await;
        }
    }

    /// Returns whether jobs wait for this one.
    pub(super) fn has(&self, digest: &Digest) -> bool {
        self.waiting.lock().jobs.contains_key(digest)
    }

    /// The jobs that wait for this one, which wait no longer. Nobody has asked for it until one of them does so again.
    pub(super) fn settle(&self, digest: &Digest) -> BTreeSet<JobKey> {
        let mut waiting = self.waiting.lock();
        waiting.new.remove(digest);
        waiting.jobs.remove(digest).unwrap_or_default()
    }

    /// All jobs that wait, which wait no longer.
    pub(super) fn settle_all(&self) -> BTreeSet<JobKey> {
        std::mem::take(&mut *self.waiting.lock()).jobs.into_values().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_key::GroupKind;
    use decide::testkit::digest;
    use futures::FutureExt;

    #[test]
    fn a_digest_that_no_job_waits_for_any_more_is_not_taken() {
        let (wanted, job) = (Wanted::default(), JobKey::new(&GroupKind::new("example.com", "Tale"), "a", "hamlet"));
        wanted.add(digest("one"), &job);
        assert_eq!(wanted.settle(&digest("one")), BTreeSet::from([job.clone()]));
        assert_eq!(wanted.take().now_or_never(), None);
        wanted.add(digest("one"), &job);
        assert_eq!(wanted.take().now_or_never(), Some(BTreeSet::from([digest("one")])));
    }
}
