//! The world of a scenario: one job, its objects and strangers' ones, as JSON, and a clock that only commands move.
//!
//! It answers writes as an API server does where a decision can tell: preconditions, names, grace, garbage collection.

use super::words;
use anyhow::{Context, bail, ensure};
use decide::{
    Action, Snapshot, Waiting, Write, build,
    plan::{Answer, Descriptor, Event, Fault, JobKind},
    status::Published,
    time::rfc3339,
    waiting::object,
};
use jiff::{SignedDuration, Timestamp};
use sandbox::Plugins;
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};

/// Midnight UTC at the beginning of 2026, when every scenario begins.
const BEGINNING: i64 = 1_767_225_600;

/// Kind and name.
pub(super) type Key = (String, String);

/// What serves the job.
#[derive(Clone)]
pub(super) struct Served {
    pub(super) framework: Arc<Descriptor>,
    pub(super) kind: Arc<JobKind>,
    pub(super) digest: String,
}

/// Everything a scenario can change.
pub(super) struct World {
    pub(super) plugins: Plugins,
    pub(super) now: Timestamp,
    pub(super) served: Option<Served>,
    pub(super) job: Option<Value>,
    /// The job as it was submitted, to be submitted again.
    manifest: Value,
    pub(super) objects: BTreeMap<Key, Value>,
    pub(super) published: Option<Published>,
    /// Events in the order in which they were told.
    pub(super) told: Vec<(Timestamp, Event)>,
    /// What the plugin says instead of its answer.
    pub(super) fault: Option<Fault>,
    /// Patterns of objects that an admission refuses to create, and why.
    pub(super) refused: Vec<(String, String)>,
    /// The job's CRD drops `status.troupe`.
    pub(super) prunes: bool,
    writes: u64,
    uids: u64,
}

impl World {
    pub(super) fn new(plugins: Plugins) -> Self {
        Self {
            plugins,
            now: Timestamp::from_second(BEGINNING).unwrap_or(Timestamp::UNIX_EPOCH),
            served: None,
            job: None,
            manifest: Value::Null,
            objects: BTreeMap::new(),
            published: None,
            told: vec![],
            fault: None,
            refused: vec![],
            prunes: false,
            writes: 0,
            uids: 0,
        }
    }

    /// A user submits a job.
    pub(super) fn submit(&mut self, manifest: Value) -> anyhow::Result<()> {
        ensure!(self.job.is_none(), "there is a job already; delete or recreate it");
        let mut job = manifest.clone();
        let kind = (text(&job, "/apiVersion"), text(&job, "/kind"));
        let frameworks = self.plugins.frameworks();
        let served = frameworks.iter().find_map(|(framework, digest)| {
            let found = framework.kinds.iter().find(|known| (known.api_version(), known.kind.clone()) == kind)?;
            let kind = Arc::new(found.clone());
            Some(Served { framework: Arc::clone(framework), kind, digest: digest.clone() })
        });
        self.served = Some(served.with_context(|| format!("no plugin serves {} {}", kind.0, kind.1))?);
        self.born(&mut job);
        job["metadata"]["generation"] = json!(1);
        self.manifest = manifest;
        self.published = None;
        self.job = Some(job);
        Ok(())
    }

    /// A user deletes the job and submits it again.
    pub(super) fn recreate(&mut self) -> anyhow::Result<()> {
        self.delete_job(false)?;
        ensure!(self.job.is_none(), "the job is still being deleted");
        self.submit(self.manifest.clone())
    }

    /// A user deletes the job; in the foreground it stays until its objects are gone.
    pub(super) fn delete_job(&mut self, foreground: bool) -> anyhow::Result<()> {
        let uid = self.uid()?;
        let at = rfc3339(self.now);
        if let Some(job) = &mut self.job {
            job["metadata"]["deletionTimestamp"] = json!(at);
            if foreground {
                let mut finalizers = finalizers(job);
                finalizers.push("foregroundDeletion".into());
                job["metadata"]["finalizers"] = json!(finalizers);
            }
        }
        if foreground {
            self.collect(&uid);
        }
        self.touch_job();
        self.sweep();
        Ok(())
    }

    /// A user edits the job.
    pub(super) fn edit(&mut self, path: &str, value: Value) -> anyhow::Result<()> {
        let job = self.job.as_mut().context("there is no job")?;
        words::set(job, path, value)?;
        if path.starts_with("spec") {
            job["metadata"]["generation"] = json!(job["metadata"]["generation"].as_i64().unwrap_or(0) + 1);
        }
        self.touch_job();
        self.sweep();
        Ok(())
    }

    /// Makes a write of the host.
    ///
    /// # Errors
    /// What the host would wait for.
    pub(super) fn apply(
        &mut self,
        snapshot: &Snapshot,
        answer: Option<&Answer>,
        action: &Action,
    ) -> anyhow::Result<Result<(), Waiting>> {
        let key = (action.kind.clone(), action.name.clone());
        match action.write() {
            Write::Create(part) => {
                let body = answer.and_then(|answer| build::body(snapshot, answer, *part));
                self.create(action, key, body.with_context(|| format!("{action}: the plan has no such part"))?)
            }
            Write::CreateSecret { recipe, metadata } => {
                let data = json!({ &recipe.private_key: "(private key)", &recipe.public_key: "(public key)" });
                let body = json!({ "kind": "Secret", "metadata": metadata, "type": recipe.secret_type, "data": data });
                self.create(action, key, body)
            }
            Write::Require if self.objects.contains_key(&key) => Ok(Ok(())),
            Write::Require => Ok(Err(Waiting::Deleted { kind: key.0, name: key.1 })),
            Write::Patch(patch) | Write::PatchStatus(patch) => self.patch(&key, patch).map(Ok),
            Write::Delete { uid, .. } if self.uid().is_ok_and(|job| job == *uid) => self.delete_job(false).map(Ok),
            Write::Delete { uid, .. } => {
                if self.objects.get(&key).is_some_and(|object| uid_of(object) == *uid) {
                    self.delete(&key);
                }
                Ok(Ok(()))
            }
        }
    }

    fn create(&mut self, action: &Action, key: Key, body: Value) -> anyhow::Result<Result<(), Waiting>> {
        let uid = self.uid()?;
        ensure!(owner_uid(&body).as_deref() == Some(&*uid), "{action}: it has no owner reference to the job");
        let called = object(&key.0, &key.1);
        if let Some((_, why)) = self.refused.iter().find(|(pattern, _)| words::matches(pattern, &called)) {
            return Ok(Err(Waiting::Refused { attempt: action.to_string(), why: why.clone() }));
        }
        match self.objects.get(&key) {
            Some(there) if owner_uid(there).as_deref() == Some(&*uid) => Ok(Ok(())),
            Some(_) => Ok(Err(Waiting::NameTaken { kind: key.0, name: key.1 })),
            None => {
                self.insert(key, body);
                Ok(Ok(()))
            }
        }
    }

    fn patch(&mut self, key: &Key, patch: &Value) -> anyhow::Result<()> {
        let of_job = self.served.as_ref().is_some_and(|served| served.kind.kind == key.0);
        let there = if of_job { self.job.as_mut() } else { self.objects.get_mut(key) };
        let there = there.with_context(|| format!("{key:?} is patched and does not exist"))?;
        let mut merged = patch.clone();
        for field in ["uid", "resourceVersion"] {
            let wanted = merged.pointer_mut(&format!("/metadata/{field}")).map(Value::take);
            ensure!(
                wanted.as_ref() == there.pointer(&format!("/metadata/{field}")),
                "{key:?}: {field} is not the current one"
            );
            words::set(&mut merged, &format!("metadata.{field}"), wanted.unwrap_or_default())?;
        }
        merge(there, &merged);
        self.writes += 1;
        there["metadata"]["resourceVersion"] = json!(self.writes.to_string());
        self.sweep();
        Ok(())
    }

    /// Writes the job's status by a merge patch.
    pub(super) fn patch_status(&mut self, patch: &Value) -> anyhow::Result<Value> {
        let Some(served) = &self.served else { bail!("there is no job") };
        let key = (served.kind.kind.clone(), self.job_name());
        let mut patch = patch.clone();
        if let Some(status) = patch["status"].as_object_mut().filter(|_| self.prunes) {
            status.remove("troupe");
        }
        self.patch(&key, &patch)?;
        Ok(self.job.as_ref().and_then(|job| job.get("status").cloned()).unwrap_or_default())
    }

    /// An object of nobody or of the host comes to be.
    pub(super) fn insert(&mut self, key: Key, mut object: Value) {
        self.born(&mut object);
        if key.0 == "Pod" {
            object["status"] = json!({ "phase": "Pending" });
        }
        self.objects.insert(key, object);
    }

    /// Deletes as the API server does: a pod on a node gets its grace, what has ended or was never bound goes at once.
    pub(super) fn delete(&mut self, key: &Key) {
        let Some(object) = self.objects.get_mut(key) else { return };
        let ended = matches!(text(object, "/status/phase").as_str(), "Succeeded" | "Failed");
        if key.0 == "Pod" && !ended && object.pointer("/spec/nodeName").is_some() {
            object["metadata"]["deletionTimestamp"] = json!(rfc3339(self.now));
            self.touch(key);
        } else {
            self.remove(key);
        }
    }

    /// The object is gone, and what it controls goes too.
    pub(super) fn remove(&mut self, key: &Key) {
        if let Some(object) = self.objects.remove(key) {
            self.collect(&uid_of(&object));
        }
        self.sweep();
    }

    fn collect(&mut self, uid: &str) {
        let owned: Vec<Key> = self.owned_by(uid).map(|(key, _)| key.clone()).collect();
        owned.iter().for_each(|key| self.delete(key));
    }

    /// A deleted job goes once nothing holds it.
    fn sweep(&mut self) {
        let Some(job) = &self.job else { return };
        let uid = uid_of(job);
        let held = finalizers(job).iter().any(|finalizer| match finalizer.as_str() {
            "foregroundDeletion" => self.owned_by(&uid).next().is_some(),
            _ => true,
        });
        if job.pointer("/metadata/deletionTimestamp").is_some() && !held {
            self.job = None;
            self.collect(&uid);
        }
    }

    pub(super) fn owned_by(&self, uid: &str) -> impl Iterator<Item = (&Key, &Value)> {
        self.objects.iter().filter(move |(_, object)| owner_uid(object).as_deref() == Some(uid))
    }

    /// The object was written by somebody.
    pub(super) fn touch(&mut self, key: &Key) {
        self.writes += 1;
        if let Some(object) = self.objects.get_mut(key) {
            object["metadata"]["resourceVersion"] = json!(self.writes.to_string());
        }
    }

    fn touch_job(&mut self) {
        self.writes += 1;
        if let Some(job) = &mut self.job {
            job["metadata"]["resourceVersion"] = json!(self.writes.to_string());
        }
    }

    fn born(&mut self, object: &mut Value) {
        self.writes += 1;
        self.uids += 1;
        object["metadata"]["uid"] = json!(format!("uid-{}", self.uids));
        object["metadata"]["resourceVersion"] = json!(self.writes.to_string());
        object["metadata"]["creationTimestamp"] = json!(rfc3339(self.now));
    }

    pub(super) fn pass_time(&mut self, time: SignedDuration) {
        self.now = self.now.saturating_add(time).unwrap_or(self.now);
    }

    /// The job's name, also of one that is gone.
    pub(super) fn job_name(&self) -> String {
        text(&self.manifest, "/metadata/name")
    }

    fn uid(&self) -> anyhow::Result<String> {
        Ok(uid_of(self.job.as_ref().context("there is no job")?))
    }
}

/// The text at a JSON pointer, or "".
pub(super) fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

pub(super) fn uid_of(object: &Value) -> String {
    text(object, "/metadata/uid")
}

pub(super) fn controller(object: &Value) -> Option<&Value> {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().find(|owner| owner["controller"] == true)
}

pub(super) fn owner_uid(object: &Value) -> Option<String> {
    controller(object).map(|owner| text(owner, "/uid"))
}

pub(super) fn finalizers(object: &Value) -> Vec<String> {
    let listed = object["metadata"].get("finalizers").and_then(Value::as_array).into_iter().flatten();
    listed.filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

/// Merges a patch as RFC 7386 says.
pub(super) fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (name, value) in fields {
        match value {
            Value::Null => drop(into.as_object_mut().map(|fields| fields.remove(name))),
            value => merge(&mut into[name.as_str()], value),
        }
    }
}
