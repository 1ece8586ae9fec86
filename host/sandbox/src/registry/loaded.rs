//! A loaded plugin: its component, with its config, grants and limits.

use super::super::{
    allowance::Allowances,
    breaker::Case,
    call::{Callee, HEAVY, NoPlan},
    convert::{Bodies, Exports, JobInput},
    executor::Share,
    limits::Limits,
    twin::Twin,
};
use decide::{
    Digest, Snapshot,
    grants::Grants,
    plan::{Descriptor, Fault, FieldError, Objection, Rejection},
};
use std::sync::Arc;

/// A loaded plugin.
#[derive(Clone)]
pub(super) struct Loaded {
    pub(super) digest: Digest,
    /// What the component describes of itself.
    pub(super) described: Arc<Descriptor>,
    /// What it describes with its config.
    pub(super) descriptor: Arc<Descriptor>,
    /// The cluster operator's config for the plugin, as JSON text.
    pub(super) config: String,
    /// What the plugin's plans may contain beyond what a job's user asks for.
    pub(super) grants: Grants,
    /// The grants with which it came into service, without those that were withdrawn since: whatever its Plugin says later,
    /// it has no more.
    pub(super) accepted: Grants,
    pub(super) exports: Exports,
    pub(super) twin: Twin,
    pub(super) bodies: Bodies,
    pub(super) limits: Limits,
    pub(super) share: Share,
}

impl Loaded {
    /// Returns whether config, grants and limits are equal, so that the host treats answers in the same way now and later.
    pub(super) fn says_as(&self, other: &Self) -> bool {
        (&self.config, &self.grants, &self.accepted, &self.limits)
            == (&other.config, &other.grants, &other.accepted, &other.limits)
    }

    pub(super) fn callee<'a>(&'a self, allowances: &'a Allowances) -> Callee<'a> {
        Callee {
            plugin: &self.descriptor.name,
            exports: &self.exports,
            twin: &self.twin,
            bodies: &self.bodies,
            limits: &self.limits,
            allowances,
        }
    }

    pub(super) fn case<'a>(&'a self, snapshot: &'a Snapshot, shown: &JobInput) -> Case<'a> {
        let is_heavy = shown.bytes() > HEAVY;
        Case { plugin: &self.descriptor.name, digest: &self.digest, job: &snapshot.job, now: snapshot.now, is_heavy }
    }

    /// Checks the size of a job's spec, from which the host builds a body for each pod. Returns a rejection if it is
    /// too large.
    pub(super) fn takes(&self, shown: &JobInput) -> Result<(), Rejection> {
        let (bytes, most) = (shown.spec_bytes(), self.limits.spec);
        if bytes <= most {
            return Ok(());
        }
        Err(Rejection::Invalid(vec![FieldError::large_spec(bytes, most)]))
    }

    /// Converts an objection to an answer of `function` into a rejection of the job or a fault of the plugin.
    pub(super) fn objects(&self, function: &str, objection: Objection) -> NoPlan {
        let (plugin, function) = (self.descriptor.name.clone(), function.to_owned());
        match objection {
            Objection::Job(rejection) => rejection.into(),
            Objection::Plugin(error) => Fault::Unacceptable { plugin, function, message: error.numbered() }.into(),
        }
    }
}
