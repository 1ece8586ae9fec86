//! Which jobs belong to a framework, and which digests plan them.

use crate::{job_key::JobKey, observe::stores::Stores};
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
        let of_framework = cache.open_jobs().filter(|(_, served, _)| served.framework.name == framework);
        of_framework.filter(|(.., ledger)| ledger.digest.is_empty()).map(|(key, ..)| key).collect()
    })
}

/// Returns the number of the framework's planned jobs that have not ended, and that number for each accepted digest.
pub(super) fn digests_in_use(stores: &Stores, framework: &str) -> (u32, BTreeMap<String, u32>) {
    let (mut all, mut in_use) = (0, BTreeMap::new());
    stores.read(|cache| {
        let of_framework = cache.open_jobs().filter(|(_, served, _)| served.framework.name == framework);
        for (key, _, ledger) in of_framework.filter(|(.., ledger)| !ledger.digest.is_empty()) {
            all += 1;
            if cache.layout().may_have_planned(&key.kind, &ledger.digest) {
                *in_use.entry(ledger.digest).or_insert(0) += 1;
            }
        }
    });
    (all, in_use)
}

/// Returns the keys of the jobs that have not ended and whose ledger names this digest.
pub(super) fn keys_pinned_to(stores: &Stores, digest: &str) -> Vec<JobKey> {
    stores.read(|cache| cache.open_jobs().filter(|(.., ledger)| ledger.digest == digest).map(|(key, ..)| key).collect())
}

/// Returns the digests in the ledgers of all jobs that have not ended.
pub(super) fn all_digests_in_use(stores: &Stores) -> BTreeSet<String> {
    stores.read(|cache| cache.open_jobs().map(|(.., ledger)| ledger.digest).collect())
}
