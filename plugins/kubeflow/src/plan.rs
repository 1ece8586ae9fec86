//! The plan of a job: a role for each group of replicas, their Services, the gang and the HorizontalPodAutoscaler.

use crate::family::{Family, Group};
use crate::valid::{Valid, validate};
use crate::{TrainingJob, env, fate, gang, hpa, left_out, pods, rules, service, sizes, spec};
use troupe_plugin::types::{Clean, Event, JobPlan, Piece, Policy, Refusal, Role, Template, Ttl};
use troupe_plugin::{job_name, text, warn_of_gang};

/// Returns the plan, or a refusal with all errors of the job.
pub(crate) fn plan(job: &TrainingJob) -> Result<JobPlan, Refusal> {
    let family = Family::of(job)?;
    let valid = validate(&family, rules::errors(&family))?;
    let groups = family.groups();
    let variables = sizes::variables(&valid, &groups)?;
    let mut objects: Vec<_> = groups.iter().map(|group| service::of(&valid, group)).collect();
    objects.extend(hpa::of(&family));
    Ok(JobPlan {
        roles: groups.iter().zip(variables).map(|(group, its)| role(&valid, group, its)).collect::<Result<_, _>>()?,
        objects,
        secrets: vec![],
        series: vec![],
        gang: gang::gang(&valid, &groups),
        success_criteria: vec![],
        host_ports: 0,
        policy: policy(&valid),
        warnings: warnings(&valid),
    })
}

/// Returns the role of a group with these variables. A type that the job does not have now has 0 replicas, so that its
/// pods go.
fn role(valid: &Valid<'_>, group: &Group<'_>, variables: Vec<env::Variable>) -> Result<Role, Refusal> {
    let planned = group.replicas.map(|replicas| {
        let template = pods::template(valid, group, replicas, &variables)?;
        Ok((template, env::per_replica(valid.family.kind, variables)))
    });
    let (template, env) = planned.transpose()?.unwrap_or_else(|| (Template::Whole("{}".into()), vec![]));
    let index = env::piece(group, 0);
    Ok(Role {
        env,
        labels: vec![(pods::REPLICA_INDEX.into(), vec![index.clone()])],
        left_out: left_out::of_group(valid.family.job, group),
        failures: group.replicas.map_or_else(Vec::new, |replicas| fate::replaced(valid.family, replicas)),
        ..Role::new(group.role, group.count, name(group, index), template)
    })
}

/// Returns the name of a group's pods. That of a first replica has no index: another index is another group's.
fn name(group: &Group<'_>, index: Piece) -> Vec<Piece> {
    let index = if group.is_first() { text("0") } else { index };
    vec![job_name(), text(format!("-{}-", group.of.lower)), index]
}

fn policy(valid: &Valid<'_>) -> Policy {
    let policy = valid.family.job.spec.run_policy.as_ref();
    // A finished job that its user suspends is kept.
    let ttl = policy.filter(|policy| policy.suspend != Some(true)).and_then(|it| it.ttl_seconds_after_finished);
    Policy {
        clean_on_success: valid.clean_pods,
        clean_on_failure: valid.clean_pods,
        clean_on_suspend: Clean::All,
        ttl: ttl.and_then(|seconds| u32::try_from(seconds).ok()).map(Ttl::AfterFinished),
    }
}

/// Returns what the user wrote and does not get, and what the framework will not do with it.
fn warnings(valid: &Valid<'_>) -> Vec<Event> {
    let family = valid.family;
    let mut warnings = vec![];
    let mut warn =
        |reason: &str, message: String| warnings.push(Event { warning: true, reason: reason.into(), message });
    let set = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    let templates = || family.replicas.iter().filter_map(|replicas| Some(&valid.pods(replicas.of)?.template));
    if templates().any(|template| set(&template.restart_policy)) {
        let message = "Restart policy in pod template will be overwritten by restart policy in replica spec";
        warn("SetPodTemplateRestartPolicy", message.into());
    }
    let scheduler = gang::scheduler(family.job);
    let other = |name: &Option<String>| set(name) && name.as_deref() != scheduler;
    if scheduler.is_some() && templates().any(|template| other(&template.scheduler_name)) {
        let message = "Another scheduler is specified when gang-scheduling is enabled and it will not be overwritten";
        warn("SetPodTemplateSchedulerName", message.into());
    }
    if family.job.spec.elastic_policy.as_ref().is_some_and(|elastic| elastic.n_proc_per_node.is_some()) {
        let message = "spec.elasticPolicy.nProcPerNode is deprecated: use spec.nprocPerNode";
        warn("DeprecatedField", message.into());
    }
    for (reason, message) in rules::warnings(family) {
        warn(reason, message);
    }
    if family.total() == 0 {
        let field = family.kind.field;
        let message =
            ["spec.", field, ": the replicas are 0 in all: the job does not end before it has a pod"].concat();
        warn("NoPods", message);
    }
    let policy = family.job.spec.run_policy.as_ref().and_then(|policy| policy.scheduling_policy.as_ref());
    let least = policy.and_then(|policy| policy.min_available);
    warnings.extend(warn_of_gang(spec::MIN_AVAILABLE.path, least, family.total()));
    warnings
}
