//! The pod templates of the replicas.

use crate::env::{self, Variable};
use crate::family::{Group, Replicas};
use crate::valid::Valid;
use crate::{fate, gang, rules};
use serde_json::json;
use troupe_plugin::PodTemplate;
use troupe_plugin::types::{Refusal, Template};

pub(crate) const OPERATOR_NAME: &str = "training.kubeflow.org/operator-name";
pub(crate) const JOB_NAME: &str = "training.kubeflow.org/job-name";
pub(crate) const REPLICA_TYPE: &str = "training.kubeflow.org/replica-type";
pub(crate) const REPLICA_INDEX: &str = "training.kubeflow.org/replica-index";
/// The scheduler that knows tasks.
const VOLCANO: &str = "volcano";
const JOB_ROLE: &str = "training.kubeflow.org/job-role";

/// Returns the pod template of a group, without the values that depend on the index.
pub(crate) fn template(
    valid: &Valid<'_>,
    group: &Group<'_>,
    replicas: &Replicas<'_>,
    variables: &[Variable],
) -> Result<Template, Refusal> {
    let (family, kind) = (valid.family, valid.family.kind);
    let at = format!("/{}/{}/template", kind.field, replicas.key);
    let mut template = PodTemplate::from_user(replicas.template, &at)?;
    template.label(OPERATOR_NAME, kind.operator);
    template.label(JOB_NAME, family.job.name());
    template.label(REPLICA_TYPE, group.of.lower);
    if group.is_master(family) {
        template.label(JOB_ROLE, "master");
    }
    if let Some(pods) = valid.pods(group.of) {
        template.set("restartPolicy", fate::of_pods(family.job, pods.restart_policy));
        if !pods.has_port
            && let Some(mut container) = template.container(kind.container)
        {
            container.push("ports", json!({ "name": kind.port_name, "containerPort": kind.port }));
        }
        if gang::scheduler(family.job) == Some(VOLCANO) {
            // A group of one replica is the same task as the others of its type.
            template.annotation("volcano.sh/task-spec", group.of.lower);
        }
    }
    env::edit(kind, variables, &mut template);
    rules::add_init_container(family, group, &mut template);
    Ok(template.into_template())
}
