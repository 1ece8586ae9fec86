//! Deletion: grace periods of pods, finalizers, and the hand-over to the garbage collector.

use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::defaults::remove;
use crate::error::{ApiError, Fault};
use crate::shape::{bump, tidy};
use crate::store::{Kind, deleting, finalizers, has_finalizer, text, uid};
use crate::verbs::Target;
use crate::world::{World, parse, stamp};

pub(crate) const FOREGROUND: &str = "foregroundDeletion";
pub(crate) const ORPHAN: &str = "orphan";

/// What happens to the dependents of a deleted object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// The `DeleteOptions` that the simulator honours.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) uid: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) grace: Option<i64>,
    pub(crate) propagation: Option<Propagation>,
    pub(crate) dry_run: bool,
}

impl DeleteOptions {
    pub(crate) fn parse(body: &Value) -> Result<Self, ApiError> {
        let refused = |fault: Fault| {
            let kind = Kind::new("meta.k8s.io/v1", "DeleteOptions", "", false, false);
            Err(ApiError::invalid(&kind, "DeleteOptions", "", &[fault]))
        };
        if body["propagationPolicy"].is_string() && body["orphanDependents"].is_boolean() {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            return refused(Fault::invalid("propagationPolicy", &body["propagationPolicy"], why));
        }
        let propagation = match body["propagationPolicy"].as_str() {
            None => match body["orphanDependents"].as_bool() {
                Some(true) => Some(Propagation::Orphan),
                Some(false) => Some(Propagation::Background),
                None => None,
            },
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Orphan") => Some(Propagation::Orphan),
            Some(other) => {
                let fault = Fault::unsupported(
                    "propagationPolicy",
                    &json!(other),
                    &["Foreground", "Background", "Orphan", "nil"],
                );
                return refused(fault);
            }
        };
        let precondition = |field: &str| body["preconditions"][field].as_str().map(str::to_owned);
        Ok(Self {
            uid: precondition("uid"),
            version: precondition("resourceVersion"),
            grace: body["gracePeriodSeconds"].as_i64(),
            propagation,
            dry_run: body["dryRun"].as_array().is_some_and(|list| !list.is_empty()),
        })
    }

    pub(crate) fn background() -> Self {
        Self { propagation: Some(Propagation::Background), ..Self::default() }
    }

    pub(crate) fn at_once() -> Self {
        Self { grace: Some(0), ..Self::background() }
    }
}

/// The outcome of a delete.
#[derive(Debug, Clone)]
pub(crate) enum Deleted {
    /// Removed from the store.
    Gone(Arc<Value>),
    /// Marked for deletion: waits for its kubelet, its finalizers or its dependents.
    Marked(Arc<Value>),
}

impl World {
    /// Deletes an object as a DELETE request does.
    pub(crate) fn delete(&mut self, target: &Target, options: &DeleteOptions) -> Result<Deleted, ApiError> {
        let (kind, location) = (&target.kind, target.location());
        let Some(old) = self.store.get(&location).cloned() else {
            return Err(ApiError::not_found(kind, &target.name));
        };
        if let Some(want) = options.uid.as_deref().filter(|want| *want != uid(&old)) {
            let why = format!(
                "the UID in the precondition ({want}) does not match the UID in record ({}). The object might have been \
                 deleted and then recreated",
                uid(&old)
            );
            return Err(ApiError::precondition(kind, &target.name, &why));
        }
        let version = text(&old["metadata"]["resourceVersion"]);
        if let Some(want) = options.version.as_deref().filter(|want| *want != version) {
            let why = format!(
                "the ResourceVersion in the precondition ({want}) does not match the ResourceVersion in record \
                 ({version}). The object might have been modified"
            );
            return Err(ApiError::precondition(kind, &target.name, &why));
        }
        let mut new = (*old).clone();
        let (grace, marked) = match self.graceful(kind, &mut new, options) {
            Grace::Pending => return Ok(Deleted::Marked(old)),
            Grace::Now => (0, false),
            Grace::Marked(seconds) => (seconds, true),
        };
        new["metadata"]["finalizers"] = json!(deletion_finalizers(kind, &new, options.propagation));
        let waits = !finalizers(&new).is_empty() || held(kind, &new);
        if !waits && grace == 0 {
            let gone = if target.dry_run || options.dry_run {
                old
            } else {
                if marked {
                    tidy(&mut new);
                    self.commit(&target.actor, location.clone(), Some(new));
                }
                self.commit(&target.actor, location, None)
            };
            return Ok(Deleted::Gone(gone));
        }
        if !marked {
            self.mark(&old, &mut new);
        }
        if kind.is("Namespace") {
            remove(&mut new["metadata"], "deletionGracePeriodSeconds");
            new["status"]["phase"] = json!("Terminating");
        }
        tidy(&mut new);
        if new == *old || target.dry_run || options.dry_run {
            return Ok(Deleted::Marked(Arc::new(new)));
        }
        Ok(Deleted::Marked(self.commit(&target.actor, location, Some(new))))
    }

    /// Marks an object of a kind without graceful deletion.
    fn mark(&self, old: &Value, new: &mut Value) {
        let now = self.stamp();
        if !deleting(old) {
            bump(old, new);
        }
        if !deleting(old) || text(&old["metadata"]["deletionTimestamp"]) > now.as_str() {
            new["metadata"]["deletionTimestamp"] = json!(now);
        }
        new["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    }

    /// Sets the deletion timestamp of a pod, and returns the grace for its kubelet.
    fn graceful(&self, kind: &Kind, object: &mut Value, options: &DeleteOptions) -> Grace {
        if !kind.is("Pod") {
            return Grace::Now;
        }
        let asked = options.grace.map(|grace| if grace < 0 { 1 } else { grace });
        let now = self.now();
        if deleting(object) {
            let pending = object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
            if pending == 0 {
                return Grace::Now;
            }
            let Some(asked) = asked.filter(|asked| *asked < pending) else {
                return Grace::Pending;
            };
            let due = parse(&object["metadata"]["deletionTimestamp"]).unwrap_or(now);
            let due = due - SignedDuration::from_secs(pending) + SignedDuration::from_secs(asked);
            let (due, asked) = if due < now { (now, asked.min(1)) } else { (due, asked) };
            object["metadata"]["deletionTimestamp"] = json!(stamp(due));
            object["metadata"]["deletionGracePeriodSeconds"] = json!(asked);
            return Grace::Marked(asked);
        }
        let wanted = asked.or(object["spec"]["terminationGracePeriodSeconds"].as_i64()).unwrap_or(0);
        let bound = !text(&object["spec"]["nodeName"]).is_empty();
        let terminal = matches!(text(&object["status"]["phase"]), "Succeeded" | "Failed");
        let grace = if bound && !terminal { wanted.max(0) } else { 0 };
        let before = object.clone();
        bump(&before, object);
        object["metadata"]["deletionTimestamp"] = json!(stamp(now + SignedDuration::from_secs(grace)));
        object["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
        Grace::Marked(grace)
    }
}

enum Grace {
    /// Deletion is in progress, and this request does not shorten it.
    Pending,
    /// The kind or the object has no grace period.
    Now,
    Marked(i64),
}

/// Whether a namespace still has `spec.finalizers`.
pub(crate) fn held(kind: &Kind, object: &Value) -> bool {
    kind.is("Namespace") && object["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty())
}

/// Returns the finalizers of a deleted object, including those for its garbage collection.
fn deletion_finalizers(kind: &Kind, object: &Value, asked: Option<Propagation>) -> Vec<String> {
    let mut list = finalizers(object);
    if kind.is("Event") {
        return list;
    }
    let policy = asked.unwrap_or_else(|| {
        if has_finalizer(object, ORPHAN) {
            Propagation::Orphan
        } else if has_finalizer(object, FOREGROUND) {
            Propagation::Foreground
        } else if kind.is("Job") {
            // batch/v1 still orphans by default.
            Propagation::Orphan
        } else {
            Propagation::Background
        }
    });
    list.retain(|finalizer| finalizer != ORPHAN && finalizer != FOREGROUND);
    match policy {
        Propagation::Orphan => list.push(ORPHAN.into()),
        Propagation::Foreground => list.push(FOREGROUND.into()),
        Propagation::Background => {}
    }
    list
}
