//! Gangs: pods that a scheduler starts together or not at all. Each scheduler has a PodGroup of its own, and its own way for
//! a pod to refer to one; here is all that the host knows about them.
//!
//! Sources: Volcano's `scheduling.volcano.sh/v1beta1`; `scheduling.x-k8s.io/v1alpha1` of kubernetes-sigs/scheduler-plugins;
//! KEP-4671 for `scheduling.k8s.io`, behind the feature gate `GenericWorkload`: `v1alpha2` in Kubernetes 1.36, `v1beta1` from
//! 1.37 on. No API server has both.

mod quantity;

use crate::{
    flaw::Flaw,
    grants::Grants,
    plan::{Body, ChildKind, Gate, Moment, Object, OwnedBy, Piece, Role, Text, Upkeep},
    pod_group::{KIND, PodGroup},
    rejection::{Objection, Rejection, field_of_spec},
    snapshot::Child,
};
use quantity::Resources;
use serde_json::{Map, Value, json};

/// The key of a job's PodGroup in its plan.
pub const KEY: &str = "pod-group";

/// The API version of Kubernetes 1.36's PodGroup: nothing of its spec can be changed, and it has no priority.
const FIXED: &str = "scheduling.k8s.io/v1alpha2";

/// Where Kubernetes' PodGroup says how many pods start together.
const MIN_COUNT: &str = "/spec/schedulingPolicy/gang/minCount";

/// Where Volcano says how far it is with a PodGroup.
const PHASE: &str = "/status/phase";

/// The phases of a PodGroup that Volcano has admitted. `Completed` and `Unknown` (some of its pods run) come later.
const ADMITTED: [&str; 4] = ["Inqueue", "Running", "Unknown", "Completed"];

/// The events in which Volcano says why it has not admitted a PodGroup: its conditions, and the Warnings of the same reason,
/// only count the pods that there are.
pub const REPORTS: &str = "involvedObject.kind=PodGroup,reason=Unschedulable,type=Normal";

/// Returns whether a kind is the PodGroup whose scheduler [reports](REPORTS) in events.
#[must_use]
pub fn is_reported(api_version: &str, kind: &str) -> bool {
    kind == KIND && api_version == PodGroup::Volcano.api_version()
}

/// How the pods of a job are started together, as a plugin says it.
#[derive(Debug, Clone, PartialEq)]
pub struct Gang {
    /// Who schedules.
    pub scheduler: String,
    /// The roles that count, those first that count first.
    pub members: Vec<String>,
    /// How many pods start together at least; `None` for all replicas of the members.
    pub min_member: Option<u32>,
    /// What they need; `None` for the sum of their requests.
    pub min_resources: Option<Value>,
    /// Volcano's queue.
    pub queue: Option<String>,
    /// The priority class of the whole, for Volcano and Kubernetes.
    pub priority_class: Option<String>,
    /// How long the scheduler-plugins wait for the rest, in seconds.
    pub schedule_timeout: Option<u32>,
}

impl PodGroup {
    /// The API versions that the host knows, those that plans name first.
    fn versions(self) -> &'static [&'static str] {
        match self {
            Self::Volcano => &["v1beta1"],
            Self::SchedulerPlugins => &["v1alpha1"],
            Self::Kubernetes => &["v1beta1", "v1alpha2"],
        }
    }

    /// Returns these versions with the group: `scheduling.k8s.io/v1beta1`.
    fn api_versions(self) -> impl Iterator<Item = String> {
        self.versions().iter().map(move |version| format!("{}/{version}", self.group()))
    }

    /// Returns the API version that plans name.
    fn api_version(self) -> String {
        self.api_versions().next().unwrap_or_default()
    }

    /// The fields of a PodGroup that the host reads.
    fn keep(self) -> &'static [&'static str] {
        match self {
            Self::Volcano => &[
                PHASE,
                "/status/conditions",
                "/spec/minMember",
                "/spec/minResources",
                "/spec/queue",
                "/spec/priorityClassName",
            ],
            Self::SchedulerPlugins => &["/spec/minMember", "/spec/minResources", "/spec/scheduleTimeoutSeconds"],
            Self::Kubernetes => &["/status/conditions", MIN_COUNT],
        }
    }

    /// Returns the gate of the pods. The other schedulers see the pods before they decide.
    fn gate(self) -> Option<Gate> {
        let one_of = ADMITTED.map(str::to_owned).into();
        (self == Self::Volcano).then(|| Gate::Field { key: KEY.into(), at: PHASE.into(), one_of })
    }

    /// Refers a pod template of a role to the PodGroup of this name.
    fn mark(self, template: &mut Value, role: &str, group: &str) {
        match self {
            Self::Volcano => {
                let task = ["metadata", "annotations", "volcano.sh/task-spec"];
                set(template, &["metadata", "annotations", "scheduling.k8s.io/group-name"], group);
                if template["metadata"]["annotations"][task[2]].is_null() {
                    set(template, &task, role);
                }
            }
            Self::SchedulerPlugins => set(template, &["metadata", "labels", "scheduling.x-k8s.io/pod-group"], group),
            Self::Kubernetes => set(template, &["spec", "schedulingGroup", "podGroupName"], group),
        }
    }
}

/// Adds the kinds of PodGroup to those of a plugin, and their deletion to what it asks for. Each is optional: a cluster has
/// it only with its scheduler.
pub fn describe(children: &mut Vec<ChildKind>, asks: &mut Grants) {
    for pod_group in PodGroup::ALL {
        children.extend(pod_group.api_versions().map(|api_version| ChildKind {
            api_version,
            kind: KIND.into(),
            plural: "podgroups".into(),
            selector: None,
            keep: pod_group.keep().iter().map(|pointer| (*pointer).to_owned()).collect(),
            optional: true,
            owned_by: OwnedBy::Job,
        }));
        asks.deletes.insert(format!("{KIND}.{}", pod_group.group()));
    }
}

/// Removes what an object of this API version cannot have from the body of a plan's PodGroup.
pub(crate) fn fit(api_version: &str, body: &mut Value) {
    if api_version == FIXED
        && let Some(spec) = body.get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.remove("priorityClassName");
    }
}

/// Returns whether the API server refuses every change of this child's spec.
pub(crate) fn is_fixed(child: &Child) -> bool {
    child.api_version == FIXED
}

impl Gang {
    /// Refers the pods of all roles to the gang's PodGroup, lets them wait for it where they have to, and returns the
    /// PodGroup, which has the job's name.
    ///
    /// # Errors
    /// A member that is no role of the plan; pods of which Kubernetes would never start one with the others.
    pub fn gather(&self, job_name: &str, roles: &mut [Role]) -> Result<Object, Objection> {
        let pod_group = PodGroup::of(&self.scheduler);
        if pod_group == PodGroup::Kubernetes {
            self.share(roles)?;
        }
        let spec = self.spec(pod_group, roles)?;
        for role in roles {
            pod_group.mark(&mut role.template, &role.name, job_name);
            if pod_group != PodGroup::Kubernetes && names_no_scheduler(&role.template) {
                set(&mut role.template, &["spec", "schedulerName"], &self.scheduler);
            }
            role.after.extend(pod_group.gate());
        }
        let upkeep = Upkeep::Follow(match pod_group {
            // The API server refuses every other change of it.
            PodGroup::Kubernetes => vec![MIN_COUNT.into()],
            PodGroup::Volcano | PodGroup::SchedulerPlugins => {
                spec.keys().map(|field| format!("/spec/{field}")).collect()
            }
        });
        Ok(Object {
            key: KEY.into(),
            api_version: pod_group.api_version(),
            kind: KIND.into(),
            name: Text(vec![Piece::JobName]),
            per_pod_of: None,
            body: Body::Fixed(json!({ "spec": spec }).into(), vec![]),
            upkeep,
            after: vec![],
            remove_when: vec![Moment::Suspended, Moment::Finished],
        })
    }

    /// Gives pods without a priority class the gang's, and refuses pods that differ where Kubernetes starts none of a gang
    /// whose pods do (1.37: `schedulerName` and the value of the priority, which is also the group's).
    fn share(&self, roles: &mut [Role]) -> Result<(), Rejection> {
        for role in &mut *roles {
            if let (Some(class), "") = (&self.priority_class, named(role, "priorityClassName")) {
                set(&mut role.template, &["spec", "priorityClassName"], class);
            }
        }
        let Some(first) = roles.first() else { return Ok(()) };
        for field in ["priorityClassName", "schedulerName"] {
            let wanted = named(first, field);
            if let Some(other) = roles.iter().find(|role| named(role, field) != wanted) {
                let at = other.template_at.as_deref().unwrap_or_default();
                let path = field_of_spec(&[at, &format!("/spec/{field}")]);
                let said = |name: &str| if name.is_empty() { "none".to_owned() } else { format!("{name:?}") };
                let message = format!(
                    "must be that of role {}, {}, and is {}: Kubernetes starts a gang only if all its pods have the same",
                    first.name,
                    said(wanted),
                    said(named(other, field)),
                );
                return Err(Rejection::field(path, message));
            }
        }
        Ok(())
    }

    fn spec(&self, pod_group: PodGroup, roles: &[Role]) -> Result<Map<String, Value>, Flaw> {
        let members = self.members.iter().map(|name| {
            let role = roles.iter().find(|role| role.name == *name);
            role.ok_or_else(|| Flaw::NoMember { role: name.clone() })
        });
        let members = members.collect::<Result<Vec<_>, _>>()?;
        let all = members.iter().fold(0_u32, |sum, role| sum.saturating_add(role.replicas));
        let count = self.min_member.unwrap_or(all);
        let mut spec = Map::new();
        if pod_group == PodGroup::Kubernetes {
            // A gang of none is refused.
            spec.insert("schedulingPolicy".into(), json!({ "gang": { "minCount": count.max(1) } }));
            let class = roles.first().map(|role| named(role, "priorityClassName")).filter(|class| !class.is_empty());
            spec.extend(class.map(|class| ("priorityClassName".into(), json!(class))));
            return Ok(spec);
        }
        spec.insert("minMember".into(), json!(count));
        let least = self.min_resources.clone().unwrap_or_else(|| requests_of(&members, count));
        spec.insert("minResources".into(), least);
        match pod_group {
            PodGroup::Volcano => {
                let texts = [("queue", &self.queue), ("priorityClassName", &self.priority_class)];
                spec.extend(texts.into_iter().filter_map(|(field, text)| Some((field.into(), json!(text.as_ref()?)))));
            }
            PodGroup::SchedulerPlugins => {
                spec.extend(self.schedule_timeout.map(|seconds| ("scheduleTimeoutSeconds".into(), json!(seconds))));
            }
            PodGroup::Kubernetes => {}
        }
        Ok(spec)
    }
}

/// Returns the sum of the requests of the first `count` replicas.
fn requests_of(members: &[&Role], count: u32) -> Value {
    let (mut sum, mut left) = (Resources::new(), count);
    for role in members {
        let some = role.replicas.min(left);
        left -= some;
        if some > 0 {
            quantity::add(&mut sum, &quantity::requests(&role.template), some);
        }
    }
    sum.into_iter().map(|(name, amount)| (name, json!(amount.to_string()))).collect::<Map<_, _>>().into()
}

fn names_no_scheduler(template: &Value) -> bool {
    template["spec"]["schedulerName"].as_str().unwrap_or_default().is_empty()
}

/// Returns a name in the spec of the role's pods; "" for none, which is also the cluster's own scheduler.
fn named<'a>(role: &'a Role, field: &str) -> &'a str {
    role.template["spec"][field].as_str().filter(|name| *name != "default-scheduler").unwrap_or_default()
}

/// Sets a text in nested objects, which are created where there is none. Of a template with another type there, which is
/// refused when the plan is checked, nothing is changed.
fn set(json: &mut Value, path: &[&str], text: &str) {
    match (path, json) {
        ([], there) => *there = json!(text),
        ([name, rest @ ..], Value::Object(fields)) => {
            let place = fields.entry(*name).or_insert(Value::Null);
            if place.is_null() {
                *place = json!({});
            }
            set(place, rest, text);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
