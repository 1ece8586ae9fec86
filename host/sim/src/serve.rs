//! Verbs on resources, and their responses as kube-apiserver encodes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::asked::Asked;
use crate::delete::{DeleteOptions, Deleted};
use crate::error::ApiError;
use crate::fate::Fate;
use crate::schema;
use crate::selector::Selector;
use crate::store::{Kind, key, table, text};
use crate::verbs::{Edit, Target};
use crate::watch::WatchPlan;
use crate::world::World;

/// A response: a JSON body with its code, or a watch.
pub(crate) enum Reply {
    Json(u16, Value),
    /// The created object and the warnings.
    Created(Value, Vec<String>),
    Text(u16, &'static str),
    Watch(WatchPlan),
}

const NOT_FOUND: Reply = Reply::Text(404, "404 page not found\n");

impl World {
    pub(crate) fn serve(&mut self, actor: &str, asked: &Asked, fate: &Fate) -> Result<Reply, ApiError> {
        if asked.resource.is_empty() {
            return Ok(crate::discovery::answer(&self.store, &asked.path, &asked.accept)
                .map_or(NOT_FOUND, |body| Reply::Json(200, body)));
        }
        let Some(kind) = self.store.kind(&table(&asked.group, &asked.resource)) else {
            return unknown(asked);
        };
        if kind.version != asked.version || (!kind.namespaced && !asked.namespace.is_empty()) {
            return Ok(NOT_FOUND);
        }
        let target = Target {
            actor: actor.to_owned(),
            kind: kind.clone(),
            namespace: asked.namespace.clone(),
            name: asked.name.clone(),
            subresource: asked.subresource.clone(),
            dry_run: asked.dry_run(),
        };
        let status = asked.subresource == "status" && kind.status;
        if !asked.subresource.is_empty() && !status {
            return self.special(&target, asked);
        }
        let shown = |object: &Value| shown(object, asked.metadata_only());
        if !asked.subresource.is_empty() && !matches!(asked.verb, "get" | "update" | "patch") {
            let message = format!("{} is not supported on resources of kind {:?}", asked.verb, kind.resource());
            let mut error = ApiError::of(405, "MethodNotAllowed", &kind, "", message);
            error.details = Some(kind.details(&kind.plural, ""));
            return Err(error);
        }
        match asked.verb {
            "get" => {
                let version = asked.param("resourceVersion");
                if !version.is_empty() && version.parse::<u64>().is_err() {
                    let why = format!("strconv.ParseUint: parsing {version:?}: invalid syntax");
                    return Err(ApiError::new(500, "", format!("resourceVersion: Invalid value: {version:?}: {why}")));
                }
                let objects = self.past(&kind, asked, fate);
                let found = match &objects {
                    Some(objects) => objects.get(&target.place().key),
                    None => self.store.get(&target.place()),
                };
                let object = found.ok_or_else(|| ApiError::not_found(&kind, &asked.name))?;
                Ok(Reply::Json(200, shown(object)))
            }
            "list" => {
                let reply = self.list(&kind, asked, fate)?;
                if let Reply::Json(_, list) = &reply {
                    let items = list["items"].as_array().into_iter().flatten();
                    items.for_each(|object| self.delivered(actor, &kind.kind, object));
                }
                Ok(reply)
            }
            "watch" => WatchPlan::new(&kind, &asked.namespace, &asked.query, asked.metadata_only()).map(Reply::Watch),
            "create" if asked.name.is_empty() => {
                let object = asked.json()?;
                schema::check(&kind, asked, &object)?;
                let warnings = schema::warnings(&kind, asked, &object);
                Ok(Reply::Created(shown(&*self.create(&target, object)?), warnings))
            }
            "update" | "patch" if !asked.name.is_empty() => {
                let (object, created) = self.update(&target, edit(&kind, asked)?)?;
                Ok(Reply::Json(if created { 201 } else { 200 }, shown(&object)))
            }
            "delete" => self.remove_one(&target, asked),
            "deletecollection" => self.remove_all(&target, asked),
            "update" if !kind.builtin() => Err(ApiError::bad_request("name must be provided")),
            _ => {
                let message = "the server does not allow this method on the requested resource";
                let mut error = ApiError::new(405, "MethodNotAllowed", message);
                error.details = Some(json!({}));
                Err(error)
            }
        }
    }

    /// Returns the objects in an earlier state if a fault makes a read at resourceVersion 0 stale.
    fn past(&self, kind: &Kind, asked: &Asked, fate: &Fate) -> Option<BTreeMap<String, Arc<Value>>> {
        if fate.stale_by == 0 || asked.param("resourceVersion") != "0" {
            return None;
        }
        self.store.list_at(&kind.table(), self.store.version.saturating_sub(fate.stale_by))
    }

    fn list(&self, kind: &Kind, asked: &Asked, fate: &Fate) -> Result<Reply, ApiError> {
        let selector = Selector::parse(kind, asked.param("labelSelector"), asked.param("fieldSelector"))?;
        let at_least: u64 = match asked.param("resourceVersion") {
            "" => 0,
            version => version.parse().map_err(|_| {
                ApiError::bad_request(format!(
                    "invalid resource version: resourceVersion: Invalid value: {version:?}: strconv.ParseUint: parsing \
                     {version:?}: invalid syntax"
                ))
            })?,
        };
        if at_least > self.store.version {
            return Err(too_large(at_least, self.store.version));
        }
        let limit: usize = asked.param("limit").parse().unwrap_or(0);
        let (mut version, mut from) = (self.store.version, None);
        if !asked.param("continue").is_empty() {
            let (at, start) = asked
                .param("continue")
                .split_once('.')
                .ok_or_else(|| ApiError::bad_request("continue key is not valid"))?;
            version = at.parse().map_err(|_| ApiError::bad_request("continue key is not valid"))?;
            from = Some(start.to_owned());
        } else if let Some(objects) = self.past(kind, asked, fate) {
            version -= fate.stale_by;
            return Ok(self.page(kind, asked, &selector, objects.into_values().collect(), version, 0, &None));
        }
        let objects: Vec<Arc<Value>> = if version == self.store.version {
            self.store.list(&kind.table(), &asked.namespace).cloned().collect()
        } else {
            let objects = self.store.list_at(&kind.table(), version).ok_or_else(|| {
                ApiError::expired(
                    "The provided continue parameter is too old to display a consistent list result. You can start a new \
                     list without the continue parameter, or use the continue token in this response to retrieve the \
                     remainder of the results. Continuing with the provided token results in an inconsistent list - \
                     objects that were created, modified, or deleted between the time the first chunk was returned and \
                     now may show up in the list.",
                )
            })?;
            objects.into_values().collect()
        };
        Ok(self.page(kind, asked, &selector, objects, version, limit, &from))
    }

    #[allow(clippy::too_many_arguments)]
    fn page(
        &self,
        kind: &Kind,
        asked: &Asked,
        selector: &Selector,
        objects: Vec<Arc<Value>>,
        version: u64,
        limit: usize,
        from: &Option<String>,
    ) -> Reply {
        let place = |object: &Value| key(crate::store::namespace(object), crate::store::name(object));
        let mut chosen: Vec<Arc<Value>> = objects
            .into_iter()
            .filter(|object| asked.namespace.is_empty() || crate::store::namespace(object) == asked.namespace)
            .filter(|object| from.as_ref().is_none_or(|from| place(object) > *from))
            .collect();
        let end = chosen.last().map(|object| place(object));
        chosen.retain(|object| selector.matches(object));
        let mut metadata = json!({ "resourceVersion": version.to_string() });
        if !kind.builtin() && !asked.metadata_only() {
            metadata["continue"] = json!("");
        }
        if limit > 0 && chosen.len() >= limit {
            let more = chosen.len() - limit;
            chosen.truncate(limit);
            let last = chosen.last().map(|object| place(object));
            // It is not known whether a later page has selected objects.
            if let (Some(last), true) = (&last, last < end) {
                metadata["continue"] = json!(format!("{version}.{last}"));
                if selector.is_empty() {
                    metadata["remainingItemCount"] = json!(more);
                }
            }
        }
        let partial = asked.metadata_only();
        let items: Vec<Value> = chosen
            .iter()
            .map(|object| {
                let mut item = shown(object, partial);
                if kind.builtin() && !partial {
                    crate::defaults::remove(&mut item, "apiVersion");
                    crate::defaults::remove(&mut item, "kind");
                }
                item
            })
            .collect();
        let (list, api_version) = if partial {
            ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned())
        } else {
            (format!("{}List", kind.kind), kind.api_version())
        };
        // Go encodes a list that was never filled as null.
        let items = if partial && items.is_empty() { Value::Null } else { json!(items) };
        Reply::Json(200, json!({ "kind": list, "apiVersion": api_version, "metadata": metadata, "items": items }))
    }

    fn remove_one(&mut self, target: &Target, asked: &Asked) -> Result<Reply, ApiError> {
        let deleted = self.delete(target, &delete_options(asked)?)?;
        Ok(Reply::Json(
            200,
            match deleted {
                Deleted::Marked(object) => shown(&object, asked.metadata_only()),
                Deleted::Gone(object) if target.kind.delete_returns_object() => shown(&object, asked.metadata_only()),
                Deleted::Gone(object) => {
                    let mut details = target.kind.details(&target.kind.plural, &target.name);
                    details["uid"] = object["metadata"]["uid"].clone();
                    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details })
                }
            },
        ))
    }

    fn remove_all(&mut self, target: &Target, asked: &Asked) -> Result<Reply, ApiError> {
        let options = delete_options(asked)?;
        let selector = Selector::parse(&target.kind, asked.param("labelSelector"), asked.param("fieldSelector"))?;
        let chosen: Vec<Arc<Value>> = self
            .store
            .list(&target.kind.table(), &asked.namespace)
            .filter(|object| selector.matches(object))
            .cloned()
            .collect();
        for object in &chosen {
            let one = Target::own(&target.actor, &target.kind, object);
            match self.delete(&one, &options) {
                Err(error) if error.code != 404 => return Err(error),
                _ => {}
            }
        }
        let version = self.store.version;
        Ok(self.page(&target.kind, asked, &Selector::default(), chosen, version, 0, &None))
    }

    /// Serves the subresources other than `status`.
    fn special(&mut self, target: &Target, asked: &Asked) -> Result<Reply, ApiError> {
        let missing = || ApiError::not_found(&target.kind, &target.name);
        match (target.kind.kind.as_str(), asked.subresource.as_str(), asked.verb) {
            ("Pod", "log", "get") => {
                self.store.get(&target.place()).ok_or_else(missing)?;
                Ok(Reply::Text(200, ""))
            }
            ("Pod", "binding", "create") => {
                let (node, now) = (asked.json()?["target"]["name"].clone(), self.stamp());
                let pod = self.store.get(&target.place()).ok_or_else(missing)?;
                if !text(&pod["spec"]["nodeName"]).is_empty() {
                    let why = format!("pod {} is already assigned to node {}", target.name, pod["spec"]["nodeName"]);
                    let binding = Kind { plural: "pods/binding".into(), ..(*target.kind).clone() };
                    return Err(ApiError::conflict(&binding, &target.name, &why));
                }
                self.alter(&target.actor, &target.place(), |pod| {
                    pod["spec"]["nodeName"] = node;
                    crate::paint::scheduled(pod, &now);
                });
                Ok(success(201))
            }
            ("Pod", "eviction", "create") => {
                let options = asked.json()?["deleteOptions"].clone();
                let target = Target { subresource: String::new(), ..target.clone() };
                self.delete(&target, &DeleteOptions::parse(&options)?)?;
                Ok(success(201))
            }
            ("Namespace", "finalize", "update") => {
                let finalizers = asked.json()?["spec"]["finalizers"].clone();
                let place = target.place();
                self.alter(&target.actor, &place, |object| {
                    object["spec"]["finalizers"] = finalizers;
                });
                let object = self.store.get(&place).ok_or_else(missing)?;
                Ok(Reply::Json(200, (**object).clone()))
            }
            _ if !target.kind.builtin() => Err(missing()),
            _ => Err(no_resource()),
        }
    }
}

/// Returns the error for a resource that does not exist: JSON for built-in groups, plain text for custom resources.
fn unknown(asked: &Asked) -> Result<Reply, ApiError> {
    if !Kind::new(&format!("{}/v1", asked.group), "", "", true, true).builtin() {
        return Ok(NOT_FOUND);
    }
    Err(no_resource())
}

fn no_resource() -> ApiError {
    let mut error = ApiError::new(404, "NotFound", "the server could not find the requested resource");
    error.details = Some(json!({}));
    error
}

fn success(code: u16) -> Reply {
    Reply::Json(
        code,
        json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code }),
    )
}

fn too_large(asked: u64, current: u64) -> ApiError {
    let mut error =
        ApiError::new(504, "Timeout", format!("Timeout: Too large resource version: {asked}, current: {current}"));
    error.details = Some(json!({
        "causes": [{ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" }],
        "retryAfterSeconds": 1,
    }));
    error
}

fn delete_options(asked: &Asked) -> Result<DeleteOptions, ApiError> {
    let mut body = asked.json()?;
    if let Value::Object(fields) = &mut body {
        for field in ["propagationPolicy", "orphanDependents", "gracePeriodSeconds"] {
            let value = asked.param(field);
            if !value.is_empty() && !fields.contains_key(field) {
                fields.insert(field.into(), serde_json::from_str(value).unwrap_or_else(|_| json!(value)));
            }
        }
        if asked.dry_run() {
            fields.insert("dryRun".into(), json!(["All"]));
        }
    }
    DeleteOptions::parse(&body)
}

fn edit(kind: &Kind, asked: &Asked) -> Result<Edit, ApiError> {
    let body = asked.json()?;
    if asked.verb == "update" {
        return Ok(Edit::Put(body));
    }
    match asked.content_type.split(';').next().unwrap_or_default() {
        "application/merge-patch+json" => Ok(Edit::Merge(body)),
        "application/json-patch+json" => Ok(Edit::Json(body)),
        "application/strategic-merge-patch+json" => Ok(Edit::Strategic(body)),
        "application/apply-patch+yaml" => Ok(Edit::Apply(body)),
        _ if kind.builtin() => {
            let mut error = ApiError::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
            error.details = Some(json!({}));
            Err(error)
        }
        _ => Err(ApiError::new(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: \
             application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        )),
    }
}

/// Returns an object as a client sees it: in full, or only its metadata.
pub(crate) fn shown(object: &Value, metadata_only: bool) -> Value {
    if !metadata_only {
        return object.clone();
    }
    json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"] })
}
