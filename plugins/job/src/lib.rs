//! IndexedJob `batch.troupe.dev/v1alpha1`: runs pods to their end, with the fields and the semantics of a `batch/v1` Job of
//! Kubernetes 1.36.
//!
//! # What is supported
//!
//! All fields of a JobSpec but `selector` and `manualSelector`: `parallelism`, `completions` (none is a work queue),
//! `completionMode`, `backoffLimit`, `backoffLimitPerIndex`, `maxFailedIndexes`, `podFailurePolicy`, `successPolicy`,
//! `podReplacementPolicy`, `activeDeadlineSeconds`, `ttlSecondsAfterFinished`, `suspend`, `managedBy`, and `completions` that
//! change together with `parallelism` (elastic Indexed jobs). The status has the fields, conditions, reasons and messages of
//! a JobStatus.
//!
//! # What differs from a Job, and why
//!
//! - `completionMode` is `Indexed` if it is not given.
//! - A pod's name is `JOB-INDEX`, without a random part. So a replacement waits until the old pod is gone, also with
//!   `TerminatingOrFailed`, and a failed pod that is replaced is deleted instead of kept. What failed first stands in
//!   `status.troupe.firstFailure`.
//! - Pods carry no finalizer. A failed pod is counted in the status, by its uid, before the host deletes it. A pod that
//!   somebody removes by force, or whose node the cluster forgets, before anybody has seen its end, is made again and not
//!   counted; a Job counts it.
//! - The labels and the annotation of pods begin with `batch.troupe.dev` instead of `batch.kubernetes.io`, which is for the
//!   pods of Jobs alone. `JOB_COMPLETION_INDEX` is the same.
//! - Each created object has the annotation `troupe.dev/plugin-digest`: the digest of the component that planned it.
//! - `activeDeadlineSeconds` 0 is refused, with which a Job fails before it has a pod.
//! - `status.uncountedTerminatedPods` is not used.
//! - An index in back-off does not keep other indexes from running. In a Job all wait.
//! - Of a work queue whose `parallelism` is reduced, pods with the highest numbers are deleted, also after the first
//!   success, and the successes of those numbers do not count any more.
//! - The template may be edited; pods that are made afterwards have the new one.
//! - At most 10,000 completions and as many pods at once.
//!
//! # Settings
//!
//! There are none.

mod conditions;
#[cfg(all(feature = "crd", not(target_family = "wasm")))]
pub mod crd;
#[cfg(test)]
mod fixtures;
mod judge;
mod plan;
mod rules;
mod spec;
mod success;
mod tally;
mod valid;

pub use spec::{Config, ExitCodes, FailureRule, JobSpec, PodCondition, PodFailurePolicy, SuccessPolicy, SuccessRule};

use troupe_plugin::types::{
    Bindings, ChildKind, Descriptor, JobPlan, KindInfo, Observation, Outlook, OwnedBy, Queueing, Refusal, Switches,
    Verdict,
};
use troupe_plugin::{Framework, Job};

/// An IndexedJob with its spec parsed.
pub(crate) type IndexedJob = Job<JobSpec, Config>;

/// The framework of indexed jobs.
#[derive(Debug)]
pub struct Indexed;

troupe_plugin::export!(Indexed);

impl Framework for Indexed {
    type Spec = JobSpec;
    type Config = Config;

    fn describe() -> Descriptor {
        Descriptor {
            name: "job".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            kinds: vec![kind()],
            children: vec![pods()],
            gangs: false,
            config_schema: spec::CONFIG_SCHEMA.into(),
            reads: vec![],
            event_reasons: [("Created", "SuccessfulCreate"), ("Refused", "FailedCreate")]
                .map(|(host, own)| (host.into(), own.into()))
                .into(),
            grants: r#"{"deletes":["IndexedJob.batch.troupe.dev"]}"#.into(),
        }
    }

    fn plan(job: &IndexedJob) -> Result<JobPlan, Refusal> {
        plan::plan(job)
    }

    fn bind(_: &IndexedJob, _: &Observation, _: &[String]) -> Result<Bindings, Refusal> {
        Ok(Bindings { bodies: vec![], runs: vec![], remove: vec![] })
    }

    fn judge(job: &IndexedJob, seen: &Observation, outlook: &Outlook) -> Result<Verdict, Refusal> {
        judge::judge(job, seen, outlook)
    }
}

fn kind() -> KindInfo {
    KindInfo {
        group: "batch.troupe.dev".into(),
        version: "v1alpha1".into(),
        kind: "IndexedJob".into(),
        plural: "indexedjobs".into(),
        switches: Switches { suspend: Some("/suspend".into()), managed_by: Some("/managedBy".into()) },
        own_manager: Some(spec::OWN_MANAGER.into()),
        retired_finalizers: vec![],
        roles: vec![plan::ROLE.into()],
        event_source: "job-controller".into(),
        queueing: Queueing::Host,
    }
}

fn pods() -> ChildKind {
    ChildKind {
        api_version: "v1".into(),
        kind: "Pod".into(),
        plural: "pods".into(),
        selector: Some(plan::JOB_NAME.into()),
        keep: vec![],
        optional: false,
        owned_by: OwnedBy::Job,
    }
}
