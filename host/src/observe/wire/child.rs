//! Decoding of children that are not pods.

use super::{
    Held, Metadata, Object, Wire, is_stored, or_default,
    sections::{Parts, metadata, within},
};
use crate::observe::{layout::WatchSpec, places::Places};
use decide::{plan::FieldError, snapshot::Child};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A child of which nothing is kept but its metadata.
#[derive(Deserialize)]
pub(super) struct ChildWire {
    #[serde(default, deserialize_with = "or_default")]
    metadata: Metadata,
}

impl Wire<'_> for ChildWire {
    fn object(self, spec: &WatchSpec) -> Option<Object> {
        Some(child(self.metadata, spec, BTreeMap::new(), None))
    }
}

/// Decodes a child section by section, with only the fields that the framework keeps: none of an object that is not stored,
/// such as a ConfigMap that nobody owns.
pub(super) fn by_section(text: &str, parts: &Parts<'_>, spec: &WatchSpec, keep: &Places) -> Object {
    let (metadata, wrong_metadata) = metadata(parts);
    let is_stored = is_stored(&spec.purpose, metadata.controller());
    let (fields, wrong_fields) = if is_stored { keep.values(text) } else { Default::default() };
    let unreadable = wrong_metadata.or(wrong_fields);
    child(metadata, spec, fields, unreadable)
}

fn child(
    metadata: Metadata,
    spec: &WatchSpec,
    fields: BTreeMap<String, Value>,
    unreadable: Option<FieldError>,
) -> Object {
    let kind = &spec.resource.kind;
    let unreadable = unreadable.map(|error| within(error, kind, &metadata.name));
    let child = Child {
        api_version: spec.resource.api_version(),
        kind: kind.clone(),
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
        resource_version: metadata.resource_version.clone(),
        terminating: metadata.deletion_timestamp.is_some(),
        fields,
    };
    metadata.object(unreadable, Held::Child(child.into()))
}
