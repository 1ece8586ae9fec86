//! MPIJob `kubeflow.org/v2beta1`: what the framework is called, and which file answers which question.
//!
//! An MPIJob is one launcher, a Job whose pod runs `mpirun`, and workers that it reaches by SSH through a headless Service,
//! a hostfile and a key pair that is made for the job.
//!
//! # What is supported
//!
//! Manifests of Kubeflow's mpi-operator v0.8 as they are: OpenMPI, Intel MPI and MPICH, the launcher as a worker,
//! `launcherCreationPolicy`, the whole `runPolicy` (clean-pod policy, time to live, deadline, back-off, suspend, managedBy,
//! schedulingPolicy), elastic jobs with `discover_hosts.sh`, Kueue, Volcano and the scheduler-plugins. Names, labels,
//! environment, hostfiles, conditions, events and defaults are the original's, and what it refuses is refused.
//! Jobs that the original runs are taken over where they stand: workers, launcher, Service and Secret are not rewritten.
//!
//! Not supported: MPIJobs of `kubeflow.org/v1` and older, and the original's metrics of jobs.
//!
//! # What differs from the original, and why
//!
//! The environment:
//!
//! - `PRTE_MCA_*` variables stand beside the `OMPI_MCA_*` ones: Open MPI 5 reads only these, and without them runs every rank
//!   in the launcher. A user's own variable of such a name wins, and so do a user's `NVIDIA_VISIBLE_DEVICES` and
//!   `NVIDIA_DRIVER_CAPABILITIES`, which the original blanks.
//! - Workers search the domain that is set; the original has them search `cluster.local` whatever `--cluster-domain` says.
//!
//! Life of a job:
//!
//! - An evicted worker ends the job: it gets its completion time, and the clean-pod policy counts; unless that is None, the
//!   launcher is stopped too. The original says Failed and lets everything run.
//! - A worker that failed for another reason is told by an event, `MPIJobWorkerFailed`; the original only counts it. As there,
//!   it is not made again until its pod is deleted.
//! - A suspended job keeps no worker, also where the clean-pod policy is Running: one that had failed or ended would not come
//!   back and block the job once it is resumed. Its counts stay until the pods are gone, so that Kueue does not give their
//!   place away too early.
//! - `WaitForWorkersReady` holds for a job that is resumed too.
//! - A launcher's Job that went by its `ttlSecondsAfterFinished` before anybody saw how it ended makes the job Failed
//!   (`LauncherLost`): it may have done its work. The original runs it again. One that was deleted before its end is made
//!   again by both; here only once its pods are gone, since two launchers would use the same workers.
//! - Scaling down with `runLauncherAsWorker` removes the workers that are too many, and no other; so does a Worker entry that
//!   is taken out of the spec.
//! - `ttl-deletes-mpijob` has the time to live hold for the MPIJob itself; the original's deletes the launcher's Job alone. It
//!   counts from `completionTime`, also where it is edited after the end.
//!
//! Gangs:
//!
//! - With `WaitForWorkersReady` the launcher is no member of the gang: it would be waited for by the workers it waits for.
//! - A gang smaller than the job asks for the launcher's resources and those of workers, whatever their priorities: without a
//!   launcher no job starts.
//!
//! What goes wrong:
//!
//! - What the original refuses with an event is also said in the condition `Rejected`, all mistakes at once.
//! - A name that somebody else has, or a pod that is refused, is said in the condition `Waiting`; the rest is made, and the job
//!   goes on as soon as it can.
//! - A job whose host lists are too large for one ConfigMap is refused in words.
//! - Events are told once for each step, not once a pass. A name that somebody else has is told as `ErrResourceExists`, a
//!   refused create as `MPIJobFailed`, both in the host's words.
//! - A Secret with keys that was deleted is not made again, since workers that run hold what was in it: pods that are still
//!   to come wait for it, and the condition `Waiting` says so.
//!
//! What is made carries the annotation `troupe.dev/plugin-digest`: the component that planned it. `kubectl get mpijobs` has a
//! column State: the last condition that is True.
//!
//! # Settings
//!
//! `troupe operator --plugin-config mpi=FILE`, a YAML file with any of these keys:
//!
//! | key | default | |
//! |---|---|---|
//! | `cluster-domain` | `""` | domain of the cluster, appended to host names; empty leaves them at `.svc` |
//! | `gang-scheduling` | `""` | `volcano`, or the name of a scheduler with the scheduler-plugins' PodGroup |
//! | `ttl-deletes-mpijob` | `false` | `ttlSecondsAfterFinished` deletes the MPIJob too |
//!
//! The original's flags:
//!
//! | flag | here |
//! |---|---|
//! | `--gang-scheduling` | setting `gang-scheduling` |
//! | `--cluster-domain` | setting `cluster-domain` |
//! | `--namespace`, the variable `KUBEFLOW_NAMESPACE` | `troupe operator --namespace` |
//! | `--lock-namespace` | `troupe operator --leader-elect --lease-namespace`; the original always elects |
//! | `--monitoring-port` | `troupe operator --admin-address`, which serves `/metrics` and `/healthz` |
//! | `--threadiness`, `--kube-api-qps`, `--kube-api-burst`, `--controller-queue-rate-limit`, `--controller-queue-burst` | nothing: healthy jobs are not held back, failing ones back off by themselves |
//! | `--kubeConfig`, `--master` | the variable `KUBECONFIG` |
//! | `--version` | `troupe --version` |
//!
//! # Migration
//!
//! `troupe preflight --plugin-config mpi=FILE` first: it says what stands in the way, and which jobs would be taken over.
//!
//! 1. Scale the original to zero: `kubectl -n mpi-operator scale deployment mpi-operator --replicas 0`. Running jobs go on
//!    without it.
//! 2. Apply our CRD: `troupe crds | kubectl apply -f -`. With the original's, jobs run as well, but `status.troupe` is
//!    dropped: workers of finished jobs are not removed, and a launcher that vanished while Troupe was down is run again.
//! 3. Install Troupe: `kubectl apply -f deploy/rbac.yaml`, and run `troupe operator` as its service account.

mod conditions;
#[cfg(all(feature = "crd", not(target_family = "wasm")))]
pub mod crd;
mod env;
#[cfg(test)]
mod fixtures;
mod gang;
mod hostfile;
mod judge;
mod launcher;
#[cfg(all(feature = "crd", not(target_family = "wasm")))]
pub mod original;
mod plan;
mod pods;
mod spec;
mod validate;

pub use spec::{Config, MpiJobSpec, ReplicaSpec, RunPolicy};

use serde_json::json;
use troupe_plugin::types::{
    Bindings, ChildKind, Descriptor, JobPlan, KindInfo, Observation, Outlook, Refusal, Switches, Verdict,
};
use troupe_plugin::{Framework, Job, json_text};

/// An MPIJob as this plugin reads it.
pub(crate) type MpiJob = Job<MpiJobSpec, Config>;

/// The framework MPIJob.
#[derive(Debug)]
pub struct Mpi;

troupe_plugin::export!(Mpi);

impl Framework for Mpi {
    type Spec = MpiJobSpec;
    type Config = Config;

    fn describe() -> Descriptor {
        Descriptor {
            name: "mpi".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            kinds: vec![mpijob()],
            children: [
                child("v1", "Pod", "pods", pods::JOB_NAME, &[]),
                child("v1", "Service", "services", "app", &[]),
                child("v1", "ConfigMap", "configmaps", "app", &["/data"]),
                child(
                    "batch/v1",
                    "Job",
                    "jobs",
                    "app",
                    &["/status", "/spec/suspend", "/spec/template/spec/nodeSelector"],
                ),
            ]
            .into_iter()
            .chain(gang::children())
            .collect(),
            config_schema: config_schema(),
            event_source: "mpi-job-controller".into(),
            event_reasons: [("NameTaken", "ErrResourceExists"), ("Refused", "MPIJobFailed")]
                .map(|(host, own)| (host.into(), own.into()))
                .into(),
            grants: json_text(&grants()),
        }
    }

    fn plan(job: &MpiJob) -> Result<JobPlan, Refusal> {
        plan::plan(job)
    }

    fn bind(job: &MpiJob, seen: &Observation, wanted: &[String]) -> Result<Bindings, Refusal> {
        let wanted = wanted.iter().filter(|key| *key == hostfile::KEY);
        let bodies = wanted.map(|key| Ok((key.clone(), hostfile::config_map(job, seen)?)));
        Ok(Bindings { bodies: bodies.collect::<Result<_, Refusal>>()? })
    }

    fn judge(job: &MpiJob, seen: &Observation, outlook: &Outlook) -> Result<Verdict, Refusal> {
        Ok(judge::judge(job, seen, outlook))
    }
}

/// Key pairs, PodGroups that go with a suspended job, and jobs that go by their time to live. A worker without a command runs
/// sshd, and finds its peers by short names. The scheduler is a setting.
fn grants() -> serde_json::Value {
    let pod_groups = ["PodGroup.scheduling.volcano.sh", "PodGroup.scheduling.x-k8s.io"];
    json!({
        "kinds": ["Secret"],
        "deletes": [pod_groups[0], pod_groups[1], "MPIJob.kubeflow.org"],
        "commands": true,
        "dns": true,
    })
}

fn mpijob() -> KindInfo {
    KindInfo {
        group: "kubeflow.org".into(),
        version: "v2beta1".into(),
        kind: "MPIJob".into(),
        plural: "mpijobs".into(),
        switches: Switches {
            suspend: Some("/runPolicy/suspend".into()),
            managed_by: Some("/runPolicy/managedBy".into()),
        },
        own_manager: Some(spec::OWN_MANAGER.into()),
        retired_finalizers: vec![],
        roles: plan::ROLES.map(String::from).into(),
    }
}

fn child(api_version: &str, kind: &str, plural: &str, selector: &str, keep: &[&str]) -> ChildKind {
    ChildKind {
        api_version: api_version.into(),
        kind: kind.into(),
        plural: plural.into(),
        selector: Some(selector.into()),
        keep: keep.iter().map(ToString::to_string).collect(),
        optional: false,
    }
}

fn config_schema() -> String {
    let domain = "Domain of the cluster, appended to host names; empty leaves them at `.svc`.";
    let gang =
        "`volcano`, or the name of a scheduler with the scheduler-plugins' PodGroup; empty is no gang scheduling.";
    let ttl = "ttlSecondsAfterFinished deletes the MPIJob too, not its launcher's Job alone.";
    json_text(&json!({
        "type": "object",
        "properties": {
            "cluster-domain": { "type": "string", "default": "", "description": domain },
            "gang-scheduling": {
                "type": "string", "default": "", "description": gang, "x-troupe-grants": "schedulers",
            },
            "ttl-deletes-mpijob": { "type": "boolean", "default": false, "description": ttl },
        },
        "additionalProperties": false,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    // M18: the host reads the switch itself; these facts are all it needs to leave the job alone.
    #[test]
    fn another_manager_is_told_from_this_one() {
        let descriptor = Mpi::describe();
        let kind = &descriptor.kinds[0];
        assert_eq!(kind.switches.managed_by.as_deref(), Some("/runPolicy/managedBy"));
        assert_eq!(kind.own_manager.as_deref(), Some("kubeflow.org/mpi-operator"));
        assert_eq!(kind.switches.suspend.as_deref(), Some("/runPolicy/suspend"));
        assert!(kind.retired_finalizers.is_empty());
        assert_eq!(
            (&*kind.group, &*kind.version, &*kind.kind, &*kind.plural),
            ("kubeflow.org", "v2beta1", "MPIJob", "mpijobs")
        );
        assert_eq!((&*descriptor.name, &*descriptor.event_source), ("mpi", "mpi-job-controller"));
    }

    #[test]
    fn children_are_watched_by_a_label_that_the_original_sets_too_and_secrets_are_not_watched() {
        let children = Mpi::describe().children;
        let watched: Vec<_> = children.iter().map(|c| (&*c.kind, c.selector.as_deref().unwrap_or(""))).collect();
        let expected = [
            ("Pod", "training.kubeflow.org/job-name"),
            ("Service", "app"),
            ("ConfigMap", "app"),
            ("Job", "app"),
            ("PodGroup", ""),
            ("PodGroup", ""),
        ];
        assert_eq!(watched, expected);
    }

    #[test]
    fn the_config_schema_is_json() {
        let schema: serde_json::Value = serde_json::from_str(&Mpi::describe().config_schema).unwrap();
        assert!(schema.pointer("/properties/cluster-domain").is_some());
    }
}
