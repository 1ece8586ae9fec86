//! What should exist for a CronJob: the series of its runs.

use crate::CronJob;
use crate::valid::validate;
use troupe_plugin::types::{Clean, JobPlan, Policy, Refusal, Series};

/// The key of the only series.
pub(crate) const RUNS: &str = "runs";

/// The label that every run of ours carries, with the CronJob's name.
pub(crate) const LABEL: &str = "batch.tutorial.kubebuilder.io/cronjob";

/// Returns the plan, or what is wrong with the CronJob.
pub(crate) fn plan(job: &CronJob) -> Result<JobPlan, Refusal> {
    let template = validate(job)?.template;
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
        warnings: vec![],
    })
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
