//! Fixtures for a plugin's native tests: a job from JSON, and pods with one method per deviation.

use crate::types::{
    Backing, ChildView, ContainerRow, ContainerState, Criterion, Edit, Ended, JobPlan, JobView, Observation, Outlook,
    PodPhase, PodRow, Replacement, Success, Template,
};
use crate::{ChildExt, Indexes};
use serde_json::{Value, json};

/// Returns a job named `name` in namespace `ns`, with uid `uid-of-NAME` and an empty config.
#[must_use]
pub fn job(kind: &str, name: &str, spec: &Value) -> JobView {
    JobView {
        kind: kind.into(),
        namespace: "ns".into(),
        name: name.into(),
        uid: format!("uid-of-{name}"),
        generation: 1,
        created: 1_767_225_600_000,
        labels: vec![],
        annotations: vec![],
        spec: spec.to_string(),
        config: "{}".into(),
        host_ports: None,
        contents: vec![],
    }
}

/// Returns an observation of these pods at 2026-01-01T00:00:00Z, without children and without a previous status.
#[must_use]
pub fn seen(pods: Vec<PodRow>) -> Observation {
    Observation { now: 1_767_225_600_000, pods, children: vec![], roles: vec![], previous_status: "{}".into() }
}

/// Returns an outlook of a job that is not suspended and waits for nothing.
#[must_use]
pub fn calm() -> Outlook {
    Outlook { suspended: false, waiting: None, criteria_met: None }
}

/// Returns the outlook of a job that is not suspended and waits for nothing, with the success criteria of its plan that are
/// met: by pods that have succeeded and are not being deleted, by what is remembered of the roles, and by Jobs that are
/// Complete.
#[must_use]
pub fn outlook(plan: &JobPlan, seen: &Observation) -> Outlook {
    let holds = |criterion: &Criterion| {
        let Some(role) = plan.roles.iter().find(|role| role.name == criterion.role) else { return false };
        if let Backing::Job(_) = role.backing {
            return seen.children.iter().any(|child| child.key.as_ref() == Some(&role.name) && is_complete(child));
        }
        let left_out = Indexes::of(role.left_out.clone());
        let is_wanted =
            |index: u32| !left_out.contains(index) && index.saturating_sub(left_out.count_below(index)) < role.replicas;
        let named = Indexes::of(criterion.indices.clone());
        let counts = |index: &u32| (criterion.indices.is_empty() || named.contains(*index)) && is_wanted(*index);
        let facts = seen.roles.iter().filter(|facts| facts.role == role.name && role.success != Success::Momentary);
        let remembered = facts.flat_map(|facts| &facts.succeeded).flat_map(|(first, last)| *first..=*last);
        let of_role = seen.pods.iter().filter(|pod| pod.role == role.name);
        let ended = of_role.filter(|pod| pod.phase == PodPhase::Succeeded && !pod.terminating);
        let have = remembered.chain(ended.filter_map(|pod| pod.index)).filter(counts).count();
        let all = if criterion.indices.is_empty() { role.replicas } else { named.count() };
        have >= criterion.at_least.unwrap_or(all).max(1) as usize
    };
    let met = plan.success_criteria.iter().position(|all| !all.is_empty() && all.iter().all(holds));
    Outlook { criteria_met: met.and_then(|place| u32::try_from(place).ok()), ..calm() }
}

/// Returns whether the Job is Complete.
fn is_complete(job: &ChildView) -> bool {
    let status: Value = job.field("/status").unwrap_or_default();
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Complete" && condition["status"] == "True")
}

/// Returns a pending pod of a role, without an IP address and with uid `uid-of-NAME`.
#[must_use]
pub fn pod(role: &str, index: u32, name: &str) -> PodRow {
    PodRow {
        conditions: vec![],
        fields: vec![],
        role: role.into(),
        index: Some(index),
        name: name.into(),
        uid: format!("uid-of-{name}"),
        phase: PodPhase::Pending,
        reason: String::new(),
        message: String::new(),
        ready: false,
        terminating: false,
        ips: vec![],
        node: String::new(),
        created: 1_767_225_600_000,
        containers: vec![],
        replacement: Replacement::None,
    }
}

/// Returns a child with this key in the plan and these kept fields: of `batch/v1` if it is a Job, else of `v1`.
#[must_use]
pub fn child(key: &str, kind: &str, name: &str, fields: &[(&str, Value)]) -> ChildView {
    ChildView {
        key: Some(key.into()),
        api_version: if kind == "Job" { "batch/v1" } else { "v1" }.into(),
        kind: kind.into(),
        name: name.into(),
        uid: format!("uid-of-{name}"),
        terminating: false,
        pod: None,
        fields: fields.iter().map(|(at, value)| ((*at).into(), value.to_string())).collect(),
    }
}

/// Returns a role's template after the edits, as the host applies them to a job with this spec.
///
/// # Panics
/// If the spec has no value at the template's pointer, or if an edit is not valid JSON or does not fit the template.
#[must_use]
pub fn template(planned: &Template, spec: &Value) -> Value {
    let parsed = |json: &str| -> Value { serde_json::from_str(json).expect("JSON") };
    let (at, edits) = match planned {
        Template::Whole(json) => return parsed(json),
        Template::Edited(edited) => edited,
    };
    let mut template = spec.pointer(at).expect("the spec has the template").clone();
    for edit in edits {
        match edit {
            Edit::Set((at, value)) => *place(&mut template, at) = parsed(value),
            Edit::Append((at, items)) => {
                let list = place(&mut template, at);
                let (mut all, Value::Array(items)) = (list.as_array().cloned().unwrap_or_default(), parsed(items))
                else {
                    panic!("items are a list");
                };
                all.extend(items);
                *list = all.into();
            }
        }
    }
    template
}

/// Returns the value at the pointer. Creates objects where the path is absent or null. The host has its own, which says
/// whose error it is where that is impossible; the SDK uses nothing of the host.
fn place<'a>(json: &'a mut Value, pointer: &str) -> &'a mut Value {
    pointer.split('/').skip(1).fold(json, |at, step| {
        let step = step.replace("~1", "/").replace("~0", "~");
        match at {
            Value::Array(items) => &mut items[step.parse::<usize>().expect("an index")],
            Value::Object(fields) => fields.entry(step).or_insert(Value::Null),
            nothing @ Value::Null => {
                *nothing = json!({});
                &mut nothing[step.as_str()]
            }
            other => panic!("{other} is no object: the host refuses the job"),
        }
    })
}

/// Deviations of a pod from [`pod`].
pub trait PodFixture {
    /// Sets the pod's IP address.
    #[must_use]
    fn with_ip(self, ip: &str) -> Self;
    /// Sets the init container of this name to running.
    #[must_use]
    fn initialising(self, container: &str) -> Self;
    /// Sets the phase to Running, with a ready container.
    #[must_use]
    fn running(self) -> Self;
    /// Sets the phase to Running, with a container that is not ready.
    #[must_use]
    fn running_unready(self) -> Self;
    /// Sets the phase to Succeeded.
    #[must_use]
    fn succeeded(self) -> Self;
    /// Sets the phase to Failed, with a container that ended with this exit code.
    #[must_use]
    fn failed(self, exit_code: i32) -> Self;
    /// Marks the pod as being deleted.
    #[must_use]
    fn going(self) -> Self;
}

impl PodFixture for PodRow {
    fn with_ip(mut self, ip: &str) -> Self {
        self.ips = vec![ip.into()];
        self
    }

    fn initialising(mut self, container: &str) -> Self {
        self.containers = vec![row(container, true, false, ContainerState::Running(self.created))];
        self
    }

    fn running(mut self) -> Self {
        self.phase = PodPhase::Running;
        self.ready = true;
        self.containers = vec![row("main", false, true, ContainerState::Running(self.created))];
        self
    }

    fn running_unready(self) -> Self {
        let mut pod = self.running();
        pod.ready = false;
        for container in &mut pod.containers {
            container.ready = false;
        }
        pod
    }

    fn succeeded(mut self) -> Self {
        self.phase = PodPhase::Succeeded;
        self.ready = false;
        self.containers = vec![row("main", false, false, ended(0, self.created))];
        self
    }

    fn failed(mut self, exit_code: i32) -> Self {
        self.phase = PodPhase::Failed;
        self.ready = false;
        self.containers = vec![row("main", false, false, ended(exit_code, self.created))];
        self
    }

    fn going(mut self) -> Self {
        self.terminating = true;
        self
    }
}

fn row(name: &str, init: bool, ready: bool, state: ContainerState) -> ContainerRow {
    ContainerRow { name: name.into(), init, ready, restarts: 0, state }
}

fn ended(exit_code: i32, at: u64) -> ContainerState {
    let reason = if exit_code == 0 { "Completed" } else { "Error" };
    ContainerState::Terminated(Ended { exit_code, reason: reason.into(), message: String::new(), at })
}
