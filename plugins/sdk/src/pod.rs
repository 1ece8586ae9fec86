//! Editing a user's pod template. What we do not understand passes through untouched: quantities as integers, nulls,
//! fields of a later Kubernetes.

use crate::{
    json_text,
    types::{FieldError, Refusal},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json, value::RawValue};

/// A pod template as it stands in a job's spec: text that only those who edit it need to take apart.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UserTemplate(Box<RawValue>);

impl PartialEq for UserTemplate {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl UserTemplate {
    /// The template, or what of it is of interest; None when it does not read so.
    #[must_use]
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Option<T> {
        serde_json::from_str(self.0.get()).ok()
    }
}

/// A PodTemplateSpec with at least one container.
#[derive(Debug, Clone, PartialEq)]
pub struct PodTemplate {
    metadata: Map<String, Value>,
    spec: Map<String, Value>,
    containers: Vec<Map<String, Value>>,
}

impl PodTemplate {
    /// The user's template, to be edited.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] when it is missing or has no container; `path` is where it stands in the job.
    pub fn from_user(template: Option<&UserTemplate>, path: &str) -> Result<Self, Refusal> {
        let wrong = |at: &str, message: &str| {
            Err(Refusal::Invalid(vec![FieldError { path: format!("{path}{at}"), message: message.to_owned() }]))
        };
        let Some(Value::Object(mut template)) = template.and_then(UserTemplate::read) else {
            return wrong("", "is required: a pod template with at least one container");
        };
        let Some(Value::Object(mut spec)) = template.remove("spec") else {
            return wrong(".spec", "is required: a pod spec with at least one container");
        };
        let containers: Option<Vec<_>> = match spec.remove("containers") {
            Some(Value::Array(all)) => all
                .into_iter()
                .map(|container| match container {
                    Value::Object(fields) => Some(fields),
                    _ => None,
                })
                .collect(),
            _ => None,
        };
        let Some(containers) = containers.filter(|all| !all.is_empty()) else {
            return wrong(".spec.containers", "must define at least one container");
        };
        let metadata = match template.remove("metadata") {
            Some(Value::Object(metadata)) => kept_metadata(metadata),
            _ => Map::new(),
        };
        Ok(Self { metadata, spec, containers })
    }

    /// Sets a label, replacing the user's.
    pub fn label(&mut self, key: &str, value: impl Into<String>) {
        self.section("labels").insert(key.to_owned(), Value::String(value.into()));
    }

    /// Sets an annotation, replacing the user's.
    pub fn annotation(&mut self, key: &str, value: impl Into<String>) {
        self.section("annotations").insert(key.to_owned(), Value::String(value.into()));
    }

    /// A field of the pod spec; null counts as absent.
    #[must_use]
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.spec.get(field).filter(|value| !value.is_null())
    }

    /// Sets a field of the pod spec, replacing the user's.
    pub fn set(&mut self, field: &str, value: impl Into<Value>) {
        self.spec.insert(field.to_owned(), value.into());
    }

    /// Appends to a list of the pod spec (`volumes`, `initContainers`).
    pub fn push(&mut self, list: &str, item: Value) {
        push(&mut self.spec, list, item);
    }

    /// The container that runs the framework's program.
    pub fn first_container(&mut self) -> Container<'_> {
        Container(self.containers.first_mut().expect("from_user refuses a template without containers"))
    }

    /// The template as JSON text.
    #[must_use]
    pub fn into_json(self) -> String {
        let mut spec = self.spec;
        spec.insert("containers".into(), self.containers.into());
        let parts = [("metadata".to_owned(), self.metadata.into()), ("spec".to_owned(), spec.into())];
        json_text(&Value::from(Map::from_iter(parts)))
    }

    fn section(&mut self, name: &str) -> &mut Map<String, Value> {
        let section = self.metadata.entry(name).or_insert_with(|| json!({}));
        if !section.is_object() {
            *section = json!({});
        }
        section.as_object_mut().expect("just made an object")
    }
}

/// One container of a template.
#[derive(Debug)]
pub struct Container<'a>(&'a mut Map<String, Value>);

impl Container<'_> {
    /// A field is absent, null or an empty list.
    #[must_use]
    pub fn lacks(&self, field: &str) -> bool {
        match self.0.get(field) {
            None | Some(Value::Null) => true,
            Some(Value::Array(items)) => items.is_empty(),
            Some(_) => false,
        }
    }

    /// Sets a field, replacing the user's.
    pub fn set(&mut self, field: &str, value: impl Into<Value>) {
        self.0.insert(field.to_owned(), value.into());
    }

    /// A variable of this name stands in the template.
    #[must_use]
    pub fn has_env(&self, name: &str) -> bool {
        let env = self.0.get("env").and_then(Value::as_array);
        env.is_some_and(|env| env.iter().any(|entry| entry.get("name").and_then(Value::as_str) == Some(name)))
    }

    /// Appends a variable; a later duplicate wins in Kubernetes.
    pub fn env(&mut self, name: &str, value: &str) {
        self.push("env", json!({ "name": name, "value": value }));
    }

    /// Appends a variable that takes its value from a field of the pod.
    pub fn env_from_field(&mut self, name: &str, path: &str) {
        self.push("env", json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } }));
    }

    /// Appends to a list of the container (`envFrom`, `ports`, `volumeMounts`).
    pub fn push(&mut self, list: &str, item: Value) {
        push(self.0, list, item);
    }
}

fn push(fields: &mut Map<String, Value>, list: &str, item: Value) {
    match fields.get_mut(list) {
        Some(Value::Array(items)) => items.push(item),
        _ => {
            fields.insert(list.to_owned(), json!([item]));
        }
    }
}

/// Labels and annotations; a template's name, namespace and finalizers are not the user's to give.
fn kept_metadata(mut metadata: Map<String, Value>) -> Map<String, Value> {
    metadata.retain(|key, value| ["labels", "annotations"].contains(&key.as_str()) && value.is_object());
    metadata
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(user: &Value) -> Result<PodTemplate, Refusal> {
        PodTemplate::from_user(Some(&serde_json::from_value(user.clone()).unwrap()), "spec.ps.template")
    }

    #[test]
    fn what_we_do_not_understand_passes_through() {
        let user = json!({ "spec": { "containers": [{ "name": "a", "command": null, "resources": { "limits": { "cpu": 1 } } }], "future": [1] } });
        let mut template = template(&user).unwrap();
        assert!(template.first_container().lacks("command"));
        template.first_container().env("X", "1");
        let json: Value = serde_json::from_str(&template.into_json()).unwrap();
        assert_eq!(json["spec"]["future"], json!([1]));
        assert_eq!(json["spec"]["containers"][0]["resources"]["limits"]["cpu"], json!(1));
        assert_eq!(json["spec"]["containers"][0]["env"], json!([{ "name": "X", "value": "1" }]));
    }

    #[test]
    fn a_template_without_containers_is_refused_by_its_path() {
        let user = json!({ "spec": { "containers": [] } });
        let Err(Refusal::Invalid(errors)) = template(&user) else {
            panic!("it was accepted");
        };
        assert_eq!(errors[0].path, "spec.ps.template.spec.containers");
    }
}
