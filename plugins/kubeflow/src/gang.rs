//! The PodGroup by which a gang scheduler starts a job's pods together.

use crate::TrainingJob;
use crate::family::{Family, Group};
use crate::spec::given;
use crate::valid::{Pods, Valid};
use serde_json::{Map, Value, json};
use troupe_plugin::gang::{KEY, PodGroup};
use troupe_plugin::quantity::{self, Missing, Resources};
use troupe_plugin::types::{ChildKind, Gate, Moment, Object};
use troupe_plugin::{PodTemplate, UserTemplate, field_is};

const PHASE: &str = "/status/phase";

/// What Volcano says of a PodGroup, which the host reports while a job waits for the phase.
const CONDITIONS: &str = "/status/conditions";

/// The fields of a PodGroup that the host keeps.
const KEEP: [&str; 7] = [
    PHASE,
    CONDITIONS,
    "/spec/minMember",
    "/spec/minResources",
    "/spec/queue",
    "/spec/priorityClassName",
    "/spec/scheduleTimeoutSeconds",
];

/// Returns the kinds of PodGroup.
pub(crate) fn children() -> impl Iterator<Item = ChildKind> {
    PodGroup::children(&KEEP)
}

/// Returns the name of the gang scheduler, if there is one.
pub(crate) fn scheduler(job: &TrainingJob) -> Option<&str> {
    given(Some(&job.config.gang_scheduler_name))
}

fn group(job: &TrainingJob) -> Option<PodGroup> {
    PodGroup::of(&job.config.gang_scheduler_name)
}

/// Adds the reference to the PodGroup, and the scheduler's name where the user has none, if there is a gang scheduler.
pub(crate) fn mark(job: &TrainingJob, of: &Group<'_>, pods: &Pods, template: &mut PodTemplate<'_>) {
    let (Some(group), Some(scheduler)) = (group(job), scheduler(job)) else { return };
    group.mark(template, job.name());
    if group == PodGroup::Volcano {
        template.annotation("volcano.sh/task-spec", of.of.lower);
    }
    if given(pods.template.scheduler_name.as_ref()).is_none() {
        template.set("schedulerName", scheduler);
    }
}

/// Returns the gate of the pods: Volcano has admitted the PodGroup. Other schedulers see the pods first.
pub(crate) fn admitted(job: &TrainingJob) -> Option<Gate> {
    let admitted = || field_is(KEY, PHASE, &["Inqueue", "Running", "Unknown", "Completed"]);
    (group(job) == Some(PodGroup::Volcano)).then(admitted)
}

/// Returns the job's PodGroup, if there is a gang scheduler.
pub(crate) fn pod_group(valid: &Valid<'_>) -> Option<Object> {
    let family = valid.family;
    let group = group(family.job)?;
    Some(group.object(&spec(family, group), vec![Moment::Suspended, Moment::Finished]))
}

fn spec(family: &Family<'_>, group: PodGroup) -> Value {
    let policy = family.job.spec.run_policy.as_ref().and_then(|policy| policy.scheduling_policy.clone());
    let policy = policy.unwrap_or_default();
    let members = policy.min_available.unwrap_or_else(|| family.total());
    let least = policy.min_resources.clone().unwrap_or_else(|| resources(family, members));
    let mut spec = json!({ "minMember": members, "minResources": least });
    match group {
        PodGroup::Volcano => {
            for (field, text) in [("queue", &policy.queue), ("priorityClassName", &policy.priority_class)] {
                if let Some(text) = given(text.as_ref()) {
                    spec[field] = json!(text);
                }
            }
        }
        PodGroup::SchedulerPlugins => {
            if let Some(seconds) = policy.schedule_timeout_seconds {
                spec["scheduleTimeoutSeconds"] = json!(seconds);
            }
        }
    }
    spec
}

/// Returns the sum of the requests of this number of members, those that lead first. The original begins with the
/// highest PriorityClass, whose value a plugin does not see.
fn resources(family: &Family<'_>, members: u32) -> Value {
    let (mut sum, mut left) = (Resources::new(), members);
    for replicas in &family.replicas {
        let count = replicas.count.min(left);
        left -= count;
        let template: Value = replicas.template.and_then(UserTemplate::read).unwrap_or_default();
        quantity::add(&mut sum, &quantity::requests(&template, Missing::Names), count);
    }
    let mut resources = Map::new();
    for (name, amount) in sum {
        resources.insert(name, amount.to_string().into());
    }
    resources.into()
}
