//! Decoding of JSON from the API server to values of bounded depth and memory.
//!
//! serde_json refuses text that is nested deeper than 128 levels. This decoder leaves out what is nested deeper than
//! [`MOST_LEVELS`], without recursion, and returns the path to it. It leaves out, too, what comes after the first
//! [`MOST_BYTES`] of values: a text of small objects takes a hundred times its size as values. And it leaves out what is
//! named as serde_json names text that is to be read as it is, which serde_json itself could not read again.

use decide::weight::{MAP_NODE, PLACES_USED, VALUE};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// At most this many levels of maps and lists are decoded. Below 128, so that serde_json can still read a part of an
/// object after it was put into another object.
pub(crate) const MOST_LEVELS: usize = 100;

/// At most this many steps of a path are reported.
const TOLD: usize = 6;

/// At most so many bytes of values are decoded of one text, as estimated: the largest spec that a job may have by default,
/// 256 KiB, takes half as much if it is a list of environment variables.
pub(crate) const MOST_BYTES: usize = 8 << 20;

/// serde_json reads a map that begins with this name as the text that is its value (`RawValue`), and fails if there is
/// none.
const RESERVED: &str = "$serde_json::private::RawValue";

/// A decoded value, and what was left out of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Decoded {
    /// The value, with null in place of what is too deep, and without what is too much.
    pub(crate) value: Value,
    /// The first thing that was left out.
    pub(crate) left_out: Option<LeftOut>,
}

/// What was left out of a value. Displays why.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum LeftOut {
    /// The beginning of the path to what is nested too deep, such as `spec.worker.x`.
    #[error("is nested deeper than {MOST_LEVELS} levels")]
    TooDeep(String),
    /// What comes after the first so many bytes of values.
    #[error("has so many objects and lists that they take more than {} MiB of memory", _0 >> 20)]
    TooMuch(usize),
    /// The beginning of the path to a map with a field that has a reserved name.
    #[error("has a field {RESERVED:?}, a name that cannot be used")]
    Reserved(String),
}

impl<'de> Deserialize<'de> for Decoded {
    /// Decodes a field of any depth.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut bounds = Bounds::default();
        let value = bounded(from, MOST_LEVELS, &mut bounds)?;
        let left_out = match bounds.is_full() {
            true => Some(LeftOut::TooMuch(MOST_BYTES)),
            false => bounds.first.map(|(left_out, steps)| left_out(path(&steps))),
        };
        Ok(Self { value, left_out })
    }
}

/// Decodes a value: at most `levels` levels of it, within the bounds.
///
/// # Errors
/// If it is no JSON.
pub(super) fn bounded<'de, D: Deserializer<'de>>(
    from: D,
    levels: usize,
    bounds: &mut Bounds,
) -> Result<Value, D::Error> {
    Level { left: levels, bounds }.deserialize(from)
}

/// Decodes a text of any depth.
///
/// # Errors
/// If the text is no JSON.
pub(crate) fn value(text: &str) -> Result<Decoded, serde_json::Error> {
    serde_json::from_str(text)
}

/// Returns whether the text is a JSON object that [`value`] decodes with nothing left out. Decodes nothing.
pub(crate) fn is_object(text: &str) -> bool {
    let mut from = serde_json::Deserializer::from_str(text);
    let scan = Scan { left: MOST_LEVELS, bounds: &mut Bounds::default() };
    text.trim_start().starts_with('{') && scan.deserialize(&mut from).and_then(|()| from.end()).is_ok()
}

/// Decodes a field of any depth; what is too deep becomes null.
///
/// # Errors
/// If the text is no JSON.
pub fn of_any_depth<'de, D: Deserializer<'de>>(from: D) -> Result<Value, D::Error> {
    Decoded::deserialize(from).map(|decoded| decoded.value)
}

/// Returns the path from steps that were recorded from the innermost to the outermost.
fn path(steps: &[String]) -> String {
    let first: Vec<_> = steps.iter().rev().take(TOLD).map(String::as_str).collect();
    first.join(".")
}

/// What bounds the values of one text: [`MOST_BYTES`] of them.
pub(super) struct Bounds {
    /// The bytes that further values may take. At 0 nothing further is decoded.
    left: usize,
    /// The first value that was left out for another reason, with the steps to it, the innermost step first.
    first: Option<(AtPath, Vec<String>)>,
}

/// Says of a path why the value there was left out.
type AtPath = fn(String) -> LeftOut;

impl Default for Bounds {
    fn default() -> Self {
        Self { left: MOST_BYTES, first: None }
    }
}

impl Bounds {
    /// Counts a text. Returns whether there is room for it.
    fn text(&mut self, text: &str) -> bool {
        self.has_room(text.len())
    }

    /// Counts the value of a list. Returns whether there is room for it.
    fn item(&mut self) -> bool {
        self.has_room(VALUE)
    }

    /// Counts one more entry of a map of so many. Returns whether there is room for it.
    fn entry(&mut self, entries: usize) -> bool {
        self.has_room(if entries.is_multiple_of(PLACES_USED) { MAP_NODE } else { 0 })
    }

    /// Returns whether nothing further is decoded.
    pub(super) fn is_full(&self) -> bool {
        self.left == 0
    }

    /// Counts bytes. Returns whether there is room for them.
    pub(super) fn has_room(&mut self, bytes: usize) -> bool {
        self.left = self.left.saturating_sub(bytes);
        self.left > 0
    }
}

/// Decodes one value of at most `left` more levels.
struct Level<'a> {
    left: usize,
    bounds: &'a mut Bounds,
}

impl Level<'_> {
    /// Decodes a value one level deeper. Records `step` if the value contains the first thing that is left out.
    fn within<T, E>(
        &mut self,
        read: impl FnOnce(Level<'_>) -> Result<T, E>,
        step: impl FnOnce() -> String,
    ) -> Result<T, E> {
        let known = self.bounds.first.is_some();
        let value = read(Level { left: self.left - 1, bounds: self.bounds })?;
        if let (false, Some((_, steps))) = (known, &mut self.bounds.first) {
            steps.push(step());
        }
        Ok(value)
    }

    /// Records that something was left out of a list or map, and returns what becomes of it.
    fn left_out(self, decoded: Value) -> Value {
        if self.left > 0 {
            return decoded;
        }
        self.bounds.first.get_or_insert((LeftOut::TooDeep, vec![]));
        Value::Null
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
        self.bounds.text(value);
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        self.bounds.text(&value);
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
        let mut list = Vec::new();
        while self.left > 0 && self.bounds.item() {
            match self.within(|level| items.next_element_seed(level), || list.len().to_string())? {
                Some(value) => list.push(value),
                None => return Ok(Value::Array(list)),
            }
        }
        // serde_json skips ignored values without recursion.
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(self.left_out(Value::Array(list)))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<Value, A::Error> {
        let (mut map, mut number) = (Map::new(), 0);
        while self.left > 0 && self.bounds.entry(number) {
            let Some(key) = entries.next_key::<String>()? else { return Ok(Value::Object(map)) };
            if key == RESERVED {
                entries.next_value::<IgnoredAny>()?;
                self.bounds.first.get_or_insert((LeftOut::Reserved, vec![]));
                continue;
            }
            self.bounds.text(&key);
            let value = self.within(|level| entries.next_value_seed(level), || key.clone())?;
            map.insert(key, value);
            number += 1;
        }
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(self.left_out(Value::Object(map)))
    }
}

/// The methods of a visitor that keeps nothing of a JSON value, but for those of texts, lists and maps.
macro_rules! nothing_of_scalars {
    () => {
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

        fn visit_unit<E>(self) -> Result<(), E> {
            Ok(())
        }
    };
}
pub(super) use nothing_of_scalars;

/// Reads one value of at most `left` more levels, and keeps nothing of it.
struct Scan<'a> {
    left: usize,
    bounds: &'a mut Bounds,
}

impl Scan<'_> {
    fn within<E: Error>(&mut self) -> Result<Scan<'_>, E> {
        let left = self.left.checked_sub(1).ok_or_else(|| E::custom("nested too deeply"))?;
        Ok(Scan { left, bounds: self.bounds })
    }
}

fn fits<E: Error>(has_room: bool) -> Result<(), E> {
    has_room.then_some(()).ok_or_else(|| E::custom("takes too much memory"))
}

impl<'de> DeserializeSeed<'de> for Scan<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Scan<'_> {
    type Value = ();

    nothing_of_scalars!();

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        fits(self.bounds.text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        loop {
            fits(self.bounds.item())?;
            if items.next_element_seed(self.within()?)?.is_none() {
                return Ok(());
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        let mut number = 0;
        loop {
            fits(self.bounds.entry(number))?;
            // A key is a text, which is read as any value.
            if entries.next_key_seed(Name(self.within()?))?.is_none() {
                return Ok(());
            }
            entries.next_value_seed(self.within()?)?;
            number += 1;
        }
    }
}

/// Reads the name of an entry of a map.
struct Name<'a>(Scan<'a>);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<(), E> {
        if name == RESERVED {
            return Err(E::custom("a reserved name"));
        }
        self.0.visit_str(name)
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
        let expected = Decoded { value: serde_json::from_str(text).unwrap(), left_out: None };
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
        assert_eq!(value(&text).unwrap(), Decoded { value: serde_json::from_str(&text).unwrap(), left_out: None });
    }

    #[test]
    fn what_is_deeper_is_left_out_and_reported_by_its_path() {
        let deep = nested(r#"{"x":["#, "]}", 100_000);
        let text = format!(r#"{{"spec":{{"first":1,"deep":{deep},"deep-too":{deep},"last":2}}}}"#);
        let Decoded { mut value, left_out } = value(&text).unwrap();
        assert_eq!(left_out, Some(LeftOut::TooDeep("spec.deep.x.0.x.0".into())));
        assert!(value["spec"]["deep"].take().is_object() && value["spec"]["deep-too"].take().is_object());
        assert_eq!(value, json!({ "spec": { "first": 1, "deep": null, "deep-too": null, "last": 2 } }));
    }

    #[test]
    fn an_object_is_one_of_which_nothing_is_left_out() {
        for levels in [MOST_LEVELS, MOST_LEVELS + 1, 100_000] {
            let text = nested(r#"{"x":"#, "}", levels);
            assert_eq!(is_object(&text), value(&text).unwrap().left_out.is_none(), "{levels}");
        }
        assert!(is_object(r#"{"a":[1,-2,3.5,"x",true,null,{}]}"#));
        for text in ["", "[]", "7", "{", r#"{"a":}"#, "{}{}", r#"{"a":1e999}"#, r#"{"a":"\ud800"}"#] {
            assert!(!is_object(text), "{text}");
        }
    }

    // As values, some of these take a hundred times their text.
    #[test]
    fn of_a_text_that_takes_too_much_memory_the_rest_is_left_out() {
        for item in [r#"{"":0}"#, "[[[]]]", "{}", "7", r#""text""#, r#"{"a":{},"b":[0,0]}"#] {
            for items in [100, 10_000, 1_000_000] {
                let text = format!(r#"{{"first":1,"many":[{item}{}],"last":2}}"#, format!(",{item}").repeat(items));
                let Decoded { value, left_out } = value(&text).unwrap();
                let weight = decide::weight::json(&value);
                // The outermost value is not counted.
                assert!(weight <= MOST_BYTES + VALUE, "{item}: {weight}");
                assert_eq!(left_out.is_none(), is_object(&text), "{items} of {item}");
                assert_eq!(left_out.is_none(), value == serde_json::from_str::<Value>(&text).unwrap());
                assert!(left_out.is_none_or(|left_out| left_out == LeftOut::TooMuch(MOST_BYTES)));
            }
        }
    }

    // serde_json writes such a name, and panics or fails when it reads it again.
    #[test]
    fn what_has_a_reserved_name_is_left_out_and_reported_by_its_path() {
        for inner in ["7", "{}", r#""[]""#, r#""no JSON""#] {
            for (first, last) in [("", r#","last":1"#), (r#""first":1,"#, "")] {
                let text = format!(r#"{{"spec":[{{{first}"{RESERVED}":{inner}{last}}}]}}"#);
                let Decoded { value, left_out } = value(&text).unwrap();
                assert_eq!(left_out, Some(LeftOut::Reserved("spec.0".into())), "{text}");
                assert!(!is_object(&text), "{text}");
                assert_eq!(serde_json::from_str::<Value>(&value.to_string()).unwrap(), value, "{text}");
                assert_eq!(value["spec"][0].as_object().unwrap().len(), 1, "the rest is there");
            }
        }
        assert!(is_object(&format!(r#"{{"a":"{RESERVED}"}}"#)), "as a text it means nothing");
    }

    #[test]
    fn a_value_that_was_read_can_be_written_into_another_and_read_again() {
        let inner = value(&nested(r#"{"x":"#, "}", 1000)).unwrap().value;
        let outer = json!({ "a": { "b": { "c": inner } } }).to_string();
        assert!(serde_json::from_str::<Value>(&outer).is_ok());
    }
}
