//! What is shown of one job: why it waits or has failed, its pods, its course, its plugin, and how to go on.

use super::{
    board::{FRESH, Group},
    outline::{Outlines, grid, letter},
};
use decide::{
    Digest, blocker, own_conditions,
    plan::{JobKind, Outcome, Plan},
    snapshot::{ContainerState, Pod},
    summary,
    waiting::Blocker,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use tokio::{sync::Mutex, time::Instant};
use troupe::{
    control::reconcile::Context, job_key::JobKey, measure::jobs::Milestones, observe::stores::Sight,
    plugin_resource::CandidateState,
};

/// At most this many pods and other objects are listed, those with trouble first.
const PODS: usize = 50;
const OBJECTS: usize = 50;

/// At most this many jobs are kept as they were shown last.
const MOST: usize = 64;

/// The jobs that were shown last, as JSON. One is made at a time, and those who look at the same one wait for it together.
#[derive(Default)]
pub(super) struct Details {
    shown: Mutex<BTreeMap<JobKey, (Instant, Arc<str>)>>,
    outlines: Outlines,
}

impl Details {
    /// Returns a job as JSON, at most [`FRESH`] old, however many look at it. `None` if there is no such job.
    pub(super) async fn of(&self, context: &Arc<Context>, key: &JobKey) -> Option<Arc<str>> {
        let mut kept = self.shown.lock().await;
        if let Some((at, shown)) = kept.get(key)
            && at.elapsed() < FRESH
        {
            return Some(Arc::clone(shown));
        }
        let sight = context.stores().sight(key)?;
        let plan = self.outlines.of(context, key, &sight).await;
        let (here, of_job) = (Arc::clone(context), key.clone());
        let write = move || Some(detail(&here, &of_job, &sight, plan.as_deref())?.to_string().into());
        let shown: Arc<str> = context.plugins().run_beside(write).await?;
        kept.retain(|_, (at, _)| at.elapsed() < FRESH);
        if kept.len() < MOST {
            kept.insert(key.clone(), (Instant::now(), Arc::clone(&shown)));
        }
        Some(shown)
    }
}

fn detail(context: &Context, key: &JobKey, sight: &Sight, plan: Option<&Plan>) -> Option<Value> {
    let layout = context.stores().layout();
    let digest = sight.ledger.digest.digest();
    let kind = layout.kind_by(&key.kind, digest)?;
    let job = &sight.job;
    let phase = context.jobs().phase(key, &job.uid);
    let group = Group::of(phase, job.deleting, &job.status);
    let children = sight.children.iter().take(OBJECTS);
    let objects: Vec<_> = children
        .map(|child| json!({ "kind": child.kind, "name": child.name, "terminating": child.terminating }))
        .collect();
    let conditions: Vec<_> = own_conditions::all(&job.status).map(condition).collect();
    let events: Vec<_> = context.events().of(&job.uid).into_iter().rev().collect();
    let events: Vec<_> = events
        .into_iter()
        .map(|it| json!({ "at": it.at, "warning": it.warning, "reason": it.reason, "message": it.message }))
        .collect();
    Some(json!({
        "kind": kind.kind,
        "resource": kind.crd(),
        "namespace": job.namespace,
        "name": job.name,
        "created": job.created,
        "group": group,
        "state": summary::state(&job.status),
        "why": summary::why(&job.status),
        "plugin": plugin(context, key, digest),
        "timeline": timeline(sight, plan, context.jobs().milestones(key, &job.uid)),
        "grid": grid(sight, plan),
        "pods": pods(sight),
        "podCount": sight.pods.len(),
        "objects": objects,
        "objectCount": sight.children.len(),
        "conditions": conditions,
        "events": events,
        "commands": commands(&kind, sight, group),
    }))
}

fn condition(condition: &Value) -> Value {
    let field = |name: &str| condition[name].as_str().unwrap_or_default();
    json!({
        "type": field("type"), "status": field("status"), "reason": field("reason"), "message": field("message"),
        "since": condition["lastTransitionTime"],
    })
}

/// Returns the plugin that plans the job, and the candidate that is tried beside it.
fn plugin(context: &Context, key: &JobKey, digest: Option<&Digest>) -> Value {
    let layout = context.stores().layout();
    let Some(framework) = layout.framework(&key.kind, digest) else { return Value::Null };
    let own = digest.and_then(|digest| layout.descriptor(digest));
    let active = layout.kinds().get(&key.kind).and_then(|served| served.route.active.clone());
    let trial = context.trials().read(&framework.name);
    let candidate = trial.map(|trial| {
        // Others' jobs are not this viewer's to see, nor are values: a template has those of variables. An example does not
        // name its job's kind.
        let of_job = format!("{}/{}: ", key.namespace, key.name);
        let examples = trial.live.examples.iter().filter(|_| framework.kinds.len() == 1);
        let fields = examples.filter_map(|example| example.strip_prefix(&of_job)?.split(": ").next());
        json!({
            "digest": trial.digest.short(),
            "version": layout.descriptor(&trial.digest).map(|it| it.version.clone()),
            "plans": digest == Some(&trial.digest),
            "canary": trial.state == CandidateState::Canary,
            "stopped": trial.stopped.is_some(),
            "passes": trial.live.passes,
            "different": trial.live.different,
            "dangerous": trial.live.dangerous,
            "failed": trial.live.failed,
            "examples": fields.collect::<Vec<_>>(),
        })
    });
    json!({
        "name": framework.name,
        // Of a digest that is not loaded any more, nothing but the digest is known.
        "version": own.or(digest.is_none().then_some(framework)).map(|it| it.version.clone()),
        "digest": digest.map(ToString::to_string),
        "active": digest.is_none() || digest == active.as_ref(),
        "candidate": candidate,
    })
}

/// Returns when the job took each step, as far as it is known.
fn timeline(sight: &Sight, plan: Option<&Plan>, seen: Milestones) -> Value {
    let pods = &sight.pods;
    let wanted = plan.map(|plan| plan.roles.iter().map(|role| role.replicas as usize).sum::<usize>());
    let has_all = wanted.is_some_and(|wanted| wanted > 0 && pods.len() >= wanted);
    let last_made = || pods.iter().map(|pod| pod.created).max();
    let since = |pod: &Arc<Pod>| {
        pod.containers.iter().filter(|it| !it.init).find_map(|container| match container.state {
            ContainerState::Running { since } => Some(since),
            _ => None,
        })
    };
    let last_started = || pods.iter().map(since).collect::<Option<Vec<_>>>()?.into_iter().max();
    // What this host saw is late if it started after the job; what the pods say, if some were replaced.
    let first = |seen: Option<Timestamp>, said: Option<Timestamp>| [seen, said].into_iter().flatten().min();
    let pods_made = first(seen.pods_made, has_all.then(last_made).flatten());
    let running = first(seen.running, has_all.then(last_started).flatten());
    let ended = sight.ledger.finished.as_ref();
    let outcome = ended.map(|ended| match ended.outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::Failed | Outcome::Open | Outcome::Succeeding | Outcome::Failing => "failed",
    });
    let ended = ended.map(|ended| ended.at);
    // A clock of the API server may be ahead of that of a node.
    let after = |at: Option<Timestamp>| at.map(|at| at.max(sight.job.created));
    json!({
        "submitted": sight.job.created,
        "made": after(pods_made),
        "running": after(running),
        "ended": after(ended),
        "outcome": outcome,
    })
}

/// Returns the first pods, those with trouble before the others.
fn pods(sight: &Sight) -> Vec<Value> {
    let rank = |pod: &Pod| match letter(pod) {
        'F' => 0,
        'B' => 1,
        'U' => 2,
        'P' | 'r' => 3,
        'T' => 4,
        'R' => 5,
        _ => 6,
    };
    let mut pods: Vec<_> = sight.pods.iter().map(|pod| (rank(pod), pod)).collect();
    pods.sort_by_key(|(rank, _)| *rank);
    let row = |pod: &Pod| {
        json!({
            "name": pod.name,
            "state": letter(pod).to_string(),
            "phase": summary::phase_of(pod),
            "restarts": pod.containers.iter().map(|it| it.restarts).sum::<u32>(),
            "node": pod.node,
            "why": summary::why_of(pod).or_else(|| how_it_failed(pod)),
        })
    };
    pods.into_iter().take(PODS).map(|(_, pod)| row(pod)).collect()
}

fn how_it_failed(pod: &Pod) -> Option<String> {
    let failed = pod.containers.iter().find_map(|container| match &container.state {
        ContainerState::Terminated { exit_code, reason, message, .. } if *exit_code != 0 => {
            let said = [reason, message].into_iter().filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>();
            let said = if said.is_empty() { String::new() } else { format!(": {}", said.join(": ")) };
            Some(format!("container {} ended with exit code {exit_code}{said}", container.name))
        }
        _ => None,
    });
    let of_pod = || (!pod.reason.is_empty()).then(|| format!("{}: {}", pod.reason, pod.message));
    failed.or_else(of_pod)
}

/// Returns what a person types next, each with what it shows. Names of objects have no character that a shell reads.
fn commands(kind: &JobKind, sight: &Sight, group: Group) -> Vec<Value> {
    let (namespace, name) = (&sight.job.namespace, &sight.job.name);
    let job = format!("{}/{name}", kind.kind.to_lowercase());
    let command = |what: &str, text: String| json!({ "what": what, "text": format!("kubectl {text} -n {namespace}") });
    let mut commands = vec![];
    // Everybody who may write a job's status may write any text there: only names of pods that exist are shown.
    let exists = |pod: &str, container: &str| {
        let has = |pod: &Pod| container.is_empty() || pod.containers.iter().any(|it| it.name == container);
        sight.pods.iter().any(|it| it.name == pod && has(it))
    };
    let failed = sight.ledger.first_failure.as_ref().filter(|first| exists(&first.pod, &first.container));
    let blocked = sight.pods.iter().filter_map(|pod| Some((pod, blocker::of(pod)?)));
    let blocked = blocked.min_by_key(|(_, by)| by.is_preparation());
    if let Some(first) = failed {
        let container = if first.container.is_empty() { String::new() } else { format!(" -c {}", first.container) };
        commands.push(command("The log of what failed first", format!("logs {}{container}", first.pod)));
    } else if let Some((pod, by)) = blocked.filter(|_| group != Group::Succeeded) {
        commands.push(match by {
            Blocker::CrashLoop { container, .. } => {
                let text = format!("logs {} -c {container} --previous", pod.name);
                command("The log of the container that ends again and again", text)
            }
            Blocker::Init { container, .. } => {
                command("The log of the container that prepares the pod", format!("logs {} -c {container}", pod.name))
            }
            _ => command("The pod that is in the way", format!("describe pod {}", pod.name)),
        });
    }
    if !sight.pods.is_empty() {
        commands.push(command("The logs of all pods", format!("troupe logs {job} --follow")));
        if let Some(pod) = sight.pods.first() {
            commands.push(command("The log of one pod", format!("logs {} --all-containers", pod.name)));
        }
    }
    commands.push(command("Why the job is where it is", format!("troupe explain {job}")));
    commands.push(command("The whole job, with its events", format!("describe {}/{name}", kind.crd())));
    commands
}
