//! The kinds of patch: merge, JSON, and strategic by merge keys.

use serde_json::{Map, Value, json};

use crate::error::ApiError;

/// Applies a merge patch (RFC 7386).
pub(crate) fn merge(target: &mut Value, patch: &Value) {
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
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

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

/// Applies a JSON patch (RFC 6902).
pub(crate) fn json_patch(target: &mut Value, patch: &Value) -> Result<(), ApiError> {
    let Value::Array(operations) = patch else {
        return Err(ApiError::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type []handlers.jsonPatchOp",
            type_name(patch)
        )));
    };
    for operation in operations {
        apply(target, operation).map_err(|()| {
            let mut error =
                ApiError::new(422, "Invalid", "the server rejected our request due to an error in our request");
            error.details = Some(json!({}));
            error
        })?;
    }
    Ok(())
}

fn apply(target: &mut Value, operation: &Value) -> Result<(), ()> {
    let path = operation["path"].as_str().ok_or(())?;
    let from = || operation["from"].as_str().ok_or(());
    match operation["op"].as_str().ok_or(())? {
        "add" => add(target, path, operation.get("value").cloned().unwrap_or(Value::Null)),
        "remove" => remove(target, path).map(|_| ()),
        "replace" => {
            let value = operation.get("value").cloned().unwrap_or(Value::Null);
            // kube-apiserver adds a missing member.
            if target.pointer(path).is_none() && !parent(target, path)?.0.is_object() {
                return Err(());
            }
            match target.pointer_mut(path) {
                Some(have) => *have = value,
                None => add(target, path, value)?,
            }
            Ok(())
        }
        "test" => {
            let expected = operation.get("value").unwrap_or(&Value::Null);
            if target.pointer(path).unwrap_or(&Value::Null) == expected { Ok(()) } else { Err(()) }
        }
        "move" => {
            let value = remove(target, from()?)?;
            add(target, path, value)
        }
        "copy" => {
            let value = target.pointer(from()?).cloned().ok_or(())?;
            add(target, path, value)
        }
        _ => Err(()),
    }
}

fn parent<'a>(target: &'a mut Value, path: &str) -> Result<(&'a mut Value, String), ()> {
    let (parent, last) = path.rsplit_once('/').ok_or(())?;
    let last = last.replace("~1", "/").replace("~0", "~");
    Ok((target.pointer_mut(parent).ok_or(())?, last))
}

fn add(target: &mut Value, path: &str, value: Value) -> Result<(), ()> {
    if path.is_empty() {
        *target = value;
        return Ok(());
    }
    let (parent, last) = parent(target, path)?;
    match parent {
        Value::Object(object) => {
            object.insert(last, value);
        }
        Value::Array(list) if last == "-" => list.push(value),
        Value::Array(list) => {
            let at: usize = last.parse().map_err(|_| ())?;
            if at > list.len() {
                return Err(());
            }
            list.insert(at, value);
        }
        _ => return Err(()),
    }
    Ok(())
}

fn remove(target: &mut Value, path: &str) -> Result<Value, ()> {
    let (parent, last) = parent(target, path)?;
    match parent {
        Value::Object(object) => object.remove(&last).ok_or(()),
        Value::Array(list) => {
            let at: usize = last.parse().map_err(|_| ())?;
            if at < list.len() { Ok(list.remove(at)) } else { Err(()) }
        }
        _ => Err(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merge_patch_sets_removes_and_replaces_lists() {
        let mut object = json!({ "a": { "b": 1, "c": [1, 2] }, "d": 4 });
        merge(&mut object, &json!({ "a": { "b": null, "c": [3], "e": {} }, "f": "g" }));
        assert_eq!(object, json!({ "a": { "c": [3], "e": {} }, "d": 4, "f": "g" }));
    }

    #[test]
    fn json_patch_tests_adds_moves_and_removes() {
        let mut object = json!({ "a": [1, 2], "b": { "x/y": 1 } });
        let patch = json!([
            { "op": "test", "path": "/b/x~1y", "value": 1 },
            { "op": "add", "path": "/a/-", "value": 3 },
            { "op": "remove", "path": "/a/0" },
            { "op": "move", "from": "/b/x~1y", "path": "/c" },
            { "op": "copy", "from": "/c", "path": "/d" },
            { "op": "replace", "path": "/c", "value": true }
        ]);
        json_patch(&mut object, &patch).unwrap();
        assert_eq!(object, json!({ "a": [2, 3], "b": {}, "c": true, "d": 1 }));
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
