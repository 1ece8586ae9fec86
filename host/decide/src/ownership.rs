//! Who owns what: the owner reference that every child carries.

use crate::Snapshot;
use serde_json::{Value, json};

/// The controller owner reference to the job.
#[must_use]
pub fn reference(snapshot: &Snapshot) -> Value {
    json!({
        "apiVersion": snapshot.kind.api_version(),
        "kind": snapshot.kind.kind,
        "name": snapshot.job.name,
        "uid": snapshot.job.uid,
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// `metadata` of a child: identity is the host's, only labels and annotations are taken from `from`.
#[must_use]
pub fn metadata(snapshot: &Snapshot, name: &str, from: &Value) -> Value {
    let mut metadata = json!({
        "name": name,
        "namespace": snapshot.job.namespace,
        "ownerReferences": [reference(snapshot)],
    });
    for section in ["labels", "annotations"] {
        match from.get(section) {
            Some(Value::Object(entries)) if !entries.is_empty() => metadata[section] = json!(entries),
            _ => {}
        }
    }
    metadata
}
