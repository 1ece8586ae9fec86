//! Which jobs belong to a framework, and which digests plan them.

use crate::{
    job_key::JobKey,
    observe::{
        cache::Cache,
        stores::Stores,
        table::Controller,
        wire::{Packed, Recorded},
    },
};
use decide::Digest;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the keys of all jobs of the framework with this name.
pub(super) fn keys_of(stores: &Stores, framework: &str) -> Vec<JobKey> {
    let layout = stores.layout();
    let is_of = |key: &JobKey| layout.kinds().get(&key.kind).is_some_and(|served| served.framework.name == framework);
    stores.jobs().into_iter().filter(is_of).collect()
}

/// Returns the keys of the framework's jobs that have not ended and that no digest plans yet.
pub(super) fn unplanned_keys_of(stores: &Stores, framework: &str) -> Vec<JobKey> {
    stores.read(|cache| {
        let unplanned = cache.open_jobs_of(framework).filter(|(_, job)| job.recorded().is_unplanned);
        unplanned.map(|(key, _)| key).collect()
    })
}

/// Returns the number of the framework's planned jobs that have not ended, and that number for each accepted digest.
pub(super) fn digests_in_use(stores: &Stores, framework: &str) -> (u32, BTreeMap<Digest, u32>) {
    let (mut all, mut in_use) = (0, BTreeMap::new());
    stores.read(|cache| {
        for (key, job) in cache.open_jobs_of(framework) {
            let Recorded { digest, is_unplanned, .. } = job.recorded();
            all += u32::from(!is_unplanned);
            if let Some(digest) = digest.as_ref().filter(|it| cache.layout().may_have_planned(&key.kind, it)) {
                *in_use.entry(digest.clone()).or_insert(0) += 1;
            }
        }
    });
    (all, in_use)
}

/// Returns the keys of the jobs that have not ended and that this digest has planned.
pub(super) fn keys_pinned_to(stores: &Stores, digest: &Digest) -> Vec<JobKey> {
    stores.read(|cache| {
        let pinned = cache.open_jobs().filter(|(key, job)| pin(cache, key, job).as_ref() == Some(digest));
        pinned.map(|(key, _)| key).collect()
    })
}

/// Returns the digests that have planned jobs that have not ended.
pub(super) fn all_digests_in_use(stores: &Stores) -> BTreeSet<Digest> {
    stores.read(|cache| cache.open_jobs().filter_map(|(key, job)| pin(cache, &key, job)).collect())
}

/// Returns the digest that has planned the job: the one in its ledger, or, if its status was never written, the one that
/// its children name (see `Layout::planner`).
fn pin(cache: &Cache, key: &JobKey, job: &Packed) -> Option<Digest> {
    let Recorded { digest, is_unplanned, is_unwritten, .. } = job.recorded();
    if *is_unplanned && *is_unwritten {
        let may_be = |digest: &Digest| cache.layout().may_have_planned(&key.kind, digest);
        return cache.digest_of_children(Controller::job(key, &job.job().uid), may_be);
    }
    digest.clone()
}
