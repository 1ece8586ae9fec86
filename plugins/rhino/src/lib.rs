//! RhinoJob `openrhino.org/v1alpha1` and `v1alpha2`: what the framework is called, and which file answers which question.
//!
//! A RhinoJob runs a program with MPICH. Its launcher is a Job with one pod, in which `mpirun` waits; once that pod is
//! ready, an Indexed Job makes one worker for each MPI process, and the workers call the launcher at its address, port
//! 20000. There is no SSH, no Service and no hostfile: `mpirun` gets its hosts as numbers.
//!
//! # What is supported
//!
//! All fields of both versions: image, `appExec` and `appArgs`, parallelism, the NFS volume, the memory modes of Alibaba's
//! elastic containers, and `ttl`. Names, labels, templates and `jobStatus` are the original's, so its running jobs are
//! taken over where they stand. The host watches v1alpha2, which the API server makes of every v1alpha1 object.
//!
//! # What differs from the original, and why
//!
//! - `ttl` counts from the end of the job. The original counts from its creation and so deletes a job that runs for
//!   longer; `ttl-counts-from: creation` in the plugin's config does that too, and makes `ttl` a limit on the run time.
//! - An image, server or path that Kubernetes refuses in a pod is refused at creation. What happens to each value is in
//!   `docs/jobs/values.md`.
//! - The exit code of `mpirun` is the launcher's: the original's pipe to `tee` hides it.
//! - `appExec` and `appArgs` reach the program as they were written. The original has the container's shell read them, so
//!   that `$X`, quotes and `;` in them mean something; `app-args: shell` in the plugin's config keeps that.
//! - Workers start when their launcher's condition Ready is True, whatever its place in the list of conditions.
//! - Workers are run by `/bin/sh`, not `ash`, which only images made from busybox have.
//! - A run is over when its first worker fails, or its launcher ends in any way but well: what is started again finds
//!   nobody that it could talk to. The original has Kubernetes try the worker six times more, and says Failed already.
//! - A launcher whose Job ends before there are workers ends the RhinoJob, Completed or Failed, and no workers are made; the
//!   original leaves it Pending.
//! - Only what is wrong with an image is `ImageError`, and a worker's image counts as well. CrashLoopBackOff, say, is none.
//! - Completed and Failed are final. The original runs a job again whose two Jobs were deleted; here that holds for a
//!   job that is not finished.
//! - The launcher's Job is made again when it alone was deleted. Workers that are still there belong to the launcher
//!   that is gone, so the job is Pending, as in the original, until their Job is deleted too.
//! - A job with the label `kueue.x-k8s.io/queue-name` is queued by Kueue, and preempted, without switch in its spec.
//! - Pod names in the status are in order: workers by index, of launchers the newest first.
//! - A name that is too long, and what else cannot work, is reported in the status instead of failing for ever unseen.
//! - Through v1alpha1 all fields can be seen. In the original a change made through it resets the memory fields.
//! - The Jobs carry their labels themselves. The original has the API server copy those of the pods, with its own.
//! - What is made carries the annotation `troupe.dev/plugin-digest`: the component that planned it.
//! - `functions.openrhino.org` is not served: the original's controller for it does nothing.
//!
//! # Settings
//!
//! `troupe operator --plugin-config rhino=FILE`, a YAML file with any of these keys:
//!
//! | key | default | |
//! |---|---|---|
//! | `ttl-counts-from` | `finish` | `creation` has `ttl` count from the job's creation |
//! | `app-args` | `verbatim` | `shell` has the container's shell read `appExec` and `appArgs` |
//!
//! Of the original's flags `--metrics-bind-address` and `--health-probe-bind-address` are `troupe operator --admin-address`,
//! which serves both, and `--leader-elect` is the same, with a Lease of its own.
//!
//! # Migration
//!
//! `troupe preflight` first: it says what stands in the way, and which jobs would be taken over.
//!
//! 1. Scale the original operator to zero. Running jobs go on without it.
//! 2. Apply our CRD: `troupe crds | kubectl apply -f -`. With the original's, jobs run as well, but what Troupe notes in their
//!    status is dropped, so that a finished job is not deleted by its `ttl`.
//! 3. Install Troupe. It takes over the jobs by their names.

#[cfg(all(feature = "crd", not(target_family = "wasm")))]
pub mod crd;
#[cfg(test)]
mod fixtures;
mod jobs;
mod judge;
mod launcher;
#[cfg(all(feature = "crd", not(target_family = "wasm")))]
pub mod original;
mod plan;
mod spec;
mod validate;
mod workers;

pub use spec::{AppArgs, Config, RhinoJobSpec, TtlFrom};

use serde_json::json;
use troupe_plugin::Framework;
use troupe_plugin::types::{
    Bindings, ChildKind, Descriptor, JobPlan, KindInfo, Observation, Outlook, OwnedBy, Queueing, Refusal, Switches,
    Verdict,
};

/// A RhinoJob as this plugin reads it.
pub(crate) type Job = troupe_plugin::Job<RhinoJobSpec, Config>;

/// The framework RhinoJob.
#[derive(Debug)]
pub struct Rhino;

troupe_plugin::export!(Rhino);

impl Framework for Rhino {
    type Spec = RhinoJobSpec;
    type Config = Config;

    fn describe() -> Descriptor {
        Descriptor {
            name: "rhino".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            kinds: vec![rhinojob()],
            children: vec![child("v1", "Pod", "pods", &[]), child("batch/v1", "Job", "jobs", &jobs::KEEP)],
            gangs: false,
            config_schema: spec::config_schema(),
            reads: vec![],
            event_reasons: vec![],
            grants: json!({ "deletes": ["RhinoJob.openrhino.org"], "volumes": ["nfs"], "commands": true }).to_string(),
        }
    }

    fn plan(job: &Job) -> Result<JobPlan, Refusal> {
        plan::plan(job)
    }

    /// Never asked for anything: no object of a RhinoJob depends on more than its launcher's address.
    fn bind(_: &Job, _: &Observation, _: &[String]) -> Result<Bindings, Refusal> {
        Ok(Bindings { bodies: vec![], runs: vec![], remove: vec![] })
    }

    fn judge(job: &Job, seen: &Observation, _: &Outlook) -> Result<Verdict, Refusal> {
        Ok(judge::judge(job, seen))
    }
}

/// One version is watched: the API server shows the objects of both in either.
fn rhinojob() -> KindInfo {
    KindInfo {
        group: "openrhino.org".into(),
        version: "v1alpha2".into(),
        kind: "RhinoJob".into(),
        plural: "rhinojobs".into(),
        switches: Switches { suspend: None, managed_by: None },
        own_manager: None,
        retired_finalizers: vec![],
        roles: plan::ROLES.map(String::from).into(),
        event_source: "rhinojob-controller".into(),
        queueing: Queueing::Host,
    }
}

fn child(api_version: &str, kind: &str, plural: &str, keep: &[&str]) -> ChildKind {
    ChildKind {
        api_version: api_version.into(),
        kind: kind.into(),
        plural: plural.into(),
        selector: Some(plan::RHINO_ID.into()),
        keep: keep.iter().map(ToString::to_string).collect(),
        optional: false,
        owned_by: OwnedBy::Job,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn the_newer_version_is_watched_and_children_are_known_by_a_label_of_the_original() {
        let descriptor = Rhino::describe();
        let kind = &descriptor.kinds[0];
        assert_eq!(
            (&*kind.group, &*kind.version, &*kind.kind, &*kind.plural, descriptor.kinds.len()),
            ("openrhino.org", "v1alpha2", "RhinoJob", "rhinojobs", 1)
        );
        let watched: Vec<_> = descriptor.children.iter().map(|c| (&*c.kind, c.selector.as_deref())).collect();
        assert_eq!(watched, [("Pod", Some("rhinoID")), ("Job", Some("rhinoID"))]);
    }

    #[test]
    fn the_config_schema_has_the_defaults_that_the_config_has() {
        let schema: Value = serde_json::from_str(&Rhino::describe().config_schema).unwrap();
        let properties = schema["properties"].as_object().unwrap();
        let defaults: serde_json::Map<_, _> =
            properties.iter().map(|(key, property)| (key.clone(), property["default"].clone())).collect();
        assert_eq!(serde_json::from_value::<Config>(defaults.into()).unwrap(), Config::default());
        for property in properties.values() {
            assert!(property["enum"].as_array().unwrap().contains(&property["default"]));
        }
    }
}
