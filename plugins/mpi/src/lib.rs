//! MPIJob `kubeflow.org/v2beta1`: one launcher and its workers. The launcher is a Job whose pod runs `mpirun`. It
//! reaches the workers by SSH through a headless Service, a hostfile and a key pair that is created for the job.
//!
//! # What is supported
//!
//! The plugin accepts manifests of Kubeflow's mpi-operator v0.8 without changes: OpenMPI, Intel MPI and MPICH, the
//! launcher as a worker, `launcherCreationPolicy`, the whole `runPolicy` (clean-pod policy, time to live, deadline,
//! back-off, suspend, managedBy, schedulingPolicy), elastic jobs with `discover_hosts.sh`, Kueue, Volcano and the
//! scheduler-plugins. Names, labels, environment, hostfiles, conditions, events and defaults are the original's, and
//! the plugin refuses what the original refuses. Troupe takes over running jobs of the original and does not rewrite
//! their workers, launcher, Service and Secret.
//!
//! Not supported: MPIJobs of `kubeflow.org/v1` and older, and the original's metrics of jobs.
//!
//! # What differs from the original, and why
//!
//! The environment:
//!
//! - `PRTE_MCA_*` variables are set in addition to the `OMPI_MCA_*` variables: Open MPI 5 reads only the former, and
//!   without them runs every rank in the launcher. A user's own variable of that name takes precedence, and so do a
//!   user's `NVIDIA_VISIBLE_DEVICES` and `NVIDIA_DRIVER_CAPABILITIES`, which the original blanks.
//! - `PRTE_MCA_plm_ssh_no_tree_spawn` is one of them: without it Open MPI 5 ends with exit code 255 and no message where
//!   there are more than 64 workers. `HYDRA_LAUNCHER_EXTRA_ARGS` is set beside `HYDRA_LAUNCH_EXTRA_ARGS`, which MPICH does
//!   not read.
//! - A launcher creation policy that is neither of the two, an `sshAuthMountPath` that is not absolute and entries beside
//!   Launcher and Worker are told by a warning event and the condition `Warned`; a deadline of 0, or of more seconds than Kubernetes
//!   counts, and `slotsPerWorker` 0 are refused. What happens to each value is in `docs/jobs/values.md`.
//! - The warning event `VariableIgnored` names variables of the launcher that Open MPI 4 reads and Open MPI 5 ignores, such
//!   as `OMPI_MCA_plm_rsh_agent`.
//! - The Service publishes pods that are not ready: `mpirun` waits for an SSH server, but not for a name, and the workers of
//!   Intel MPI and MPICH connect back to the launcher's. The original does so only for a launcher that is a host.
//! - A launcher of Intel MPI that is a host is listed by its host name unless there is a `cluster-domain`: by any other name
//!   it connects to itself by SSH and fails.
//! - `slotsPerWorker: 0` is refused: no MPI starts a rank with it.
//! - Workers search the configured cluster domain; in the original they search `cluster.local` whatever
//!   `--cluster-domain` is.
//!
//! Life of a job:
//!
//! - An evicted worker ends the job: the job gets its completion time, and the clean-pod policy applies. Unless the
//!   policy is None, the launcher is stopped too. The original sets Failed and keeps everything running.
//! - A worker that failed for another reason is made again, so that a launcher that is tried again has all its workers; the
//!   event `MPIJobWorkerFailed` reports it, and the condition Restarting names it until a launcher that began later runs with
//!   all workers. When workers have failed more often than `backoffLimit`, the job fails. The original only counts it. A worker
//!   that ends with 0 beside a launcher that runs is reported by `MPIJobWorkerEnded`.
//! - A job of Open MPI whose launcher ends with exit code 0 after one of its workers has failed or was deleted is Failed
//!   (`MPIJobWorkerLost`): Open MPI 5 ends so when it has lost a worker, without having done the work. With `warn`, and if
//!   the launcher reads `discover_hosts.sh`, the job succeeds, and a warning event says so. The original takes it for
//!   Succeeded.
//! - A suspended job keeps no worker, even if the clean-pod policy is Running: a worker that had failed or ended would
//!   not run again and would block the job once it is resumed. The counts remain until the pods are gone, so that Kueue
//!   does not release their quota too early.
//! - `WaitForWorkersReady` also applies to a job that is resumed.
//! - The launcher's Job is made with the resumption of a job that is created suspended, so that edits before it are in it. The
//!   deadline, the back-off limit and the time to live follow edits of a job that runs; the condition `PodsOutdated` tells of a
//!   launcher of an older template.
//! - If the launcher's Job is deleted by its `ttlSecondsAfterFinished` before the host sees how it ended, the job is
//!   Failed (`LauncherLost`), since the launcher may have done its work. The original runs it again. Both operators
//!   recreate a Job that was deleted before its end; Troupe does so only once its pods are gone, since two launchers
//!   would use the same workers.
//! - A scale-down with `runLauncherAsWorker` deletes only the surplus workers. So does the removal of the Worker entry
//!   from the spec.
//! - With `ttl-deletes-mpijob` the time to live also applies to the MPIJob itself; the original deletes only the
//!   launcher's Job. The time counts from `completionTime`, even if the time to live is edited after the end.
//! - The Service is created once: an edit of `runLauncherAsWorker` in a running job does not change its selector. The
//!   original rewrites it.
//! - A resumed launcher also gets the `affinity` that the job has by then; the original copies the node selector,
//!   tolerations and scheduling gates only.
//!
//! Gangs:
//!
//! - With `WaitForWorkersReady` the launcher is not a member of the gang: otherwise the workers and the launcher would
//!   wait for each other.
//! - A gang that is smaller than the job requests the resources of the launcher and of workers, whatever their
//!   priorities: without a launcher no job starts.
//!
//! Errors:
//!
//! - The condition `Rejected` lists all the errors that the original refuses with an event.
//! - The condition `Waiting` reports a name that another object has, or a refused pod. The host creates the other
//!   objects, and the job continues as soon as it can.
//! - A job whose host lists are too large for one ConfigMap is refused with a message.
//! - A job with more than 10,000 workers is refused with a message.
//! - Events are emitted once per step, not once per pass. A name that another object has emits `ErrResourceExists`, and
//!   a refused create emits `MPIJobFailed`, both with the host's message.
//! - A deleted Secret with keys is not recreated, since running workers hold the old keys. Pods that are still to be
//!   created wait for it, and the condition `Waiting` says so.
//!
//! Each created object has the annotation `troupe.dev/plugin-digest`: the digest of the component that planned it.
//! `kubectl get mpijobs` has a column State: the last condition that is True. It is blank for a job that ended under
//! the original and of which nothing is left to do, since Troupe does not write such a job's status.
//!
//! # Settings
//!
//! `troupe operator --plugin-config mpi=FILE`, a YAML file with any of these keys:
//!
//! | key | default | |
//! |---|---|---|
//! | `cluster-domain` | `""` | domain of the cluster, appended to host names; if empty, host names end with `.svc` |
//! | `gang-scheduling` | `""` | `volcano`, `kubernetes`, or the name of a scheduler with the scheduler-plugins' PodGroup |
//! | `queueing` | `{}` | who queues jobs that name a queue of Kueue, by kind: `auto` (Kueue where its integration acts on the job, else the host), `host`, `kueue` |
//! | `lost-worker` | `fail` | a job of Open MPI whose launcher ends with exit code 0 after a worker has failed or was deleted: `fail`, or `warn` and succeed; the annotation `mpi.troupe.dev/lost-worker` of a job replaces it |
//! | `ttl-deletes-mpijob` | `false` | `ttlSecondsAfterFinished` deletes the MPIJob too |
//!
//! The original's flags:
//!
//! | flag | here |
//! |---|---|
//! | `--gang-scheduling` | setting `gang-scheduling` |
//! | `--cluster-domain` | setting `cluster-domain` |
//! | `--namespace`, the variable `KUBEFLOW_NAMESPACE` | `troupe operator --namespace` |
//! | `--lock-namespace` | `troupe operator --leader-elect --lease-namespace`; the original always elects a leader |
//! | `--monitoring-port` | `troupe operator --admin-address`, which serves `/metrics` and `/healthz` |
//! | `--threadiness`, `--kube-api-qps`, `--kube-api-burst`, `--controller-queue-rate-limit`, `--controller-queue-burst` | nothing: healthy jobs are not rate limited, and failing jobs back off |
//! | `--kubeConfig`, `--master` | the variable `KUBECONFIG` |
//! | `--version` | `troupe --version` |
//!
//! # Migration
//!
//! Run `troupe preflight --plugin-config mpi=FILE` first: it reports obstacles and the jobs that Troupe would take
//! over.
//!
//! 1. Scale the original to zero: `kubectl -n mpi-operator scale deployment mpi-operator --replicas 0`. Running jobs
//!    continue without it.
//! 2. Apply the CRD of Troupe: `troupe crds | kubectl apply -f -`. Jobs also run with the original's CRD, but the API
//!    server then prunes `status.troupe`: workers of finished jobs are not deleted, and a launcher that was deleted
//!    while Troupe was down is run again.
//! 3. Install Troupe: `kubectl apply -f deploy/rbac.yaml`, and run `troupe operator` as its service account.

#[cfg(all(feature = "crd", not(target_family = "wasm")))]
pub mod crd;
mod env;
#[cfg(test)]
mod fixtures;
mod gang;
mod hostfile;
mod judge;
mod launcher;
mod lost;
#[cfg(all(feature = "crd", not(target_family = "wasm")))]
pub mod original;
mod plan;
mod pods;
mod spec;
mod validate;

pub use spec::{Config, MpiJobSpec, ReplicaSpec, RunPolicy};

use serde_json::json;
use troupe_plugin::types::{
    Bindings, ChildKind, Descriptor, JobPlan, KindInfo, Observation, Outlook, OwnedBy, Queueing, Refusal, Switches,
    Verdict,
};
use troupe_plugin::{Framework, Job, json_text};

/// An MPIJob with its spec and config parsed.
pub(crate) type MpiJob = Job<MpiJobSpec, Config>;

/// The MPI plugin: the framework of MPIJobs.
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
                    &[
                        "/status",
                        "/spec/suspend",
                        "/spec/template/spec/nodeSelector",
                        "/spec/backoffLimit",
                        "/spec/activeDeadlineSeconds",
                        "/spec/ttlSecondsAfterFinished",
                    ],
                ),
            ]
            .into(),
            gangs: true,
            config_schema: config_schema(),
            reads: vec![],
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
        Ok(Bindings { bodies: bodies.collect::<Result<_, Refusal>>()?, runs: vec![], remove: vec![] })
    }

    fn judge(job: &MpiJob, seen: &Observation, outlook: &Outlook) -> Result<Verdict, Refusal> {
        Ok(judge::judge(job, seen, outlook))
    }
}

/// Returns the grants for what a plan has and the job's user does not ask for: a Secret with a key pair, the deletion
/// of jobs after their time to live, `sshd` as the command of a worker without one, and the search domain of workers. The
/// scheduler is granted by its setting.
fn grants() -> serde_json::Value {
    json!({
        "kinds": ["Secret"],
        "deletes": ["MPIJob.kubeflow.org"],
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
        event_source: "mpi-job-controller".into(),
        queueing: Queueing::Elsewhere,
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
        owned_by: OwnedBy::Job,
    }
}

fn config_schema() -> String {
    const NAME: &str = "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$";
    let domain = "Domain of the cluster, appended to host names; empty leaves them at `.svc`.";
    let gang = "`volcano`, `kubernetes`, or the name of a scheduler with the scheduler-plugins' PodGroup; empty is no gang \
                scheduling.";
    let lost = "A job of Open MPI whose launcher ends with exit code 0 after a worker has failed: it fails, or succeeds with a \
                warning.";
    let queueing = "Who queues jobs that name a queue of Kueue, by kind: `auto`, Kueue where its integration acts on the job and the \
                    host where it does not; `host`; `kueue`.";
    let ttl = "ttlSecondsAfterFinished deletes the MPIJob too, not its launcher's Job alone.";
    json_text(&json!({
        "type": "object",
        "properties": {
            "cluster-domain": { "type": "string", "pattern": NAME, "default": "", "description": domain },
            "gang-scheduling": {
                "type": "string", "pattern": NAME, "default": "", "description": gang, "x-troupe-grants": "schedulers",
            },
            "queueing": {
                "type": "object", "description": queueing, "additionalProperties": { "enum": ["auto", "host", "kueue"] },
                "default": {}, "x-troupe-queueing": true,
            },
            "lost-worker": { "enum": ["fail", "warn"], "default": "fail", "description": lost },
            "ttl-deletes-mpijob": { "type": "boolean", "default": false, "description": ttl },
        },
        "additionalProperties": false,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    // M18: the host reads the switch itself; it needs only these facts to ignore the job.
    #[test]
    fn the_descriptor_names_the_switches_and_the_own_manager() {
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
        assert_eq!((&*descriptor.name, &*kind.event_source), ("mpi", "mpi-job-controller"));
    }

    #[test]
    fn children_are_watched_by_a_label_that_the_original_sets_too_and_secrets_are_not_watched() {
        let children = Mpi::describe().children;
        let watched: Vec<_> = children.iter().map(|c| (&*c.kind, c.selector.as_deref().unwrap_or(""))).collect();
        let expected =
            [("Pod", "training.kubeflow.org/job-name"), ("Service", "app"), ("ConfigMap", "app"), ("Job", "app")];
        assert_eq!((&*watched, Mpi::describe().gangs), (&expected[..], true));
    }

    #[test]
    fn the_config_schema_is_json() {
        let schema: serde_json::Value = serde_json::from_str(&Mpi::describe().config_schema).unwrap();
        assert!(schema.pointer("/properties/cluster-domain").is_some());
    }
}
