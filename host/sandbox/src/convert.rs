//! Converts the host's types to the types generated from the contract; `convert/answer.rs` converts back. No other
//! module names the generated types.

use super::{
    guest::Guest,
    limits::Limits,
    observe::{self, Facts, Row},
};
use decide::{
    Outlook, Snapshot, attempts,
    failures::{Due, Replacement},
    names, plan, snapshot,
};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use wasmtime::{
    Store,
    component::{Component, ComponentExportIndex, ComponentNamedList, Instance, InstancePre, Lift, Lower},
};

mod answer;
mod bodies;

/// The interface that a plugin exports, as the package in `wit` names it.
pub(super) const CONTRACT: &str = "troupe:framework/framework@0.1.0";

/// The name of that interface without a version.
pub(super) const INTERFACE: &str = "troupe:framework/framework@";

/// The common prefix of the versions that this host can call.
pub(super) const TRACK: &str = "troupe:framework/framework@0.1.";

mod bindings {
    #![allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
    wasmtime::component::bindgen!({ path: "../../wit", world: "plugin" });
}

pub(super) use bodies::Bodies;

use bindings::troupe::framework::types as wit;

/// The reason why a function gave no answer.
#[derive(Debug)]
pub(super) enum Stop {
    /// The function did not return.
    Trap(wasmtime::Error),
    /// The user's mistake.
    Rejected(plan::Rejection),
    /// The plugin reported an internal error.
    Internal(String),
    /// The returned value is invalid.
    Unacceptable(String),
    /// The returned value is larger than allowed.
    TooLarge(String),
}

impl From<String> for Stop {
    fn from(message: String) -> Self {
        Self::Unacceptable(message)
    }
}

/// The job as a plugin gets it.
#[derive(Debug)]
pub(super) struct JobInput {
    view: wit::JobView,
}

/// The observation of one instant as a plugin gets it.
#[derive(Debug)]
pub(super) struct Seen {
    view: wit::Observation,
    /// Number of replicas of the whole plan, with and without pods.
    replicas: u64,
}

/// A component that exports the contract.
#[derive(Clone)]
pub(super) struct Exports {
    linked: InstancePre<Guest>,
    functions: Functions,
}

/// Where the component has the functions that are called in a pass.
#[derive(Clone, Copy)]
struct Functions {
    plan: ComponentExportIndex,
    bind: ComponentExportIndex,
    judge: ComponentExportIndex,
}

/// A live instance.
pub(super) struct Live {
    instance: Instance,
    functions: Functions,
}

impl JobInput {
    pub(super) fn new(snapshot: &Snapshot, config: &str) -> Self {
        let (kind, job) = (&snapshot.kind, &snapshot.job);
        let pairs = |map: &BTreeMap<String, String>| map.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        let view = wit::JobView {
            kind: kind.kind.clone(),
            namespace: job.namespace.clone(),
            name: job.name.clone(),
            uid: job.uid.clone(),
            generation: u64::try_from(job.generation).unwrap_or_default(),
            created: milliseconds(job.created),
            labels: pairs(&job.labels),
            annotations: pairs(&job.annotations),
            spec: text(&job.spec),
            config: config.to_owned(),
            host_ports: snapshot.ledger.host_ports.map(|ports| ports.first),
            contents: snapshot.contents.iter().map(content).collect(),
        };
        Self { view }
    }

    /// Returns the hash of this digest and of the plugin's exact input.
    pub(super) fn key(&self, plugin: &str) -> [u8; 32] {
        let mut hash = Sha256::new();
        let mut part = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        let job = &self.view;
        for text in [plugin, &job.kind, &job.namespace, &job.name, &job.uid, &job.spec, &job.config] {
            part(text);
        }
        part(&job.generation.to_string());
        part(&job.created.to_string());
        part(&job.host_ports.unwrap_or_default().to_string());
        let mut pairs = |pairs: &[(String, String)]| {
            part(&pairs.len().to_string());
            for (name, value) in pairs {
                part(name);
                part(value);
            }
        };
        pairs(&job.labels);
        pairs(&job.annotations);
        for wit::Content { at, name, data } in &job.contents {
            pairs(&[(at.clone(), name.clone())]);
            match data {
                Some(data) => pairs(data),
                // Nothing is not an object without data.
                None => pairs(&[(String::new(), String::new())]),
            }
        }
        hash.finalize().into()
    }

    /// Returns whether the plugin got exactly these contents.
    pub(super) fn has(&self, contents: &[plan::Content]) -> bool {
        let is_same = |(shown, now): (&wit::Content, &plan::Content)| {
            let data = now.data.as_ref().map(|data| data.iter());
            let pairs = shown.data.as_ref().map(|data| data.iter().map(|(key, value)| (key, value)));
            shown.at == now.at
                && shown.name == now.name
                && pairs.is_some() == data.is_some()
                && pairs.into_iter().flatten().eq(data.into_iter().flatten())
        };
        self.view.contents.len() == contents.len() && self.view.contents.iter().zip(contents).all(is_same)
    }

    /// Returns the size of the job's spec as JSON, in bytes.
    pub(super) fn spec_bytes(&self) -> usize {
        self.view.spec.len()
    }

    /// Returns the approximate size in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let view = &self.view;
        let pairs = view.labels.iter().chain(&view.annotations).map(|(name, value)| name.len() + value.len());
        let contents = view.contents.iter().flat_map(|content| content.data.iter().flatten());
        let contents = contents.map(|(key, value)| key.len() + value.len());
        512 + view.spec.len() + view.config.len() + pairs.sum::<usize>() + contents.sum::<usize>()
    }

    /// Returns `namespace/name`, for the log.
    pub(super) fn subject(&self) -> String {
        format!("{}/{}", self.view.namespace, self.view.name)
    }

    pub(super) fn namespace(&self) -> &str {
        &self.view.namespace
    }

    pub(super) fn uid(&self) -> &str {
        &self.view.uid
    }
}

impl Seen {
    pub(super) fn new(snapshot: &Snapshot, plan: &plan::Plan) -> Self {
        let (rows, due) = (observe::rows(snapshot, plan), Due::of(snapshot, plan));
        let child = |child: &snapshot::Child, pod: Option<&str>| wit::ChildView {
            key: match pod {
                None => names::key_of_child(plan, &snapshot.job.name, &child.api_version, &child.kind, &child.name)
                    .map(str::to_owned),
                Some(_) => None,
            },
            pod: pod.map(str::to_owned),
            api_version: child.api_version.clone(),
            kind: child.kind.clone(),
            name: child.name.clone(),
            uid: child.uid.clone(),
            terminating: child.terminating,
            fields: fields(&child.fields),
        };
        let own = snapshot.children.iter().map(|one| child(one, None));
        let of_pods = snapshot.dependents.iter().map(|one| child(&one.object, Some(&one.pod)));
        let view = wit::Observation {
            now: milliseconds(snapshot.now),
            pods: rows.iter().map(|row| pod(row, snapshot, plan, &due)).collect(),
            children: own.chain(of_pods).collect(),
            roles: observe::facts(snapshot, plan, &rows, &due).map(role_facts).collect(),
            previous_status: text(&observe::previous_status(&snapshot.job.status)),
        };
        Self { view, replicas: plan.roles.iter().map(|role| u64::from(role.replicas)).sum() }
    }

    pub(super) fn now(&self) -> u64 {
        self.view.now
    }

    pub(super) fn pods(&self) -> u64 {
        self.view.pods.len() as u64
    }

    /// Returns the approximate size in memory, in bytes. A replica without a pod counts like a small pod.
    pub(super) fn bytes(&self) -> usize {
        const OF_REPLICA: u64 = 64;
        let words =
            |pod: &wit::PodRow| pod.name.len() + pod.message.len() + pod.containers.iter().map(ended).sum::<usize>();
        let pods = self.view.pods.iter().map(words).sum::<usize>();
        let of_pods = self.view.pods.iter().flat_map(|pod| &pod.fields);
        let fields =
            self.view.children.iter().flat_map(|child| &child.fields).chain(of_pods).map(|(_, json)| json.len());
        let counted = self.replicas.max(self.pods()) + self.view.children.len() as u64;
        let replicas = usize::try_from(OF_REPLICA * counted).unwrap_or(usize::MAX);
        replicas.saturating_add(pods + fields.sum::<usize>() + self.view.previous_status.len())
    }
}

/// Returns the size of a container's texts about its end or about why it waits.
fn ended(container: &wit::ContainerRow) -> usize {
    match &container.state {
        wit::ContainerState::Terminated(ended) => ended.message.len(),
        wit::ContainerState::Waiting((reason, message)) => reason.len() + message.len(),
        wit::ContainerState::Running(_) | wit::ContainerState::Unknown => 0,
    }
}

fn fields(kept: &BTreeMap<String, Value>) -> Vec<(String, String)> {
    kept.iter().map(|(pointer, value)| (pointer.clone(), text(value))).collect()
}

fn content(content: &plan::Content) -> wit::Content {
    let pairs = |map: &BTreeMap<String, String>| map.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    wit::Content { at: content.at.clone(), name: content.name.clone(), data: content.data.as_ref().map(pairs) }
}

fn role_facts(facts: Facts<'_>) -> wit::RoleFacts {
    wit::RoleFacts {
        role: facts.role.to_owned(),
        succeeded: facts.succeeded.into(),
        lost: facts.lost,
        failures: facts.failures,
        given_up: facts.given_up.into(),
        attempt: facts.attempt,
    }
}

fn pod(row: &Row<'_>, snapshot: &Snapshot, plan: &plan::Plan, due: &Due<'_>) -> wit::PodRow {
    let (pod, role) = (row.pod, &plan.roles[row.role]);
    wit::PodRow {
        role: role.name.clone(),
        index: row.index,
        name: pod.name.clone(),
        uid: pod.uid.clone(),
        phase: match pod.phase {
            snapshot::PodPhase::Pending => wit::PodPhase::Pending,
            snapshot::PodPhase::Running => wit::PodPhase::Running,
            snapshot::PodPhase::Succeeded => wit::PodPhase::Succeeded,
            snapshot::PodPhase::Failed => wit::PodPhase::Failed,
            snapshot::PodPhase::Unknown => wit::PodPhase::Unknown,
        },
        reason: pod.reason.clone(),
        message: pod.message.clone(),
        ready: pod.ready,
        terminating: pod.terminating || row.index.is_some() && attempts::is_old(snapshot, role, pod),
        ips: pod.ips.clone(),
        node: pod.node.clone(),
        created: milliseconds(pod.created),
        containers: pod.containers.iter().map(container).collect(),
        conditions: pod.conditions.clone(),
        fields: fields(&pod.fields),
        replacement: match row.index.map_or(Replacement::None, |index| due.replacement(role, index, pod)) {
            Replacement::None => wit::Replacement::None,
            Replacement::Due => wit::Replacement::Due,
            Replacement::UnderWay => wit::Replacement::UnderWay,
            Replacement::GivenUp => wit::Replacement::GivenUp,
        },
    }
}

fn container(status: &snapshot::ContainerStatus) -> wit::ContainerRow {
    let state = match &status.state {
        snapshot::ContainerState::Unknown => wit::ContainerState::Unknown,
        snapshot::ContainerState::Waiting { reason, message } => {
            wit::ContainerState::Waiting((reason.clone(), message.clone()))
        }
        snapshot::ContainerState::Running { since } => wit::ContainerState::Running(milliseconds(*since)),
        snapshot::ContainerState::Terminated { exit_code, reason, message, at } => {
            wit::ContainerState::Terminated(wit::Ended {
                exit_code: *exit_code,
                reason: reason.clone(),
                message: message.clone(),
                at: milliseconds(*at),
            })
        }
    };
    wit::ContainerRow {
        name: status.name.clone(),
        init: status.init,
        ready: status.ready,
        restarts: status.restarts,
        state,
    }
}

/// Serializes JSON to text without the detour through its `Display`.
fn text(json: &Value) -> String {
    serde_json::to_string(json).expect("its keys are text")
}

fn milliseconds(at: jiff::Timestamp) -> u64 {
    u64::try_from(at.as_millisecond()).unwrap_or_default()
}

impl Exports {
    /// # Errors
    /// Returns an error if an export is missing.
    pub(super) fn new(component: InstancePre<Guest>) -> wasmtime::Result<Self> {
        let linked = bindings::PluginPre::new(component)?.instance_pre().clone();
        let component = linked.component();
        let missing = |name: &str| wasmtime::Error::msg(format!("there is no {name}"));
        let interface = component.get_export_index(None, CONTRACT).ok_or_else(|| missing(CONTRACT))?;
        let function = |name| component.get_export_index(Some(&interface), name).ok_or_else(|| missing(name));
        let functions = Functions { plan: function("plan")?, bind: function("bind")?, judge: function("judge")? };
        Ok(Self { linked, functions })
    }

    /// Returns the compiled component.
    pub(super) fn component(&self) -> &Component {
        self.linked.component()
    }

    pub(super) fn instantiate(&self, store: &mut Store<Guest>) -> Result<Live, Stop> {
        let instance = self.linked.instantiate(store).map_err(Stop::Trap)?;
        Ok(Live { instance, functions: self.functions })
    }
}

impl Live {
    /// Calls `describe`. All functions must have the types of the contract.
    pub(super) fn describe(&self, store: &mut Store<Guest>, limits: &Limits) -> Result<plan::Descriptor, Stop> {
        let whole = bindings::Plugin::new(&mut *store, &self.instance).map_err(Stop::Trap)?;
        let raw = whole.troupe_framework_framework().call_describe(store).map_err(Stop::Trap)?;
        answer::descriptor(raw, limits)
    }

    /// Calls a function. Checks the type of this function alone: checking all of them for each instance would take a
    /// considerable part of a pass.
    fn call<P, R>(&self, store: &mut Store<Guest>, function: ComponentExportIndex, params: P) -> Result<R, Stop>
    where
        P: ComponentNamedList + Lower,
        R: Lift + Send + Sync + 'static,
        (Result<R, wit::Refusal>,): ComponentNamedList + Lift,
    {
        let called = self.instance.get_typed_func::<P, (Result<R, wit::Refusal>,)>(&mut *store, function);
        let (answer,) = called.and_then(|function| function.call(store, params)).map_err(Stop::Trap)?;
        answer.map_err(answer::refusal)
    }

    /// Returns the plan. `spec` is the job's spec, to which the plan refers.
    pub(super) fn plan(
        &self,
        store: &mut Store<Guest>,
        known: (&Limits, &Bodies),
        (job, spec): (&JobInput, &Value),
    ) -> Result<plan::Plan, Stop> {
        let raw: wit::JobPlan = self.call(store, self.functions.plan, (&job.view,))?;
        answer::job_plan(raw, &job.view.name, spec, known)
    }

    pub(super) fn bind(
        &self,
        store: &mut Store<Guest>,
        limits: &Limits,
        (job, seen): (&JobInput, &Seen),
        wanted: &[String],
    ) -> Result<plan::Bindings, Stop> {
        let raw: wit::Bindings = self.call(store, self.functions.bind, (&job.view, &seen.view, wanted))?;
        answer::bindings(raw, wanted, limits)
    }

    pub(super) fn judge(
        &self,
        store: &mut Store<Guest>,
        limits: &Limits,
        outlook: &Outlook,
    ) -> Result<plan::Verdict, Stop> {
        let outlook = wit::Outlook {
            suspended: outlook.suspended,
            waiting: outlook.waiting.clone(),
            criteria_met: outlook.criteria_met.and_then(|place| u32::try_from(place).ok()),
        };
        let raw: wit::Verdict = self.call(store, self.functions.judge, (&outlook,))?;
        answer::verdict(raw, limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use decide::{snapshot::PodPhase, testkit};
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn a_plugin_sees_of_a_pod_what_it_keeps() {
        let mut snapshot = testkit::snapshot(testkit::job("j", "u"));
        let mut pod = testkit::pod("j-worker-0", "u", PodPhase::Running);
        pod.fields.insert("/metadata/annotations".into(), json!({ "rank": "7" }));
        snapshot.pods.push(Arc::new(pod));
        let name = testkit::text(&["JOB", "-worker-", "INDEX"]);
        let plan = testkit::plan(vec![testkit::role("worker", 1, name, json!({}))]);
        let seen = Seen::new(&snapshot, &plan).view;
        assert_eq!(seen.pods[0].fields, [("/metadata/annotations".to_owned(), r#"{"rank":"7"}"#.to_owned())]);
    }
}
