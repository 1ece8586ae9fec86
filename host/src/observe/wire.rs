//! Decoding of objects from the API server, to the part that is kept: in one scan where that succeeds, else each by
//! itself. An error in an object is kept with that object.

mod child;
mod job;
mod pod;
mod sections;

pub use job::Packed;
pub(crate) use job::Recorded;
pub use pod::read_pod;

use crate::observe::{
    decode,
    layout::{Purpose, WatchSpec},
};
use child::ChildWire;
use decide::{
    Digest,
    ownership::PLUGIN_DIGEST_ANNOTATION,
    plan::{FieldError, group},
    snapshot::{Child, Pod},
    weight,
};
use jiff::Timestamp;
use job::JobWire;
use pod::PodWire;
use sections::Parts;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, value::RawValue};
use std::{collections::BTreeMap, sync::Arc};
use tracing::warn;

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

impl Owner {
    /// Returns whether the owner is of a custom kind. A plugin that serves it may be loaded when its pods are listed
    /// already. The groups of custom kinds have a dot, which those of Deployments, ReplicaSets and the like have not.
    pub(crate) fn may_be_job(&self) -> bool {
        group(&self.api_version).contains('.')
    }

    /// Returns whether the owner is a batch/v1 Job.
    pub(crate) fn is_batch_job(&self) -> bool {
        self.kind == "Job" && self.api_version == "batch/v1"
    }

    /// Returns whether the owner is a pod.
    pub(crate) fn is_pod(&self) -> bool {
        self.kind == "Pod" && self.api_version == "v1"
    }

    /// Returns whether an object can have this kind, name and uid: the API server takes any text for those of an owner.
    fn can_exist(&self) -> bool {
        [&self.api_version, &self.kind, &self.name, &self.uid].iter().all(|text| text.len() <= LONGEST_IDENTITY)
    }
}

/// Returns whether an object with this controller, or none, is stored for this purpose: a child only if its controller is a
/// batch/v1 Job or of a kind that may be one of jobs, and what should be of a pod if it is.
pub(crate) fn is_stored(purpose: &Purpose, controller: Option<&Owner>) -> bool {
    match purpose {
        Purpose::Jobs(_) | Purpose::Classes(_) => true,
        Purpose::Pods(_) | Purpose::Children(_) => is_stored_child(controller),
        Purpose::Dependents(_) => controller.is_some_and(Owner::is_pod),
    }
}

fn is_stored_child(controller: Option<&Owner>) -> bool {
    controller.is_some_and(|owner| owner.may_be_job() || owner.is_batch_job())
}

/// The longest part of an object's identity is its API version: a DNS subdomain, a slash and a DNS label.
const LONGEST_IDENTITY: usize = 253 + 1 + 63;

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

impl Held {
    /// Estimates the bytes that a pod or another child takes, with the fields that are kept of it; 0 for a job.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Pod(pod) => weight::pod(pod),
            Self::Child(child) => weight::child(child),
            Self::Job(_) => 0,
        }
    }
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

impl Object {
    fn has_name(&self) -> bool {
        !self.name.is_empty()
    }

    /// Returns whether it is a pod on a node that has not ended.
    pub(crate) fn is_live_pod_on_node(&self) -> bool {
        matches!(&self.held, Held::Pod(pod) if !pod.phase.is_terminal() && !pod.node.is_empty())
    }
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
    #[serde(default)]
    deletion_grace_period_seconds: Option<i64>,
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
    fn controller(&self) -> Option<&Owner> {
        self.owner_references.iter().find(|owner| owner.controller).filter(|owner| owner.can_exist())
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
            owner: self.controller().cloned().map(Arc::new),
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

/// A page of a list.
#[derive(Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub(super) struct Page<T> {
    pub(super) metadata: PageMetadata,
    /// The API server writes null for an empty list of metadata.
    #[serde(default, deserialize_with = "or_default")]
    pub(super) items: Vec<T>,
}

/// The metadata of a page of a list, and of a bookmark.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageMetadata {
    resource_version: String,
    #[serde(default, rename = "continue")]
    more: Option<String>,
}

impl PageMetadata {
    /// Returns the resource version as a number (KEP-5504); 0 where it is none.
    pub(super) fn version(&self) -> u64 {
        self.resource_version.parse().unwrap_or(0)
    }

    /// Returns the token of the next page, if there is one.
    pub(super) fn more(self) -> Option<String> {
        self.more.filter(|more| !more.is_empty())
    }
}

/// The fields of an object that are decoded in the scan that finds them.
trait Wire<'a>: Deserialize<'a> {
    /// Returns the object, or `None` if one of its sections has an error.
    fn object(self, spec: &WatchSpec) -> Option<Object>;
}

/// What can be decoded in one scan.
enum Scan {
    Job,
    Pod,
    Child,
}

impl Scan {
    /// Returns `None` where fields of any name are kept: their sections are decoded by themselves.
    fn of(spec: &WatchSpec) -> Option<Self> {
        match &spec.purpose {
            Purpose::Jobs(_) => Some(Self::Job),
            Purpose::Pods(keep) if keep.is_empty() => Some(Self::Pod),
            Purpose::Children(keep) if keep.is_empty() => Some(Self::Child),
            Purpose::Pods(_) | Purpose::Children(_) | Purpose::Dependents(_) | Purpose::Classes(_) => None,
        }
    }
}

/// Decodes a page of a list. Logs and leaves out an object that cannot be identified.
///
/// # Errors
/// If the text is no page of a list.
pub(super) fn page(text: &str, spec: &WatchSpec) -> Result<Page<Object>, serde_json::Error> {
    if let Some(page) = page_at_once(text, spec) {
        return Ok(page);
    }
    let page: Page<&RawValue> = serde_json::from_str(text)?;
    let items = page.items.into_iter().filter_map(|item| identified(item.get(), spec)).collect();
    Ok(Page { metadata: page.metadata, items })
}

/// Returns the page if one scan decodes it.
fn page_at_once(text: &str, spec: &WatchSpec) -> Option<Page<Object>> {
    match Scan::of(spec)? {
        Scan::Job => page_of::<JobWire<'_>>(text, spec),
        Scan::Pod => page_of::<PodWire>(text, spec),
        Scan::Child => page_of::<ChildWire>(text, spec),
    }
}

/// Returns the page, unless it has an object with an error.
fn page_of<'a, W: Wire<'a>>(text: &'a str, spec: &WatchSpec) -> Option<Page<Object>> {
    let page: Page<W> = serde_json::from_str(text).ok()?;
    let objects = page.items.into_iter().map(|item| item.object(spec).filter(Object::has_name));
    Some(Page { items: objects.collect::<Option<_>>()?, metadata: page.metadata })
}

/// Returns the decoded object; logs an object that cannot be identified.
pub(super) fn identified(text: &str, spec: &WatchSpec) -> Option<Object> {
    let kind = &spec.resource.kind;
    object(text, spec).map_err(|error| warn!(kind, %error, "skipped an object that cannot be read")).ok()
}

/// Decodes an object of a watch.
///
/// # Errors
/// If the text is no JSON object, or has no name of an object.
pub(crate) fn object(text: &str, spec: &WatchSpec) -> Result<Object, serde_json::Error> {
    let object = at_once(text, spec).map_or_else(|| by_section(text, spec), Ok)?;
    if !object.has_name() {
        return Err(serde::de::Error::custom("an object without a name"));
    }
    Ok(object)
}

/// Returns the object if one scan decodes it.
fn at_once(text: &str, spec: &WatchSpec) -> Option<Object> {
    match Scan::of(spec)? {
        Scan::Job => object_of::<JobWire<'_>>(text, spec),
        Scan::Pod => object_of::<PodWire>(text, spec),
        Scan::Child => object_of::<ChildWire>(text, spec),
    }
}

/// Returns the object, unless it has an error.
fn object_of<'a, W: Wire<'a>>(text: &'a str, spec: &WatchSpec) -> Option<Object> {
    serde_json::from_str::<W>(text).ok()?.object(spec)
}

/// Decodes each section of an object by itself, and keeps the first error.
fn by_section(text: &str, spec: &WatchSpec) -> Result<Object, serde_json::Error> {
    let parts: Parts<'_> = serde_json::from_str(text)?;
    Ok(match &spec.purpose {
        Purpose::Jobs(_) => job::by_section(&parts),
        Purpose::Pods(keep) => pod::by_section(text, &parts, keep),
        Purpose::Children(keep) | Purpose::Dependents(keep) | Purpose::Classes(keep) => {
            child::by_section(text, &parts, spec, keep)
        }
    })
}

/// Returns whether one scan of the text decodes the same as section by section, if both succeed: of a text with a section
/// twice, which no API server sends, one scan may decode the rest.
#[cfg(feature = "fuzz")]
pub(crate) fn scan_agrees(text: &str, spec: &WatchSpec) -> bool {
    let (Some(scanned), Ok(object)) = (at_once(text, spec), by_section(text, spec)) else { return true };
    match (&scanned.held, &object.held) {
        // Their texts may be written differently. To write a number and to read it again may change its last digit.
        (Held::Job(one), Held::Job(other)) => {
            let again = |value: &Value| serde_json::from_str(&value.to_string()).unwrap_or_default();
            let one = one.unpacked();
            let one = decide::snapshot::Job { spec: again(&one.spec), status: again(&one.status), ..one };
            one == other.unpacked() && Object { held: object.held.clone(), ..scanned } == object
        }
        _ => scanned == object,
    }
}

#[cfg(test)]
mod tests;
