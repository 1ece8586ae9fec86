//! The spec of an MPIJob and the plugin's config, with the defaults of absent fields.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use troupe_plugin::{MAX_REPLICAS, Name, Number, UserTemplate, Word};

#[cfg(all(feature = "crd", not(target_family = "wasm")))]
use crate::crd;

/// The value of `runPolicy.managedBy` that means this operator.
pub(crate) const OWN_MANAGER: &str = "kubeflow.org/mpi-operator";
// What the fields may be, for the CRD and for the check of a job.

pub(crate) const SLOTS_PER_WORKER: Number = Number::at_least("spec.slotsPerWorker", 1);
pub(crate) const REPLICAS: Number = Number { path: "replicas", least: 1, most: MAX_REPLICAS as i64 };
pub(crate) const RESTART_POLICY: Word =
    Word { path: "restartPolicy", words: &["Never", "OnFailure"], may_be_empty: true };
pub(crate) const CLEAN_POD_POLICY: Word =
    Word { path: "spec.runPolicy.cleanPodPolicy", words: &["All", "None", "Running"], may_be_empty: false };
pub(crate) const MANAGED_BY: Word =
    Word { path: "spec.runPolicy.managedBy", words: &[OWN_MANAGER, "kueue.x-k8s.io/multikueue"], may_be_empty: false };
pub(crate) const IMPLEMENTATION: Word =
    Word { path: "spec.mpiImplementation", words: &["OpenMPI", "Intel", "MPICH"], may_be_empty: true };
pub(crate) const TTL: Number = Number::at_least("spec.runPolicy.ttlSecondsAfterFinished", 0);
/// Better: the original takes 0, with which a job fails before it has a pod; and more seconds than Go's durations have (292
/// years), with which Kubernetes 1.37.2 fails the launcher's Job at once.
pub(crate) const DEADLINE: Number =
    Number { path: "spec.runPolicy.activeDeadlineSeconds", least: 1, most: i64::MAX / 1_000_000_000 };
pub(crate) const BACKOFF_LIMIT: Number = Number::at_least("spec.runPolicy.backoffLimit", 0);
/// With 0 no pod waits for another.
pub(crate) const MIN_AVAILABLE: Number = Number::at_least("spec.runPolicy.schedulingPolicy.minAvailable", 0);
pub(crate) const SCHEDULE_TIMEOUT: Number =
    Number::at_least("spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds", 0);
pub(crate) const QUEUE: Name = Name { path: "spec.runPolicy.schedulingPolicy.queue" };
pub(crate) const PRIORITY_CLASS: Name = Name { path: "spec.runPolicy.schedulingPolicy.priorityClass" };

/// When the launcher is made together with the workers.
pub(crate) const AT_STARTUP: &str = "AtStartup";
/// When the launcher is made once the workers are ready.
pub(crate) const WAIT_FOR_WORKERS: &str = "WaitForWorkersReady";

/// The default mount path of the SSH keys. sshd requires mode 0600 there, since the directory belongs to root.
pub(crate) const ROOT_SSH: &str = "/root/.ssh";

/// The cluster operator's settings for this plugin.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Config {
    /// Domain of the cluster (`--cluster-domain`). If empty, host names end with `.svc`.
    pub cluster_domain: String,
    /// `volcano`, `kubernetes`, or the name of a scheduler with the scheduler-plugins' PodGroup (`--gang-scheduling`). If
    /// empty, there is no gang scheduling.
    pub gang_scheduling: String,
    /// What it means that a worker failed before a launcher of Open MPI ended with exit code 0.
    pub lost_worker: LostWorker,
    /// The time to live of the launcher's Job also applies to the MPIJob. The original deletes only the Job.
    pub ttl_deletes_mpijob: bool,
}

/// What it means that a worker failed before a launcher of Open MPI ended with exit code 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LostWorker {
    /// The job has failed.
    #[default]
    Fail,
    /// The job has succeeded, with a warning.
    Warn,
}

/// MPIJob describes an MPI application: one launcher that runs mpirun, and workers it reaches by SSH.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(
    all(feature = "crd", not(target_family = "wasm")),
    derive(schemars::JsonSchema, kube::CustomResource),
    kube(
        group = "kubeflow.org",
        version = "v2beta1",
        kind = "MPIJob",
        plural = "mpijobs",
        singular = "mpijob",
        namespaced,
        status = "crate::crd::MpiJobStatus",
        doc = "MPIJob runs an MPI application: one launcher that runs mpirun, and workers it reaches by SSH.",
        printcolumn(name = "State", type_ = "string", json_path = ".status.troupe.step"),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
    )
)]
#[serde(rename_all = "camelCase")]
pub struct MpiJobSpec {
    /// Slots per host in the hostfile. Defaults to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(all(feature = "crd", not(target_family = "wasm")), schemars(schema_with = "crd::slots_per_worker"))]
    pub slots_per_worker: Option<i32>,
    /// The launcher is an MPI host too, the first one of the hostfile. Defaults to false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(all(feature = "crd", not(target_family = "wasm")), schemars(schema_with = "crd::off"))]
    pub run_launcher_as_worker: Option<bool>,
    /// Where the SSH keys are mounted in the first container of launcher and workers. Defaults to /root/.ssh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(all(feature = "crd", not(target_family = "wasm")), schemars(schema_with = "crd::ssh_auth_mount_path"))]
    pub ssh_auth_mount_path: Option<String>,
    /// AtStartup makes the launcher together with the workers, anything else when all workers are ready. Defaults to AtStartup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        all(feature = "crd", not(target_family = "wasm")),
        schemars(schema_with = "crd::launcher_creation_policy")
    )]
    pub launcher_creation_policy: Option<String>,
    /// OpenMPI, Intel or MPICH: the form of the hostfile and the launcher's environment. Defaults to OpenMPI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(all(feature = "crd", not(target_family = "wasm")), schemars(schema_with = "crd::mpi_implementation"))]
    pub mpi_implementation: Option<String>,
    /// The entries `Launcher` (required) and `Worker`; others have no effect.
    #[cfg_attr(
        all(feature = "crd", not(target_family = "wasm")),
        schemars(required, schema_with = "crd::replica_specs")
    )]
    pub mpi_replica_specs: Option<BTreeMap<String, Option<ReplicaSpec>>>,
    /// What happens when the job is finished, suspended or takes too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_policy: Option<RunPolicy>,
}

/// The launcher, or the workers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(all(feature = "crd", not(target_family = "wasm")), derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReplicaSpec {
    /// How many pods: exactly 1 launcher (the default), at least 1 worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(all(feature = "crd", not(target_family = "wasm")), schemars(schema_with = "crd::replicas"))]
    pub replicas: Option<i64>,
    /// Never or OnFailure; replaces the one in the template. Defaults to OnFailure for the launcher, Never for workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(all(feature = "crd", not(target_family = "wasm")), schemars(schema_with = "crd::restart_policy"))]
    pub restart_policy: Option<String>,
    /// The pod: its metadata and spec, as in a Pod. Its first container takes part in MPI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        all(feature = "crd", not(target_family = "wasm")),
        schemars(schema_with = "troupe_plugin::crd::pod_template")
    )]
    pub template: Option<UserTemplate>,
}

/// What happens when the job is finished, suspended or takes too long.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(all(feature = "crd", not(target_family = "wasm")), derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunPolicy {
    /// Which worker pods are removed once the job is finished: None, Running or All. Defaults to None.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(all(feature = "crd", not(target_family = "wasm")), schemars(schema_with = "crd::clean_pod_policy"))]
    pub clean_pod_policy: Option<String>,
    /// Seconds from the end of the launcher's Job to its removal. Without it it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(all(feature = "crd", not(target_family = "wasm")), schemars(schema_with = "crd::ttl"))]
    pub ttl_seconds_after_finished: Option<i32>,
    /// Seconds that the launcher's Job may be active before it fails. Without it there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(all(feature = "crd", not(target_family = "wasm")), schemars(schema_with = "crd::deadline"))]
    pub active_deadline_seconds: Option<i64>,
    /// How often the launcher is tried again before the job fails. Defaults to 6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(all(feature = "crd", not(target_family = "wasm")), schemars(schema_with = "crd::backoff_limit"))]
    pub backoff_limit: Option<i32>,
    /// Keeps the job without pods. Defaults to false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(all(feature = "crd", not(target_family = "wasm")), schemars(schema_with = "crd::off"))]
    pub suspend: Option<bool>,
    /// Who runs the job: kubeflow.org/mpi-operator (the default) or kueue.x-k8s.io/multikueue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(all(feature = "crd", not(target_family = "wasm")), schemars(schema_with = "crd::managed_by"))]
    pub managed_by: Option<String>,
    /// How a gang scheduler sees the job; without one it has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(all(feature = "crd", not(target_family = "wasm")), schemars(with = "Option<crd::SchedulingPolicy>"))]
    pub scheduling_policy: Option<Value>,
}

impl MpiJobSpec {
    /// Returns the entry of this name, if the spec has it.
    pub(crate) fn replica_spec(&self, name: &str) -> Option<&ReplicaSpec> {
        self.mpi_replica_specs.as_ref()?.get(name)?.as_ref()
    }

    /// Returns the number of workers; 0 without a Worker entry.
    pub(crate) fn workers(&self) -> u32 {
        let replicas = self.replica_spec("Worker").and_then(|worker| worker.replicas).unwrap_or(0);
        u32::try_from(replicas).unwrap_or(0)
    }

    pub(crate) fn launcher_is_a_host(&self) -> bool {
        self.run_launcher_as_worker == Some(true)
    }

    pub(crate) fn launcher_waits_for_workers(&self) -> bool {
        given(self.launcher_creation_policy.as_ref()).is_some_and(|policy| policy != AT_STARTUP)
    }

    pub(crate) fn ssh_path(&self) -> &str {
        given(self.ssh_auth_mount_path.as_ref()).unwrap_or(ROOT_SSH)
    }

    pub(crate) fn slots(&self) -> i32 {
        self.slots_per_worker.unwrap_or(1)
    }
}

/// Returns the text, or None if it is absent or empty. In the original's types an empty text counts as absent.
pub(crate) fn given(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}
