//! Verbs on resources, and their responses as kube-apiserver encodes them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::api_request::ApiRequest;
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

/// A client is held not to wait longer for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

const NOT_FOUND: Reply = Reply::Text(404, "404 page not found\n");

impl World {
    pub(crate) fn serve(&mut self, actor: &str, request: &ApiRequest, fate: &Fate) -> Result<Reply, ApiError> {
        if request.resource.is_empty() {
            return Ok(crate::discovery::answer(&self.store, &request.path, &request.accept)
                .map_or(NOT_FOUND, |body| Reply::Json(200, body)));
        }
        let Some(kind) = self.store.kind(&table(&request.group, &request.resource)) else {
            return unknown(request);
        };
        if kind.version != request.version || (!kind.namespaced && !request.namespace.is_empty()) {
            return Ok(NOT_FOUND);
        }
        let target = Target {
            actor: actor.to_owned(),
            kind: kind.clone(),
            namespace: request.namespace.clone(),
            name: request.name.clone(),
            subresource: request.subresource.clone(),
            dry_run: request.dry_run(),
        };
        let status = request.subresource == "status" && kind.status;
        if !request.subresource.is_empty() && !status {
            return self.special(&target, request);
        }
        let shown = |object: &Value| shown(object, request.metadata_only());
        if !request.subresource.is_empty() && !matches!(request.verb, "get" | "update" | "patch") {
            let message = format!("{} is not supported on resources of kind {:?}", request.verb, kind.resource());
            let mut error = ApiError::of(405, "MethodNotAllowed", &kind, "", message);
            error.details = Some(kind.details(&kind.plural, ""));
            return Err(error);
        }
        match request.verb {
            "get" => {
                let version = request.param("resourceVersion");
                if !version.is_empty() && version.parse::<u64>().is_err() {
                    let why = format!("strconv.ParseUint: parsing {version:?}: invalid syntax");
                    return Err(ApiError::new(500, "", format!("resourceVersion: Invalid value: {version:?}: {why}")));
                }
                let found = self.store.get(&target.location());
                let object = found.ok_or_else(|| ApiError::not_found(&kind, &request.name))?;
                Ok(Reply::Json(200, shown(object)))
            }
            "list" => {
                let reply = self.list(&kind, request)?;
                // An answer that takes longer than a client waits is not delivered either.
                if let Reply::Json(_, list) = &reply
                    && fate.is_answered_within(PATIENCE)
                {
                    let items = list["items"].as_array().into_iter().flatten();
                    items.for_each(|object| self.delivered(actor, &kind.kind, object));
                }
                Ok(reply)
            }
            "watch" => {
                WatchPlan::new(&kind, &request.namespace, &request.query, request.metadata_only()).map(Reply::Watch)
            }
            "create" if request.name.is_empty() => {
                let object = request.json()?;
                schema::check(&kind, request, &object)?;
                let warnings = schema::warnings(&kind, request, &object);
                Ok(Reply::Created(shown(&*self.create(&target, object)?), warnings))
            }
            "update" | "patch" if !request.name.is_empty() => {
                let (object, created) = self.update(&target, edit(&kind, request)?)?;
                Ok(Reply::Json(if created { 201 } else { 200 }, shown(&object)))
            }
            "delete" => self.remove_one(&target, request),
            "deletecollection" => self.remove_all(&target, request),
            "update" if !kind.builtin() => Err(ApiError::bad_request("name must be provided")),
            _ => {
                let message = "the server does not allow this method on the requested resource";
                let mut error = ApiError::new(405, "MethodNotAllowed", message);
                error.details = Some(json!({}));
                Err(error)
            }
        }
    }

    fn list(&self, kind: &Kind, request: &ApiRequest) -> Result<Reply, ApiError> {
        let selector = Selector::parse(kind, request.param("labelSelector"), request.param("fieldSelector"))?;
        let at_least: u64 = match request.param("resourceVersion") {
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
        let limit: usize = request.param("limit").parse().unwrap_or(0);
        let (mut version, mut from) = (self.store.version, None);
        if !request.param("continue").is_empty() {
            let (at, start) = request
                .param("continue")
                .split_once('.')
                .ok_or_else(|| ApiError::bad_request("continue key is not valid"))?;
            version = at.parse().map_err(|_| ApiError::bad_request("continue key is not valid"))?;
            from = Some(start.to_owned());
        }
        let objects: Vec<Arc<Value>> = if version == self.store.version {
            self.store.list(&kind.table(), &request.namespace).cloned().collect()
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
        Ok(self.page(kind, request, &selector, objects, version, limit, &from))
    }

    #[allow(clippy::too_many_arguments)]
    fn page(
        &self,
        kind: &Kind,
        request: &ApiRequest,
        selector: &Selector,
        objects: Vec<Arc<Value>>,
        version: u64,
        limit: usize,
        from: &Option<String>,
    ) -> Reply {
        let location = |object: &Value| key(crate::store::namespace(object), crate::store::name(object));
        let mut chosen: Vec<Arc<Value>> = objects
            .into_iter()
            .filter(|object| request.namespace.is_empty() || crate::store::namespace(object) == request.namespace)
            .filter(|object| from.as_ref().is_none_or(|from| location(object) > *from))
            .collect();
        let end = chosen.last().map(|object| location(object));
        chosen.retain(|object| selector.matches(object));
        let mut metadata = json!({ "resourceVersion": version.to_string() });
        if !kind.builtin() && !request.metadata_only() {
            metadata["continue"] = json!("");
        }
        if limit > 0 && chosen.len() >= limit {
            let more = chosen.len() - limit;
            chosen.truncate(limit);
            let last = chosen.last().map(|object| location(object));
            // It is not known whether a later page has selected objects.
            if let (Some(last), true) = (&last, last < end) {
                metadata["continue"] = json!(format!("{version}.{last}"));
                if selector.is_empty() {
                    metadata["remainingItemCount"] = json!(more);
                }
            }
        }
        let partial = request.metadata_only();
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

    fn remove_one(&mut self, target: &Target, request: &ApiRequest) -> Result<Reply, ApiError> {
        let deleted = self.delete(target, &delete_options(request)?)?;
        Ok(Reply::Json(
            200,
            match deleted {
                Deleted::Marked(object) => shown(&object, request.metadata_only()),
                Deleted::Gone(object) if target.kind.delete_returns_object() => shown(&object, request.metadata_only()),
                Deleted::Gone(object) => {
                    let mut details = target.kind.details(&target.kind.plural, &target.name);
                    details["uid"] = object["metadata"]["uid"].clone();
                    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details })
                }
            },
        ))
    }

    fn remove_all(&mut self, target: &Target, request: &ApiRequest) -> Result<Reply, ApiError> {
        let options = delete_options(request)?;
        let selector = Selector::parse(&target.kind, request.param("labelSelector"), request.param("fieldSelector"))?;
        let chosen: Vec<Arc<Value>> = self
            .store
            .list(&target.kind.table(), &request.namespace)
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
        Ok(self.page(&target.kind, request, &Selector::default(), chosen, version, 0, &None))
    }

    /// Serves the subresources other than `status`.
    fn special(&mut self, target: &Target, request: &ApiRequest) -> Result<Reply, ApiError> {
        let missing = || ApiError::not_found(&target.kind, &target.name);
        match (target.kind.kind.as_str(), request.subresource.as_str(), request.verb) {
            ("Pod", "log", "get") => {
                self.store.get(&target.location()).ok_or_else(missing)?;
                Ok(Reply::Text(200, ""))
            }
            ("Pod", "binding", "create") => {
                let (node, now) = (request.json()?["target"]["name"].clone(), self.stamp());
                let pod = self.store.get(&target.location()).ok_or_else(missing)?;
                if !text(&pod["spec"]["nodeName"]).is_empty() {
                    let why = format!("pod {} is already assigned to node {}", target.name, pod["spec"]["nodeName"]);
                    let binding = Kind { plural: "pods/binding".into(), ..(*target.kind).clone() };
                    return Err(ApiError::conflict(&binding, &target.name, &why));
                }
                self.alter(&target.actor, &target.location(), |pod| {
                    pod["spec"]["nodeName"] = node;
                    crate::paint::scheduled(pod, &now);
                });
                Ok(success(201))
            }
            ("Pod", "eviction", "create") => {
                let options = request.json()?["deleteOptions"].clone();
                let target = Target { subresource: String::new(), ..target.clone() };
                self.delete(&target, &DeleteOptions::parse(&options)?)?;
                Ok(success(201))
            }
            ("Namespace", "finalize", "update") => {
                let finalizers = request.json()?["spec"]["finalizers"].clone();
                let location = target.location();
                self.alter(&target.actor, &location, |object| {
                    object["spec"]["finalizers"] = finalizers;
                });
                let object = self.store.get(&location).ok_or_else(missing)?;
                Ok(Reply::Json(200, (**object).clone()))
            }
            _ if !target.kind.builtin() => Err(missing()),
            _ => Err(no_resource()),
        }
    }
}

/// Returns the error for a resource that does not exist: JSON for built-in groups, plain text for custom resources.
fn unknown(request: &ApiRequest) -> Result<Reply, ApiError> {
    if !Kind::new(&format!("{}/v1", request.group), "", "", true, true).builtin() {
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

fn too_large(version: u64, current: u64) -> ApiError {
    let mut error =
        ApiError::new(504, "Timeout", format!("Timeout: Too large resource version: {version}, current: {current}"));
    error.details = Some(json!({
        "causes": [{ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" }],
        "retryAfterSeconds": 1,
    }));
    error
}

fn delete_options(request: &ApiRequest) -> Result<DeleteOptions, ApiError> {
    let mut body = request.json()?;
    if let Value::Object(fields) = &mut body {
        for field in ["propagationPolicy", "orphanDependents", "gracePeriodSeconds"] {
            let value = request.param(field);
            if !value.is_empty() && !fields.contains_key(field) {
                fields.insert(field.into(), serde_json::from_str(value).unwrap_or_else(|_| json!(value)));
            }
        }
        if request.dry_run() {
            fields.insert("dryRun".into(), json!(["All"]));
        }
    }
    DeleteOptions::parse(&body)
}

fn edit(kind: &Kind, request: &ApiRequest) -> Result<Edit, ApiError> {
    let body = request.json()?;
    if request.verb == "update" {
        return Ok(Edit::Put(body));
    }
    match request.content_type.split(';').next().unwrap_or_default() {
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
