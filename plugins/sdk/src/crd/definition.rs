//! A CustomResourceDefinition as JSON, from the description of a kind and the types of its spec and status.

use super::{document, ledger};
use crate::types::KindInfo;
use schemars::{
    JsonSchema, Schema,
    generate::SchemaSettings,
    transform::{Transform, transform_subschemas},
};
use serde_json::{Value, json};

/// Returns the CRD of a kind as YAML, for `kubectl apply`. See [`definition`].
///
/// # Panics
/// If the schema has a map whose keys are not strings, which no schema has.
#[must_use]
pub fn yaml<Spec: JsonSchema, Status: JsonSchema>(kind: &KindInfo, columns: &[(&str, &str)]) -> String {
    serde_norway::to_string(&definition::<Spec, Status>(kind, columns)).expect("JSON is YAML")
}

/// Returns the CRD of a kind. Its one version is served and stored, and has the subresource `status`. The status has,
/// beside the fields of `Status`, the one that the host writes, `troupe`. Without it the API server would drop what the host
/// says and remembers of a job, and no job would be cleaned up.
///
/// `columns` are what `kubectl get` prints beside name and age: a title and a path such as `.status.phase`.
#[must_use]
pub fn definition<Spec: JsonSchema, Status: JsonSchema>(kind: &KindInfo, columns: &[(&str, &str)]) -> Value {
    let mut generator = SchemaSettings::openapi3()
        .with(|settings| {
            settings.meta_schema = None;
            settings.inline_subschemas = true;
        })
        .into_generator();
    let mut spec = generator.root_schema_for::<Spec>();
    Structural { keeps_defaults: true }.transform(&mut spec);
    let mut status = generator.root_schema_for::<Status>();
    // The API server would put defaults into every status, such as one of which the host writes `troupe` alone.
    Structural { keeps_defaults: false }.transform(&mut status);
    let mut status = status.to_value();
    status["properties"]["troupe"] = ledger(&mut generator).to_value();
    let column = |(name, path): &(&str, &str)| json!({ "name": name, "type": "string", "jsonPath": path });
    let age = json!({ "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" });
    let columns = columns.iter().map(column).chain([age]).collect();
    let schema = json!({ "type": "object", "required": ["spec"], "properties": { "spec": spec, "status": status } });
    document(kind, &schema, &json!({ "status": {} }), &columns)
}

/// Makes a schema one that the API server accepts in a CRD ("structural").
struct Structural {
    keeps_defaults: bool,
}

impl Transform for Structural {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        schema.remove("title");
        if !self.keeps_defaults || schema.get("default") == Some(&Value::Null) {
            schema.remove("default");
        }
        one_enum(schema);
        one_or_null(schema);
        // Formats that Kubernetes does not know; the limits of such a number are there beside them.
        let unknown = |format: &str| !matches!(format, "int32" | "int64" | "float" | "double" | "date-time" | "byte");
        if schema.get("format").and_then(Value::as_str).is_some_and(unknown) {
            schema.remove("format");
        }
        // It drops unknown fields instead, and warns of them.
        if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
            schema.remove("additionalProperties");
        }
        let says_nothing = schema.as_object().is_some_and(|fields| fields.keys().all(|key| key == "description"));
        if says_nothing {
            schema.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into());
        }
    }
}

/// Makes one enumeration of alternatives that are one text each, as variants with documentation are.
fn one_enum(schema: &mut Schema) {
    let Some(alternatives) = schema.get("oneOf").and_then(Value::as_array) else { return };
    let texts = alternatives.iter().map(|one| one["enum"].as_array().filter(|_| one["type"] == "string"));
    let Some(texts) = texts.collect::<Option<Vec<_>>>() else { return };
    let texts: Vec<Value> = texts.into_iter().flatten().cloned().collect();
    schema.remove("oneOf");
    schema.insert("type".to_owned(), "string".into());
    schema.insert("enum".to_owned(), texts.into());
}

/// Makes one schema of the alternatives "so, or null", as an `Option` of a type with fields or variants is.
fn one_or_null(schema: &mut Schema) {
    let alternatives = schema.get("anyOf").and_then(Value::as_array).map(Vec::as_slice);
    let Some([Value::Object(one), null]) = alternatives else { return };
    if *null != json!({ "enum": [null], "nullable": true }) {
        return;
    }
    let one = one.clone();
    schema.remove("anyOf");
    for (key, value) in one {
        schema.ensure_object().entry(key).or_insert(value);
    }
    // The API server compares a null with the texts of an enumeration, and refuses it whatever these are. Of a field that is
    // not nullable it drops a null before.
    if schema.get("enum").is_none() {
        schema.insert("nullable".to_owned(), true.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        UserTemplate,
        types::{Queueing, Switches},
    };
    use std::collections::BTreeMap;

    #[derive(schemars::JsonSchema)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    #[expect(dead_code, reason = "only its schema")]
    struct Spec {
        /// How many.
        worker_count: u32,
        mode: Mode,
        /// Another one.
        other: Option<Mode>,
        inner: Option<Inner>,
        template: UserTemplate,
        #[serde(default)]
        count: Option<i32>,
        #[serde(default)]
        limits: BTreeMap<String, String>,
        anything: Option<Value>,
    }

    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema")]
    struct Inner {
        name: String,
    }

    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema")]
    enum Mode {
        /// Slow.
        Slow,
        /// Fast.
        Fast,
    }

    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema")]
    struct Status {
        #[serde(default)]
        phase: String,
    }

    fn kind() -> KindInfo {
        KindInfo {
            group: "echo.dev".into(),
            version: "v1".into(),
            kind: "Echo".into(),
            plural: "echoes".into(),
            switches: Switches { suspend: None, managed_by: None },
            own_manager: None,
            retired_finalizers: vec![],
            roles: vec![],
            event_source: "echo".into(),
            queueing: Queueing::Host,
        }
    }

    #[test]
    fn a_definition_has_the_fields_of_the_types_and_those_of_the_host() {
        let crd = definition::<Spec, Status>(&kind(), &[("Phase", ".status.phase")]);
        assert_eq!(crd["metadata"]["name"], "echoes.echo.dev");
        let version = &crd["spec"]["versions"][0];
        assert_eq!(version["subresources"], json!({ "status": {} }));
        assert_eq!(version["additionalPrinterColumns"][0]["jsonPath"], ".status.phase");
        let fields = &version["schema"]["openAPIV3Schema"]["properties"];
        let spec = &fields["spec"];
        let count = json!({ "type": "integer", "minimum": 0, "description": "How many." });
        assert_eq!(spec["properties"]["workerCount"], count);
        assert_eq!(spec["required"], json!(["workerCount", "mode", "template"]));
        assert_eq!(spec["properties"]["template"]["properties"]["spec"]["required"], json!(["containers"]));
        assert_eq!(spec["properties"]["limits"]["additionalProperties"], json!({ "type": "string" }));
        assert_eq!(spec["properties"]["limits"]["default"], json!({}));
        let count = json!({ "type": "integer", "format": "int32", "nullable": true });
        assert_eq!(spec["properties"]["count"], count);
        assert!(spec["additionalProperties"].is_null());
        assert_eq!(fields["status"]["properties"]["phase"], json!({ "type": "string" }));
        let status = fields["status"]["properties"].as_object().unwrap();
        assert_eq!(status.keys().collect::<Vec<_>>(), ["phase", "troupe"]);
        assert_eq!(status["troupe"]["x-kubernetes-preserve-unknown-fields"], true);
    }

    #[test]
    fn what_a_structural_schema_cannot_say_is_said_otherwise() {
        let crd = definition::<Spec, Status>(&kind(), &[]);
        let text = crd.to_string();
        for word in ["$ref", "$schema", "oneOf", "anyOf", "uint32", "\"title\""] {
            assert!(!text.contains(word), "{word} in {text}");
        }
        let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
        assert_eq!(spec["mode"]["enum"], json!(["Slow", "Fast"]), "{spec:#}");
        let other = json!({ "type": "string", "enum": ["Slow", "Fast"], "description": "Another one." });
        assert_eq!(spec["other"], other);
        let name = json!({ "type": "string" });
        let inner = json!({ "type": "object", "nullable": true, "required": ["name"], "properties": { "name": name } });
        assert_eq!(spec["inner"], inner);
        assert_eq!(spec["anything"]["x-kubernetes-preserve-unknown-fields"], true, "{spec:#}");
        assert_eq!(serde_norway::from_str::<Value>(&yaml::<Spec, Status>(&kind(), &[])).unwrap(), crd);
    }
}
