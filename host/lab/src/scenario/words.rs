//! The syntax of commands: words, values, paths.

use anyhow::{Context, bail};
use serde_json::{Value, json};

/// Splits a line into words. White space within quotes, brackets and braces does not separate words.
pub(super) fn split(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut depth, mut quoted) = (0_u32, false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        match words.last_mut() {
            Some(word) if !c.is_whitespace() || quoted || depth > 0 => word.push(c),
            _ => words.push(String::new()),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Parses the word as JSON, or returns it as text.
pub(super) fn value(word: &str) -> Value {
    serde_json::from_str(word).unwrap_or_else(|_| json!(word))
}

/// Returns the text with quotes removed.
pub(super) fn text(word: &str) -> String {
    match value(word) {
        Value::String(text) => text,
        _ => word.to_owned(),
    }
}

/// Returns the value at a path with dots; a number is a place in a list.
pub(super) fn at<'a>(whole: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(whole, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        value => value.get(step),
    })
}

/// Sets the value at a path with dots and makes missing objects; null removes the value.
pub(super) fn set(whole: &mut Value, path: &str, value: Value) -> anyhow::Result<()> {
    let (parent, last) = path.rsplit_once('.').unwrap_or(("", path));
    let mut place = whole;
    for step in parent.split('.').filter(|step| !step.is_empty()) {
        place = enter(place, step).with_context(|| format!("{path} does not exist"))?;
    }
    match place {
        Value::Array(items) => match items.get_mut(last.parse::<usize>()?) {
            Some(item) => *item = value,
            None => items.push(value),
        },
        place => {
            if place.is_null() {
                *place = json!({});
            }
            let Some(fields) = place.as_object_mut() else { bail!("{path} is within a text or number") };
            match value {
                Value::Null => drop(fields.remove(last)),
                value => drop(fields.insert(last.to_owned(), value)),
            }
        }
    }
    Ok(())
}

fn enter<'a>(value: &'a mut Value, step: &str) -> Option<&'a mut Value> {
    match value {
        Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?),
        Value::Object(_) | Value::Null => Some(&mut value[step]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_may_be_json_with_blanks() {
        assert_eq!(split(r#"set a.b {"c": [1, 2]} "x y""#), ["set", "a.b", r#"{"c": [1, 2]}"#, r#""x y""#]);
        assert_eq!((value("3"), value("x"), text("\"x y\"")), (json!(3), json!("x"), "x y".to_owned()));
    }

    #[test]
    fn a_path_reaches_into_lists() {
        let mut whole = json!({ "a": [{ "b": 1 }] });
        set(&mut whole, "a.0.b", json!(2)).unwrap();
        set(&mut whole, "c.d", json!(true)).unwrap();
        assert_eq!((at(&whole, "a.0.b"), at(&whole, "c.d")), (Some(&json!(2)), Some(&json!(true))));
        set(&mut whole, "c.d", Value::Null).unwrap();
        assert_eq!(whole, json!({ "a": [{ "b": 2 }], "c": {} }));
    }
}
