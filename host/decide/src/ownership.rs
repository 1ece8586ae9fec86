//! Who owns what: the owner reference that every child carries.

use crate::Snapshot;
use serde_json::{Value, json};

/// The annotation of children that tells the digest of the plugin that planned them, until the job's ledger does.
pub const MADE_BY: &str = "troupe.dev/plugin-digest";

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
    for (section, entries) in given(from) {
        metadata[section] = entries.clone();
    }
    if snapshot.ledger.digest.is_empty() {
        metadata["annotations"][MADE_BY] = json!(snapshot.digest);
    }
    metadata
}

/// What of some metadata is the user's or a plugin's to say: labels and annotations, where there are any.
pub(crate) fn given(metadata: &Value) -> impl Iterator<Item = (&'static str, &Value)> {
    let is_some = |entries: &&Value| entries.as_object().is_some_and(|entries| !entries.is_empty());
    ["labels", "annotations"].into_iter().filter_map(move |it| Some((it, metadata.get(it).filter(is_some)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::difference::tests::idle;

    // Decision 7: a crash before the first status write must not let another digest go on with these children.
    #[test]
    fn children_name_the_digest_until_the_ledger_does() {
        let mut snapshot = idle();
        snapshot.digest = "d".into();
        snapshot.ledger.digest = String::new();
        let made = metadata(&snapshot, "pi-worker-0", &json!({ "annotations": { "k": "v" } }));
        assert_eq!(made["annotations"], json!({ "k": "v", MADE_BY: "d" }));
        snapshot.ledger.digest = "d".into();
        assert!(metadata(&snapshot, "pi-worker-0", &json!({})).get("annotations").is_none());
    }
}
