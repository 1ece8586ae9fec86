//! TFJob, PyTorchJob, XGBoostJob, JAXJob and PaddleJob of `kubeflow.org/v1`: types of replicas, each with a template, a
//! Service for each pod, and the environment in which the framework's processes find each other.
//!
//! # What is supported
//!
//! The plugin accepts manifests of Kubeflow's training-operator v1.9 without changes. Names, labels, Services,
//! environment, conditions, events, `replicaStatuses` and defaults are the original's:
//!
//! - all types of replicas, with their rules of success: a chief or master, worker 0, all workers (`successPolicy`),
//!   any elastic worker;
//! - TFJobs with `enableDynamicWorker`; elastic PyTorchJobs with their HorizontalPodAutoscaler; `scale` of PyTorchJob,
//!   JAXJob and PaddleJob;
//! - of `runPolicy`: clean-pod policy, time to live, suspend, managedBy, backoffLimit, activeDeadlineSeconds,
//!   schedulingPolicy (Volcano and the scheduler-plugins);
//! - restart policies: a failed pod is replaced with `Always` and `OnFailure`, and with `ExitCode` if its exit code is 128
//!   or above or it has none.
//!
//! And two annotations of Troupe: `kubeflow.troupe.dev/left-out-workers: "1,4-5"` names the workers that an elastic PyTorchJob
//! is to be without when it is scaled down; `kubeflow.troupe.dev/restart-scope: Job` has all pods of the job start again where the
//! original replaces one, those that have succeeded too, for frameworks of which no process goes on without the others
//! (training-operator #2269). Each restart is counted once towards `backoffLimit`, and no pod is created before the last one
//! of the attempt before is gone. The pods have `restartPolicy: Never`, and then the annotation `troupe.dev/attempt`.
//!
//! Not supported: the events `ExitedWithCode` and `SuccessfulDeletePodGroup`, and the original's metrics of jobs; MPIJob of `kubeflow.org/v1`, whose CRD has the name of that of v2beta1, which the plugin `mpi`
//! serves; the file `initContainer.yaml` of the original; annotations of a job on its PodGroup.
//!
//! # What differs from the original, and why
//!
//! Life of a job:
//!
//! - A success comes before a failure that is seen in the same pass, and before a limit.
//! - Each failed pod is counted once, in the job's status, before it is deleted; the next one is created after 10 s, twice
//!   as long each time in a row and 10 minutes at most. The original creates it at once and forgets it.
//! - Pods that were replaced count towards `backoffLimit`, too: the job fails when more of them have failed. Containers that
//!   were started again in place count from the limit on, as in the original. A pod that somebody else deletes does not
//!   count, nor do restarts of containers beside the framework's; those of an init container count until the pod starts.
//! - A replica that has succeeded is not run again when its pod is collected, until the job is resumed or starts again as a
//!   whole.
//! - The container of the framework decides: a sidecar that runs on after it, or fails after it, changes nothing.
//! - While a failed pod is replaced the job is Restarting, also if the master runs: in the original it is chance.
//! - The end of `activeDeadlineSeconds` needs no event to be noticed.
//! - A limit deletes the pods that have not ended whatever the clean-pod policy, and keeps the others' logs.
//! - The event Restarting is emitted once for each failed pod.
//! - A pod that is being deleted decides nothing: many programs exit with 0 when they are stopped. A pod that
//!   somebody deletes is made again and fails no job, also with `Never`.
//! - A failed job always has a completion time, so that its time to live counts.
//! - The counts of a suspended job remain until its pods are gone, so that Kueue does not release their quota too
//!   early.
//! - A job of 0 workers has not succeeded.
//! - The selector of `scale` is always in the status, and the column State is the last condition that is True. State is
//!   blank for a job that ended under the original and of which nothing is left to do, since Troupe does not write such a
//!   job's status.
//! - The HorizontalPodAutoscaler is deleted when the job is finished.
//! - With the clean-pod policy Running all Services are deleted, also those of pods that have ended.
//! - A type that is removed from the spec loses its pods and Services.
//! - `standalone: true` sets `PET_STANDALONE` to 1, of which torchrun makes a number, and `standalone: false` does not set it.
//!   The original sets it to nothing for both.
//! - Elastic PyTorchJobs with c10d have `TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1`, unless the user says otherwise: without it all
//!   agents end after 60 s when a pod joins later or is replaced. A Master counts in their `PET_NNODES`.
//! - Workers of XGBoost wait for the name of their master in an init container as those of PyTorch do.
//! - `TF_CONFIG` with `enableDynamicWorker` is what TensorFlow reads: a parameter server is keyed by its index, a job without
//!   any has an empty list, and a Chief has the whole cluster.
//! - JAXJobs have `JAX_COORDINATOR_ADDRESS` too, the variable that JAX itself reads.
//! - Services publish pods that are not ready, so that a probe that waits for the others does not keep its own name from them.
//! - A warning event says at submit time that the framework will not train the job as it is: `NoRendezvous`,
//!   `TypeNotSupported`, `TrainsAlone`, `ServersInEveryPod`.
//! - Each created object has the annotation `troupe.dev/plugin-digest`: the digest of the component that planned it.
//!
//! Gangs:
//!
//! - A gang that is smaller than the job requests the resources of the replicas that lead, then of the others: a plugin
//!   does not see the values of PriorityClasses.
//!
//! Errors:
//!
//! - What CEL can say is refused by the CRD; the condition `Rejected` lists all else that the webhooks of the original
//!   refuse. Immutability holds for every kind.
//! - A value with which no job can run is refused: names longer than 63 characters, two ports of one name, unknown restart
//!   and clean-pod policies, a deadline of 0, no types of replicas, two Chiefs, an elastic policy that torchrun refuses. One that
//!   counts as another or has no effect is told by a warning event and the condition `Warned`: an unknown success policy, workers
//!   outside the elastic policy, `minAvailable` above the number of pods. What happens to each is in `docs/jobs/values.md`.
//! - More than 10,000 replicas of all types together are refused, and a variable of more than 128 KiB (`TF_CONFIG`,
//!   `WORKER_ADDRS`), with which Linux starts no program where its pages have 4 KiB; so are variables of more than 768 KiB in
//!   all containers of the types together, which are more than a plugin may answer.
//! - A name that another object has is reported by the condition `Waiting`; the other objects are created.
//! - Events are emitted once per step, not once per pass.
//!
//! # Settings
//!
//! `troupe operator --plugin-config kubeflow=FILE`, a YAML file with any of these keys:
//!
//! | key | default | |
//! |---|---|---|
//! | `cluster-domain` | `""` | domain of the cluster, which ends the addresses in `TF_CONFIG` |
//! | `gang-scheduler-name` | `""` | `volcano`, `kubernetes`, or the name of a scheduler with the scheduler-plugins' PodGroup |
//! | `queueing` | `{}` | who queues jobs that name a queue of Kueue, by kind: `auto` (Kueue where its integration acts on the job, else the host), `host`, `kueue` |
//! | `pytorch-init-container-image` | `alpine:3.10` | what workers of PyTorch and XGBoost wait in for their master; `""` for none |
//! | `pytorch-init-container-max-tries` | `100` | how often they look its name up, 2 seconds apart |
//! | `pytorch-init-container-resources` | absent | its `requests` and `limits`; absent: the cpu, memory and ephemeral storage of the container of the framework |
//!
//! The original's flags:
//!
//! | flag | here |
//! |---|---|
//! | `--gang-scheduler-name` | setting `gang-scheduler-name` |
//! | `--pytorch-init-container-image` | setting `pytorch-init-container-image` |
//! | `--pytorch-init-container-max-tries` | setting `pytorch-init-container-max-tries` |
//! | the variable `CUSTOM_CLUSTER_DOMAIN` | setting `cluster-domain` |
//! | `--namespace`, the variable `KUBEFLOW_NAMESPACE` | `troupe operator --namespace` |
//! | `--leader-elect` | `troupe operator --leader-elect` |
//! | `--metrics-bind-address`, `--health-probe-bind-address` | `troupe operator --admin-address` |
//! | `--controller-threads`, `--kube-api-qps`, `--kube-api-burst` | nothing: healthy jobs are not rate limited |
//! | `--enable-scheme`, `--webhook-*` | nothing: all kinds are served, and there are no webhooks |
//! | `--pytorch-init-container-template-file` | not supported |
//!
//! # Migration
//!
//! Run `troupe preflight --plugin-config kubeflow=FILE` first: it reports obstacles and the jobs that Troupe would take
//! over.
//!
//! 1. Scale the original to zero: `kubectl -n kubeflow scale deployment training-operator --replicas 0`, and delete its
//!    `validator.training-operator.kubeflow.org` ValidatingWebhookConfiguration. Running jobs continue without it.
//! 2. Apply the CRDs of Troupe: `troupe crds | kubectl apply -f -`. Jobs also run with the original's CRDs, but the API
//!    server then prunes `status.troupe`: nothing is cleaned up.
//! 3. Install Troupe: `kubectl apply -f deploy/rbac.yaml`, and run `troupe operator` as its service account.

#[cfg(all(feature = "crd", not(target_family = "wasm")))]
pub mod crd;
mod elastic;
mod env;
mod family;
mod fate;
#[cfg(test)]
mod fixtures;
mod gang;
mod hpa;
mod jax;
mod judge;
mod kind;
mod left_out;
mod limits;
#[cfg(all(feature = "crd", not(target_family = "wasm")))]
pub mod original;
mod outcome;
mod paddle;
mod plan;
mod pods;
mod pytorch;
#[cfg(all(feature = "crd", not(target_family = "wasm")))]
pub mod relations;
mod rules;
mod service;
mod sizes;
mod spec;
mod tally;
mod tf;
mod valid;
mod wait;
mod xgboost;

pub use spec::{Config, ElasticPolicy, RdzvConf, ReplicaSpec, ReplicaSpecs, RunPolicy, SchedulingPolicy, Spec};

use troupe_plugin::types::{
    Bindings, ChildKind, Descriptor, JobPlan, KindInfo, Observation, Outlook, OwnedBy, Queueing, Refusal, Switches,
    Verdict,
};
use troupe_plugin::{Framework, Job};

const GROUP: &str = "kubeflow.org";
const VERSION: &str = "v1";
const API_VERSION: &str = "kubeflow.org/v1";

/// The JSON schema of the cluster operator's settings.
const CONFIG_SCHEMA: &str = include_str!("config.json");

/// What a plan has and the job's user does not ask for: the deletion of objects and of jobs after their time to live,
/// and the image of the init container. Another image, and the scheduler, are granted by their settings.
const GRANTS: &str = include_str!("grants.json");

/// A job of any of the kinds with its spec and config parsed.
pub(crate) type TrainingJob = Job<Spec, Config>;

/// The Kubeflow plugin: the framework of training jobs.
#[derive(Debug)]
pub struct Kubeflow;

troupe_plugin::export!(Kubeflow);

impl Framework for Kubeflow {
    type Spec = Spec;
    type Config = Config;

    fn describe() -> Descriptor {
        Descriptor {
            name: "kubeflow".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            kinds: kind::KINDS.iter().map(kind_info).collect(),
            children: vec![child("Pod", "pods"), child("Service", "services"), hpa::child()],
            gangs: true,
            config_schema: CONFIG_SCHEMA.into(),
            reads: vec![],
            event_reasons: [("Created", "SuccessfulCreatePod"), ("Refused", "FailedCreatePod")]
                .map(|(host, own)| (host.into(), own.into()))
                .into(),
            grants: GRANTS.into(),
        }
    }

    fn plan(job: &TrainingJob) -> Result<JobPlan, Refusal> {
        plan::plan(job)
    }

    fn bind(_: &TrainingJob, _: &Observation, _: &[String]) -> Result<Bindings, Refusal> {
        Ok(Bindings { bodies: vec![], runs: vec![], remove: vec![] })
    }

    fn judge(job: &TrainingJob, seen: &Observation, outlook: &Outlook) -> Result<Verdict, Refusal> {
        judge::judge(job, seen, outlook)
    }
}

fn kind_info(kind: &kind::Kind) -> KindInfo {
    KindInfo {
        group: GROUP.into(),
        version: VERSION.into(),
        kind: kind.name.into(),
        plural: kind.plural.into(),
        switches: Switches {
            suspend: Some("/runPolicy/suspend".into()),
            managed_by: Some("/runPolicy/managedBy".into()),
        },
        own_manager: Some(spec::OWN_MANAGER.into()),
        retired_finalizers: vec![],
        roles: kind.roles().map(String::from).collect(),
        event_source: kind.operator.into(),
        queueing: Queueing::Elsewhere,
    }
}

fn child(kind: &str, plural: &str) -> ChildKind {
    ChildKind {
        api_version: "v1".into(),
        kind: kind.into(),
        plural: plural.into(),
        selector: Some(pods::JOB_NAME.into()),
        keep: vec![],
        optional: false,
        owned_by: OwnedBy::Job,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn the_settings_default_to_what_their_schema_says() {
        let schema: Value = serde_json::from_str(CONFIG_SCHEMA).unwrap();
        let config = Config::default();
        let defaults = [
            ("cluster-domain", json!(config.cluster_domain)),
            ("gang-scheduler-name", json!(config.gang_scheduler_name)),
            ("pytorch-init-container-image", json!(config.pytorch_init_container_image)),
            ("pytorch-init-container-max-tries", json!(config.pytorch_init_container_max_tries)),
            ("pytorch-init-container-resources", json!(config.pytorch_init_container_resources)),
            // The host reads it.
            ("queueing", json!({})),
        ];
        assert_eq!(schema["properties"].as_object().unwrap().len(), defaults.len());
        for (name, default) in defaults {
            assert_eq!(schema["properties"][name]["default"], default, "{name}");
        }
    }

    // AC-17: a plan with a time to live is refused unless every kind of job may be deleted.
    #[test]
    fn the_grants_name_every_kind_of_job_and_the_image_that_is_the_default() {
        let grants: Value = serde_json::from_str(GRANTS).unwrap();
        let deletes = grants["deletes"].as_array().unwrap();
        for kind in &kind::KINDS {
            assert!(deletes.contains(&json!(format!("{}.{GROUP}", kind.name))), "{}", kind.name);
        }
        assert_eq!(grants["images"], json!([spec::INIT_IMAGE]));
    }

    // AC-15, AC-19: the host reads the switches itself.
    #[test]
    fn every_kind_has_its_switches_and_roles() {
        let kinds = Kubeflow::describe().kinds;
        let names: Vec<_> = kinds.iter().map(|kind| kind.kind.as_str()).collect();
        assert_eq!(names, ["TFJob", "PyTorchJob", "XGBoostJob", "JAXJob", "PaddleJob"]);
        for kind in &kinds {
            assert_eq!(kind.switches.suspend.as_deref(), Some("/runPolicy/suspend"));
            assert_eq!(kind.switches.managed_by.as_deref(), Some("/runPolicy/managedBy"));
            assert_eq!(kind.own_manager.as_deref(), Some("kubeflow.org/training-operator"));
        }
        assert_eq!(kinds[0].roles, ["chief", "master", "ps", "worker-0", "worker", "evaluator"]);
        assert_eq!(kinds[2].roles, ["master", "worker"]);
        assert_eq!(kinds[4].roles, ["master-0", "master", "worker-0", "worker"]);
    }
}
