//! PaddleJob `batch.paddlepaddle.org/v1`: parameter servers, workers and heterogeneous workers that find each other
//! through environment variables and one ConfigMap.
//!
//! # What is supported
//!
//! The plugin accepts manifests of PaddlePaddle's paddle-operator v0.3.5 without changes: the roles ps, worker and
//! heter, intranet PodIP, Service and Host, gloo, the elastic variables, the clean-pod policies, and Volcano with
//! `schedulingPolicy`. Names, labels, annotations, environment, ConfigMap keys, phases and the columns of
//! `kubectl get pdj` are the original's. Unknown values have the original's meaning too: intranet `Foo` is PodIP, and
//! the clean-pod policy `OnFailed` is Never. Troupe takes over running jobs of the original and does not rewrite their
//! pods, Services and ConfigMap.
//!
//! Not supported: the etcd of v0.3.2 and older (`PADDLE_ELASTIC_SERVER` is not set, as in the original since v0.3.3),
//! the order ps before worker of v0.3.1 to v0.3.3, SampleSets, SampleJobs and TrainingJobs.
//!
//! # What differs from the original, and why
//!
//! Addresses:
//!
//! - The ConfigMap follows its pods: its lists include a pod that was recreated or scaled up, and a replica that has
//!   succeeded and lost its pod keeps its place. The original writes the ConfigMap once.
//! - The job's port is 36000, or the port that running pods have read. The original draws it from the range that Linux
//!   uses for outgoing connections, and in Service mode its `PADDLE_PORT` contradicts its lists, so that servers end at
//!   once.
//! - The port of `PADDLE_GLOO_HTTP_ENDPOINT` is the job's port plus 18; the original uses the endpoint of ps 0 itself.
//!   A job that was taken over keeps the original's value.
//! - The ConfigMap has `PADDLE_HETER_TRAINER_IP_PORT_LIST` in addition to `PADDLE_HETER_ENDPOINTS`, because Paddle
//!   reads the former.
//! - A condition reports a pod that has only an IPv6 address, which Paddle cannot read; the original retries for ever.
//! - Host mode: a job has 20 host ports that no other job has. Its pods declare the port, so that the scheduler puts no
//!   two of them on one node, and they resolve cluster names (`dnsPolicy: ClusterFirstWithHostNet`).
//! - In Service mode pods know each other by `POD.NAMESPACE`: `paddle.distributed.launch` takes a name without a dot for no
//!   address, and then no pod is the master. Lists of a job that was taken over keep the names that its pods have read.
//! - A job without servers has `PADDLE_CURRENT_ENDPOINT`, without which plain Python ends, unless the user says it. On CPUs plain
//!   Python also needs `PADDLE_DISTRI_BACKEND=gloo`, which is the user's to say.
//! - `TRAINING_ROLE` of heterogeneous workers is `HETER_TRAINER`; Paddle refuses the original's `HETER`.
//! - A warning event says at submit time what Paddle will not do: `TrainsAlone` for an elastic job, of which
//!   `paddle.distributed.launch` reads nothing, and `ServersDoNotStart` for servers that are started by it.
//! - `PADDLE_ELASTIC_NP` is `requests:limits` of the workers if both are given; the original never writes a range.
//!
//! Life of a job:
//!
//! - A pod that is being deleted passes through Failed without failing the job. In the original, a scale-down or a
//!   drained node fails the job for ever.
//! - The phase is computed over all roles: Failed precedes Starting, and Starting precedes Pending. In the original the
//!   order of roles decides.
//! - The result of a replica that was scaled down does not count; the other replicas decide the result of the job.
//! - A role with 0 replicas works. In the original it prevents the ConfigMap from being created and the job from
//!   ending.
//! - The pods of a finished job are not recreated. The status of a finished job keeps its last counters, which the
//!   original removes; the counters of a failed job change until its pods have ended.
//! - Pods and Services of a replica that was scaled down, or of a role that was removed from the spec, are deleted; the
//!   PodGroup follows the job's scale. The original keeps Services, PodGroup and the pods of a removed role.
//! - A job that is deleted and created again under the same name does not count the pods of the old job; the original
//!   counts them.
//! - The host retries a refused create, and the job's condition `Waiting` gives the reason.
//! - The condition `Rejected` names the field of a job that cannot work, and other jobs continue: no role at all, no
//!   containers, negative replicas or more than 10,000, a value of another type where the plugin sets a field of a pod,
//!   `elastic` without `worker`, a name that is too long or has dots. Some of these end the original's process.
//! - A job with the label `kueue.x-k8s.io/queue-name` is queued by Kueue, and preempted, without switch in its spec.
//! - All pods are created at once, and deleted at once. The original creates and deletes one object per pass.
//! - One event `Created` names all objects that were created with the pods; the original emits one event per object. A
//!   refused create emits the event `Create` with the host's message.
//! - Each created object has the annotation `troupe.dev/plugin-digest`: the digest of the component that planned it.
//! - A word that counts as a default (`cleanPodPolicy`, `intranet`), numbers that do not fit together, servers without workers
//!   and a job without pods are told by a warning event and the condition `Warned`. What happens to each value is in
//!   `docs/jobs/values.md`.
//! - There is no finalizer: garbage collection deletes the objects that a job owns. The host removes the original's
//!   finalizer from a job that is being deleted and never writes the phase `Terminating`.
//! - `refs` in the status are in order of index and have no resource version, so that they change only with the pods. A
//!   role with more than 1,000 pods lists the first 1,000, since an object may have at most 1.5 MiB. The counters
//!   include all pods.
//! - Finalizers in a pod template are not copied to the pods; the original copies them.
//! - A PodGroup that is no longer admitted blocks only the creation of pods, not the rest of the job.
//!
//! The init container asks for the cpu, memory and ephemeral storage that the first container asks for, requests and
//! limits; the original's asks for 10 thousandths of a cpu and of a byte whatever the pod asks for, which quotas and
//! queues may refuse. It counts the names up instead of listing them.
//!
//! # Settings
//!
//! `troupe operator --plugin-config paddle=FILE`, a YAML file with any of these keys:
//!
//! | key | default | |
//! |---|---|---|
//! | `initImage` | `docker.io/library/alpine:3.10` | image of the init container that waits until the names of its role resolve; `""` omits the container |
//! | `initResources` | absent | `requests` and `limits` of that container; absent: the cpu, memory and ephemeral storage of the first container |
//! | `scheduling` | `""` | the gang scheduler of each job that names no other: `volcano`, `kubernetes`, or the name of a scheduler with the scheduler-plugins' PodGroup |
//! | `etcdServer` | `""` | accepted and ignored |
//! | `lean` | `false` | jobs with intranet PodIP get neither Services nor the init container |
//! | `completeWithoutServers` | `false` | a job with servers is Completed when its other pods have succeeded; the servers are then deleted |
//!
//! The original's flags:
//!
//! | flag | here |
//! |---|---|
//! | `--initImage` | setting `initImage` |
//! | `--scheduling` | setting `scheduling` |
//! | `--etcd-server` | setting `etcdServer`, or nothing |
//! | `--port-range 35000,65000` | `troupe operator --host-port-range 35000-65000`, which accepts a comma too |
//! | `--namespace` | `troupe operator --namespace` |
//! | `--leader-elect` | `troupe operator --leader-elect`, with its own Lease |
//! | `--metrics-bind-address`, `--health-probe-bind-address` | `troupe operator --admin-address`, which serves both |
//! | `--kubeconfig` | the variable `KUBECONFIG` |
//! | `--zap-*` | `troupe operator --log-json`, the variable `RUST_LOG` |
//!
//! # Migration
//!
//! Run `troupe preflight --plugin-config paddle=FILE` first: it reports obstacles and the jobs that Troupe would take
//! over.
//!
//! 1. Scale the original to zero: `kubectl -n paddle-system scale deployment paddle-controller-manager --replicas 0`.
//!    Running jobs continue without it.
//! 2. Apply the CRD of Troupe: `troupe crds | kubectl apply -f -`. Jobs also run with the original's CRD, but the API
//!    server then prunes `status.troupe`: nothing is cleaned up, and no job reports what it waits for.
//! 3. Install Troupe: `kubectl apply -f deploy/rbac.yaml`, and run `troupe operator` as its service account.
#![cfg_attr(
    all(feature = "crd", not(target_family = "wasm")),
    expect(clippy::duplicated_attributes, reason = "each printer column of kube's derive repeats the same keys")
)]

#[cfg(test)]
mod consistency;
#[cfg(all(feature = "crd", not(target_family = "wasm")))]
pub mod crd;
mod env;
mod gang;
mod judge;
mod objects;
#[cfg(all(feature = "crd", not(target_family = "wasm")))]
pub mod original;
mod plan;
mod rendezvous;
mod spec;
mod warnings;

#[cfg(all(feature = "crd", not(target_family = "wasm")))]
pub use spec::PaddleJob;
pub use spec::{PaddleJobSpec, ResourceSpec, SchedulingPolicy};

use troupe_plugin::{
    Framework, json_text,
    types::{
        Bindings, ChildKind, Descriptor, JobPlan, KindInfo, Observation, Outlook, OwnedBy, Queueing, Refusal, Switches,
        Verdict,
    },
};

/// A PaddleJob with its spec and config parsed.
pub(crate) type Job = troupe_plugin::Job<PaddleJobSpec, spec::Config>;

/// The Paddle plugin: the framework of PaddleJobs.
#[derive(Debug)]
pub struct Paddle;

impl Framework for Paddle {
    type Spec = PaddleJobSpec;
    type Config = spec::Config;

    fn describe() -> Descriptor {
        let child = |kind: &str, plural: &str, selector: Option<&str>, keep: &[&str]| ChildKind {
            api_version: "v1".into(),
            kind: kind.into(),
            plural: plural.into(),
            selector: selector.map(Into::into),
            keep: keep.iter().map(|pointer| (*pointer).into()).collect(),
            optional: false,
            owned_by: OwnedBy::Job,
        };
        Descriptor {
            name: "paddle".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            kinds: vec![KindInfo {
                group: "batch.paddlepaddle.org".into(),
                version: "v1".into(),
                kind: "PaddleJob".into(),
                plural: "paddlejobs".into(),
                switches: Switches { suspend: None, managed_by: None },
                own_manager: None,
                retired_finalizers: vec!["finalizers.paddlepaddle.org".into()],
                roles: spec::ROLES.map(|(name, _)| name.into()).into(),
                event_source: "paddlejob-controller".into(),
                queueing: Queueing::Host,
            }],
            children: vec![
                child("Pod", "pods", Some("paddle-res-type"), &[]),
                child("Service", "services", None, &[]),
                child("ConfigMap", "configmaps", Some("paddle-res-name"), &["/data"]),
            ],
            gangs: true,
            config_schema: spec::CONFIG_SCHEMA.into(),
            reads: vec![],
            event_reasons: [("Created", "Created"), ("Refused", "Create")]
                .map(|(host, own)| (host.into(), own.into()))
                .into(),
            grants: json_text(&grants()),
        }
    }

    fn plan(job: &Job) -> Result<JobPlan, Refusal> {
        plan::plan(job)
    }

    fn bind(job: &Job, seen: &Observation, wanted: &[String]) -> Result<Bindings, Refusal> {
        let wants = wanted.iter().any(|key| key == rendezvous::KEY);
        rendezvous::readable(job, seen)?;
        let body = if wants { rendezvous::body(job, seen) } else { None };
        let bodies = body.into_iter().map(|body| (rendezvous::KEY.to_owned(), body)).collect();
        Ok(Bindings { bodies, runs: vec![], remove: vec![] })
    }

    fn judge(job: &Job, seen: &Observation, outlook: &Outlook) -> Result<Verdict, Refusal> {
        Ok(judge::judge(job, seen, outlook))
    }
}

/// Returns the grants for what a plan has and the job's user does not ask for: the host network, host ports, and the
/// image of the init container. The scheduler is granted by its setting.
fn grants() -> serde_json::Value {
    serde_json::json!({
        "deletes": ["Service"],
        "hostNetwork": true,
        "hostPorts": true,
        "images": [spec::INIT_IMAGE],
    })
}

troupe_plugin::export!(Paddle);
