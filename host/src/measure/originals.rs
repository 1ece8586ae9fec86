//! Events of jobs by kind and namespace, for the counters of original operators (`--compat-metrics`).

use crate::job_key::{GroupKind, JobKey};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use troupe_plugin::original::Counted;

/// How often what has happened since this process began, by kind and namespace of the jobs.
#[derive(Debug, Default)]
pub struct Events(Mutex<BTreeMap<(GroupKind, String), BTreeMap<Counted, u64>>>);

impl Events {
    /// Counts events of a job.
    pub(super) fn add(&self, key: &JobKey, what: Counted, more: u64) {
        if more == 0 {
            return;
        }
        let mut all = self.0.lock();
        let counts = all.entry((key.kind.clone(), key.namespace.clone())).or_default();
        *counts.entry(what).or_default() += more;
    }

    /// Returns how often that has happened to jobs of this kind, by their namespace.
    #[must_use]
    pub fn read(&self, kind: &GroupKind, what: Counted) -> Vec<(String, u64)> {
        let all = self.0.lock();
        let of_kind = all.iter().filter(|((of, _), _)| of == kind);
        of_kind.filter_map(|((_, namespace), counts)| Some((namespace.clone(), *counts.get(&what)?))).collect()
    }
}
