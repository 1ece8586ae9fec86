//! Create, update, patch and delete of a stored object: the rules of the API server's registry.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::Uids;
use crate::defaults::{self, remove};
use crate::delete::held;
use crate::error::{ApiError, Fault};
use crate::patch;
use crate::quota;
use crate::shape::{bump, same_kind, same_namespace, tidy};
use crate::store::{Kind, Location, deleting, finalizers, key, name, text, uid};
use crate::validate;
use crate::world::World;

/// The target and the actor of a write.
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
    pub(crate) fn location(&self) -> Location {
        Location { table: self.kind.table(), key: key(&self.namespace, &self.name) }
    }

    /// Returns the target of the simulator's own write to an object.
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

impl World {
    /// Creates an object as a POST request does.
    pub(crate) fn create(&mut self, target: &Target, mut object: Value) -> Result<Arc<Value>, ApiError> {
        let kind = &target.kind;
        let sent = (!self.hooks.is_empty()).then(|| object.clone());
        same_kind(kind, &mut object)?;
        if !object["metadata"].is_object() {
            object["metadata"] = json!({});
        }
        let stamp = self.stamp();
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields", "generation"] {
            remove(&mut object["metadata"], field);
        }
        same_namespace(target, &mut object)?;
        if kind.namespaced {
            self.open_namespace(target, &object)?;
        }
        let versioned = !matches!(text(&object["metadata"]["resourceVersion"]), "" | "0");
        remove(&mut object["metadata"], "resourceVersion");
        let generated = text(&object["metadata"]["name"]).is_empty() && object["metadata"]["generateName"].is_string();
        if generated {
            let base: String = text(&object["metadata"]["generateName"]).chars().take(58).collect();
            let suffix = self.dice("generated name").suffix();
            object["metadata"]["name"] = json!(format!("{base}{suffix}"));
        }
        let is_counted = self.uids == Uids::Counted && kind.namespaced && kind.kind != "Event";
        let uid = if is_counted { format!("uid-{}", self.next_number("object")) } else { self.dice("uid").uid() };
        object["metadata"]["uid"] = json!(uid);
        object["metadata"]["creationTimestamp"] = json!(stamp);
        if kind.generations() {
            object["metadata"]["generation"] = json!(1);
        }
        let mut address = || self.cluster_ip();
        defaults::complete(kind, &mut object, &mut address, &stamp);
        defaults::settle(kind, &mut object);
        tidy(&mut object);
        let faults = validate::new_object(kind, &object);
        if !faults.is_empty() {
            return Err(ApiError::invalid(kind, &kind.kind, name(&object), &faults));
        }
        if versioned {
            let message = "resourceVersion should not be set on objects to be created";
            return Err(ApiError::new(500, "", message));
        }
        if let Err(error) = quota::has_room(&self.store, kind, (&target.namespace, name(&object))) {
            self.trouble("refused by a quota that counts");
            return Err(error);
        }
        let location = Location { table: kind.table(), key: key(crate::store::namespace(&object), name(&object)) };
        if let Some(there) = self.store.get(&location) {
            let mut error = if generated {
                ApiError::generated_name_taken(kind, name(&object))
            } else {
                ApiError::already_exists(kind, name(&object))
            };
            if deleting(there) {
                error.message = format!("object is being deleted: {}", error.message);
            }
            return Err(error);
        }
        if target.dry_run {
            return Ok(Arc::new(object));
        }
        if is_counted {
            self.number("object");
        }
        self.sent = sent;
        Ok(self.commit(&target.actor, location, Some(object)))
    }

    /// Refuses objects in a namespace that does not exist or is being deleted.
    fn open_namespace(&self, target: &Target, object: &Value) -> Result<(), ApiError> {
        let Some(namespaces) = self.store.kind("/namespaces") else {
            return Ok(());
        };
        let location = Location { table: namespaces.table(), key: target.namespace.clone() };
        let Some(namespace) = self.store.get(&location) else {
            return Err(ApiError::not_found(&namespaces, &target.namespace));
        };
        if !deleting(namespace) {
            return Ok(());
        }
        let why =
            format!("unable to create new content in namespace {} because it is being terminated", target.namespace);
        let mut error = ApiError::of(
            403,
            "Forbidden",
            &target.kind,
            name(object),
            format!("{} {:?} is forbidden: {why}", target.kind.resource(), name(object)),
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

    /// Updates an object as a PUT or PATCH request does; returns true if that created it.
    pub(crate) fn update(&mut self, target: &Target, mut edit: Edit) -> Result<(Arc<Value>, bool), ApiError> {
        let (kind, location) = (&target.kind, target.location());
        let put = matches!(edit, Edit::Put(_));
        if let Edit::Put(object) = &mut edit {
            identify(target, object)?;
        }
        let Some(old) = self.store.get(&location).cloned() else {
            return match edit {
                Edit::Put(object) if kind.create_on_update() => self.create(target, object).map(|made| (made, true)),
                Edit::Apply(mut object) if target.subresource.is_empty() => {
                    object["metadata"]["name"] = json!(target.name);
                    self.create(target, object).map(|made| (made, true))
                }
                _ => Err(ApiError::not_found(kind, &target.name)),
            };
        };
        let mut new = edited(kind, &old, edit)?;
        for field in &kind.pruned {
            remove(&mut new["status"], field);
        }
        let version = text(&new["apiVersion"]);
        if !put && !kind.builtin() && version != kind.api_version() {
            let why = format!("must be {}", kind.api_version());
            let fault = Fault::invalid("apiVersion", &json!(version), &why);
            return Err(ApiError::invalid(kind, &kind.kind, &target.name, &[fault]));
        }
        identify(target, &mut new)?;
        if put && !uid(&new).is_empty() && uid(&new) != uid(&old) {
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
                 failed: UID in precondition: {}, UID in object meta: {}",
                kind.etcd_key(&location.key),
                uid(&new),
                uid(&old)
            );
            return Err(ApiError::conflict(kind, &target.name, &why));
        }
        match text(&new["metadata"]["resourceVersion"]) {
            "" | "0" if !kind.unconditional_update() => {
                let fault = Fault::invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
                return Err(ApiError::invalid(kind, &kind.plural, &target.name, &[fault]));
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
        let patience = new["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
        if deleting(&new) && finalizers(&new).is_empty() && patience == 0 && !held(kind, &new) {
            if !target.dry_run {
                self.commit(&target.actor, location, None);
            }
            return Ok((Arc::new(new), false));
        }
        if new == *old {
            return Ok((old, false));
        }
        if target.dry_run {
            return Ok((Arc::new(new), false));
        }
        Ok((self.commit(&target.actor, location, Some(new)), false))
    }
}

/// Refuses an object that does not match the URL.
fn identify(target: &Target, object: &mut Value) -> Result<(), ApiError> {
    same_kind(&target.kind, object)?;
    same_namespace(target, object)?;
    match name(object) {
        "" => Err(ApiError::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            target.name
        ))),
        other if other != target.name => Err(ApiError::bad_request(format!(
            "the name of the object ({other}) does not match the name on the URL ({})",
            target.name
        ))),
        _ => Ok(()),
    }
}

fn edited(kind: &Kind, old: &Value, edit: Edit) -> Result<Value, ApiError> {
    let mut new = old.clone();
    match edit {
        Edit::Put(object) => return Ok(object),
        Edit::Merge(patch) => {
            if !patch.is_object() {
                return Err(ApiError::bad_request(format!(
                    "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                    patch::type_name(&patch)
                )));
            }
            json_patch::merge(&mut new, &patch);
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

/// Restores fields that a write must not change, and counts a change of the spec.
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
        if new["metadata"].get(field).is_none_or(Value::is_null) || (field != "uid" && deleting(old)) {
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
    tidy(new);
    let counted = |object: &Value| {
        let mut object = object.clone();
        remove(&mut object, "metadata");
        if kind.builtin() { object["spec"].clone() } else { object }
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
