//! CronJob `batch.tutorial.kubebuilder.io/v1` of kubebuilder's tutorial: runs a job at the times of a schedule.
//!
//! Each run is an object of the plan's series `runs`: a `batch/v1` Job, or a job of any kind that Troupe serves. `bind`
//! makes the run of the newest slot that was missed and removes old runs; `judge` reports what there is, and when to look
//! again. Both begin with the same look at the instant (`moment.rs`).
//!
//! # What is supported
//!
//! All fields of the original, and its names, annotation, conditions and reasons:
//!
//! - `schedule`: what `github.com/robfig/cron/v3` reads, the library of the original and of Kubernetes: five fields with
//!   names, ranges and steps, `@hourly` and its like, `@every 1h30m`, and a zone in front (`TZ=Europe/Berlin 0 5 * * *`);
//! - `startingDeadlineSeconds`, `concurrencyPolicy`, `suspend`, `successfulJobsHistoryLimit`, `failedJobsHistoryLimit`;
//! - `jobTemplate`.
//!
//! And two fields of Troupe:
//!
//! - `timeZone`: the zone of the schedule, as `batch/v1` has it;
//! - `template` in place of `jobTemplate`: `apiVersion`, `kind`, `metadata` and `spec` of a job of one of these kinds:
//!   `batch/v1` Job, MPIJob of `kubeflow.org/v2beta1`, PaddleJob of `batch.paddlepaddle.org/v1`, RhinoJob of
//!   `openrhino.org/v1alpha2`, PyTorchJob, TFJob, XGBoostJob, JAXJob and PaddleJob of `kubeflow.org/v1`, IndexedJob of
//!   `batch.troupe.dev/v1alpha1`, and the kinds of the setting `kinds`.
//!
//! # What differs from the original, and why
//!
//! - A slot has one run, also after the run is gone: the published `lastScheduleTime` counts beside the runs, and a run is
//!   removed only once its slot is published there. The original runs a slot again with a history limit of 0.
//! - What stands in annotations and in the status and is ahead of the clock stops no schedule.
//! - Where clocks are set at midnight, or by half an hour, no slot is lost or moved. All other slots are the original's: a
//!   local time that a switch leaves out is none, and one that it repeats is two.
//! - `@every` with a duration of 0 or less is refused; the original makes a run each second of it. A schedule that no year
//!   has, `@every` below a second and a starting deadline of 0 are told by a warning event and the condition `Warned`.
//! - `@every` counts on from the last run also after a missed starting deadline.
//! - After more than 100 missed times the newest has a run, and an event says so. The original makes no run then until
//!   `startingDeadlineSeconds` leaves out the old ones, also after a long suspension.
//! - A schedule that is edited has runs for times after the edit alone. The original runs at once if the new schedule has a
//!   time between the last run and the edit. The status says since when the schedule is what it is (`observedSchedule`).
//! - A run that Troupe rejects is not active: it holds up no other, counts as failed in the history, and Available and Degraded
//!   say which run it is and why (`JobsRefused`).
//! - Without a zone the schedule is in UTC, not in the local time of the operator's container.
//! - Degraded is False again once a run succeeds after one that failed. In the original it stays True.
//! - Progressing is reported in every state. `InvalideSchedule` is not used: a wrong schedule is reported by the condition
//!   `Rejected`. `ReconciliationError`, `JobCreationFailed` and
//!   `JobCreated` are not used: what the API server refuses is reported by the host.
//! - `active` has the newest ten runs. With more, the API server refuses the original's status.
//! - Runs carry the label `batch.tutorial.kubebuilder.io/cronjob` with the CronJob's name.
//! - Each created object has the annotation `troupe.dev/plugin-digest`: the digest of the component that planned it.
//! - A run is reported by the event `SuccessfulCreate`, and problems by `JobsFailed`, `JobsRefused` and `MissedSchedule`. The original emits
//!   no events.
//! - The defaults are those of the CRD, and the plugin checks what the webhooks check.
//!
//! As in the original: a time that `Forbid` held back is made up for once the active run ends; `startingDeadlineSeconds: 0`
//! leaves no time to start.
//!
//! Runs of the kind that the template had before it was changed stay, and count as active, until somebody deletes them.
//!
//! # Settings
//!
//! `kinds`: kinds of job that `template` may have beside those above, such as one that a plugin of your own serves: each with
//! `apiVersion`, `kind` and `plural`. A run of such a kind has ended once the host says so of a job that it serves, else once
//! its status has a true condition `Complete`, `Completed`, `Succeeded` or `Failed`, or one of these words in `phase` or
//! `jobStatus`. `troupe rbac --cluster` prints the rights that the host needs then.
//!
//! ```yaml
//! apiVersion: troupe.dev/v1alpha1
//! kind: Plugin
//! metadata:
//!   name: cron
//! spec:
//!   source:
//!     builtIn: {}
//!   config:
//!     kinds:
//!       - {apiVersion: example.org/v1, kind: EchoJob, plural: echojobs}
//! ```
//!
//! Of the original's flags `--metrics-bind-address` and `--health-probe-bind-address` are
//! `troupe operator --admin-address`, which serves both, and `--leader-elect` is the same, with a Lease of its own.
//!
//! # Migration
//!
//! `troupe preflight` first: it says what stands in the way, and which CronJobs would be taken over.
//!
//! 1. Scale the original operator to zero, and delete its webhook configurations. Running Jobs go on without it.
//! 2. Apply our CRD: `troupe crds | kubectl apply -f -`.
//! 3. Install Troupe. It takes over the Jobs that a CronJob owns, with their slots.

mod conditions;
#[cfg(all(feature = "crd", not(target_family = "wasm")))]
pub mod crd;
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

pub use kinds::Kind;
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
            gangs: false,
            config_schema: spec::config_schema().to_string(),
            reads: vec![],
            event_reasons: vec![],
            grants: json!({ "deletes": kinds::KINDS.iter().map(kinds::Kind::grant).collect::<Vec<_>>() }).to_string(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    // C03: jobs of the original carry no label
    #[test]
    fn jobs_are_watched_without_a_label_and_others_where_there_are_any() {
        let children = Cron::describe().children;
        let facts =
            |child: &troupe_plugin::types::ChildKind| (child.selector.clone(), child.optional, child.keep.len());
        assert_eq!(facts(&children[0]), (None, false, 3));
        let label = Some("batch.tutorial.kubebuilder.io/cronjob".to_owned());
        assert!(children[1..].iter().all(|child| facts(child) == (label.clone(), true, 3)));
        assert_eq!(children.iter().filter(|child| child.kind == "PaddleJob").count(), 2);
    }

    // C11
    #[test]
    fn every_kind_may_be_removed() {
        let grants: Value = serde_json::from_str(&Cron::describe().grants).unwrap();
        let deletes = grants["deletes"].as_array().unwrap();
        assert_eq!(deletes.len(), 10);
        for kind in ["Job.batch", "PaddleJob.batch.paddlepaddle.org", "PaddleJob.kubeflow.org", "MPIJob.kubeflow.org"] {
            assert!(deletes.contains(&json!(kind)), "{kind}");
        }
    }

    // C09: the host would remove the pods of what is suspended
    #[test]
    fn no_switch_suspends_the_runs() {
        assert_eq!(Cron::describe().kinds[0].switches.suspend, None);
    }
}
