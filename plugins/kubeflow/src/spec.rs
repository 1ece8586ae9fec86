//! The specs of the five kinds as one type, and the plugin's config. Fields of another kind stay absent, since the CRDs
//! drop them.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use std::collections::BTreeMap;
use troupe_plugin::{GivenResources, MAX_REPLICAS, Name, Number, UserTemplate, Word};

/// The value of `runPolicy.managedBy` that means this operator.
pub(crate) const OWN_MANAGER: &str = "kubeflow.org/training-operator";

// What the fields may be, for the CRDs and for the check of a job. An empty text counts as absent, as in the original.

pub(crate) const REPLICAS: Number = Number { path: "replicas", least: 0, most: MAX_REPLICAS as i64 };
pub(crate) const RESTART_POLICY: Word =
    Word { path: "restartPolicy", words: &["Always", "OnFailure", "Never", "ExitCode"], may_be_empty: true };
pub(crate) const CLEAN_POD_POLICY: Word =
    Word { path: "spec.runPolicy.cleanPodPolicy", words: &["All", "None", "Running"], may_be_empty: true };
pub(crate) const MANAGED_BY: Word =
    Word { path: "spec.runPolicy.managedBy", words: &[OWN_MANAGER, "kueue.x-k8s.io/multikueue"], may_be_empty: false };
pub(crate) const TTL: Number = Number::at_least("spec.runPolicy.ttlSecondsAfterFinished", 0);
/// Better: the original takes 0, with which a job fails before it has a pod.
pub(crate) const DEADLINE: Number = Number { path: "spec.runPolicy.activeDeadlineSeconds", least: 1, most: i64::MAX };
pub(crate) const BACKOFF_LIMIT: Number = Number::at_least("spec.runPolicy.backoffLimit", 0);
/// With 0 no pod waits for another.
pub(crate) const MIN_AVAILABLE: Number = Number::at_least("spec.runPolicy.schedulingPolicy.minAvailable", 0);
pub(crate) const SCHEDULE_TIMEOUT: Number =
    Number::at_least("spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds", 0);
pub(crate) const QUEUE: Name = Name { path: "spec.runPolicy.schedulingPolicy.queue" };
pub(crate) const PRIORITY_CLASS: Name = Name { path: "spec.runPolicy.schedulingPolicy.priorityClass" };
pub(crate) const MIN_REPLICAS: Number = Number { path: "spec.elasticPolicy.minReplicas", least: 1, ..REPLICAS };
pub(crate) const MOST_REPLICAS: Number = Number { path: "spec.elasticPolicy.maxReplicas", least: 1, ..REPLICAS };
pub(crate) const MAX_RESTARTS: Number = Number::at_least("spec.elasticPolicy.maxRestarts", 0);
pub(crate) const N_PROC_PER_NODE: Number = Number { path: "spec.elasticPolicy.nProcPerNode", least: 1, most: 9_999 };
pub(crate) const RDZV_PORT: Number = Number { path: "spec.elasticPolicy.rdzvPort", least: 1, most: 65_535 };

/// The image of the init container of PyTorch workers.
pub(crate) const INIT_IMAGE: &str = "alpine:3.10";

/// The cluster operator's settings for this plugin.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Config {
    /// Domain of the cluster, which ends the addresses in `TF_CONFIG`. If empty, they end with `.svc`.
    pub cluster_domain: String,
    /// `volcano`, `kubernetes`, or the name of a scheduler with the scheduler-plugins' PodGroup. If empty, there is no
    /// gang scheduling.
    pub gang_scheduler_name: String,
    /// The image of the init container in which workers of PyTorch and XGBoost wait for their master.
    pub pytorch_init_container_image: String,
    /// How often that container looks up the master before it fails.
    pub pytorch_init_container_max_tries: u32,
    /// `resources` of that container. Absent: those of the container of the framework, cpu, memory and ephemeral storage.
    pub pytorch_init_container_resources: Option<GivenResources>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cluster_domain: String::new(),
            gang_scheduler_name: String::new(),
            pytorch_init_container_image: INIT_IMAGE.to_owned(),
            pytorch_init_container_max_tries: 100,
            pytorch_init_container_resources: None,
        }
    }
}

/// The replicas of a job, by type. The case of a type does not matter.
pub type ReplicaSpecs = BTreeMap<String, Option<ReplicaSpec>>;

/// The spec of a job.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// The replicas of a TFJob.
    pub tf_replica_specs: Option<ReplicaSpecs>,
    /// The replicas of a PyTorchJob.
    pub pytorch_replica_specs: Option<ReplicaSpecs>,
    /// The replicas of an XGBoostJob.
    pub xgb_replica_specs: Option<ReplicaSpecs>,
    /// The replicas of a JAXJob.
    pub jax_replica_specs: Option<ReplicaSpecs>,
    /// The replicas of a PaddleJob.
    pub paddle_replica_specs: Option<ReplicaSpecs>,
    /// What happens when the job is finished, suspended or takes too long.
    pub run_policy: Option<RunPolicy>,
    /// TFJob: `AllWorkers`, or the default, for which worker 0 is enough.
    pub success_policy: Option<String>,
    /// TFJob: workers may come, go and fail.
    pub enable_dynamic_worker: Option<bool>,
    /// PyTorchJob: how many workers there may be, and how they find each other.
    pub elastic_policy: Option<ElasticPolicy>,
    /// PyTorchJob: processes in each pod: `auto`, `cpu`, `gpu` or a number.
    pub nproc_per_node: Option<String>,
}

/// The replicas of one type.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaSpec {
    /// How many; 1 by default.
    pub replicas: Option<i64>,
    /// Always, `OnFailure`, Never or `ExitCode`.
    pub restart_policy: Option<String>,
    /// The pod.
    pub template: Option<UserTemplate>,
}

/// What happens when the job is finished, suspended or takes too long.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunPolicy {
    /// Which pods are removed once the job is finished: None, Running or All.
    pub clean_pod_policy: Option<String>,
    /// How long after its end the job is deleted.
    pub ttl_seconds_after_finished: Option<i64>,
    /// How long the job may be active, in seconds.
    pub active_deadline_seconds: Option<i64>,
    /// How often pods are restarted before the job fails.
    pub backoff_limit: Option<i64>,
    /// Keeps the job without pods.
    pub suspend: Option<bool>,
    /// Who runs the job.
    pub managed_by: Option<String>,
    /// How a gang scheduler sees the job.
    pub scheduling_policy: Option<SchedulingPolicy>,
}

/// How a gang scheduler sees the job.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SchedulingPolicy {
    /// The least number of pods to start with.
    pub min_available: Option<i64>,
    /// The queue.
    pub queue: Option<String>,
    /// The least resources to start with.
    pub min_resources: Option<Value>,
    /// The priority class of the group.
    pub priority_class: Option<String>,
    /// How long the group may wait to be scheduled.
    pub schedule_timeout_seconds: Option<i64>,
}

/// How many workers a PyTorchJob may have, and how they find each other.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElasticPolicy {
    /// The least workers.
    pub min_replicas: Option<i64>,
    /// The most workers.
    pub max_replicas: Option<i64>,
    /// `c10d`, `etcd` or `etcd-v2`.
    pub rdzv_backend: Option<String>,
    /// The port of the rendezvous.
    pub rdzv_port: Option<i64>,
    /// The host of the rendezvous.
    pub rdzv_host: Option<String>,
    /// The name of the rendezvous.
    pub rdzv_id: Option<String>,
    /// More settings of the rendezvous.
    pub rdzv_conf: Option<Vec<RdzvConf>>,
    /// Whether each worker is a rendezvous of its own.
    pub standalone: Option<bool>,
    /// Deprecated: processes in each pod.
    pub n_proc_per_node: Option<i64>,
    /// How often workers are restarted.
    pub max_restarts: Option<i64>,
    /// By which metrics the number of workers is chosen.
    pub metrics: Option<Box<RawValue>>,
}

/// A setting of a rendezvous.
#[derive(Debug, Clone, Deserialize)]
pub struct RdzvConf {
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// Returns the text, or None if it is absent or empty. In the original's types an empty text counts as absent.
pub(crate) fn given(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}
