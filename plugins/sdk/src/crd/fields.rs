//! Schemas of fields from what the plugin checks of them.

use crate::fields::{Name, Number, Word};
use schemars::{Schema, json_schema};
use serde_json::{Value, json};

/// A relation between fields that a valid job of a kind keeps, and how a job breaks it. A test tries each.
#[derive(Debug, Clone)]
pub struct Relation {
    /// The plural and group of the kind.
    pub resource: String,
    /// What holds, such as `minReplicas <= maxReplicas`.
    pub says: &'static str,
    /// JSON merge patch of a valid job.
    pub broken_by: Value,
    /// What is named where it is broken.
    pub names: &'static str,
}

/// Returns the relations of a kind by its plural and group: what holds, how a job breaks it, and what is named then.
#[must_use]
pub fn relations<const N: usize>(resource: &str, all: [(&'static str, Value, &'static str); N]) -> Vec<Relation> {
    let relation = |(says, broken_by, names)| Relation { resource: resource.to_owned(), says, broken_by, names };
    all.map(relation).into()
}

// None of these is nullable: of a field that is not, the API server drops a null before it looks at the rest, so that a null is
// as good as no field. A nullable one it compares with the words of an enumeration, none of which it is, and a null is no number
// of replicas for the subresource `scale`.

/// Returns the schema of a number.
#[must_use]
pub fn number(number: &Number) -> Schema {
    let format = if number.most > i64::from(i32::MAX) { "int64" } else { "int32" };
    let mut schema = json_schema!({
        "type": "integer", "format": format, "minimum": number.least,
    });
    // The format says it of the greatest numbers.
    if ![i64::from(i32::MAX), i64::MAX].contains(&number.most) {
        schema.insert("maximum".to_owned(), number.most.into());
    }
    schema
}

/// Returns the schema of a text that is one of a few words.
#[must_use]
pub fn word(word: &Word) -> Schema {
    let empty = word.may_be_empty.then_some("");
    let words: Vec<_> = word.words.iter().copied().chain(empty).collect();
    json_schema!({ "type": "string", "enum": words })
}

/// Returns the schema of the name of an object, which may be empty.
#[must_use]
pub fn name(_: &Name) -> Schema {
    json_schema!({
        "type": "string", "maxLength": 253, "pattern": "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$",
    })
}

/// Returns a schema with this description.
#[must_use]
pub fn described(schema: Schema, description: &str) -> Value {
    let mut schema = schema.to_value();
    schema["description"] = json!(description);
    schema
}
