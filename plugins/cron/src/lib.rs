//! CronJob of `batch.tutorial.kubebuilder.io/v1`.

mod conditions;
#[cfg(test)]
mod fixtures;
mod judge;
mod kinds;
mod moment;
#[cfg(all(feature = "crd", not(target_family = "wasm")))]
pub mod original;
mod plan;
mod runs;
mod schedule;
mod slots;
mod spec;
mod times;
mod valid;

pub use spec::{AnyTemplate, Config, CronJobSpec, JobTemplate};

use serde_json::json;
use troupe_plugin::types::{
    Bindings, Descriptor, JobPlan, KindInfo, Observation, Outlook, Queueing, Refusal, Switches, Verdict,
};
use troupe_plugin::{Framework, Job};

/// A CronJob with its spec parsed.
pub(crate) type CronJob = Job<CronJobSpec, Config>;

/// The framework CronJob.
#[derive(Debug)]
pub struct Cron;

troupe_plugin::export!(Cron);

impl Framework for Cron {
    type Spec = CronJobSpec;
    type Config = Config;

    fn describe() -> Descriptor {
        Descriptor {
            name: "cron".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            kinds: vec![kind()],
            children: kinds::KINDS.iter().map(kinds::Kind::child).collect(),
            config_schema: spec::CONFIG_SCHEMA.into(),
            event_reasons: vec![],
            grants: json!({ "deletes": kinds::KINDS.map(|kind| kind.grant()) }).to_string(),
        }
    }

    fn plan(job: &CronJob) -> Result<JobPlan, Refusal> {
        plan::plan(job)
    }

    fn bind(job: &CronJob, seen: &Observation, _: &[String]) -> Result<Bindings, Refusal> {
        Ok(moment::Moment::of(job, seen)?.bindings(job.name()))
    }

    fn judge(job: &CronJob, seen: &Observation, _: &Outlook) -> Result<Verdict, Refusal> {
        judge::judge(job, seen)
    }
}

/// No switch suspends the host: the runs of a suspended CronJob go on.
fn kind() -> KindInfo {
    KindInfo {
        group: "batch.tutorial.kubebuilder.io".into(),
        version: "v1".into(),
        kind: "CronJob".into(),
        plural: "cronjobs".into(),
        switches: Switches { suspend: None, managed_by: None },
        own_manager: None,
        retired_finalizers: vec![],
        roles: vec![],
        event_source: "cronjob-controller".into(),
        queueing: Queueing::Elsewhere,
    }
}
