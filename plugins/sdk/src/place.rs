//! Where in a JSON text a reader stopped, as people write it: `worker.template[0].name`. The text is walked only when
//! something is wrong with it, so that reading one that is right costs nothing more.

/// A part that is open where the reader stopped.
enum Open {
    /// An object, and the name that was read last.
    Object(Option<String>),
    /// An array, and the number of its items that are over.
    Array(usize),
}

/// The place of what was read last before this error; "" is the whole text.
pub(crate) fn of(error: &serde_json::Error, json: &str) -> String {
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
                let end = end_of_text(read, at);
                if let Some(Open::Object(name @ None)) = open.last_mut() {
                    *name = read.get(at..=end).and_then(|text| serde_json::from_slice(text).ok());
                }
                at = end;
            }
            _ => {}
        }
        at += 1;
    }
    // What had only begun is wrong as a whole.
    if matches!(read.last(), Some(b'{' | b'[')) {
        open.pop();
    }
    written(&open)
}

/// The index of the quote that ends the text which begins at `start`.
fn end_of_text(read: &[u8], start: usize) -> usize {
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

fn written(open: &[Open]) -> String {
    let mut place = String::new();
    for part in open {
        match part {
            Open::Object(None) => {}
            Open::Object(Some(name)) if place.is_empty() => place.push_str(name),
            Open::Object(Some(name)) => {
                place.push('.');
                place.push_str(name);
            }
            Open::Array(over) => {
                place.push('[');
                place.push_str(&over.to_string());
                place.push(']');
            }
        }
    }
    place
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
        of(&serde_json::from_str::<Spec>(json).unwrap_err(), json)
    }

    #[test]
    fn a_value_of_another_type_is_told_by_its_place() {
        assert_eq!(place(r#"{"name":3}"#), "name");
        assert_eq!(place(r#"{"roles":[{"replicas":1},{"replicas":"two"}],"name":"x"}"#), "roles[1].replicas");
        assert_eq!(place(r#"{"inner":{"inner":{"name":true}},"name":null}"#), "inner.inner.name");
        assert_eq!(place("{\n  \"name\": \"a \\\" , }\",\n  \"inner\": { \"roles\": [3] }\n}"), "inner.roles[0]");
    }

    #[test]
    fn a_whole_where_a_part_should_be_is_told_by_its_own_place() {
        assert_eq!(place(r#"{"name":{"a":1}}"#), "name");
        assert_eq!(place(r#"{"name":["a"]}"#), "name");
        assert_eq!(place(r#"{"roles":{"a":1}}"#), "roles");
        assert_eq!(place("[]"), "");
        assert_eq!(place("3"), "");
    }

    #[test]
    fn what_is_missing_is_told_by_what_lacks_it() {
        assert_eq!(place(r#"{"name":"x","roles":[{"replicas":1},{}]}"#), "roles[1]");
    }
}
