//! How a gang scheduler starts a job's pods together.

use crate::TrainingJob;
use crate::family::{Family, Group};
use crate::spec::given;
use crate::valid::Valid;
use troupe_plugin::json_text;
use troupe_plugin::types::Gang;

/// Returns the name of the gang scheduler, if there is one.
pub(crate) fn scheduler(job: &TrainingJob) -> Option<&str> {
    given(Some(&job.config.gang_scheduler_name))
}

/// Returns the job's gang, if there is a gang scheduler. Where it is smaller than the job, the replicas that lead count first:
/// the original begins with the highest PriorityClass, whose value a plugin does not see.
pub(crate) fn gang(valid: &Valid<'_>, groups: &[Group<'_>]) -> Option<Gang> {
    let Family { job, .. } = valid.family;
    let policy = job.spec.run_policy.as_ref().and_then(|policy| policy.scheduling_policy.clone()).unwrap_or_default();
    Some(Gang {
        min_member: policy.min_available.and_then(|least| u32::try_from(least).ok()),
        min_resources: policy.min_resources.as_ref().map(json_text),
        queue: given(policy.queue.as_ref()).map(str::to_owned),
        priority_class: given(policy.priority_class.as_ref()).map(str::to_owned),
        schedule_timeout: policy.schedule_timeout_seconds.and_then(|seconds| u32::try_from(seconds).ok()),
        ..Gang::new(scheduler(job)?, groups.iter().map(|group| group.role))?
    })
}
