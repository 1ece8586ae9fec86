//! The differences found so far: short texts, and a bounded number of them.

use super::{Danger, Difference};
use crate::{
    plan::{Piece, Text},
    pointer::escaped,
    shown::blank,
};
use serde_json::Value;
use std::collections::BTreeMap;

/// Maximum number of differences of each danger: an answer of a megabyte can differ in a hundred thousand places.
const MOST: usize = 200;

/// Maximum length of a text in characters; longer texts are cut.
const LONGEST: usize = 160;

/// The differences found so far.
#[derive(Debug, Default)]
pub(super) struct Found {
    harmless: usize,
    dangerous: usize,
    all: Vec<Difference>,
}

impl Found {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn is_dangerous(&self) -> bool {
        self.dangerous > 0
    }

    pub(super) fn into_differences(self) -> Vec<Difference> {
        self.all
    }

    pub(super) fn record(
        &mut self,
        danger: Danger,
        what: &str,
        field: &str,
        old: impl AsRef<str>,
        new: impl AsRef<str>,
    ) {
        if self.has_room(danger) {
            let (old, new) = (short(old.as_ref()), short(new.as_ref()));
            self.all.push(Difference { what: short(what), field: short(field), old, new, danger });
        }
    }

    /// Counts one more difference; returns whether there is room for it.
    fn has_room(&mut self, danger: Danger) -> bool {
        let count = match danger {
            Danger::Harmless => &mut self.harmless,
            Danger::Dangerous => &mut self.dangerous,
        };
        *count += 1;
        *count <= MOST
    }

    /// Records every place where two documents differ, below `field`; `danger` rates the pointer of each place.
    pub(super) fn json(
        &mut self,
        what: &str,
        field: &str,
        (old, new): (&Value, &Value),
        danger: impl Fn(&str) -> Danger,
    ) {
        walk(&mut String::new(), Some(old), Some(new), &mut |pointer, old, new| {
            let danger = danger(pointer);
            if self.has_room(danger) {
                let text = |value: Option<&Value>| value.map_or("none".to_owned(), |value| short(&value.to_string()));
                let field = short(&format!("{field}{pointer}"));
                self.all.push(Difference { what: short(what), field, old: text(old), new: text(new), danger });
            }
        });
    }

    /// Records every name below `field` whose text differs, or a new order where only that differs.
    pub(super) fn texts(
        &mut self,
        (danger, what, field): (Danger, &str, &str),
        old: &[(String, &Text)],
        new: &[(String, &Text)],
    ) {
        if old == new {
            return;
        }
        let before = self.all.len();
        let by_name = |texts: &[(String, &Text)]| -> BTreeMap<String, String> {
            texts.iter().map(|(name, text)| (name.clone(), words(text))).collect()
        };
        let (by_old, by_new) = (by_name(old), by_name(new));
        let added = by_new.keys().filter(|name| !by_old.contains_key(*name));
        for name in by_old.keys().chain(added) {
            let (one, other) = (by_old.get(name), by_new.get(name));
            if one != other {
                let none = "none".to_owned();
                self.record(danger, what, &format!("{field}{name}"), one.unwrap_or(&none), other.unwrap_or(&none));
            }
        }
        if self.all.len() == before {
            self.record(danger, what, field, "as it was", "in another order");
        }
    }
}

/// Returns a text in readable form: `{job}-worker-{index}`.
pub(super) fn words(text: &Text) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Fixed(text) => text.clone(),
        Piece::Index(0) => "{index}".to_owned(),
        Piece::Index(offset) => format!("{{index{offset:+}}}"),
        Piece::Attempt => "{attempt}".to_owned(),
        Piece::JobName => "{job}".to_owned(),
        Piece::PodName => "{pod}".to_owned(),
        Piece::PeerIp(role, index) | Piece::PeerHost(role, index) => format!("{{address of {role} {index}}}"),
    };
    text.0.iter().map(piece).collect()
}

/// Replaces control characters, and cuts the text to the maximum length.
fn short(text: &str) -> String {
    let mut kept: String = text.chars().take(LONGEST).map(blank).collect();
    if text.chars().nth(LONGEST).is_some() {
        kept.push('…');
    }
    kept
}

type Visit<'a> = &'a mut dyn FnMut(&str, Option<&Value>, Option<&Value>);

/// Calls `visit` with the pointer of every leaf that differs. Lists are compared item by item.
fn walk(pointer: &mut String, old: Option<&Value>, new: Option<&Value>, visit: Visit<'_>) {
    match (old, new) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let added = new.keys().filter(|name| !old.contains_key(*name));
            for name in old.keys().chain(added) {
                below(pointer, &escaped(name), old.get(name), new.get(name), visit);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            for place in 0..old.len().max(new.len()) {
                below(pointer, &place.to_string(), old.get(place), new.get(place), visit);
            }
        }
        _ if old == new => {}
        _ => visit(pointer, old, new),
    }
}

fn below(pointer: &mut String, token: &str, old: Option<&Value>, new: Option<&Value>, visit: Visit<'_>) {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(token);
    walk(pointer, old, new, visit);
    pointer.truncate(length);
}
