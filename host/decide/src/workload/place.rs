//! Where the pods of an admitted Workload run: what its flavors and its admission checks add to their templates.

use super::pod_set;
use crate::{Snapshot, plan::Role, snapshot::flavors};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Adds the labels, annotations, node selector and tolerations that the queue has for pods of the role.
pub(crate) fn place(snapshot: &Snapshot, role: &Role, template: &mut Value) {
    let Some(queue) = &snapshot.queue else { return };
    if snapshot.queue_name().is_none() || snapshot.suspended() {
        return;
    }
    let pod_set = pod_set(role);
    let assigned = queue.assignments().filter(|of| of["name"] == pod_set).flat_map(flavors);
    for flavor in assigned.collect::<BTreeSet<_>>() {
        let Some(flavor) = queue.class("ResourceFlavor", &flavor) else { continue };
        merge(&mut template["spec"]["nodeSelector"], flavor.fields.get("/spec/nodeLabels"));
        append(&mut template["spec"]["tolerations"], flavor.fields.get("/spec/tolerations"));
    }
    for update in queue.updates().filter(|update| update["name"] == pod_set) {
        merge(&mut template["metadata"]["labels"], update.get("labels"));
        merge(&mut template["metadata"]["annotations"], update.get("annotations"));
        merge(&mut template["spec"]["nodeSelector"], update.get("nodeSelector"));
        append(&mut template["spec"]["tolerations"], update.get("tolerations"));
    }
}

fn merge(into: &mut Value, entries: Option<&Value>) {
    for (name, value) in entries.and_then(Value::as_object).into_iter().flatten() {
        into[name.as_str()] = value.clone();
    }
}

fn append(to: &mut Value, items: Option<&Value>) {
    let Some(items) = items.and_then(Value::as_array).filter(|items| !items.is_empty()) else { return };
    match to {
        Value::Array(list) => {
            list.extend(items.iter().filter(|item| !list.contains(item)).cloned().collect::<Vec<_>>());
        }
        other => *other = json!(items),
    }
}
