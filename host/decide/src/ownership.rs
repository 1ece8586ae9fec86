//! The owner reference that every child carries.

use crate::{Snapshot, digest::RecordedDigest};
use serde_json::{Value, json};

/// The annotation of children that names the digest of the plugin that planned them, until the job's ledger names it.
pub const PLUGIN_DIGEST_ANNOTATION: &str = "troupe.dev/plugin-digest";

/// Returns the controller owner reference to the job.
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

/// Returns the `metadata` of a child. The host sets the identity; only labels and annotations come from `from`.
#[must_use]
pub fn metadata(snapshot: &Snapshot, name: &str, from: &Value) -> Value {
    let mut metadata = json!({
        "name": name,
        "namespace": snapshot.job.namespace,
        "ownerReferences": [reference(snapshot)],
    });
    for (section, entries) in given(from) {
        metadata[section] = entries.clone();
    }
    if let (RecordedDigest::None, Some(digest)) = (&snapshot.ledger.digest, &snapshot.digest) {
        metadata["annotations"][PLUGIN_DIGEST_ANNOTATION] = json!(digest);
    }
    metadata
}

/// Returns the labels and annotations of some metadata that are not empty: the parts that a user or a plugin may set.
pub(crate) fn given(metadata: &Value) -> impl Iterator<Item = (&'static str, &Value)> {
    let is_some = |entries: &&Value| entries.as_object().is_some_and(|entries| !entries.is_empty());
    ["labels", "annotations"].into_iter().filter_map(move |it| Some((it, metadata.get(it).filter(is_some)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{difference::tests::idle, testkit};

    // Decision 7: after a crash before the first status write, no other digest may continue with these children.
    #[test]
    fn children_name_the_digest_until_the_ledger_does() {
        let mut snapshot = idle();
        let digest = testkit::digest("d");
        snapshot.digest = Some(digest.clone());
        snapshot.ledger.digest = RecordedDigest::None;
        let made = metadata(&snapshot, "pi-worker-0", &json!({ "annotations": { "k": "v" } }));
        assert_eq!(made["annotations"], json!({ "k": "v", PLUGIN_DIGEST_ANNOTATION: digest }));
        snapshot.ledger.digest = RecordedDigest::Digest(digest);
        assert!(metadata(&snapshot, "pi-worker-0", &json!({})).get("annotations").is_none());
    }
}
