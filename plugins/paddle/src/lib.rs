//! PaddleJob (`batch.paddlepaddle.org/v1`): parameter servers, workers and heterogeneous workers that find each other
//! through environment and one ConfigMap.
//!
//! A drop-in for PaddlePaddle's paddle-operator v0.3.5. Supported: the roles ps, worker and heter, intranet PodIP and
//! Service, gloo, the elastic variables, the clean-pod policies. Where this differs on purpose, the code says so.
#![cfg_attr(
    all(feature = "crd", not(target_family = "wasm")),
    expect(clippy::duplicated_attributes, reason = "each printer column of kube's derive repeats the same keys")
)]

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
    Framework,
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
            }],
            children: vec![
                child("Pod", "pods", Some("paddle-res-type"), &[]),
                child("Service", "services", None, &[]),
                child("ConfigMap", "configmaps", Some("paddle-res-name"), &["/data"]),
                pod_group,
            ],
            config_schema: spec::config_schema().to_string(),
            event_source: "paddlejob-controller".into(),
        }
    }

    fn plan(job: &Job) -> Result<JobPlan, Refusal> {
        plan::plan(job)
    }

    fn bind(job: &Job, seen: &Observation, wanted: &[String]) -> Result<Bindings, Refusal> {
        let wants = wanted.iter().any(|key| key == rendezvous::KEY);
        let body = if wants { rendezvous::body(job, seen) } else { None };
        Ok(Bindings { bodies: body.into_iter().map(|body| (rendezvous::KEY.to_owned(), body.to_string())).collect() })
    }

    fn judge(job: &Job, seen: &Observation, _: &Outlook) -> Result<Verdict, Refusal> {
        Ok(judge::judge(job, seen))
    }
}

troupe_plugin::export!(Paddle);
