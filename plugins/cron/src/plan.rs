//! What should exist for a CronJob: the series of its runs.

use crate::CronJob;
use crate::schedule::{self, SECOND, Text};
use crate::valid::{Valid, validate};
use troupe_plugin::types::{Clean, Event, JobPlan, Policy, Refusal, Series};

/// The key of the only series.
pub(crate) const RUNS: &str = "runs";

/// The label that every run of ours carries, with the CronJob's name.
pub(crate) const LABEL: &str = "batch.tutorial.kubebuilder.io/cronjob";

/// Returns the plan, or what is wrong with the CronJob.
pub(crate) fn plan(job: &CronJob) -> Result<JobPlan, Refusal> {
    let valid = validate(job)?;
    let template = &valid.template;
    let runs = Series {
        key: RUNS.into(),
        api_version: template.kind.api_version.to_string(),
        kind: template.kind.kind.to_string(),
        template: template.pointer.into(),
        labels: vec![(LABEL.into(), job.name().into())],
    };
    Ok(JobPlan {
        roles: vec![],
        objects: vec![],
        secrets: vec![],
        series: vec![runs],
        gang: None,
        success_criteria: vec![],
        host_ports: 0,
        policy: Policy {
            clean_on_success: Clean::Keep,
            clean_on_failure: Clean::Keep,
            clean_on_suspend: Clean::Keep,
            ttl: None,
        },
        warnings: warnings(job, &valid),
    })
}

/// Returns why no run will come. Better: the original says nothing.
fn warnings(job: &CronJob, valid: &Valid) -> Vec<Event> {
    let warning = |reason: &str, message: String| Event { warning: true, reason: reason.into(), message };
    let schedule = job.spec.schedule.as_deref().unwrap_or_default();
    let never = valid.schedule.never_comes().then(|| {
        warning("NeverRuns", format!("spec.schedule: no year has a time {schedule:?}, so that nothing is ever run"))
    });
    let every = schedule::every(Text::of(schedule).rest).filter(|duration| *duration < SECOND);
    let rounded = every.map(|_| {
        warning("RoundedUp", format!("spec.schedule: {schedule:?} counts as @every 1s, which is a run each second"))
    });
    let too_short = (valid.deadline == Some(0)).then(|| {
        let message = "spec.startingDeadlineSeconds: with 0 a run is late at its very time, so that most are left out";
        warning("DeadlineTooShort", message.into())
    });
    never.into_iter().chain(rounded).chain(too_short).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cron_job, hourly, paddle};

    // C03
    #[test]
    fn the_runs_are_a_series_of_the_templates_kind() {
        let plan = plan(&cron_job(&hourly())).unwrap();
        let series = &plan.series[0];
        assert_eq!((&*series.api_version, &*series.kind, &*series.template), ("batch/v1", "Job", "/jobTemplate"));
        assert_eq!(series.labels, [(LABEL.to_owned(), "tick".to_owned())]);
        assert_eq!((plan.series.len(), plan.roles.len()), (1, 0));
    }

    // C18
    #[test]
    fn a_schedule_that_does_not_mean_what_it_says_is_warned_of() {
        let warned = |field: &str, value: serde_json::Value| {
            let mut spec = hourly();
            spec[field] = value;
            let warnings = plan(&cron_job(&spec)).unwrap().warnings;
            warnings.into_iter().map(|event| event.reason).collect::<Vec<_>>()
        };
        for never in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "CRON_TZ=Europe/Berlin 0 0 31 2 *"] {
            assert_eq!(warned("schedule", never.into()), ["NeverRuns"], "{never}");
        }
        assert_eq!(warned("schedule", "@every 500ms".into()), ["RoundedUp"]);
        assert_eq!(warned("startingDeadlineSeconds", 0.into()), ["DeadlineTooShort"]);
        for sometimes in ["0 0 29 2 *", "0 0 30 2 1", "@every 1s", "30 2 29 2 *"] {
            assert!(warned("schedule", sometimes.into()).is_empty(), "{sometimes}");
        }
    }

    // C03: two kinds are called PaddleJob
    #[test]
    fn a_kind_is_distinguished_from_another_of_its_name() {
        for api_version in ["batch.paddlepaddle.org/v1", "kubeflow.org/v1"] {
            let series = plan(&cron_job(&paddle(api_version))).unwrap().series.remove(0);
            assert_eq!(
                (&*series.api_version, &*series.kind, &*series.template),
                (api_version, "PaddleJob", "/template")
            );
        }
    }
}
