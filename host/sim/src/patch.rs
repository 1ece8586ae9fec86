//! JSON patches with the deviations of kube-apiserver, and strategic patches by merge keys.

use json_patch::{AddOperation, Patch, PatchOperation, jsonptr::Pointer};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::error::ApiError;

/// Applies a strategic merge patch: joins the lists that a job operator patches by their merge keys.
pub(crate) fn strategic(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else {
        return;
    };
    for (key, value) in patch {
        match (value, merge_key(key)) {
            (Value::Null, _) => {
                target.remove(key);
            }
            (Value::Array(items), Some(by)) => {
                let list = target.entry(key.clone()).or_insert_with(|| json!([]));
                if !list.is_array() {
                    *list = json!([]);
                }
                if let Value::Array(list) = list {
                    join(list, items, by);
                }
            }
            _ if key.starts_with("$setElementOrder") => {}
            _ => strategic(target.entry(key.clone()).or_insert(Value::Null), value),
        }
    }
}

fn merge_key(field: &str) -> Option<&'static str> {
    Some(match field {
        "conditions" => "type",
        "containers" | "initContainers" | "volumes" | "env" | "imagePullSecrets" => "name",
        "ownerReferences" => "uid",
        "podIPs" | "hostIPs" => "ip",
        "finalizers" => "",
        _ => return None,
    })
}

/// Joins a patch's items into a list; the patch's items come first unless the list has an order of its own.
fn join(list: &mut Vec<Value>, items: &[Value], by: &str) {
    let same = |one: &Value, other: &Value| if by.is_empty() { one == other } else { one[by] == other[by] };
    let live = std::mem::take(list);
    let at = |item: &Value| live.iter().position(|have| same(have, item));
    let patched: Vec<Value> = items
        .iter()
        .filter(|item| item["$patch"] != "delete")
        .map(|item| {
            let mut joined = at(item).map_or(Value::Null, |at| live[at].clone());
            strategic(&mut joined, item);
            joined
        })
        .collect();
    let mut rest = live.iter().filter(|have| !items.iter().any(|item| same(have, item))).peekable();
    for item in patched {
        while let Some(have) = rest.next_if(|have| at(have) < at(&item)) {
            list.push(have.clone());
        }
        list.push(item);
    }
    list.extend(rest.cloned());
}

/// Returns the type of a JSON value as Go's parser names it.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Object(_) => "object",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Bool(_) => "bool",
        _ => "number",
    }
}

/// Applies a JSON patch (RFC 6902), as kube-apiserver's library does.
pub(crate) fn json_patch(target: &mut Value, patch: &Value) -> Result<(), ApiError> {
    if !patch.is_array() {
        return Err(ApiError::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type []handlers.jsonPatchOp",
            type_name(patch)
        )));
    }
    let refused = || {
        let mut error = ApiError::new(422, "Invalid", "the server rejected our request due to an error in our request");
        error.details = Some(json!({}));
        error
    };
    let Patch(operations) = Patch::deserialize(patch).map_err(|_| refused())?;
    for operation in operations {
        let operation = match operation {
            // A missing member is null to a test, and a replacement adds it.
            PatchOperation::Test(test) if test.value.is_null() && target.pointer(test.path.as_str()).is_none() => {
                continue;
            }
            PatchOperation::Replace(new) if lacks(target, &new.path) => {
                PatchOperation::Add(AddOperation { path: new.path, value: new.value })
            }
            operation => operation,
        };
        json_patch::patch(target, &[operation]).map_err(|_| refused())?;
    }
    Ok(())
}

/// Returns whether the pointer leads to an object and names a member that the object does not have.
fn lacks(target: &Value, pointer: &Pointer) -> bool {
    let parent = pointer.parent().and_then(|parent| target.pointer(parent.as_str()));
    parent.is_some_and(Value::is_object) && target.pointer(pointer.as_str()).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_json_patch_may_replace_and_test_a_missing_member_as_on_kube_apiserver() {
        let mut object = json!({ "a": {} });
        let patch = json!([
            { "op": "test", "path": "/a/b", "value": null },
            { "op": "replace", "path": "/a/b", "value": 1 },
        ]);
        json_patch(&mut object, &patch).unwrap();
        assert_eq!(object, json!({ "a": { "b": 1 } }));
        for (op, path) in [("replace", "/c/d"), ("replace", "/a/b/c"), ("remove", "/c"), ("none", "/a")] {
            let error = json_patch(&mut object, &json!([{ "op": op, "path": path, "value": 2 }])).unwrap_err();
            assert_eq!((error.code, &object), (422, &json!({ "a": { "b": 1 } })), "{op} {path}");
        }
    }

    #[test]
    fn json_patch_whose_test_fails_is_refused() {
        let mut object = json!({ "a": 1 });
        let error = json_patch(&mut object, &json!([{ "op": "test", "path": "/a", "value": 2 }])).unwrap_err();
        assert_eq!((error.code, error.reason.as_str()), (422, "Invalid"));
    }

    #[test]
    fn strategic_patch_joins_conditions_by_type() {
        let mut object =
            json!({ "conditions": [{ "type": "A", "status": "False" }, { "type": "B", "status": "True" }] });
        strategic(&mut object, &json!({ "conditions": [{ "type": "A", "status": "True" }, { "type": "C" }] }));
        assert_eq!(
            object["conditions"],
            json!([{ "type": "A", "status": "True" }, { "type": "C" }, { "type": "B", "status": "True" }])
        );
    }
}
