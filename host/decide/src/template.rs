//! Applies a plugin's edits to a user's template.

use crate::{
    flaw::Flaw,
    pointer::{self, Obstacle},
    rejection::{Objection, Rejection, field_of_spec},
};
use serde_json::Value;

/// Maximum number of steps in a pointer: no field of a pod is half as deep.
const DEEPEST: usize = 32;

/// A change to a template at a JSON pointer.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// Sets the value. The old value must have the same type, unless one of them is null.
    Set(String, Value),
    /// Appends items to the list; creates the list where there is none.
    Append(String, Vec<Value>),
}

/// Returns the value at the pointer of the job's spec, with the edits applied in order. Missing objects on the way of
/// an edit are created.
///
/// # Errors
/// The user's error: a value that is edited has another type. The plugin's error: the spec has no value at the pointer,
/// an edit leads to an item that a list does not have, or an edit contradicts an earlier one.
pub fn edited(spec: &Value, at: &str, edits: Vec<Edit>) -> Result<Value, Objection> {
    let user = match pointer::find(spec, at) {
        None | Some(Value::Null) => return Err(Flaw::NoTemplate { at: at.to_owned() }.into()),
        Some(user) if !user.is_object() => {
            return Err(Rejection::field(field_of_spec(&[at]), "must be an object").into());
        }
        Some(user) => user,
    };
    let mut template = user.clone();
    for edit in edits {
        edit.make(&mut template).map_err(|wrong| wrong.blamed(user, at))?;
    }
    Ok(template)
}

impl Edit {
    fn make(self, template: &mut Value) -> Result<(), Wrong> {
        match self {
            Self::Set(at, value) => {
                let there = place(template, &at)?;
                if !there.is_null() && !value.is_null() && kind(there) != kind(&value) {
                    return Err(Wrong::Type { at, right: kind(&value) });
                }
                *there = value;
            }
            Self::Append(at, items) => match place(template, &at)? {
                Value::Array(there) => there.extend(items),
                there @ Value::Null => *there = items.into(),
                _ => return Err(Wrong::Type { at, right: "a list" }),
            },
        }
        Ok(())
    }
}

/// Why an edit cannot be applied.
enum Wrong {
    /// The value at this pointer must have another type.
    Type { at: String, right: &'static str },
    /// The edit fits no template.
    Edit(Flaw),
}

impl Wrong {
    /// Blames the user where the user's template has a value at the place, else the plugin.
    fn blamed(self, user: &Value, template: &str) -> Objection {
        match self {
            Self::Type { at, right } => wrong_type(Some((template, user)), &at, right),
            Self::Edit(flaw) => flaw.into(),
        }
    }
}

/// Returns the error for a value in a template that is not `right`. It is the user's error where the user's template,
/// given with its own pointer, has the wrong value; else the plugin's.
#[must_use]
pub(crate) fn wrong_type(user: Option<(&str, &Value)>, at: &str, right: &'static str) -> Objection {
    match user {
        Some((template, user)) if user.pointer(at).is_some_and(|there| !there.is_null() && kind(there) != right) => {
            Rejection::field(field_of_spec(&[template, at]), format!("must be {right}")).into()
        }
        _ => Flaw::WrongType { at: at.to_owned(), right }.into(),
    }
}

/// Returns the value at the pointer, null where there was none.
fn place<'a>(template: &'a mut Value, pointer: &str) -> Result<&'a mut Value, Wrong> {
    if pointer.split('/').nth(DEEPEST + 1).is_some() {
        return Err(Wrong::Edit(Flaw::DeepEdit { most: DEEPEST }));
    }
    pointer::place(template, pointer).map_err(|obstacle| match obstacle {
        Obstacle::Item(item) => Wrong::Edit(Flaw::NoItem { pointer: pointer.to_owned(), item: item.to_owned() }),
        Obstacle::Value(at) => Wrong::Type { at: at.to_owned(), right: "an object" },
    })
}

/// Returns the type of a value in words.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
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

    fn of(template: &Value, edit: Edit) -> Result<Value, Objection> {
        edited(&json!({ "worker": { "template": template } }), "/worker/template", vec![edit])
    }

    /// Returns the message of the plugin's error.
    fn plugins(made: Result<Value, Objection>) -> String {
        match made {
            Err(Objection::Plugin(error)) => error.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn fields_without_an_edit_stay() {
        let user = json!({ "spec": { "future": null, "containers": [{ "cpu": 1 }, { "name": "side" }] } });
        let edited = of(&user, set("/spec/containers/0/image", json!("i"))).unwrap();
        let expected =
            json!({ "spec": { "future": null, "containers": [{ "cpu": 1, "image": "i" }, { "name": "side" }] } });
        assert_eq!(edited, expected);
    }

    #[test]
    fn missing_objects_on_the_way_of_an_edit_are_created() {
        let labelled = |user| of(&user, set("/metadata/labels/a~1b~0", json!("x"))).unwrap();
        let expected = json!({ "metadata": { "labels": { "a/b~": "x" } } });
        for user in [json!({}), json!({ "metadata": null }), json!({ "metadata": { "labels": { "a/b~": "y" } } })] {
            assert_eq!(labelled(user), expected);
        }
    }

    #[test]
    fn items_are_appended_to_a_list_or_become_one() {
        let listed = |user| of(&user, append("/list", &[2, 3])).unwrap()["list"].clone();
        assert_eq!(listed(json!({ "list": [1] })), json!([1, 2, 3]));
        for user in [json!({}), json!({ "list": null })] {
            assert_eq!(listed(user), json!([2, 3]));
        }
    }

    #[test]
    fn a_users_value_of_the_wrong_type_is_the_users_error_with_its_field() {
        let cases = [
            (json!({ "list": "x" }), append("/list", &[1]), "list: must be a list"),
            (json!({ "metadata": ["x"] }), set("/metadata/labels/a", json!("x")), "metadata: must be an object"),
            (
                json!({ "metadata": { "annotations": ["x"] } }),
                set("/metadata/annotations/a", json!("x")),
                "metadata.annotations: must be an object",
            ),
            (
                json!({ "spec": { "restartPolicy": 3 } }),
                set("/spec/restartPolicy", json!("Never")),
                "spec.restartPolicy: must be a string",
            ),
            (
                json!({ "spec": { "containers": [{ "env": "x" }] } }),
                append("/spec/containers/0/env", &[1]),
                "spec.containers[0].env: must be a list",
            ),
            (
                json!({ "spec": { "containers": ["x"] } }),
                set("/spec/containers/0/image", json!("i")),
                "spec.containers[0]: must be an object",
            ),
        ];
        for (user, edit, words) in cases {
            match of(&user, edit) {
                Err(Objection::Job(rejection)) => {
                    assert_eq!(rejection.to_string(), format!("spec.worker.template.{words}"));
                }
                other => panic!("{user}: {other:?}"),
            }
        }
        let refused = edited(&json!({ "template": [] }), "/template", vec![]).unwrap_err();
        assert_eq!(refused, Rejection::field("spec.template", "must be an object").into());
    }

    #[test]
    fn a_plugins_value_of_the_wrong_type_is_the_plugins_error() {
        let twice = |second| edited(&json!({ "t": {} }), "/t", vec![set("/a", json!("x")), second]);
        assert_eq!(plugins(twice(append("/a", &[1]))), "what is at /a of the template is not a list");
        assert_eq!(plugins(twice(set("/a/b", json!(1)))), "what is at /a of the template is not an object");
        assert_eq!(plugins(twice(set("/a", json!(1)))), "what is at /a of the template is not a number");
        // Null removes the old value, whatever its type.
        let edits = vec![set("/a", json!(null)), set("/a", json!("x"))];
        assert_eq!(edited(&json!({ "t": { "a": 1 } }), "/t", edits).unwrap(), json!({ "a": "x" }));
    }

    #[test]
    fn edits_are_applied_in_order() {
        let edits = vec![append("/a", &[1]), set("/a/0", json!(null)), set("/a/0/b", json!(2))];
        assert_eq!(edited(&json!({ "t": {} }), "/t", edits).unwrap(), json!({ "a": [{ "b": 2 }] }));
    }

    #[test]
    fn an_edit_of_a_missing_value_is_refused() {
        for spec in [json!({}), json!({ "nowhere": null })] {
            assert_eq!(plugins(edited(&spec, "/nowhere", vec![])), "the job's spec has no object at /nowhere");
        }
        for pointer in ["/list/1", "/list/-", "/list/-/b"] {
            let refused = plugins(of(&json!({ "list": [0] }), set(pointer, json!(1))));
            assert!(refused.contains(pointer) && refused.contains("there is no item"), "{refused}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        assert!(of(&json!({}), set(&"/a".repeat(DEEPEST), json!(1))).is_ok());
        let refused = plugins(of(&json!({}), set(&"/a".repeat(DEEPEST + 1), json!(1))));
        assert!(refused.contains("32 steps"), "{refused}");
    }
}
