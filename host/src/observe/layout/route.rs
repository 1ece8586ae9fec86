//! Which digest plans a new job of a framework.

use crate::plugin_resource::Canary;
use decide::{Digest, snapshot::Job};

/// The digests for new jobs of a framework.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Route {
    /// The active digest. `None`: new jobs are not served.
    pub active: Option<Digest>,
    /// A candidate that plans some of the new jobs.
    pub canary: Option<(Digest, Canary)>,
    /// Whether jobs of other digests move to the active one where that affects no live pod.
    pub migrate: bool,
}

impl Route {
    /// Returns the route of all new jobs to this digest.
    #[must_use]
    pub fn to(digest: &Digest) -> Self {
        Self { active: Some(digest.clone()), ..Self::default() }
    }

    /// Returns the digest for a new job: the canary's if it selects the job, else the active one.
    #[must_use]
    pub fn of(&self, job: &Job) -> Option<&Digest> {
        match &self.canary {
            Some((digest, canary)) if selects(canary, job) => Some(digest),
            _ => self.active.as_ref(),
        }
    }
}

/// Returns whether the canary selects the job. Depends only on the canary, and on the job's uid and labels.
fn selects(canary: &Canary, job: &Job) -> bool {
    let labelled = canary.match_labels.iter().all(|(name, value)| job.labels.get(name) == Some(value));
    labelled && hundredth(&job.uid) < canary.percent
}

/// Returns a number below 100 that depends on the uid alone (FNV-1a).
fn hundredth(uid: &str) -> u32 {
    let hash = uid.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash % 100
}
