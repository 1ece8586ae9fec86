//! Schemas of the templates of pods and Jobs, from the table `templates.txt`: what `kubectl explain` says of a field,
//! and which lists server-side apply merges by key. Fields that the table does not have are kept.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, sync::LazyLock};

static TABLE: LazyLock<Table<'static>> = LazyLock::new(|| Table::parse(include_str!("templates.txt")));

/// The minor version of Kubernetes that the table is of.
const NEWEST: u32 = 37;

/// Returns the schema of a pod template. Lists are merged by key as those of Kubernetes' own kinds are.
///
/// It knows the types of Kubernetes' fields. It preserves fields of later versions, and accepts nulls and quantities that
/// are numbers.
pub fn pod_template(_: &mut SchemaGenerator) -> Schema {
    pod_template_as_of(NEWEST)
}

/// Returns the schema of a pod template in 30 lines of YAML, where that of [`pod_template`] has 3,400: only the names of
/// containers are checked, and `kubectl explain` knows no other field.
pub fn short_pod_template(_: &mut SchemaGenerator) -> Schema {
    let container = json!({
        "type": "object",
        "required": ["name"],
        "properties": { "name": { "type": "string" } },
        "x-kubernetes-preserve-unknown-fields": true,
    });
    json_schema!({
        "type": "object",
        "nullable": true,
        "properties": {
            "metadata": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            "spec": {
                "type": "object",
                "required": ["containers"],
                "properties": {
                    "containers": { "type": "array", "nullable": true, "items": container },
                    "initContainers": { "type": "array", "items": container },
                },
                "x-kubernetes-preserve-unknown-fields": true,
            },
        },
    })
}

/// Returns the schema of a pod template in which only those lists are merged by key that are in the API of Kubernetes
/// 1.23: `ports` and `topologySpreadConstraints`. It is for a kind whose original is of that age and so accepts, for
/// instance, two variables of one name.
pub fn pod_template_merged_as_1_23(_: &mut SchemaGenerator) -> Schema {
    pod_template_as_of(23)
}

/// Returns the schema of the template of a batch/v1 Job: `metadata` and `spec`.
pub fn job_template(_: &mut SchemaGenerator) -> Schema {
    schema("JobTemplate", NEWEST)
}

/// Returns the schema of the metadata of a template.
pub fn template_metadata(_: &mut SchemaGenerator) -> Schema {
    schema("Metadata", NEWEST)
}

fn pod_template_as_of(merging: u32) -> Schema {
    let mut schema = schema("PodTemplate", merging);
    schema.insert("description".to_owned(), "The pods: their metadata and spec, as in a Pod.".into());
    schema.insert("nullable".to_owned(), true.into());
    schema
}

fn schema(of: &str, merging: u32) -> Schema {
    let schema = TABLE.of_type(of, merging);
    Schema::try_from(schema).expect("an object is a schema")
}

/// The types by name.
struct Table<'a>(BTreeMap<&'a str, Type<'a>>);

#[derive(Default)]
struct Type<'a> {
    is_atomic: bool,
    is_closed: bool,
    fields: Vec<Field<'a>>,
}

struct Field<'a> {
    name: &'a str,
    is_required: bool,
    kind: &'a str,
    description: String,
}

impl<'a> Table<'a> {
    /// Reads a table, whose form stands at its top.
    ///
    /// # Panics
    /// If the table is not of that form. There is one table, which tests read.
    fn parse(text: &'a str) -> Self {
        let mut types: BTreeMap<&str, Type<'_>> = BTreeMap::new();
        let mut last = "";
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            if let Some(words) = line.strip_prefix("    ") {
                let field = types.get_mut(last).and_then(|of| of.fields.last_mut());
                let field = field.expect("a description goes on after its field");
                field.description = format!("{} {}", field.description, words.trim());
            } else if let Some(field) = line.strip_prefix("  ") {
                let of = types.get_mut(last).expect("a field is below its type");
                of.fields.push(Field::parse(field));
            } else {
                last = line.trim_end_matches(['*', '!']);
                let (is_atomic, is_closed) = (line.ends_with('*'), line.ends_with('!'));
                types.insert(last, Type { is_atomic, is_closed, fields: vec![] });
            }
        }
        Self(types)
    }

    fn of_type(&self, name: &str, merging: u32) -> Value {
        let of = &self.0[name];
        let mut schema = json!({ "type": "object" });
        if !of.is_closed {
            schema["x-kubernetes-preserve-unknown-fields"] = true.into();
        }
        let fields = of.fields.iter().map(|field| (field.name.to_owned(), self.of_field(field, merging)));
        schema["properties"] = Value::Object(Map::from_iter(fields));
        let required: Vec<_> = of.fields.iter().filter(|field| field.is_required).map(|field| field.name).collect();
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        if of.is_atomic {
            schema["x-kubernetes-map-type"] = "atomic".into();
        }
        schema
    }

    fn of_field(&self, field: &Field<'_>, merging: u32) -> Value {
        let mut schema = self.of_kind(field.kind, merging);
        if !field.description.is_empty() {
            schema["description"] = field.description.as_str().into();
        }
        schema
    }

    fn of_kind(&self, kind: &str, merging: u32) -> Value {
        match kind {
            "string" => json!({ "type": "string" }),
            "bool" => json!({ "type": "boolean" }),
            "int32" | "int64" => json!({ "type": "integer", "format": kind }),
            "int-or-string" => json!({ "x-kubernetes-int-or-string": true }),
            // Kubernetes takes 0.5 for "0.5"; the schema "integer or string" would refuse it.
            "quantity" => json!({ "x-kubernetes-preserve-unknown-fields": true }),
            "any" => json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
            _ => self.of_compound(kind, merging),
        }
    }

    fn of_compound(&self, kind: &str, merging: u32) -> Value {
        let whole = kind.trim_end_matches('*');
        if let Some(list) = whole.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return self.of_list(list, merging);
        }
        let Some(of) = whole.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else {
            return self.of_type(whole, merging);
        };
        // Kubernetes takes a null in a map, or in a list of texts, for the empty text; the API server would drop or refuse it.
        let mut value = self.of_kind(of, merging);
        value["nullable"] = true.into();
        let mut schema = json!({ "type": "object", "additionalProperties": value });
        if kind.ends_with('*') {
            schema["x-kubernetes-map-type"] = "atomic".into();
        }
        schema
    }

    /// Returns the schema of a list, which is written as `T` or as `T key key:default @N`.
    fn of_list(&self, list: &str, merging: u32) -> Value {
        let mut words = list.split_whitespace();
        let mut items = self.of_kind(words.next().expect("a list is one of something"), merging);
        let (mut keys, mut since) = (vec![], None);
        for word in words {
            match word.strip_prefix('@') {
                Some(version) => since = version.parse::<u32>().ok(),
                None => keys.push(word.split_once(':').map_or((word, None), |(key, value)| (key, Some(value)))),
            }
        }
        if items["type"] == "string" {
            items["nullable"] = true.into();
        }
        if since.is_none_or(|since| since > merging) {
            return json!({ "type": "array", "items": items });
        }
        for (key, default) in &keys {
            if let Some(default) = default {
                items["properties"][*key]["default"] = (*default).into();
            }
        }
        let keys: Vec<_> = keys.iter().map(|(key, _)| *key).collect();
        json!({
            "type": "array",
            "items": items,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": keys,
        })
    }
}

impl<'a> Field<'a> {
    fn parse(line: &'a str) -> Self {
        let (what, description) = line.split_once(" = ").unwrap_or((line, ""));
        let (name, kind) = what.split_once(' ').expect("a field has a type");
        let is_required = name.ends_with('!');
        Self { name: name.trim_end_matches('!'), is_required, kind: kind.trim(), description: description.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generator() -> SchemaGenerator {
        SchemaGenerator::default()
    }

    fn container(template: &Value) -> &Value {
        &template["properties"]["spec"]["properties"]["containers"]["items"]["properties"]
    }

    #[test]
    fn each_type_that_a_field_is_of_is_there_and_each_type_is_of_some_field() {
        let table = &*TABLE;
        let own = ["string", "bool", "int32", "int64", "int-or-string", "quantity", "any"];
        let mut used: Vec<&str> = vec!["PodTemplate", "JobTemplate"];
        for field in table.0.values().flat_map(|of| &of.fields) {
            let kind = field.kind.trim_matches(['[', ']', '{', '}', '*']).split_whitespace().next().unwrap();
            assert!(own.contains(&kind) || table.0.contains_key(kind), "{} is of {kind}", field.name);
            used.push(kind);
        }
        for name in table.0.keys() {
            assert!(used.contains(name), "nothing is of {name}");
        }
    }

    #[test]
    fn a_template_has_types_and_words_and_keeps_what_it_does_not_know() {
        let template = pod_template(&mut generator()).to_value();
        let command = &container(&template)["command"];
        assert_eq!((&command["type"], &command["items"]["type"]), (&json!("array"), &json!("string")));
        let words = command["description"].as_str().unwrap();
        assert!(words.starts_with("The program, not run in a shell.") && words.ends_with("environment."), "{words}");
        assert_eq!(template["properties"]["spec"]["x-kubernetes-preserve-unknown-fields"], true);
        assert_eq!(template["properties"]["metadata"]["x-kubernetes-preserve-unknown-fields"], true);
        assert_eq!(
            template["x-kubernetes-preserve-unknown-fields"],
            Value::Null,
            "there is metadata and spec, no more"
        );
        let limits = &container(&template)["resources"]["properties"]["limits"]["additionalProperties"];
        assert_eq!(*limits, json!({ "x-kubernetes-preserve-unknown-fields": true, "nullable": true }));
    }

    #[test]
    fn lists_are_merged_by_key_as_of_a_version_of_kubernetes() {
        let newest = pod_template(&mut generator()).to_value();
        let older = pod_template_merged_as_1_23(&mut generator()).to_value();
        let keys = |template: &Value, list: &str| container(template)[list]["x-kubernetes-list-map-keys"].clone();
        assert_eq!(keys(&newest, "env"), json!(["name"]));
        assert_eq!(keys(&older, "env"), Value::Null);
        for template in [&newest, &older] {
            assert_eq!(keys(template, "ports"), json!(["containerPort", "protocol"]));
            // A key has to be there: the API server fills it in.
            assert_eq!(container(template)["ports"]["items"]["properties"]["protocol"]["default"], "TCP");
            assert_eq!(keys(template, "args"), Value::Null);
        }
    }

    // The API server takes no definition with a key that an item may lack.
    #[test]
    fn each_key_of_a_list_is_required_or_has_a_default() {
        fn check(schema: &Value, seen: &mut usize) {
            let items = &schema["items"];
            for key in schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten() {
                *seen += 1;
                let is_required = items["required"].as_array().is_some_and(|names| names.contains(key));
                let has_default = items["properties"][key.as_str().unwrap()]["default"].is_string();
                assert!(is_required != has_default, "{key} of {items}");
            }
            let below = schema["properties"].as_object().into_iter().flat_map(serde_json::Map::values);
            below.chain([items, &schema["additionalProperties"]]).for_each(|schema| {
                if schema.is_object() {
                    check(schema, seen);
                }
            });
        }
        let mut seen = 0;
        check(&job_template(&mut generator()).to_value(), &mut seen);
        assert!(seen > 15, "{seen}");
    }
}
