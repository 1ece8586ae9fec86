//! What create, update, patch and delete do to a stored object: the rules of the API server's registry.

use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::{Map, Value, json};

use crate::defaults::{self, remove};
use crate::error::{ApiError, Fault};
use crate::patch;
use crate::store::{Kind, Place, deleting, finalizers, has_finalizer, key, name, text, uid};
use crate::validate;
use crate::world::{World, parse, stamp};

pub(crate) const FOREGROUND: &str = "foregroundDeletion";
pub(crate) const ORPHAN: &str = "orphan";

/// What a write is about, and who asks.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) actor: String,
    pub(crate) kind: Arc<Kind>,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
    pub(crate) dry_run: bool,
}

impl Target {
    pub(crate) fn place(&self) -> Place {
        Place {
            table: self.kind.table(),
            key: key(&self.namespace, &self.name),
        }
    }

    /// The simulator's own write to an object.
    pub(crate) fn own(actor: &str, kind: &Arc<Kind>, object: &Value) -> Self {
        Self {
            actor: actor.to_owned(),
            kind: kind.clone(),
            namespace: crate::store::namespace(object).to_owned(),
            name: name(object).to_owned(),
            subresource: String::new(),
            dry_run: false,
        }
    }
}

/// The new content of an object.
#[derive(Debug, Clone)]
pub(crate) enum Edit {
    Put(Value),
    Merge(Value),
    Strategic(Value),
    Json(Value),
    Apply(Value),
}

/// What happens to the dependents of a deleted object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// `DeleteOptions`, as far as the simulator honours them.
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
                let kind = Kind::new("meta.k8s.io/v1", "DeleteOptions", "", false, false);
                let fault = Fault::unsupported(
                    "propagationPolicy",
                    &json!(other),
                    &["Foreground", "Background", "Orphan", "nil"],
                );
                return Err(ApiError::invalid(&kind, "DeleteOptions", "", &[fault]));
            }
        };
        let precondition = |field: &str| body["preconditions"][field].as_str().map(str::to_owned);
        Ok(Self {
            uid: precondition("uid"),
            version: precondition("resourceVersion"),
            grace: body["gracePeriodSeconds"].as_i64(),
            propagation,
            dry_run: body["dryRun"]
                .as_array()
                .is_some_and(|list| !list.is_empty()),
        })
    }

    pub(crate) fn background() -> Self {
        Self {
            propagation: Some(Propagation::Background),
            ..Self::default()
        }
    }

    pub(crate) fn at_once() -> Self {
        Self {
            grace: Some(0),
            ..Self::background()
        }
    }
}

/// The outcome of a delete.
#[derive(Debug, Clone)]
pub(crate) enum Deleted {
    /// Gone from the store.
    Gone(Arc<Value>),
    /// Marked, and waiting for its kubelet, its finalizers or its dependents.
    Marked(Arc<Value>),
}

impl World {
    /// Creates an object as a POST does.
    pub(crate) fn create(
        &mut self,
        target: &Target,
        mut object: Value,
    ) -> Result<Arc<Value>, ApiError> {
        let kind = &target.kind;
        same_kind(kind, &mut object)?;
        if !object["metadata"].is_object() {
            object["metadata"] = json!({});
        }
        let stamp = self.stamp();
        for field in [
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
            "managedFields",
            "generation",
        ] {
            remove(&mut object["metadata"], field);
        }
        same_namespace(target, &mut object)?;
        if kind.namespaced {
            self.open_namespace(target, &object)?;
        }
        let versioned = !matches!(text(&object["metadata"]["resourceVersion"]), "" | "0");
        remove(&mut object["metadata"], "resourceVersion");
        let generated = text(&object["metadata"]["name"]).is_empty()
            && object["metadata"]["generateName"].is_string();
        if generated {
            let base: String = text(&object["metadata"]["generateName"])
                .chars()
                .take(58)
                .collect();
            let suffix = self.dice("generated name").suffix();
            object["metadata"]["name"] = json!(format!("{base}{suffix}"));
        }
        object["metadata"]["uid"] = json!(self.dice("uid").uid());
        object["metadata"]["creationTimestamp"] = json!(stamp);
        if kind.generations() {
            object["metadata"]["generation"] = json!(1);
        }
        let mut address = || self.cluster_ip();
        defaults::complete(kind, &mut object, &mut address, &stamp);
        defaults::settle(kind, &mut object);
        tidy_metadata(&mut object);
        let faults = validate::new_object(kind, &object);
        if !faults.is_empty() {
            return Err(ApiError::invalid(kind, &kind.kind, name(&object), &faults));
        }
        if versioned {
            let message = "resourceVersion should not be set on objects to be created";
            return Err(ApiError::new(500, "", message));
        }
        let place = Place {
            table: kind.table(),
            key: key(crate::store::namespace(&object), name(&object)),
        };
        if self.store.get(&place).is_some() {
            return Err(if generated {
                ApiError::generated_name_taken(kind, name(&object))
            } else {
                ApiError::already_exists(kind, name(&object))
            });
        }
        if target.dry_run {
            return Ok(Arc::new(object));
        }
        Ok(self.commit(&target.actor, place, Some(object)))
    }

    /// Refuses content for a namespace that does not exist or is being deleted.
    fn open_namespace(&self, target: &Target, object: &Value) -> Result<(), ApiError> {
        let Some(namespaces) = self.store.kind("/namespaces") else {
            return Ok(());
        };
        let place = Place {
            table: namespaces.table(),
            key: target.namespace.clone(),
        };
        let Some(namespace) = self.store.get(&place) else {
            return Err(ApiError::not_found(&namespaces, &target.namespace));
        };
        if !deleting(namespace) {
            return Ok(());
        }
        let why = format!(
            "unable to create new content in namespace {} because it is being terminated",
            target.namespace
        );
        let mut error = ApiError::of(
            403,
            "Forbidden",
            &target.kind,
            name(object),
            format!(
                "{} {:?} is forbidden: {why}",
                target.kind.resource(),
                name(object)
            ),
        );
        if let Some(details) = &mut error.details {
            details["causes"] = json!([{
                "reason": "NamespaceTerminating",
                "message": format!("namespace {} is being terminated", target.namespace),
                "field": "metadata.namespace",
            }]);
        }
        Err(error)
    }

    /// Updates an object as a PUT or PATCH does; true when that created it.
    pub(crate) fn update(
        &mut self,
        target: &Target,
        edit: Edit,
    ) -> Result<(Arc<Value>, bool), ApiError> {
        let (kind, place) = (&target.kind, target.place());
        let Some(old) = self.store.get(&place).cloned() else {
            return match edit {
                Edit::Put(object) if kind.create_on_update() => {
                    self.create(target, object).map(|made| (made, true))
                }
                Edit::Apply(mut object) if target.subresource.is_empty() => {
                    object["metadata"]["name"] = json!(target.name);
                    self.create(target, object).map(|made| (made, true))
                }
                _ => Err(ApiError::not_found(kind, &target.name)),
            };
        };
        let put = matches!(edit, Edit::Put(_));
        let mut new = edited(kind, &old, edit)?;
        same_kind(kind, &mut new)?;
        same_namespace(target, &mut new)?;
        match name(&new) {
            "" => new["metadata"]["name"] = json!(target.name),
            other if other != target.name => {
                return Err(ApiError::bad_request(format!(
                    "the name of the object ({other}) does not match the name on the URL ({})",
                    target.name
                )));
            }
            _ => {}
        }
        if put && !uid(&new).is_empty() && uid(&new) != uid(&old) {
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
                 failed: UID in precondition: {}, UID in object meta: {}",
                kind.etcd_key(&place.key),
                uid(&new),
                uid(&old)
            );
            return Err(ApiError::conflict(kind, &target.name, &why));
        }
        match text(&new["metadata"]["resourceVersion"]) {
            "" | "0" if !kind.unconditional_update() => {
                let fault = Fault::invalid(
                    "metadata.resourceVersion",
                    &json!(0),
                    "must be specified for an update",
                );
                return Err(ApiError::invalid(
                    kind,
                    &kind.plural,
                    &target.name,
                    &[fault],
                ));
            }
            "" | "0" => {}
            version if version.parse::<u64>().is_err() => {
                let message = format!("strconv.ParseUint: parsing {version:?}: invalid syntax");
                return Err(ApiError::new(500, "", message));
            }
            version if version != text(&old["metadata"]["resourceVersion"]) => {
                return Err(ApiError::stale(kind, &target.name));
            }
            _ => {}
        }
        prepare(target, &old, &mut new);
        defaults::settle(kind, &mut new);
        let faults = validate::update(kind, &old, &new);
        if !faults.is_empty() {
            return Err(ApiError::invalid(kind, &kind.kind, &target.name, &faults));
        }
        let patience = new["metadata"]["deletionGracePeriodSeconds"]
            .as_i64()
            .unwrap_or(0);
        if deleting(&new) && finalizers(&new).is_empty() && patience == 0 && !held(kind, &new) {
            if !target.dry_run {
                self.commit(&target.actor, place, None);
            }
            return Ok((Arc::new(new), false));
        }
        if new == *old {
            return Ok((old, false));
        }
        if target.dry_run {
            return Ok((Arc::new(new), false));
        }
        Ok((self.commit(&target.actor, place, Some(new)), false))
    }

    /// Deletes an object as a DELETE does.
    pub(crate) fn delete(
        &mut self,
        target: &Target,
        options: &DeleteOptions,
    ) -> Result<Deleted, ApiError> {
        let (kind, place) = (&target.kind, target.place());
        let Some(old) = self.store.get(&place).cloned() else {
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
                    tidy_metadata(&mut new);
                    self.commit(&target.actor, place.clone(), Some(new));
                }
                self.commit(&target.actor, place, None)
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
        tidy_metadata(&mut new);
        if new == *old || target.dry_run || options.dry_run {
            return Ok(Deleted::Marked(Arc::new(new)));
        }
        Ok(Deleted::Marked(self.commit(
            &target.actor,
            place,
            Some(new),
        )))
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

    /// Sets the deletion timestamp of a pod, and decides how long its kubelet has.
    fn graceful(&self, kind: &Kind, object: &mut Value, options: &DeleteOptions) -> Grace {
        if !kind.is("Pod") {
            return Grace::Now;
        }
        let asked = options.grace.map(|grace| if grace < 0 { 1 } else { grace });
        let now = self.now();
        if deleting(object) {
            let pending = object["metadata"]["deletionGracePeriodSeconds"]
                .as_i64()
                .unwrap_or(0);
            if pending == 0 {
                return Grace::Now;
            }
            let Some(asked) = asked.filter(|asked| *asked < pending) else {
                return Grace::Pending;
            };
            let due = parse(&object["metadata"]["deletionTimestamp"]).unwrap_or(now);
            let due = due - SignedDuration::from_secs(pending) + SignedDuration::from_secs(asked);
            let (due, asked) = if due < now {
                (now, asked.min(1))
            } else {
                (due, asked)
            };
            object["metadata"]["deletionTimestamp"] = json!(stamp(due));
            object["metadata"]["deletionGracePeriodSeconds"] = json!(asked);
            return Grace::Marked(asked);
        }
        let wanted = asked
            .or(object["spec"]["terminationGracePeriodSeconds"].as_i64())
            .unwrap_or(0);
        let bound = !text(&object["spec"]["nodeName"]).is_empty();
        let terminal = matches!(text(&object["status"]["phase"]), "Succeeded" | "Failed");
        let grace = if bound && !terminal { wanted.max(0) } else { 0 };
        let before = object.clone();
        bump(&before, object);
        object["metadata"]["deletionTimestamp"] =
            json!(stamp(now + SignedDuration::from_secs(grace)));
        object["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
        Grace::Marked(grace)
    }
}

enum Grace {
    /// Deletion is under way, and this request does not shorten it.
    Pending,
    /// The kind or the object knows no grace.
    Now,
    Marked(i64),
}

/// Namespaces are held by `spec.finalizers`.
fn held(kind: &Kind, object: &Value) -> bool {
    kind.is("Namespace")
        && object["spec"]["finalizers"]
            .as_array()
            .is_some_and(|list| !list.is_empty())
}

fn bump(old: &Value, new: &mut Value) {
    if let Some(generation) = old["metadata"]["generation"].as_i64() {
        new["metadata"]["generation"] = json!(generation + 1);
    }
}

/// The finalizers of a deleted object, those for its garbage collection included.
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
            // batch/v1 still orphans unless told otherwise.
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

fn edited(kind: &Kind, old: &Value, edit: Edit) -> Result<Value, ApiError> {
    let mut new = old.clone();
    match edit {
        Edit::Put(object) => return Ok(object),
        Edit::Merge(patch) => {
            let found = match &patch {
                Value::Object(_) => "",
                Value::String(_) => "string",
                Value::Array(_) => "array",
                Value::Bool(_) => "bool",
                _ => "number",
            };
            if !found.is_empty() {
                return Err(ApiError::bad_request(format!(
                    "error decoding patch: json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
                )));
            }
            patch::merge(&mut new, &patch);
        }
        Edit::Json(patch) => patch::json_patch(&mut new, &patch)?,
        Edit::Strategic(patch) if kind.builtin() => patch::strategic(&mut new, &patch),
        Edit::Strategic(_) => {
            return Err(ApiError::new(
                415,
                "UnsupportedMediaType",
                "the body of the request was in an unknown format - accepted media types include: \
                 application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            ));
        }
        Edit::Apply(patch) => patch::strategic(&mut new, &patch),
    }
    Ok(new)
}

/// Restores what a write may not touch, and counts a change of the spec.
fn prepare(target: &Target, old: &Value, new: &mut Value) {
    let kind = &target.kind;
    if !new["metadata"].is_object() {
        new["metadata"] = old["metadata"].clone();
    }
    let kept = ["creationTimestamp", "generation", "resourceVersion"];
    let sticky = ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"];
    for field in kept {
        keep(&mut new["metadata"], &old["metadata"], field);
    }
    for field in sticky {
        if new["metadata"].get(field).is_none_or(Value::is_null)
            || (field != "uid" && deleting(old))
        {
            keep(&mut new["metadata"], &old["metadata"], field);
        }
    }
    remove(&mut new["metadata"], "managedFields");
    remove(&mut new["metadata"], "selfLink");
    match target.subresource.as_str() {
        "status" if !kind.builtin() => {
            let status = new.get("status").cloned();
            *new = old.clone();
            match status {
                Some(status) => new["status"] = status,
                None => remove(new, "status"),
            }
            return;
        }
        "status" => {
            keep(new, old, "spec");
            keep(&mut new["metadata"], &old["metadata"], "deletionTimestamp");
            if kind.is("Pod") {
                keep(&mut new["metadata"], &old["metadata"], "ownerReferences");
                if text(&new["status"]["qosClass"]).is_empty() {
                    keep_in(new, old, "status", "qosClass");
                }
            }
        }
        _ if kind.status => keep(new, old, "status"),
        _ => {}
    }
    tidy_metadata(new);
    let counted = |object: &Value| {
        let mut object = object.clone();
        remove(&mut object, "metadata");
        if kind.builtin() {
            object["spec"].clone()
        } else {
            object
        }
    };
    if kind.generations() && counted(old) != counted(new) {
        bump(old, new);
    }
}

fn keep(new: &mut Value, old: &Value, field: &str) {
    match old.get(field) {
        Some(value) => new[field] = value.clone(),
        None => remove(new, field),
    }
}

fn keep_in(new: &mut Value, old: &Value, parent: &str, field: &str) {
    if let Some(value) = old[parent].get(field) {
        new[parent][field] = value.clone();
    }
}

fn same_kind(kind: &Kind, object: &mut Value) -> Result<(), ApiError> {
    let raw = object.clone();
    let Value::Object(fields) = object else {
        let message = "couldn't get version/kind; json parse error: json: cannot unmarshal into Go value";
        return Err(ApiError::bad_request(message));
    };
    let said = |field: &str| text(&raw[field]);
    let (expected, version) = (kind.kind.as_str(), kind.api_version());
    let (have, had_version) = (said("kind"), said("apiVersion"));
    if have.is_empty() && !kind.builtin() {
        return Err(ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {expected}): Object 'Kind' is missing in '{raw}' ({raw})"
        )));
    }
    if !had_version.is_empty() && had_version != version {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({had_version}) does not match the expected API version ({version})"
        )));
    }
    if !have.is_empty() && have != expected {
        if !kind.builtin() {
            let fault = Fault::invalid("kind", &json!(have), &format!("must be {expected}"));
            return Err(ApiError::invalid(kind, have, name(&raw), &[fault]));
        }
        let group = if kind.group.is_empty() { "core" } else { &kind.group };
        let (package, have_version) = (group.split('.').next().unwrap_or_default(), &kind.version);
        return Err(ApiError::bad_request(format!(
            "{have} in version {have_version:?} cannot be handled as a {expected}: converting ({have_version}.{have}) to \
             ({package}.{expected}): unknown conversion"
        )));
    }
    fields.insert("apiVersion".into(), json!(version));
    fields.insert("kind".into(), json!(expected));
    Ok(())
}

fn same_namespace(target: &Target, object: &mut Value) -> Result<(), ApiError> {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    if !target.kind.namespaced {
        remove(&mut object["metadata"], "namespace");
        return Ok(());
    }
    let namespace = text(&object["metadata"]["namespace"]);
    if namespace.is_empty() {
        object["metadata"]["namespace"] = json!(target.namespace);
    } else if namespace != target.namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// Drops what encodes as nothing: nulls and empty maps and lists in the metadata.
fn tidy_metadata(object: &mut Value) {
    if let Value::Object(metadata) = &mut object["metadata"] {
        metadata.retain(|_, value| match value {
            Value::Null => false,
            Value::Object(map) => {
                map.retain(|_, value| !value.is_null());
                !map.is_empty()
            }
            Value::Array(list) => !list.is_empty(),
            Value::String(text) => !text.is_empty(),
            _ => true,
        });
    }
    let event = object["kind"] == "Event";
    if let Value::Object(fields) = object {
        // Only events show the times they lack.
        fields.retain(|_, value| event || !value.is_null());
        fields
            .entry("metadata")
            .or_insert_with(|| Value::Object(Map::new()));
    }
}
