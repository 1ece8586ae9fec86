//! Decoding of JSON from the API server to values of bounded depth.
//!
//! serde_json refuses text that is nested deeper than 128 levels. This decoder leaves out what is nested deeper than
//! [`MOST_LEVELS`], without recursion, and returns the path to it.

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// At most this many levels of maps and lists are decoded. Below 128, so that serde_json can still read a part of an
/// object after it was put into another object.
pub(crate) const MOST_LEVELS: usize = 100;

/// At most this many steps of a path are reported.
const TOLD: usize = 6;

/// A decoded value, and where something was left out of it.
#[derive(Debug, PartialEq)]
pub(crate) struct Decoded {
    /// The value, with null in place of what is too deep.
    pub(crate) value: Value,
    /// The beginning of the path to the first thing that is too deep, such as `spec.worker.x`.
    pub(crate) too_deep: Option<String>,
}

/// Decodes a text of any depth.
///
/// # Errors
/// If the text is no JSON.
pub(crate) fn value(text: &str) -> Result<Decoded, serde_json::Error> {
    let mut cut = None;
    let mut from = serde_json::Deserializer::from_str(text);
    let value = Level { left: MOST_LEVELS, cut: &mut cut }.deserialize(&mut from)?;
    from.end()?;
    Ok(Decoded { value, too_deep: cut.map(|steps| path(&steps)) })
}

/// Returns whether the text is a JSON object that [`value`] decodes with nothing left out. Decodes nothing.
pub(crate) fn is_object(text: &str) -> bool {
    let mut from = serde_json::Deserializer::from_str(text);
    let scan = Scan { left: MOST_LEVELS };
    text.trim_start().starts_with('{') && scan.deserialize(&mut from).and_then(|()| from.end()).is_ok()
}

/// Decodes a field of any depth; what is too deep becomes null.
///
/// # Errors
/// If the text is no JSON.
pub(crate) fn of_any_depth<'de, D: Deserializer<'de>>(from: D) -> Result<Value, D::Error> {
    Level { left: MOST_LEVELS, cut: &mut None }.deserialize(from)
}

/// Returns the path from steps that were recorded from the innermost to the outermost.
fn path(steps: &[String]) -> String {
    let first: Vec<_> = steps.iter().rev().take(TOLD).map(String::as_str).collect();
    first.join(".")
}

/// Decodes one value of at most `left` more levels.
struct Level<'a> {
    left: usize,
    /// The steps to the first value that was left out, the innermost step first.
    cut: &'a mut Option<Vec<String>>,
}

impl Level<'_> {
    /// Decodes a value one level deeper. Records `step` if the value contains the first thing that is left out.
    fn within<T, E>(
        &mut self,
        read: impl FnOnce(Level<'_>) -> Result<T, E>,
        step: impl FnOnce() -> String,
    ) -> Result<T, E> {
        let known = self.cut.is_some();
        let value = read(Level { left: self.left - 1, cut: self.cut })?;
        if let (false, Some(steps)) = (known, &mut self.cut) {
            steps.push(step());
        }
        Ok(value)
    }
}

impl<'de> DeserializeSeed<'de> for Level<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("not a finite number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        Value::deserialize(from)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        if self.left == 0 {
            // serde_json skips ignored values without recursion.
            while items.next_element::<IgnoredAny>()?.is_some() {}
            self.cut.get_or_insert_default();
            return Ok(Value::Null);
        }
        let mut list = Vec::new();
        while let Some(value) = self.within(|level| items.next_element_seed(level), || list.len().to_string())? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<Value, A::Error> {
        if self.left == 0 {
            while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            self.cut.get_or_insert_default();
            return Ok(Value::Null);
        }
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = self.within(|level| entries.next_value_seed(level), || key.clone())?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

/// Reads one value of at most `left` more levels, and keeps nothing of it.
struct Scan {
    left: usize,
}

impl Scan {
    fn within<E: Error>(&self) -> Result<Self, E> {
        let left = self.left.checked_sub(1).ok_or_else(|| E::custom("nested too deeply"))?;
        Ok(Self { left })
    }
}

impl<'de> DeserializeSeed<'de> for Scan {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Scan {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self.within()?)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        // A key is a text, which is read as any value.
        while entries.next_key_seed(self.within()?)?.is_some() {
            entries.next_value_seed(self.within()?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn nested(open: &str, close: &str, levels: usize) -> String {
        format!("{}7{}", open.repeat(levels), close.repeat(levels))
    }

    #[test]
    fn a_value_is_read_as_serde_json_reads_it() {
        let text = r#" {"a":[1,-2,3.5,1e9,"x\n",true,null,{}],"b":{"c":[[]]},"big":18446744073709551615} "#;
        let expected = Decoded { value: serde_json::from_str(text).unwrap(), too_deep: None };
        assert_eq!(value(text).unwrap(), expected);
    }

    #[test]
    fn what_is_no_json_is_an_error() {
        for text in ["", "{", "[1,]", "{}{}", r#"{"a":1e999}"#, "nul"] {
            assert!(value(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_as_deep_as_may_be_is_read_whole() {
        let text = nested("[", "]", MOST_LEVELS);
        assert_eq!(value(&text).unwrap(), Decoded { value: serde_json::from_str(&text).unwrap(), too_deep: None });
    }

    #[test]
    fn what_is_deeper_is_left_out_and_reported_by_its_path() {
        let deep = nested(r#"{"x":["#, "]}", 100_000);
        let text = format!(r#"{{"spec":{{"first":1,"deep":{deep},"deep-too":{deep},"last":2}}}}"#);
        let Decoded { mut value, too_deep } = value(&text).unwrap();
        assert_eq!(too_deep.unwrap(), "spec.deep.x.0.x.0");
        assert!(value["spec"]["deep"].take().is_object() && value["spec"]["deep-too"].take().is_object());
        assert_eq!(value, json!({ "spec": { "first": 1, "deep": null, "deep-too": null, "last": 2 } }));
    }

    #[test]
    fn an_object_is_one_of_which_nothing_is_left_out() {
        for levels in [MOST_LEVELS, MOST_LEVELS + 1, 100_000] {
            let text = nested(r#"{"x":"#, "}", levels);
            assert_eq!(is_object(&text), value(&text).unwrap().too_deep.is_none(), "{levels}");
        }
        assert!(is_object(r#"{"a":[1,-2,3.5,"x",true,null,{}]}"#));
        for text in ["", "[]", "7", "{", r#"{"a":}"#, "{}{}", r#"{"a":1e999}"#, r#"{"a":"\ud800"}"#] {
            assert!(!is_object(text), "{text}");
        }
    }

    #[test]
    fn a_value_that_was_read_can_be_written_into_another_and_read_again() {
        let inner = value(&nested(r#"{"x":"#, "}", 1000)).unwrap().value;
        let outer = json!({ "a": { "b": { "c": inner } } }).to_string();
        assert!(serde_json::from_str::<Value>(&outer).is_ok());
    }
}
