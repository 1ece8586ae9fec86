//! Steps of JSON pointers, escaped as in RFC 6901.

use std::borrow::Cow;

/// Escapes the name of a field as a step of a pointer.
pub(crate) fn escaped(name: &str) -> Cow<'_, str> {
    if name.contains(['~', '/']) { name.replace('~', "~0").replace('/', "~1").into() } else { name.into() }
}

/// Unescapes a step of a pointer to the name of a field.
pub(crate) fn unescaped(step: &str) -> Cow<'_, str> {
    if step.contains('~') { step.replace("~1", "/").replace("~0", "~").into() } else { step.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escaped_name_unescapes_to_itself() {
        for (name, step) in [("plain", "plain"), ("a/b", "a~1b"), ("~1", "~01"), ("~/", "~0~1")] {
            assert_eq!((&*escaped(name), &*unescaped(step)), (step, name));
        }
    }
}
