//! The place of a JSON parse error, and its field path: `worker.template[0].name`. The path is computed from the text only after an
//! error, so a successful parse has no extra cost. The crate serde_path_to_error, which the host uses, would follow every
//! parse and take fuel for it.

use serde_json::Value;

/// A JSON container that is not closed at the position of the error.
enum Open {
    /// An object, and the last name that was read.
    Object(Option<String>),
    /// An array, and the number of its complete items.
    Array(usize),
}

/// The place of a value in a text, from the outside in.
pub(crate) struct Place(Vec<Open>);

/// Returns the place of the value that was read last before the error.
pub(crate) fn of(error: &serde_json::Error, json: &str) -> Place {
    let line_start: usize = json.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let read = json.as_bytes().get(..line_start + error.column()).unwrap_or(json.as_bytes());
    let mut open = Vec::new();
    let mut at = 0;
    while let Some(byte) = read.get(at) {
        match byte {
            b'{' => open.push(Open::Object(None)),
            b'[' => open.push(Open::Array(0)),
            b'}' | b']' => drop(open.pop()),
            b',' => match open.last_mut() {
                Some(Open::Object(name)) => *name = None,
                Some(Open::Array(over)) => *over += 1,
                None => {}
            },
            b'"' => {
                let end = end_of_string(read, at);
                if let Some(Open::Object(name @ None)) = open.last_mut() {
                    *name = read.get(at..=end).and_then(|text| serde_json::from_slice(text).ok());
                }
                at = end;
            }
            _ => {}
        }
        at += 1;
    }
    // A container that has just been opened is the wrong value itself.
    if matches!(read.last(), Some(b'{' | b'[')) {
        open.pop();
    }
    Place(open)
}

/// Returns the index of the closing quote of the string that begins at `start`, or an index past the text if none
/// closes.
fn end_of_string(read: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = read.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    at
}

impl Place {
    /// Returns the path of the place. An empty path means the whole text.
    pub(crate) fn path(&self) -> String {
        let mut path = String::new();
        for part in &self.0 {
            match part {
                Open::Object(None) => {}
                Open::Object(Some(name)) if path.is_empty() => path.push_str(name),
                Open::Object(Some(name)) => {
                    path.push('.');
                    path.push_str(name);
                }
                Open::Array(over) => {
                    path.push('[');
                    path.push_str(&over.to_string());
                    path.push(']');
                }
            }
        }
        path
    }

    /// Returns the value at the place, if the JSON has one there.
    pub(crate) fn find<'a>(&self, json: &'a mut Value) -> Option<&'a mut Value> {
        self.0.iter().try_fold(json, |at, part| match part {
            Open::Object(None) => Some(at),
            Open::Object(Some(name)) => at.get_mut(name),
            Open::Array(over) => at.get_mut(over),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Spec {
        name: Option<String>,
        #[serde(default)]
        roles: Vec<Role>,
        inner: Option<Box<Spec>>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Role {
        replicas: u32,
    }

    fn place(json: &str) -> String {
        of(&serde_json::from_str::<Spec>(json).unwrap_err(), json).path()
    }

    #[test]
    fn a_value_of_another_type_is_named_by_its_path() {
        assert_eq!(place(r#"{"name":3}"#), "name");
        assert_eq!(place(r#"{"roles":[{"replicas":1},{"replicas":"two"}],"name":"x"}"#), "roles[1].replicas");
        assert_eq!(place(r#"{"inner":{"inner":{"name":true}},"name":null}"#), "inner.inner.name");
        assert_eq!(place("{\n  \"name\": \"a \\\" , }\",\n  \"inner\": { \"roles\": [3] }\n}"), "inner.roles[0]");
    }

    #[test]
    fn an_object_or_array_in_place_of_a_value_is_named_by_its_own_path() {
        assert_eq!(place(r#"{"name":{"a":1}}"#), "name");
        assert_eq!(place(r#"{"name":["a"]}"#), "name");
        assert_eq!(place(r#"{"roles":{"a":1}}"#), "roles");
        assert_eq!(place("[]"), "");
        assert_eq!(place("3"), "");
    }

    #[test]
    fn a_missing_field_is_named_by_the_path_of_its_object() {
        assert_eq!(place(r#"{"name":"x","roles":[{"replicas":1},{}]}"#), "roles[1]");
    }
}
