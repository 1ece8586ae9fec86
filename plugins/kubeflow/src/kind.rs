//! What differs between the five kinds, as data.

use crate::fate::RestartPolicy;
use crate::spec::{ReplicaSpecs, Spec};

/// A kind of job.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) framework: Framework,
    pub(crate) name: &'static str,
    pub(crate) plural: &'static str,
    /// The field of the spec that has its replicas.
    pub(crate) field: &'static str,
    pub(crate) replicas: fn(&Spec) -> Option<&ReplicaSpecs>,
    /// Its replica types, those that lead first.
    pub(crate) types: &'static [ReplicaType],
    /// The container that runs the framework's program.
    pub(crate) container: &'static str,
    pub(crate) port_name: &'static str,
    pub(crate) port: u16,
    /// The restart policy where a replica spec has none.
    pub(crate) restart_policy: RestartPolicy,
    /// The label `operator-name`.
    pub(crate) operator: &'static str,
    /// Whether worker 0 has the role of the master in a job without a type that leads.
    pub(crate) worker_leads: bool,
    /// Whether it has a scale subresource, and so selectors in its status.
    pub(crate) scales: bool,
    /// The words for a job that runs and for one that has ended.
    pub(crate) wording: Wording,
    /// Whether variables go to all containers, not to the framework's alone.
    pub(crate) all_containers: bool,
}

/// The framework that a kind is for, which has a module of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framework {
    Tf,
    PyTorch,
    XgBoost,
    Jax,
    Paddle,
}

/// How messages name the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wording {
    /// With its namespace.
    Namespaced,
    /// With its namespace if no type leads.
    Plain,
}

/// A type of replica.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReplicaType {
    /// As in the spec: `Worker`.
    pub(crate) name: &'static str,
    /// As in names and labels, and the role of its replicas: `worker`.
    pub(crate) lower: &'static str,
    /// The role of replica 0 where that differs from the others: a role's replicas have one template.
    pub(crate) first: Option<&'static str>,
    /// Its replicas decide how the job stands.
    pub(crate) leads: bool,
}

/// How many of the deciding replicas have to succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quorum {
    All,
    Any,
    /// Replica 0.
    First,
}

const MASTER: ReplicaType = ReplicaType { name: "Master", lower: "master", first: None, leads: true };
const WORKER: ReplicaType = ReplicaType { name: "Worker", lower: "worker", first: Some("worker-0"), leads: false };

/// The kinds that the plugin serves.
pub(crate) static KINDS: [Kind; 5] = [TF, PYTORCH, XGBOOST, JAX, PADDLE];

const TF: Kind = Kind {
    framework: Framework::Tf,
    name: "TFJob",
    plural: "tfjobs",
    field: "tfReplicaSpecs",
    replicas: |spec| spec.tf_replica_specs.as_ref(),
    types: &[
        ReplicaType { name: "Chief", lower: "chief", first: None, leads: true },
        MASTER,
        ReplicaType { name: "PS", lower: "ps", first: None, leads: false },
        WORKER,
        ReplicaType { name: "Evaluator", lower: "evaluator", first: None, leads: false },
    ],
    container: "tensorflow",
    port_name: "tfjob-port",
    port: 2222,
    restart_policy: RestartPolicy::Never,
    operator: "tfjob-controller",
    worker_leads: true,
    scales: false,
    wording: Wording::Namespaced,
    all_containers: false,
};

const PYTORCH: Kind = Kind {
    framework: Framework::PyTorch,
    name: "PyTorchJob",
    plural: "pytorchjobs",
    field: "pytorchReplicaSpecs",
    replicas: |spec| spec.pytorch_replica_specs.as_ref(),
    types: &[MASTER, WORKER],
    container: "pytorch",
    port_name: "pytorchjob-port",
    port: 23456,
    restart_policy: RestartPolicy::OnFailure,
    operator: "pytorchjob-controller",
    worker_leads: true,
    scales: true,
    wording: Wording::Plain,
    all_containers: true,
};

const XGBOOST: Kind = Kind {
    framework: Framework::XgBoost,
    name: "XGBoostJob",
    plural: "xgboostjobs",
    field: "xgbReplicaSpecs",
    replicas: |spec| spec.xgb_replica_specs.as_ref(),
    types: &[MASTER, ReplicaType { first: None, ..WORKER }],
    container: "xgboost",
    port_name: "xgboostjob-port",
    port: 9999,
    restart_policy: RestartPolicy::Never,
    operator: "xgboostjob-controller",
    worker_leads: false,
    scales: false,
    wording: Wording::Plain,
    all_containers: true,
};

const JAX: Kind = Kind {
    framework: Framework::Jax,
    name: "JAXJob",
    plural: "jaxjobs",
    field: "jaxReplicaSpecs",
    replicas: |spec| spec.jax_replica_specs.as_ref(),
    types: &[WORKER],
    container: "jax",
    port_name: "jaxjob-port",
    port: 6666,
    restart_policy: RestartPolicy::Never,
    operator: "jaxjob-controller",
    worker_leads: true,
    scales: true,
    wording: Wording::Plain,
    all_containers: true,
};

const PADDLE: Kind = Kind {
    framework: Framework::Paddle,
    name: "PaddleJob",
    plural: "paddlejobs",
    field: "paddleReplicaSpecs",
    replicas: |spec| spec.paddle_replica_specs.as_ref(),
    types: &[ReplicaType { first: Some("master-0"), ..MASTER }, WORKER],
    container: "paddle",
    port_name: "master",
    port: 36543,
    restart_policy: RestartPolicy::OnFailure,
    operator: "paddlejob-controller",
    worker_leads: false,
    scales: true,
    wording: Wording::Plain,
    all_containers: true,
};

impl Kind {
    /// Returns the kind of this name.
    pub(crate) fn of(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// Returns the roles that its jobs may have.
    pub(crate) fn roles(&self) -> impl Iterator<Item = &'static str> {
        self.types.iter().flat_map(|of| of.first.into_iter().chain([of.lower]))
    }
}
