//! The host's types to those that are generated from the contract, and back. No other file names the generated ones.
//!
//! What comes back is not trusted: JSON is parsed and measured, texts that people will read are cleaned.

use super::{
    guest::Guest,
    limits::Limits,
    log::clean,
    observe::{self, Row},
};
use decide::{Outlook, Snapshot, names, plan, snapshot};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use wasmtime::{Store, component::InstancePre};

mod bindings {
    #![allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
    wasmtime::component::bindgen!({ path: "../wit", world: "plugin" });
}

use bindings::{exports::troupe::framework::framework::Guest as Functions, troupe::framework::types as wit};

/// A text for people is cut after so many bytes: the limit of an event's message.
const LONGEST_TEXT: usize = 1024;

/// So many field errors and events are passed on.
const MOST: usize = 64;

/// Why a function gave no answer.
#[derive(Debug)]
pub(super) enum Stop {
    /// It did not return.
    Trap(wasmtime::Error),
    /// The user's mistake.
    Rejected(plan::Rejection),
    /// Its own fault, by its own words.
    Internal(String),
    /// What it returned cannot be used.
    Unacceptable(String),
}

/// The job as a plugin is shown it.
#[derive(Debug)]
pub(super) struct JobInput(wit::JobView);

/// One instant as a plugin is shown it.
#[derive(Debug)]
pub(super) struct Seen(wit::Observation);

/// A component whose exports are those of the contract.
pub(super) struct Exports(bindings::PluginPre<Guest>);

/// An instance, for one pass.
pub(super) struct Live(bindings::Plugin);

impl JobInput {
    pub(super) fn new(kind: &plan::JobKind, job: &snapshot::Job, config: &str) -> Self {
        let pairs = |map: &BTreeMap<String, String>| map.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        Self(wit::JobView {
            kind: kind.kind.clone(),
            namespace: job.namespace.clone(),
            name: job.name.clone(),
            uid: job.uid.clone(),
            generation: u64::try_from(job.generation).unwrap_or_default(),
            labels: pairs(&job.labels),
            annotations: pairs(&job.annotations),
            spec: job.spec.to_string(),
            config: config.to_owned(),
        })
    }

    /// The hash of exactly what the plugin with this digest is shown.
    pub(super) fn key(&self, plugin: &str) -> [u8; 32] {
        let mut hash = Sha256::new();
        let mut part = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        let job = &self.0;
        for text in [plugin, &job.kind, &job.namespace, &job.name, &job.uid, &job.spec, &job.config] {
            part(text);
        }
        part(&job.generation.to_string());
        for pairs in [&job.labels, &job.annotations] {
            part(&pairs.len().to_string());
            for (name, value) in pairs {
                part(name);
                part(value);
            }
        }
        hash.finalize().into()
    }

    /// `namespace/name`, for the log.
    pub(super) fn subject(&self) -> String {
        format!("{}/{}", self.0.namespace, self.0.name)
    }

    pub(super) fn uid(&self) -> &str {
        &self.0.uid
    }
}

impl Seen {
    pub(super) fn new(snapshot: &Snapshot, plan: &plan::Plan) -> Self {
        let rows = observe::rows(snapshot, plan);
        let roles = observe::succeeded(snapshot, plan, &rows);
        let child = |child: &snapshot::Child| wit::ChildView {
            key: names::key_of_child(plan, &snapshot.job.name, child).map(str::to_owned),
            kind: child.kind.clone(),
            name: child.name.clone(),
            uid: child.uid.clone(),
            terminating: child.terminating,
            fields: child.fields.iter().map(|(pointer, value)| (pointer.clone(), value.to_string())).collect(),
        };
        Self(wit::Observation {
            now: milliseconds(snapshot.now),
            pods: rows.iter().map(|row| pod(row, plan)).collect(),
            children: snapshot.children.iter().map(|one| child(one)).collect(),
            roles: roles
                .into_iter()
                .map(|(role, succeeded)| wit::RoleFacts { role: role.to_owned(), succeeded })
                .collect(),
            previous_status: observe::previous_status(&snapshot.job.status).to_string(),
        })
    }

    pub(super) fn now(&self) -> u64 {
        self.0.now
    }

    pub(super) fn pods(&self) -> u64 {
        self.0.pods.len() as u64
    }
}

fn pod(row: &Row<'_>, plan: &plan::Plan) -> wit::PodRow {
    let pod = row.pod;
    wit::PodRow {
        role: plan.roles[row.role].name.clone(),
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
        terminating: pod.terminating,
        ips: pod.ips.clone(),
        node: pod.node.clone(),
        created: milliseconds(pod.created),
        containers: pod.containers.iter().map(container).collect(),
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

fn milliseconds(at: jiff::Timestamp) -> u64 {
    u64::try_from(at.as_millisecond()).unwrap_or_default()
}

impl Exports {
    /// # Errors
    /// An export is missing or has another type than in the contract.
    pub(super) fn new(component: InstancePre<Guest>) -> wasmtime::Result<Self> {
        bindings::PluginPre::new(component).map(Self)
    }

    pub(super) fn instantiate(&self, store: &mut Store<Guest>) -> Result<Live, Stop> {
        self.0.instantiate(store).map(Live).map_err(Stop::Trap)
    }
}

impl Live {
    fn functions(&self) -> &Functions {
        self.0.troupe_framework_framework()
    }

    pub(super) fn describe(&self, store: &mut Store<Guest>, limits: &Limits) -> Result<plan::Descriptor, Stop> {
        let said = self.functions().call_describe(store).map_err(Stop::Trap)?;
        descriptor(said, limits).map_err(Stop::Unacceptable)
    }

    pub(super) fn plan(&self, store: &mut Store<Guest>, limits: &Limits, job: &JobInput) -> Result<plan::Plan, Stop> {
        let said = self.functions().call_plan(store, &job.0).map_err(Stop::Trap)?.map_err(refusal)?;
        job_plan(said, limits).map_err(Stop::Unacceptable)
    }

    pub(super) fn bind(
        &self,
        store: &mut Store<Guest>,
        limits: &Limits,
        (job, seen): (&JobInput, &Seen),
        wanted: &[String],
    ) -> Result<BTreeMap<String, Value>, Stop> {
        let said = self.functions().call_bind(store, &job.0, &seen.0, wanted);
        bodies(said.map_err(Stop::Trap)?.map_err(refusal)?, wanted, limits).map_err(Stop::Unacceptable)
    }

    pub(super) fn judge(
        &self,
        store: &mut Store<Guest>,
        limits: &Limits,
        (job, seen): (&JobInput, &Seen),
        outlook: &Outlook,
    ) -> Result<plan::Verdict, Stop> {
        let outlook = wit::Outlook { suspended: outlook.suspended, waiting: outlook.waiting.clone() };
        let said = self.functions().call_judge(store, &job.0, &seen.0, &outlook);
        verdict(said.map_err(Stop::Trap)?.map_err(refusal)?, limits).map_err(Stop::Unacceptable)
    }
}

fn refusal(said: wit::Refusal) -> Stop {
    match said {
        wit::Refusal::Invalid(errors) => {
            let errors = errors.into_iter().take(MOST).map(|error| plan::FieldError {
                path: clean(&error.path, LONGEST_TEXT),
                message: clean(&error.message, LONGEST_TEXT),
            });
            Stop::Rejected(plan::Rejection::Invalid(errors.collect()))
        }
        wit::Refusal::Unsupported(what) => Stop::Rejected(plan::Rejection::Unsupported(clean(&what, LONGEST_TEXT))),
        wit::Refusal::Internal(what) => Stop::Internal(clean(&what, LONGEST_TEXT)),
    }
}

/// A result whose error names the field that is wrong and what is wrong with it.
type Checked<T> = Result<T, String>;

fn json(what: &str, text: &str, limits: &Limits) -> Checked<Value> {
    if text.len() > limits.body {
        return Err(format!("{what}: {} bytes are more than {}", text.len(), limits.body));
    }
    serde_json::from_str(text).map_err(|error| format!("{what}: {error}"))
}

fn json_object(what: &str, text: &str, limits: &Limits) -> Checked<Value> {
    let value = json(what, text, limits)?;
    if value.is_object() { Ok(value) } else { Err(format!("{what}: it is not a JSON object")) }
}

fn pointer(what: &str, text: String) -> Checked<String> {
    if text.starts_with('/') { Ok(text) } else { Err(format!("{what}: {text:?} is no JSON pointer to a field")) }
}

fn pointers(what: &str, texts: Vec<String>) -> Checked<Vec<String>> {
    texts.into_iter().map(|text| pointer(what, text)).collect()
}

fn descriptor(said: wit::Descriptor, limits: &Limits) -> Checked<plan::Descriptor> {
    let kinds = said.kinds.into_iter().map(|kind| {
        let what = |switch: &str| format!("{switch} switch of {}", kind.kind);
        Ok(plan::JobKind {
            suspend: kind.switches.suspend.map(|at| pointer(&what("suspend"), at)).transpose()?,
            managed_by: kind.switches.managed_by.map(|at| pointer(&what("managed-by"), at)).transpose()?,
            group: kind.group,
            version: kind.version,
            kind: kind.kind,
            plural: kind.plural,
            own_manager: kind.own_manager,
            retired_finalizers: kind.retired_finalizers,
        })
    });
    let children = said.children.into_iter().map(|child| {
        Ok(plan::ChildKind {
            keep: pointers(&format!("keep of {}", child.kind), child.keep)?,
            api_version: child.api_version,
            kind: child.kind,
            plural: child.plural,
            selector: child.selector,
        })
    });
    Ok(plan::Descriptor {
        kinds: kinds.collect::<Checked<_>>()?,
        children: children.collect::<Checked<_>>()?,
        config_schema: json_object("config-schema", &said.config_schema, limits)?,
        name: said.name,
        version: said.version,
        event_source: said.event_source,
    })
}

fn job_plan(said: wit::JobPlan, limits: &Limits) -> Checked<plan::Plan> {
    Ok(plan::Plan {
        roles: said.roles.into_iter().map(|one| role(one, limits)).collect::<Checked<_>>()?,
        objects: said.objects.into_iter().map(|one| object(one, limits)).collect::<Checked<_>>()?,
        secrets: said.secrets.into_iter().map(secret).collect(),
        policy: plan::Policy {
            clean_on_success: clean_rule(said.policy.clean_on_success),
            clean_on_failure: clean_rule(said.policy.clean_on_failure),
            clean_on_suspend: clean_rule(said.policy.clean_on_suspend),
        },
        warnings: events(said.warnings),
    })
}

fn role(said: wit::Role, limits: &Limits) -> Checked<plan::Role> {
    let what = |field: &str| format!("{field} of role {}", said.name);
    let backing = match &said.backing {
        wit::Backing::Pods => plan::Backing::Pods,
        wit::Backing::Job(body) => plan::Backing::Job(json_object(&what("job"), body, limits)?),
    };
    let env = |entry: wit::EnvEntry| plan::EnvEntry {
        container: entry.container,
        name: entry.name,
        value: text(entry.value),
    };
    Ok(plan::Role {
        backing,
        template: json_object(&what("template"), &said.template, limits)?,
        name: said.name,
        replicas: said.replicas,
        pod_name: text(said.pod_name),
        hostname: said.hostname.map(text),
        subdomain: said.subdomain.map(text),
        env: said.env.into_iter().map(env).collect(),
        labels: said.labels.into_iter().map(|(name, value)| (name, text(value))).collect(),
        after: gates(said.after),
    })
}

fn object(said: wit::Object, limits: &Limits) -> Checked<plan::Object> {
    let what = |field: &str| format!("{field} of object {}", said.key);
    let body = match said.body {
        wit::Body::Bound => plan::Body::Bound,
        wit::Body::Fixed((body, fill)) => {
            let fill = fill.into_iter().map(|(at, value)| Ok((pointer(&what("text"), at)?, text(value))));
            plan::Body::Fixed(json_object(&what("body"), &body, limits)?, fill.collect::<Checked<_>>()?)
        }
    };
    let upkeep = match said.upkeep {
        wit::Upkeep::CreateOnly => plan::Upkeep::CreateOnly,
        wit::Upkeep::Follow(at) => plan::Upkeep::Follow(pointers(&what("upkeep"), at)?),
    };
    let moment = |moment: wit::Moment| match moment {
        wit::Moment::Suspended => plan::Moment::Suspended,
        wit::Moment::Cleaned => plan::Moment::Cleaned,
        wit::Moment::ReplicaGone => plan::Moment::ReplicaGone,
    };
    Ok(plan::Object {
        body,
        upkeep,
        key: said.key,
        api_version: said.api_version,
        kind: said.kind,
        name: text(said.name),
        per_pod_of: said.per_pod_of,
        after: gates(said.after),
        remove_when: said.remove_when.into_iter().map(moment).collect(),
    })
}

fn secret(said: wit::SecretRecipe) -> plan::SecretRecipe {
    plan::SecretRecipe {
        key: said.key,
        name: text(said.name),
        secret_type: said.secret_type,
        labels: said.labels.into_iter().collect(),
        private_key: said.private_key,
        public_key: said.public_key,
        algorithm: match said.algorithm {
            wit::Algorithm::EcdsaP521 => plan::Algorithm::EcdsaP521,
        },
    }
}

fn text(said: wit::Text) -> plan::Text {
    let piece = |piece: wit::Piece| match piece {
        wit::Piece::Text(text) => plan::Piece::Fixed(text),
        wit::Piece::Index(offset) => plan::Piece::Index(offset),
        wit::Piece::JobName => plan::Piece::JobName,
        wit::Piece::PodName => plan::Piece::PodName,
    };
    plan::Text(said.into_iter().map(piece).collect())
}

fn gates(said: Vec<wit::Gate>) -> Vec<plan::Gate> {
    let gate = |gate: wit::Gate| plan::Gate {
        role: gate.role,
        reached: match gate.reached {
            wit::Reached::Exists => plan::Reached::Exists,
            wit::Reached::Ip => plan::Reached::Ip,
            wit::Reached::Running => plan::Reached::Running,
            wit::Reached::Ready => plan::Reached::Ready,
        },
    };
    said.into_iter().map(gate).collect()
}

fn clean_rule(said: wit::Clean) -> plan::Clean {
    match said {
        wit::Clean::Keep => plan::Clean::Keep,
        wit::Clean::Active => plan::Clean::Active,
        wit::Clean::All => plan::Clean::All,
    }
}

fn events(said: Vec<wit::Event>) -> Vec<plan::Event> {
    let event = |event: wit::Event| plan::Event {
        warning: event.warning,
        reason: clean(&event.reason, 128),
        message: clean(&event.message, LONGEST_TEXT),
    };
    said.into_iter().take(MOST).map(event).collect()
}

fn bodies(said: wit::Bindings, wanted: &[String], limits: &Limits) -> Checked<BTreeMap<String, Value>> {
    let mut bodies = BTreeMap::new();
    for (key, body) in said.bodies {
        if !wanted.contains(&key) {
            return Err(format!("body of object {key}: it was not asked for"));
        }
        let body = json_object(&format!("body of object {key}"), &body, limits)?;
        if bodies.insert(key.clone(), body).is_some() {
            return Err(format!("body of object {key}: it stands twice"));
        }
    }
    Ok(bodies)
}

fn verdict(said: wit::Verdict, limits: &Limits) -> Checked<plan::Verdict> {
    let status = json_object("status", &said.status, limits)?;
    if status.get("troupe").is_some() {
        return Err("status: the field troupe is the host's".to_owned());
    }
    Ok(plan::Verdict {
        status,
        headline: clean(&said.headline, 256),
        outcome: match said.outcome {
            wit::Outcome::Open => plan::Outcome::Open,
            wit::Outcome::Succeeded => plan::Outcome::Succeeded,
            wit::Outcome::Failed => plan::Outcome::Failed,
        },
        events: events(said.events),
    })
}
