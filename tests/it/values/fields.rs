//! The fields of a kind by its definition, and the values of each that mean nothing.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value, json};

/// A field below `spec`, but none below the template of a pod or of a job: that one is Kubernetes', or another kind's.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    steps: Vec<Step>,
    schema: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Field(String),
    /// Each entry of a map.
    Entry,
    /// Each item of a list.
    Item,
}

/// A field of a job: where it is, and how a user names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// JSON pointer from the job on.
    pub(crate) pointer: String,
    /// `spec.ps.replicas`, `spec.tfReplicaSpecs[PS].replicas`.
    pub(crate) name: String,
}

/// Names of fields that hold a template.
const TEMPLATES: [&str; 2] = ["template", "jobTemplate"];

/// The key of a map that is none of those that are known.
pub(crate) const UNKNOWN_KEY: &str = "no such word";

/// Returns the fields of the version that is stored, in the order of the definition.
pub(crate) fn fields(crd: &CustomResourceDefinition) -> Vec<Field> {
    let version = crd.spec.versions.iter().find(|version| version.storage).unwrap();
    let schema = version.schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
    let schema = serde_json::to_value(schema).unwrap();
    let mut found = vec![];
    below(&schema["properties"]["spec"], &[Step::Field("spec".into())], &mut found);
    found
}

fn below(schema: &Value, at: &[Step], found: &mut Vec<Field>) {
    if at.len() > 1 {
        found.push(Field { steps: at.to_vec(), schema: schema.clone() });
    }
    let deeper = |step: Step| [at, &[step]].concat();
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        if !TEMPLATES.contains(&name.as_str()) {
            below(inner, &deeper(Step::Field(name.clone())), found);
        }
    }
    if schema["additionalProperties"].is_object() {
        below(&schema["additionalProperties"], &deeper(Step::Entry), found);
    }
    if schema["items"].is_object() {
        below(&schema["items"], &deeper(Step::Item), found);
    }
}

impl Field {
    /// `spec.tfReplicaSpecs[*].replicas`.
    pub(crate) fn name(&self) -> String {
        let mut name = String::new();
        for step in &self.steps {
            match step {
                Step::Field(field) if name.is_empty() => name.push_str(field),
                Step::Field(field) => name = format!("{name}.{field}"),
                Step::Entry | Step::Item => name.push_str("[*]"),
            }
        }
        name
    }

    /// Returns where a job has this field: for each entry of a map, and for the first item of a list.
    pub(crate) fn places(&self, job: &Value) -> Vec<Place> {
        let mut places = vec![Place { pointer: String::new(), name: String::new() }];
        for step in &self.steps {
            places = places.iter().flat_map(|place| place.deeper(step, job)).collect();
        }
        places
    }

    /// Returns values that the field may not have by what its name, its type and its format say, or that say nothing. `now` is
    /// the value of a valid job. Values of another type are the API server's to refuse.
    pub(crate) fn nonsense(&self, now: &Value) -> Vec<Value> {
        if self.schema["x-kubernetes-int-or-string"] == true {
            return vec![json!(-1), json!(""), json!("many")];
        }
        let is_path = matches!(self.steps.last(), Some(Step::Field(name)) if name.to_lowercase().contains("path"));
        match self.schema["type"].as_str().unwrap_or_default() {
            "integer" => {
                let most = if self.schema["format"] == "int64" { i64::MAX } else { i32::MAX.into() };
                vec![json!(-1), json!(0), json!(most)]
            }
            "string" if is_path => vec![json!(""), json!(" "), json!("relative/path")],
            "string" => vec![json!(""), json!(" "), json!("no such word")],
            "array" => {
                let twice = now.as_array().and_then(|items| items.first()).map(|item| json!([item, item]));
                [json!([])].into_iter().chain(twice).collect()
            }
            // An unknown key, with the value of a known one.
            "object" if self.schema["additionalProperties"].is_object() => {
                let entry = now.as_object().and_then(|entries| entries.values().next());
                let unknown = entry.map(|entry| {
                    let mut entries = now.clone();
                    entries[UNKNOWN_KEY] = entry.clone();
                    entries
                });
                [json!({})].into_iter().chain(unknown).collect()
            }
            "object" => vec![json!({})],
            _ => vec![],
        }
    }
}

impl Place {
    fn deeper(&self, step: &Step, job: &Value) -> Vec<Self> {
        let here = job.pointer(&self.pointer).unwrap_or(&Value::Null);
        let field = |name: &String| {
            let dot = if self.name.is_empty() { "" } else { "." };
            Self { pointer: format!("{}/{name}", self.pointer), name: format!("{}{dot}{name}", self.name) }
        };
        let entry =
            |key: &str| Self { pointer: format!("{}/{key}", self.pointer), name: format!("{}[{key}]", self.name) };
        match step {
            Step::Field(name) => here.get(name).map(|_| field(name)).into_iter().collect(),
            Step::Entry => here.as_object().unwrap_or(&Map::new()).keys().map(|key| entry(key)).collect(),
            Step::Item => here.get(0).map(|_| entry("0")).into_iter().collect(),
        }
    }

    /// Returns the job with another value here.
    pub(crate) fn with(&self, job: &Value, value: &Value) -> Value {
        let mut job = job.clone();
        *job.pointer_mut(&self.pointer).unwrap() = value.clone();
        job
    }
}
