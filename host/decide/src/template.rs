//! A user's template with a plugin's edits made in it.

use crate::pointer::unescaped;
use serde_json::{Map, Value};

/// A pointer of more steps than this is refused: no field of a pod is half as deep.
const DEEPEST: usize = 32;

/// A change to a template, at a JSON pointer of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// This stands there, whatever stood there before.
    Set(String, Value),
    /// These follow the items of the list that stands there, or are all of it where none does.
    Append(String, Vec<Value>),
}

/// What stands at the pointer of the job's spec, with the edits made in it one after the other. What they lead through
/// becomes an object where it is none.
///
/// # Errors
/// There is no object at the pointer, or an edit leads to an item that a list does not have.
pub fn edited(spec: &Value, at: &str, edits: Vec<Edit>) -> Result<Value, String> {
    let user = spec.pointer(at).filter(|template| template.is_object());
    let mut template = user.cloned().ok_or_else(|| format!("the job's spec has no object at {at}"))?;
    for edit in edits {
        match edit {
            Edit::Set(at, value) => *place(&mut template, &at)? = value,
            Edit::Append(at, items) => match place(&mut template, &at)? {
                Value::Array(there) => there.extend(items),
                other => *other = items.into(),
            },
        }
    }
    Ok(template)
}

/// What stands at the pointer; null where nothing stood.
fn place<'a>(template: &'a mut Value, pointer: &str) -> Result<&'a mut Value, String> {
    if pointer.split('/').nth(DEEPEST + 1).is_some() {
        return Err(format!("an edit leads more than {DEEPEST} steps into it"));
    }
    let lacks = |step: &str| format!("an edit leads to {pointer}, but there is no item {step}");
    pointer.split('/').skip(1).try_fold(template, |at, step| into(at, step).ok_or_else(|| lacks(step)))
}

/// One step further; None for an item that a list does not have.
fn into<'a>(at: &'a mut Value, step: &str) -> Option<&'a mut Value> {
    if at.is_array() && (step == "-" || step.parse::<usize>().is_ok()) {
        return at.get_mut(step.parse::<usize>().ok()?);
    }
    if !at.is_object() {
        *at = Map::new().into();
    }
    Some(&mut at[&*unescaped(step)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(at: &str, value: Value) -> Edit {
        Edit::Set(at.to_owned(), value)
    }

    fn append(at: &str, items: &[i32]) -> Edit {
        Edit::Append(at.to_owned(), items.iter().map(|item| json!(item)).collect())
    }

    fn of(template: &Value, edit: Edit) -> Result<Value, String> {
        edited(&json!({ "worker": { "template": template } }), "/worker/template", vec![edit])
    }

    #[test]
    fn what_no_edit_touches_stays() {
        let user = json!({ "spec": { "future": null, "containers": [{ "cpu": 1 }, { "name": "side" }] } });
        let edited = of(&user, set("/spec/containers/0/image", json!("i"))).unwrap();
        let expected =
            json!({ "spec": { "future": null, "containers": [{ "cpu": 1, "image": "i" }, { "name": "side" }] } });
        assert_eq!(edited, expected);
    }

    #[test]
    fn what_an_edit_leads_through_is_made() {
        let labelled = |user| of(&user, set("/metadata/labels/a~1b~0", json!("x"))).unwrap();
        let expected = json!({ "metadata": { "labels": { "a/b~": "x" } } });
        for user in [json!({}), json!({ "metadata": null }), json!({ "metadata": { "labels": ["wrong"] } })] {
            assert_eq!(labelled(user), expected);
        }
    }

    #[test]
    fn items_are_appended_to_a_list_or_become_one() {
        let listed = |user| of(&user, append("/list", &[2, 3])).unwrap()["list"].clone();
        assert_eq!(listed(json!({ "list": [1] })), json!([1, 2, 3]));
        for user in [json!({}), json!({ "list": null }), json!({ "list": "wrong" })] {
            assert_eq!(listed(user), json!([2, 3]));
        }
    }

    #[test]
    fn edits_are_made_one_after_the_other() {
        let edits = vec![append("/a", &[1]), set("/a/0", json!({})), set("/a/0/b", json!(2))];
        assert_eq!(edited(&json!({ "t": {} }), "/t", edits).unwrap(), json!({ "a": [{ "b": 2 }] }));
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let spec = json!({ "template": [] });
        assert_eq!(edited(&spec, "/template", vec![]).unwrap_err(), "the job's spec has no object at /template");
        assert_eq!(edited(&spec, "/nowhere", vec![]).unwrap_err(), "the job's spec has no object at /nowhere");
        for pointer in ["/list/1", "/list/-", "/list/-/b"] {
            let refused = of(&json!({ "list": [0] }), set(pointer, json!(1))).unwrap_err();
            assert!(refused.contains(pointer) && refused.contains("there is no item"), "{refused}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        assert!(of(&json!({}), set(&"/a".repeat(DEEPEST), json!(1))).is_ok());
        let refused = of(&json!({}), set(&"/a".repeat(DEEPEST + 1), json!(1))).unwrap_err();
        assert!(refused.contains("32 steps"), "{refused}");
    }
}
