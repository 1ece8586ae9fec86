//! What should exist for an IndexedJob: one role, whose replicas are the indexes.

use crate::valid::{Mode, Valid, validate};
use crate::{IndexedJob, rules, success};
use troupe_plugin::types::{Clean, Deletion, JobPlan, Policy, Refusal, Role, Success, Ttl};
use troupe_plugin::{PodTemplate, index, job_name, pod_name, text};

/// The only role. Kueue calls the pods of a Job so, too.
pub(crate) const ROLE: &str = "main";

/// The label by which the host finds the pods, with the job's name.
pub(crate) const JOB_NAME: &str = "batch.troupe.dev/job-name";

/// The label and annotation with the pod's index. Those of `batch.kubernetes.io` are for the pods of Jobs alone.
const COMPLETION_INDEX: &str = "batch.troupe.dev/job-completion-index";

/// The variable with the pod's index.
const COMPLETION_INDEX_ENV: &str = "JOB_COMPLETION_INDEX";

/// Returns the plan, or what is wrong with the job.
pub(crate) fn plan(job: &IndexedJob) -> Result<JobPlan, Refusal> {
    let valid = validate(job)?;
    Ok(JobPlan {
        roles: vec![role(job, &valid)?],
        objects: vec![],
        secrets: vec![],
        series: vec![],
        gang: None,
        success_criteria: success::criteria(&valid),
        host_ports: 0,
        policy: Policy {
            // What has not ended is removed before the end.
            clean_on_success: Clean::Keep,
            clean_on_failure: Clean::Keep,
            clean_on_suspend: Clean::Active,
            ttl: valid.ttl.map(Ttl::AfterFinished),
        },
        warnings: vec![],
    })
}

fn role(job: &IndexedJob, valid: &Valid<'_>) -> Result<Role, Refusal> {
    let is_indexed = matches!(valid.mode, Mode::Indexed { .. });
    let mut template = PodTemplate::from_user(job.spec.template.as_ref(), "/template")?;
    template.label(JOB_NAME, job.name());
    if is_indexed {
        template.annotation(COMPLETION_INDEX, "");
        let path = format!("metadata.labels['{COMPLETION_INDEX}']");
        let indexed = |container: &mut troupe_plugin::Container<'_, '_>| {
            if !container.has_env(COMPLETION_INDEX_ENV) {
                container.env_from_field(COMPLETION_INDEX_ENV, &path);
            }
        };
        template.each_container(indexed);
        template.each_init_container(indexed);
    }
    let annotation = ["/metadata/annotations/", &COMPLETION_INDEX.replace('/', "~1")].concat();
    let name = vec![job_name(), text("-"), index()];
    Ok(Role {
        hostname: is_indexed.then(|| vec![pod_name()]),
        labels: if is_indexed { vec![(COMPLETION_INDEX.into(), vec![index()])] } else { vec![] },
        fill: if is_indexed { vec![(annotation, vec![index()])] } else { vec![] },
        success: if valid.mode == Mode::WorkQueue { Success::Shared } else { Success::Final },
        failures: rules::failures(valid),
        deletion: if valid.only_failed { Deletion::WhenFailed } else { Deletion::AtOnce },
        at_once: (valid.mode != Mode::WorkQueue).then_some(valid.parallelism),
        failures_per_replica: valid.backoff_limit_per_index,
        ..Role::new(ROLE, valid.replicas(), name, template.into_template())
    })
}
