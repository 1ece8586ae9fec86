//! What a run left behind of each job: its last status, what the host wrote for it, and its children.

use super::{hosts::is_host, jobs::Job};
use decide::status::step;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;
use sim::{Sim, View, Write};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A job by kind, namespace and name.
pub(super) type Key = (String, String, String);

/// Writes the history of a simulation as it happens; clones write the same one.
#[derive(Clone, Default)]
pub(super) struct History(Arc<Mutex<BTreeMap<Key, Known>>>);

/// What is known of the latest job of a name.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    pub(super) uid: String,
    /// As it was last seen, also if the job is gone.
    pub(super) status: Value,
    pub(super) is_gone: bool,
    /// When the ledger first said that it has ended.
    pub(super) ended: Option<Timestamp>,
    /// How often the host created, changed and deleted each child: `create Pod a-0-worker-0`.
    pub(super) writes: BTreeMap<String, usize>,
    /// Each step that its status has said.
    pub(super) steps: BTreeSet<String>,
}

impl History {
    /// The history of these jobs from now on.
    pub(super) fn of(sim: &Sim, jobs: &[Job]) -> Self {
        let known = jobs.iter().map(|job| (key(job), Known::default())).collect();
        let history = Self(Arc::new(Mutex::new(known)));
        let keep = history.clone();
        sim.on_write(move |write, view| keep.note(write, view));
        history
    }

    /// What is known of a job.
    pub(super) fn known(&self, job: &Job) -> Known {
        self.0.lock().get(&key(job)).cloned().unwrap_or_default()
    }

    /// A job's status with its pods, in a line.
    pub(super) fn shown(&self, sim: &Sim, job: &Job) -> String {
        let known = self.known(job);
        let pods = sim.list("v1", "Pod", job.namespace());
        let own =
            pods.iter().filter(|pod| pod["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(job.name())));
        let pod = |pod: &Value| {
            let state = &pod["status"]["containerStatuses"][0]["state"];
            let goes = if pod["metadata"]["deletionTimestamp"].is_null() { "" } else { " (terminating)" };
            format!("{} {}{goes} {state}", pod["metadata"]["name"], pod["status"]["phase"])
        };
        format!("{} {} {:?}", job.name(), known.status, own.map(pod).collect::<Vec<_>>())
    }

    /// The job has ended, or (where that is as good) is gone.
    pub(super) fn is_over(&self, job: &Job, gone_is_over: bool) -> bool {
        let jobs = self.0.lock();
        let known = jobs.get(&key(job));
        known.is_some_and(|known| known.has_ended() || known.is_gone && gone_is_over)
    }

    fn note(&self, write: &Write, view: &View<'_>) {
        let mut jobs = self.0.lock();
        let key = (write.kind.clone(), write.namespace.clone(), write.name.clone());
        if let Some(known) = jobs.get_mut(&key) {
            known.note(write);
        } else if let Some(what) = deed(write) {
            let child = write.after.as_ref().or(write.before.as_ref());
            let owner = child.and_then(|child| view.by_uid(controller(child)?)?["metadata"]["uid"].as_str());
            let known = owner.and_then(|uid| jobs.values_mut().find(|known| known.uid == uid));
            *known.map(|known| known.writes.entry(what).or_default()).unwrap_or(&mut 0) += 1;
        }
    }
}

impl Known {
    fn note(&mut self, write: &Write) {
        let Some(after) = &write.after else {
            self.is_gone = true;
            return;
        };
        if write.created() {
            let uid = after["metadata"]["uid"].as_str().unwrap_or_default();
            *self = Self { uid: uid.to_owned(), ..Self::default() };
        }
        self.status = after["status"].clone();
        self.steps.extend(step(&self.status).map(str::to_owned));
        if self.has_ended() {
            self.ended.get_or_insert(write.at);
        }
    }

    /// S3: what nobody interferes with ends as the exit codes of its pods say.
    pub(super) fn wrong_outcome(&self, job: &Job) -> Option<String> {
        let is_wrong = self.has_ended() && self.status["troupe"]["finished"]["outcome"] != job.outcome;
        is_wrong.then(|| format!("S3: {} has not {}: {}", job.name(), job.outcome, self.status))
    }

    /// Its ledger says that it has ended.
    pub(super) fn has_ended(&self) -> bool {
        !self.status["troupe"]["finished"].is_null()
    }
}

/// What the host did to a child, unless it was done before.
fn deed(write: &Write) -> Option<String> {
    let goes = |object: &Value| !object["metadata"]["deletionTimestamp"].is_null();
    let verb = match (&write.before, &write.after) {
        _ if !is_host(&write.actor) || write.kind == "Event" => return None,
        (None, Some(_)) => "create",
        (Some(before), after) if !goes(before) && after.as_deref().is_none_or(goes) => "delete",
        (Some(_), Some(after)) if !goes(after) => "change",
        _ => return None,
    };
    Some(format!("{verb} {} {}", write.kind, write.name))
}

/// A job by kind, namespace and name.
pub(super) fn key(job: &Job) -> Key {
    (job.kind().to_owned(), job.namespace().to_owned(), job.name().to_owned())
}

/// The uid of an object's controller.
pub(super) fn controller(object: &Value) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)?["uid"].as_str()
}
