//! The places in objects of a watch that are kept, and their values: one scan of an object finds all of them.

use super::decode::{self, Bounds, LeftOut, MOST_BYTES, MOST_LEVELS};
use decide::{
    plan::FieldError,
    pointer::{self, find},
    weight,
};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, value::RawValue};
use std::{collections::BTreeMap, fmt};

/// The maximum bytes of each value, as estimated. The data of a ConfigMap, which has at most 1 MiB, takes no more
/// unless it is in very many small pieces.
const MOST_KEPT: usize = 2 << 20;

/// JSON pointers, as a tree of their steps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// The pointer that leads here, if one does.
    here: Option<String>,
    /// What begins with each further step.
    steps: BTreeMap<String, Places>,
}

impl FromIterator<String> for Places {
    fn from_iter<I: IntoIterator<Item = String>>(pointers: I) -> Self {
        let mut places = Self::default();
        // What is deeper is not decoded.
        for pointer in pointers.into_iter().filter(|pointer| pointer.matches('/').count() <= MOST_LEVELS) {
            let mut at = &mut places;
            for step in pointer.split('/').skip(1) {
                at = at.steps.entry(pointer::unescaped(step).into_owned()).or_default();
            }
            at.here = Some(pointer);
        }
        places
    }
}

impl<'a> FromIterator<&'a str> for Places {
    fn from_iter<I: IntoIterator<Item = &'a str>>(pointers: I) -> Self {
        pointers.into_iter().map(str::to_owned).collect()
    }
}

impl Places {
    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.here.is_none() && self.steps.is_empty()
    }

    /// Returns the values in an object's text by pointer, and the first error in a section that a pointer leads into. Reads the
    /// text once, and decodes nothing beside these places. A value that takes too much memory is left out, and is an error;
    /// all of them together take no more than [`MOST_BYTES`].
    pub(super) fn values(&self, text: &str) -> (BTreeMap<String, Value>, Option<FieldError>) {
        let mut found = Found::default();
        if !self.is_empty() {
            let mut from = serde_json::Deserializer::from_str(text);
            // The reader of the metadata says what is wrong with a text that is no object.
            let _read = from.deserialize_map(Sections { places: self, found: &mut found });
        }
        (found.values, found.wrong)
    }
}

/// What was found so far.
#[derive(Default)]
struct Found {
    values: BTreeMap<String, Value>,
    wrong: Option<FieldError>,
    /// Of all values together.
    bounds: Bounds,
}

impl Found {
    /// Keeps the value at a place, and those at the places within it.
    fn keep(&mut self, places: &Places, value: Value) {
        let Some(here) = &places.here else { return };
        if self.bounds.is_full() {
            return self.is_wrong(here, MOST_BYTES);
        }
        places.steps.values().for_each(|inner| self.copy(inner, here, &value));
        match weight::json(&value) {
            weight if weight > MOST_KEPT => self.is_wrong(here, MOST_KEPT),
            _ => drop(self.values.insert(here.clone(), value)),
        }
    }

    /// Keeps a copy of each value at or below `places`, which are below `outer`, the place of this value.
    fn copy(&mut self, places: &Places, outer: &str, value: &Value) {
        if let Some(here) = &places.here
            && let Some(inner) = here.strip_prefix(outer).and_then(|rest| find(value, rest))
        {
            let weight = weight::json(inner);
            match self.bounds.has_room(weight) {
                false => self.is_wrong(here, MOST_BYTES),
                true if weight > MOST_KEPT => self.is_wrong(here, MOST_KEPT),
                true => drop(self.values.insert(here.clone(), inner.clone())),
            }
        }
        if !self.bounds.is_full() {
            places.steps.values().for_each(|inner| self.copy(inner, outer, value));
        }
    }

    fn is_wrong(&mut self, pointer: &str, most: usize) {
        let path = pointer.strip_prefix('/').unwrap_or(pointer).replace('/', ".");
        self.wrong.get_or_insert_with(|| FieldError { path, message: LeftOut::TooMuch(most).to_string() });
    }
}

/// Reads an object: of its sections those that places are in, each by itself, so that an error in one leaves the others.
struct Sections<'a> {
    places: &'a Places,
    found: &'a mut Found,
}

impl<'de> Visitor<'de> for Sections<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut sections: A) -> Result<(), A::Error> {
        while let Some(section) = sections.next_key_seed(Step(self.places))? {
            let Some((name, places)) = section else {
                sections.next_value::<IgnoredAny>()?;
                continue;
            };
            let text = sections.next_value::<&RawValue>()?.get();
            let within = Within { places, left: MOST_LEVELS, found: self.found };
            if let Err(error) = within.deserialize(&mut serde_json::Deserializer::from_str(text)) {
                let wrong = || FieldError { path: name.to_owned(), message: error.to_string() };
                self.found.wrong.get_or_insert_with(wrong);
            }
        }
        Ok(())
    }
}

/// Reads the name of a field: the places that begin with it, and its name among them.
struct Step<'a>(&'a Places);

impl<'de, 'a> DeserializeSeed<'de> for Step<'a> {
    type Value = Option<(&'a str, &'a Places)>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_str(self)
    }
}

impl<'a> Visitor<'_> for Step<'a> {
    type Value = Option<(&'a str, &'a Places)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.steps.get_key_value(name).map(|(name, places)| (name.as_str(), places)))
    }
}

/// Reads a value that places are in, of at most `left` more levels.
struct Within<'a> {
    places: &'a Places,
    left: usize,
    found: &'a mut Found,
}

impl<'de> DeserializeSeed<'de> for Within<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        if self.places.here.is_some() {
            let value = decode::bounded(from, self.left, &mut self.found.bounds)?;
            self.found.keep(self.places, value);
            return Ok(());
        }
        if self.left == 0 {
            return IgnoredAny::deserialize(from).map(drop);
        }
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Within<'_> {
    type Value = ();

    decode::nothing_of_scalars!();

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let steps = &self.places.steps;
        let mut wanted: BTreeMap<_, _> =
            steps.iter().filter_map(|(step, places)| Some((pointer::index(step)?, places))).collect();
        for number in 0.. {
            let is_there = match wanted.remove(&number) {
                Some(places) => {
                    let within = Within { places, left: self.left - 1, found: self.found };
                    items.next_element_seed(within)?
                }
                None => items.next_element::<IgnoredAny>()?.map(drop),
            };
            if is_there.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(field) = fields.next_key_seed(Step(self.places))? {
            match field {
                Some((_, places)) => {
                    fields.next_value_seed(Within { places, left: self.left - 1, found: self.found })?;
                }
                None => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use allocation_counter::measure;
    use serde_json::json;

    fn values(pointers: &[&str], object: &Value) -> BTreeMap<String, Value> {
        let (values, wrong) = pointers.iter().copied().collect::<Places>().values(&object.to_string());
        assert_eq!(wrong, None);
        values
    }

    #[test]
    fn each_pointer_leads_to_what_it_leads_to_in_the_whole_object() {
        let object =
            json!({ "spec": { "a/b": { "~1": [2, { "0": 3 }, [4]] }, "0": null, "": 5, "a": "text" }, "top": 6 });
        let pointers = [
            "/spec",
            "/spec/a~1b",
            "/spec/a~1b/~01",
            "/spec/a~1b/~01/1/0",
            "/spec/a~1b/~01/00",
            "/spec/a~1b/~01/2/0",
            "/spec/a~1b/~01/3",
            "/spec/0",
            "/spec/",
            "/spec/a/b",
            "/spec/none",
            "/top",
            "/top/x",
        ];
        // All of them at once, in twos, and each alone: some are within others.
        let twos = pointers.iter().flat_map(|one| pointers.iter().map(move |other| vec![*one, *other]));
        let alone = pointers.iter().map(|one| vec![*one]);
        for some in twos.chain(alone).chain([pointers.to_vec()]) {
            let whole: BTreeMap<_, _> =
                some.iter().filter_map(|at| Some(((*at).to_owned(), object.pointer(at)?.clone()))).collect();
            assert_eq!(values(&some, &object), whole, "{some:?}");
        }
    }

    #[test]
    fn an_error_in_a_section_leaves_the_others() {
        let text = r#"{"spec":{"a":1e999},"odd":{"b":"\ud800"},"status":{"c":3}}"#;
        let (values, wrong) = ["/spec/a", "/status/c"].into_iter().collect::<Places>().values(text);
        assert_eq!(values, BTreeMap::from([("/status/c".to_owned(), json!(3))]));
        assert_eq!(wrong.unwrap().path, "spec");
    }

    #[test]
    fn what_is_deeper_than_is_decoded_is_not_found() {
        let at = "/x".repeat(1000);
        let text = format!("{}7{}", r#"{"x":"#.repeat(2000), "}".repeat(2000));
        let (values, wrong) = [at.as_str()].into_iter().collect::<Places>().values(&text);
        assert_eq!((values, wrong), (BTreeMap::new(), None));
    }

    /// A pod with annotations, and pointers to `number` of them.
    fn of_annotations(number: usize) -> (String, Places) {
        let annotations: BTreeMap<_, _> = (0..2_000).map(|at| (format!("a{at}"), "x".repeat(100))).collect();
        let text = json!({ "metadata": { "name": "w", "annotations": annotations } }).to_string();
        (text, (0..number).map(|at| format!("/metadata/annotations/a{at}")).collect())
    }

    // Each pointer had the whole section decoded: 64 of them took 64 times what one took.
    #[test]
    fn many_pointers_into_a_section_take_what_their_values_take() {
        let [one, many] = [1, 64].map(|number| {
            let (text, places) = of_annotations(number);
            let taken = measure(|| assert_eq!(places.values(&text).0.len(), number));
            taken.count_total
        });
        assert!(one <= 10 && many <= one + 63 * 3, "{one} allocations for one pointer, {many} for 64");
    }

    // Else 64 pointers, each within the one before, would keep 64 times the object.
    #[test]
    fn values_within_others_take_no_more_than_all_may_take() {
        let levels = 40;
        let annotations: BTreeMap<_, _> = (0..1_500).map(|at| (format!("a{at}"), "x".repeat(600))).collect();
        let object = (0..levels).fold(json!(annotations), |inner, _| json!({ "x": inner }));
        let pointers: Vec<_> = (1..=levels).map(|at| "/x".repeat(at)).collect();
        let (values, wrong) = pointers.into_iter().collect::<Places>().values(&object.to_string());
        let taken: usize = values.values().map(weight::json).sum();
        assert!(taken <= MOST_BYTES && !values.is_empty(), "{taken} bytes of {} values", values.len());
        assert!(wrong.unwrap().message.ends_with("take more than 8 MiB of memory"));
    }
}
