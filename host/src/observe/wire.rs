//! Decoding of objects from the API server, each by itself, to the part that is kept. An error in an object is kept
//! with that object.

mod pod;

pub use pod::read_pod;

use crate::observe::{
    decode,
    layout::{Purpose, WatchSpec},
};
use decide::{
    Digest,
    ownership::PLUGIN_DIGEST_ANNOTATION,
    plan::FieldError,
    snapshot::{Child, Job, Pod},
};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};
use std::{collections::BTreeMap, sync::Arc};

/// An owner reference of an object.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    #[serde(default)]
    controller: bool,
}

/// The decoded part of an object, by the kind of object.
#[derive(Debug, Clone, PartialEq)]
pub enum Held {
    /// A job.
    Job(Box<Packed>),
    /// A pod.
    Pod(Arc<Pod>),
    /// Another child.
    Child(Arc<Child>),
}

/// An object of a watch: its name, its controller, and its decoded part.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its resource version.
    pub resource_version: u64,
    /// Its controller, shared with the other objects of this controller.
    pub(crate) owner: Option<Arc<Owner>>,
    /// Digest of the plugin that planned it, from its annotation.
    pub(crate) made_by: Option<Digest>,
    /// The first error in its text, if there is one.
    pub(crate) unreadable: Option<FieldError>,
    /// Host ports that a pod declares.
    pub(crate) host_ports: Vec<u32>,
    /// Its decoded part.
    pub held: Held,
}

/// A job with spec and status as text, which takes a tenth of the memory of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Packed {
    /// The job without spec and status.
    job: Job,
    spec: Box<str>,
    status: Box<str>,
}

impl Packed {
    fn new(mut job: Job) -> Self {
        let text = |part: &mut Value| serde_json::to_string(&part.take()).expect("its keys are text").into();
        Self { spec: text(&mut job.spec), status: text(&mut job.status), job }
    }

    pub(crate) fn unpacked(&self) -> Job {
        Job { spec: value(&self.spec), status: self.status(), ..self.job.clone() }
    }

    pub(crate) fn status(&self) -> Value {
        value(&self.status)
    }

    /// Returns the status as JSON.
    #[must_use]
    pub fn status_text(&self) -> &str {
        &self.status
    }

    /// Returns the job without its spec and its status.
    #[must_use]
    pub fn job(&self) -> &Job {
        &self.job
    }
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).expect("it was written from a value")
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    #[serde(deserialize_with = "or_default")]
    name: String,
    #[serde(deserialize_with = "or_default")]
    namespace: String,
    #[serde(deserialize_with = "or_default")]
    uid: String,
    #[serde(deserialize_with = "or_default")]
    resource_version: String,
    #[serde(deserialize_with = "or_default")]
    generation: i64,
    creation_timestamp: Option<Timestamp>,
    deletion_timestamp: Option<Timestamp>,
    #[serde(deserialize_with = "or_default")]
    finalizers: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    annotations: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    owner_references: Vec<Owner>,
}

/// Decodes null as the default, as Go does.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

impl Metadata {
    fn owner(&self) -> Option<Owner> {
        self.owner_references.iter().find(|owner| owner.controller).cloned()
    }

    /// Returns the name, version and owners from metadata that cannot be decoded as a whole.
    fn salvaged(metadata: &Value) -> Self {
        let text = |name: &str| metadata[name].as_str().unwrap_or_default().to_owned();
        let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        Self {
            name: text("name"),
            namespace: text("namespace"),
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            owner_references: owners.filter_map(|owner| Owner::deserialize(owner).ok()).collect(),
            ..Self::default()
        }
    }

    fn object(self, unreadable: Option<FieldError>, held: Held) -> Object {
        Object {
            resource_version: self.resource_version.parse().unwrap_or(0),
            owner: self.owner().map(Arc::new),
            made_by: self.annotations.get(PLUGIN_DIGEST_ANNOTATION).and_then(|text| text.parse().ok()),
            namespace: self.namespace,
            name: self.name,
            uid: self.uid,
            unreadable,
            host_ports: vec![],
            held,
        }
    }
}

/// The decoded part of the answer to a write.
#[derive(Debug, Deserialize)]
pub(crate) struct Written {
    /// Empty where the answer is about a deletion.
    #[serde(default)]
    metadata: Metadata,
    /// The status, if the answer contains it; else null.
    #[serde(default, deserialize_with = "decode::of_any_depth")]
    pub(crate) status: Value,
}

impl Written {
    /// Returns the resource version as a number (KEP-5504); 0 where the answer has none.
    pub(crate) fn version(&self) -> u64 {
        self.metadata.resource_version.parse().unwrap_or(0)
    }

    /// Returns the uid of the object's controller.
    pub(crate) fn controller(&self) -> Option<&str> {
        self.metadata.owner_references.iter().find(|owner| owner.controller).map(|owner| owner.uid.as_str())
    }
}

/// The sections of an object, not decoded yet.
#[derive(Default, Deserialize)]
struct Parts<'a> {
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

/// Decodes an object of a watch.
///
/// # Errors
/// If the text is no JSON object, or has no name of an object.
pub(crate) fn object(text: &str, spec: &WatchSpec) -> Result<Object, serde_json::Error> {
    let parts: Parts = serde_json::from_str(text)?;
    let object = match &spec.purpose {
        Purpose::Jobs(_) => job(&parts),
        Purpose::Pods(keep) => pod::pod(text, &parts, keep),
        Purpose::Children(keep) | Purpose::Dependents(keep) | Purpose::Classes(keep) => child(text, &parts, spec, keep),
    };
    if object.name.is_empty() {
        return Err(serde::de::Error::custom("an object without a name"));
    }
    Ok(object)
}

/// Returns the decoded section, or its default and the error.
fn typed<T: DeserializeOwned + Default>(part: Option<&RawValue>) -> (T, Option<serde_json::Error>) {
    match part.map_or_else(|| Ok(T::default()), |part| serde_json::from_str(part.get())) {
        Ok(value) => (value, None),
        Err(error) => (T::default(), Some(error)),
    }
}

fn unreadable(path: impl Into<String>, why: &impl ToString) -> FieldError {
    FieldError { path: path.into(), message: why.to_string() }
}

fn metadata(parts: &Parts<'_>) -> (Metadata, Option<FieldError>) {
    match typed(parts.metadata) {
        (metadata, None) => (metadata, None),
        (_, Some(error)) => {
            let read = parts.metadata.and_then(|part| decode::value(part.get()).ok());
            let metadata = read.map(|read| Metadata::salvaged(&read.value)).unwrap_or_default();
            (metadata, Some(unreadable("metadata", &error)))
        }
    }
}

/// Puts the child's kind and name in front of the error's path, since users read the error on the job.
fn within(error: FieldError, kind: &str, name: &str) -> FieldError {
    FieldError { path: format!("{kind} {name}: {}", error.path), ..error }
}

/// Returns a section of a job, `{}` when absent, and the error if it is too deep or cannot be decoded.
fn section(name: &str, part: Option<&RawValue>) -> (Value, Option<FieldError>) {
    let Some(part) = part else { return (json!({}), None) };
    match decode::value(part.get()) {
        Ok(read) => {
            let why = || format!("is nested deeper than {} levels", decode::MOST_LEVELS);
            let wrong = read.too_deep.map(|path| unreadable(format!("{name}.{path}"), &why()));
            (if read.value.is_object() { read.value } else { json!({}) }, wrong)
        }
        Err(error) => (json!({}), Some(unreadable(name, &error))),
    }
}

fn job(parts: &Parts<'_>) -> Object {
    let (metadata, wrong_metadata) = metadata(parts);
    let (spec, wrong_spec) = section("spec", parts.spec);
    let (status, wrong_status) = section("status", parts.status);
    let job = Job {
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
        resource_version: metadata.resource_version.clone(),
        generation: metadata.generation,
        created: metadata.creation_timestamp.unwrap_or_default(),
        deleting: metadata.deletion_timestamp.is_some(),
        finalizers: metadata.finalizers.clone(),
        labels: metadata.labels.clone(),
        annotations: metadata.annotations.clone(),
        spec,
        status,
    };
    let unreadable = wrong_metadata.or(wrong_spec).or(wrong_status);
    metadata.object(unreadable, Held::Job(Packed::new(job).into()))
}

/// Decodes a child, with only the fields that the framework keeps.
fn child(text: &str, parts: &Parts<'_>, spec: &WatchSpec, keep: &[String]) -> Object {
    let kind = &spec.resource.kind;
    let (metadata, wrong_metadata) = metadata(parts);
    let (fields, wrong_fields) = kept(text, keep);
    let child = Child {
        api_version: spec.resource.api_version(),
        kind: kind.clone(),
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
        resource_version: metadata.resource_version.clone(),
        terminating: metadata.deletion_timestamp.is_some(),
        fields,
    };
    let unreadable = wrong_metadata.or(wrong_fields).map(|error| within(error, kind, &metadata.name));
    metadata.object(unreadable, Held::Child(child.into()))
}

/// Returns the values at these pointers, and the first error in the sections that they lead into. Decodes no other
/// section.
fn kept(text: &str, keep: &[String]) -> (BTreeMap<String, Value>, Option<FieldError>) {
    let (mut fields, mut wrong) = (BTreeMap::new(), None);
    if keep.is_empty() {
        return (fields, wrong);
    }
    let sections: BTreeMap<String, &RawValue> = serde_json::from_str(text).unwrap_or_default();
    for pointer in keep {
        let inner = pointer.strip_prefix('/').unwrap_or(pointer);
        let (name, rest) = inner.find('/').map_or((inner, ""), |slash| inner.split_at(slash));
        let Some(part) = sections.get(name) else { continue };
        match decode::value(part.get()) {
            Ok(mut read) => {
                let value = read.value.pointer_mut(rest).map(Value::take);
                fields.extend(value.map(|value| (pointer.clone(), value)));
            }
            Err(error) => wrong = wrong.or(Some(unreadable(name, &error))),
        }
    }
    (fields, wrong)
}

#[cfg(test)]
mod tests;
