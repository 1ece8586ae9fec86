//! The line of a manifest on which a value stands. The reader of YAML knows positions only in errors, so the value is sought
//! by a reader that fails there.

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use std::fmt;

/// Returns the line of the value at this JSON pointer in a document of the text, or of the nearest value around it that is
/// there. Documents count from 0, lines from 1.
pub(super) fn of(text: &str, document: usize, pointer: &str) -> Option<usize> {
    let steps: Vec<_> = pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
    // A value that is not there is sought in what would have it.
    (0..=steps.len()).rev().find_map(|depth| {
        let document = serde_norway::Deserializer::from_str(text).nth(document)?;
        Some(Sought(&steps[..depth]).deserialize(document).err()?.location()?.line())
    })
}

/// The steps that are left to the value.
#[derive(Clone, Copy)]
struct Sought<'a>(&'a [String]);

impl<'de> DeserializeSeed<'de> for Sought<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.0.is_empty() { deserializer.deserialize_any(Found) } else { deserializer.deserialize_any(self) }
    }
}

impl<'de> Visitor<'de> for Sought<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping or a sequence")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (step, rest) = self.0.split_first().ok_or_else(|| A::Error::custom("no step is left"))?;
        while let Some(is_meant) = map.next_key_seed(Key { step, is_sought: rest.is_empty() })? {
            if is_meant {
                map.next_value_seed(Sought(rest))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let (step, rest) = self.0.split_first().ok_or_else(|| A::Error::custom("no step is left"))?;
        let Ok(wanted) = step.parse::<usize>() else { return Ok(()) };
        for _ in 0..wanted {
            seq.next_element::<IgnoredAny>()?;
        }
        seq.next_element_seed(Sought(rest)).map(drop)
    }
}

/// The key of a step. A value stands where its key does: a mapping would begin with the line of its first key.
struct Key<'a> {
    step: &'a str,
    is_sought: bool,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<bool, E> {
        match key == self.step {
            true if self.is_sought => Err(E::custom("here")),
            is_meant => Ok(is_meant),
        }
    }
}

/// The value that is sought: it is refused whatever it is, and the error has its position.
struct Found;

impl Visitor<'_> for Found {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("its position")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a: 1\n---\n# b\nb:\n  c: [1, 2,\n    3]\n  d/e:\n  - x: yes\n  - y:\n      z: null\n";

    #[test]
    fn a_value_is_found_by_its_document_and_pointer() {
        let of = |document, pointer| of(TEXT, document, pointer);
        assert_eq!(of(0, "/a"), Some(1));
        assert_eq!(of(1, "/b/c/1"), Some(5));
        assert_eq!(of(1, "/b/c/2"), Some(6));
        assert_eq!(of(1, "/b/d~1e/0/x"), Some(8));
        assert_eq!(of(1, "/b/d~1e/1/y/z"), Some(10));
    }

    #[test]
    fn a_value_that_is_missing_has_the_line_of_what_lacks_it() {
        assert_eq!(of(TEXT, 1, "/b/c/7"), Some(5));
        assert_eq!(of(TEXT, 1, "/b/d~1e/0/w"), Some(8));
        assert_eq!(of(TEXT, 1, "/q"), Some(4));
        assert_eq!(of(TEXT, 2, "/q"), None);
    }
}
