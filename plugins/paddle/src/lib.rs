//! PaddleJob `batch.paddlepaddle.org/v1`: parameter servers, workers and heterogeneous workers that find each other
//! through environment and one ConfigMap.
//!
//! # What is supported
//!
//! Manifests of PaddlePaddle's paddle-operator v0.3.5 as they are: the roles ps, worker and heter, intranet PodIP, Service
//! and Host, gloo, the elastic variables, the clean-pod policies, Volcano with `schedulingPolicy`. Names, labels,
//! annotations, environment, ConfigMap keys, phases and the columns of `kubectl get pdj` are the original's, and words that
//! mean nothing mean nothing here too: intranet `Foo` is PodIP, the clean-pod policy `OnFailed` is Never.
//! Jobs that the original runs are taken over where they stand: their pods, Services and ConfigMap are not rewritten.
//!
//! Not supported: the etcd of v0.3.2 and older (`PADDLE_ELASTIC_SERVER` is not set, as in the original since v0.3.3), the
//! order ps before worker of v0.3.1 to v0.3.3, SampleSets, SampleJobs and TrainingJobs.
//!
//! # What differs from the original, and why
//!
//! Addresses:
//!
//! - The ConfigMap follows its pods: a pod that was made again or scaled is in the lists, and a
//!   replica that has succeeded and lost its pod keeps its place. The original writes it once.
//! - The job's port is 36000, or the one that running pods have read. The original draws it from the range that Linux uses
//!   for outgoing connections, and in Service mode its `PADDLE_PORT` contradicts its lists, so that servers end at once.
//! - `PADDLE_GLOO_HTTP_ENDPOINT` is 18 above the job's port; the original names the endpoint of ps 0 itself. A job that is
//!   taken over keeps the original's.
//! - `PADDLE_HETER_TRAINER_IP_PORT_LIST` is there beside `PADDLE_HETER_ENDPOINTS`: it is the one that Paddle reads.
//! - A pod that has only an IPv6 address, which Paddle cannot read, is told as a condition; the original tries for ever.
//! - Host mode: a job has 20 ports of the nodes that no other job has, the pods declare theirs so that no two come to one
//!   node, and they resolve names of the cluster (`dnsPolicy: ClusterFirstWithHostNet`).
//! - `PADDLE_ELASTIC_NP` is `requests:limits` of the workers where both are given; the original never says a range.
//!
//! Life of a job:
//!
//! - A pod that is being deleted passes through Failed without failing the job. In the original scaling down, or a drained
//!   node, fails it for ever.
//! - Failed comes before Starting and Pending over all roles together; in the original the order of roles decides.
//! - What became of a replica that was scaled away does not count: the others end the job.
//! - A role with 0 replicas works. In the original it keeps the ConfigMap from being made, and the job from ending.
//! - A finished job is over: its pods are not made again. Its last counters stay in the status, which the original empties;
//!   those of a failed job go on until its pods have ended.
//! - Pods and Services of a replica that was scaled away, or of a role that was taken out of the spec, go; the PodGroup
//!   follows the job's scale. The original keeps Services and PodGroup as they were, and a removed role's pods.
//! - A job that is deleted and made again under its name has nothing of the old one's pods; the original counts them.
//! - A create that was refused is tried again, and the job's condition `Waiting` says what for.
//! - What cannot work is said by its field in the condition `Rejected`, and other jobs go on: no role at all, no containers,
//!   negative replicas or more than 10,000, a value of another type where a pod gets ours, `elastic` without `worker`, a name too long or with dots. Some of these end the original's process.
//! - All pods are made at once, and removed at once. The original makes and removes one object a pass.
//! - One event `Created` names all that was made with the pods; the original tells each object by itself. A create that is
//!   refused is told as `Create`, in the host's words.
//! - What is made carries the annotation `troupe.dev/plugin-digest`: the component that planned it.
//! - There is no finalizer: garbage collection removes what a job owns. The original's is taken from a job that is deleted;
//!   the phase `Terminating` is never written.
//! - `refs` in the status are in order of the index and have no resource version, so that they do not change by themselves;
//!   of a role with more than 1,000 pods the first 1,000 are listed, since an object may have 1.5 MiB. Counts are of all.
//! - A PodGroup that is no more admitted holds back new pods only, not the rest of the job.
//!
//! The init container asks for 10Mi of memory, not for 10 thousandths of a byte, and counts names up instead of listing them.
//!
//! # Settings
//!
//! `troupe operator --plugin-config paddle=FILE`, a YAML file with any of these keys:
//!
//! | key | default | |
//! |---|---|---|
//! | `initImage` | `docker.io/library/alpine:3.10` | image of the init container that waits for the names of its role; `""` leaves it out |
//! | `scheduling` | `""` | `volcano` has Volcano schedule the jobs that name no other scheduler |
//! | `etcdServer` | `""` | read and ignored |
//! | `lean` | `false` | jobs with intranet PodIP get neither Services nor the init container |
//! | `completeWithoutServers` | `false` | a job with servers is Completed when its other pods are; the servers are removed then |
//!
//! The original's flags:
//!
//! | flag | here |
//! |---|---|
//! | `--initImage` | setting `initImage` |
//! | `--scheduling` | setting `scheduling` |
//! | `--etcd-server` | setting `etcdServer`, or nothing |
//! | `--port-range 35000,65000` | `troupe operator --host-port-range 35000-65000`; a comma is understood too |
//! | `--namespace` | `troupe operator --namespace` |
//! | `--leader-elect` | `troupe operator --leader-elect`, with a Lease of its own |
//! | `--metrics-bind-address`, `--health-probe-bind-address` | `troupe operator --admin-address`, which serves both |
//! | `--kubeconfig` | the variable `KUBECONFIG` |
//! | `--zap-*` | `troupe operator --log-json`, the variable `RUST_LOG` |
//!
//! # Migration
//!
//! `troupe preflight --plugin-config paddle=FILE` first: it says what stands in the way, and which jobs would be taken over.
//!
//! 1. Scale the original to zero: `kubectl -n paddle-system scale deployment paddle-controller-manager --replicas 0`. Running
//!    jobs go on without it.
//! 2. Apply our CRD: `troupe crds | kubectl apply -f -`. With the original's, jobs run as well, but `status.troupe` and
//!    `status.conditions` are dropped: nothing is cleaned up, and no job says what it waits for.
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

#[cfg(all(feature = "crd", not(target_family = "wasm")))]
pub use spec::PaddleJob;
pub use spec::{PaddleJobSpec, ResourceSpec, SchedulingPolicy};

use troupe_plugin::{
    Framework, json_text,
    types::{Bindings, ChildKind, Descriptor, JobPlan, KindInfo, Observation, Outlook, Refusal, Switches, Verdict},
};

/// A PaddleJob with its spec and config parsed.
pub(crate) type Job = troupe_plugin::Job<PaddleJobSpec, spec::Config>;

/// The plugin.
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
        };
        let pod_group = ChildKind {
            api_version: "scheduling.volcano.sh/v1beta1".into(),
            optional: true,
            ..child("PodGroup", "podgroups", None, &gang::KEEP)
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
            }],
            children: vec![
                child("Pod", "pods", Some("paddle-res-type"), &[]),
                child("Service", "services", None, &[]),
                child("ConfigMap", "configmaps", Some("paddle-res-name"), &["/data"]),
                pod_group,
            ],
            config_schema: json_text(&spec::config_schema()),
            event_source: "paddlejob-controller".into(),
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
        Ok(Bindings { bodies: body.into_iter().map(|body| (rendezvous::KEY.to_owned(), body)).collect() })
    }

    fn judge(job: &Job, seen: &Observation, _: &Outlook) -> Result<Verdict, Refusal> {
        Ok(judge::judge(job, seen))
    }
}

/// Beyond what its user says, a pod may be on its node's network with a port of its own, and waits for its peers in an
/// image of ours. The scheduler is a setting.
fn grants() -> serde_json::Value {
    serde_json::json!({
        "deletes": ["Service", "PodGroup.scheduling.volcano.sh"],
        "hostNetwork": true,
        "hostPorts": true,
        "images": [spec::INIT_IMAGE],
    })
}

troupe_plugin::export!(Paddle);
