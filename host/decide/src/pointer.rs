//! JSON pointers (RFC 6901): their steps, and the values that they lead to.
//!
//! Not the crate jsonptr, whose assignment makes a list for a member that is called `0`, and replaces texts on its way.

use serde_json::{Map, Value};
use std::borrow::Cow;

/// Escapes the name of a field as a step of a pointer.
pub(crate) fn escaped(name: &str) -> Cow<'_, str> {
    if name.contains(['~', '/']) { name.replace('~', "~0").replace('/', "~1").into() } else { name.into() }
}

/// Unescapes a step of a pointer to the name of a field.
#[must_use]
pub fn unescaped(step: &str) -> Cow<'_, str> {
    if step.contains('~') { step.replace("~1", "/").replace("~0", "~").into() } else { step.into() }
}

/// Returns the value at the pointer, as [`Value::pointer`] does, which allocates twice for each step.
#[must_use]
pub fn find<'a>(root: &'a Value, pointer: &str) -> Option<&'a Value> {
    if pointer.is_empty() {
        return Some(root);
    }
    pointer.strip_prefix('/')?.split('/').try_fold(root, |at, step| match at {
        Value::Object(fields) => fields.get(&*unescaped(step)),
        Value::Array(items) => items.get(index(step)?),
        _ => None,
    })
}

/// Returns the index of an item (RFC 6901, section 4): digits without a leading zero.
#[must_use]
pub fn index(step: &str) -> Option<usize> {
    let has_digits = step.bytes().all(|byte| byte.is_ascii_digit()) && (step == "0" || !step.starts_with('0'));
    has_digits.then(|| step.parse().ok()).flatten()
}

/// What a pointer cannot lead through.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Obstacle<'a> {
    /// A list without this item.
    Item(&'a str),
    /// The value at this pointer, which is no object.
    Value(&'a str),
}

/// Returns the value at the pointer, null where there was none. Makes objects of what is absent or null on the way.
pub(crate) fn place<'a, 'b>(root: &'a mut Value, pointer: &'b str) -> Result<&'a mut Value, Obstacle<'b>> {
    let mut at = root;
    // Empty before the first slash, unless this is no pointer: then whatever stands there is ignored.
    let mut behind = pointer.find('/').unwrap_or(pointer.len());
    for step in pointer.split('/').skip(1) {
        let here = &pointer[..behind];
        behind += 1 + step.len();
        if at.is_null() {
            *at = Map::new().into();
        }
        at = match at {
            Value::Array(items) if step == "-" || step.parse::<usize>().is_ok() => {
                let item = step.parse().ok().and_then(|index: usize| items.get_mut(index));
                item.ok_or(Obstacle::Item(step))?
            }
            Value::Object(fields) => fields.entry(unescaped(step)).or_insert(Value::Null),
            _ => return Err(Obstacle::Value(here)),
        };
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Found by fuzzing: the first step of a text that is no pointer was taken for as long as what stands before it.
    #[test]
    fn what_stands_before_the_first_slash_is_ignored_whatever_it_is() {
        let mut root = serde_json::json!({ "a": 1 });
        assert_eq!(place(&mut root, "\u{652}x/a").unwrap(), &1);
        assert_eq!(place(&mut root, "\u{652}x/a/b"), Err(Obstacle::Value("\u{652}x/a")));
        assert_eq!(place(&mut root, "/a/b"), Err(Obstacle::Value("/a")));
    }

    #[test]
    fn a_pointer_finds_what_it_finds_in_serde_json() {
        let root = serde_json::json!({ "": 1, "a/b": { "~1": [2, { "0": 3 }] }, "0": null, "a": "text" });
        for pointer in ["", "/", "/a~1b", "/a~1b/~01", "/a~1b/~01/0", "/a~1b/~01/1/0", "/0", "/a"] {
            let there = root.pointer(pointer);
            assert!(there.is_some(), "{pointer}");
            assert_eq!(find(&root, pointer), there, "{pointer}");
        }
        let items = ["00", "01", "+0", "-", "2", "", "18446744073709551616"].map(|step| format!("/a~1b/~01/{step}"));
        let others = ["a", "0", "//", "/a/b", "/0/a", "/a~2b", "/a~"].map(str::to_owned);
        for pointer in items.iter().chain(&others) {
            assert_eq!((find(&root, pointer), root.pointer(pointer)), (None, None), "{pointer}");
        }
    }

    #[test]
    fn an_escaped_name_unescapes_to_itself() {
        for (name, step) in [("plain", "plain"), ("a/b", "a~1b"), ("~1", "~01"), ("~/", "~0~1")] {
            assert_eq!((&*escaped(name), &*unescaped(step)), (step, name));
        }
    }
}
