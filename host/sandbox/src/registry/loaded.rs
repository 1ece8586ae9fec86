//! A plugin as it is loaded: its component, with what it may do and use up.

use super::super::{
    allowance::Allowances,
    breaker::Case,
    call::{Asked, HEAVY, NoPlan},
    convert::{Exports, JobInput},
    limits::Limits,
    seam::Share,
};
use decide::{
    Snapshot,
    grants::Grants,
    plan::{Descriptor, Fault, Objection, Rejection},
};
use std::sync::Arc;

/// A plugin that is loaded.
#[derive(Clone)]
pub(super) struct Loaded {
    pub(super) digest: Arc<str>,
    pub(super) descriptor: Arc<Descriptor>,
    /// The cluster operator's settings for it, as text.
    pub(super) config: String,
    /// What its plans may contain beyond what a job's user asks for.
    pub(super) grants: Grants,
    pub(super) exports: Exports,
    pub(super) limits: Limits,
    pub(super) share: Share,
}

impl Loaded {
    /// Its answers are treated in the same way.
    pub(super) fn says_as(&self, other: &Self) -> bool {
        (&self.config, &self.grants, &self.limits) == (&other.config, &other.grants, &other.limits)
    }

    pub(super) fn asked<'a>(&'a self, allowances: &'a Allowances) -> Asked<'a> {
        Asked { plugin: &self.descriptor.name, exports: &self.exports, limits: &self.limits, allowances }
    }

    pub(super) fn case<'a>(&'a self, snapshot: &'a Snapshot, shown: &JobInput) -> Case<'a> {
        let is_heavy = shown.bytes() > HEAVY;
        Case { plugin: &self.descriptor.name, digest: &self.digest, job: &snapshot.job, now: snapshot.now, is_heavy }
    }

    /// It may be asked about a job of this size: a body is built for each pod from what stands in the spec.
    pub(super) fn takes(&self, shown: &JobInput) -> Result<(), Rejection> {
        let (bytes, most) = (shown.spec_bytes(), self.limits.spec);
        if bytes <= most {
            return Ok(());
        }
        let message = format!(
            "it has {bytes} bytes as JSON, and no job may have more than {most}; move what is large into a ConfigMap that its \
             templates refer to, or ask whoever runs the operator to raise --max-spec-bytes"
        );
        Err(Rejection::field("spec", message))
    }

    /// Why something that it said is not taken.
    pub(super) fn objects(&self, function: &str, objection: Objection) -> NoPlan {
        let (plugin, function) = (self.descriptor.name.clone(), function.to_owned());
        match objection {
            Objection::Job(rejection) => rejection.into(),
            Objection::Plugin(message) => Fault::Unacceptable { plugin, function, message }.into(),
        }
    }
}
