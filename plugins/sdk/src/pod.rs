//! Edits of a user's pod template. The plugin lists edits and the host applies them to the template, so fields that the
//! plugin does not know do not change.

use crate::{
    added::InitContainer,
    json_text,
    types::{Edit, FieldError, Refusal, Template},
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};
use std::{borrow::Cow, fmt};

/// A pod template from a job's spec, kept as JSON text. [`UserTemplate::read`] parses it on demand.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UserTemplate(Box<RawValue>);

impl PartialEq for UserTemplate {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl UserTemplate {
    /// Parses the template as `T`, which may name a part of the fields. Returns None if the types do not match.
    #[must_use]
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Option<T> {
        serde_json::from_str(self.0.get()).ok()
    }

    /// Returns whether this text is anywhere in the template. The text has no character that JSON escapes.
    #[must_use]
    pub fn mentions(&self, text: &str) -> bool {
        self.0.get().contains(text)
    }
}

/// A user's PodTemplateSpec with at least one container, and the edits for it.
#[derive(Debug)]
pub struct PodTemplate<'a> {
    at: String,
    spec: Fields<'a>,
    /// At least one.
    containers: Vec<Fields<'a>>,
    edits: Vec<Edit>,
}

impl<'a> PodTemplate<'a> {
    /// Starts the edits of a user's template. `at` is the template's JSON pointer in the job's spec:
    /// `/worker/template`.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] if the template is missing or has no container.
    pub fn from_user(template: Option<&'a UserTemplate>, at: &str) -> Result<Self, Refusal> {
        let read: Option<Outline<'a>> = template.and_then(UserTemplate::read);
        let Some(Outline { spec }) = read.filter(|read| !read.spec.containers.is_empty()) else {
            let (field, message) = missing_field(template);
            let path = format!("spec{}{field}", at.replace('/', "."));
            return Err(Refusal::Invalid(vec![FieldError { path, message: message.to_owned() }]));
        };
        Ok(Self { at: at.to_owned(), spec: spec.fields, containers: spec.containers, edits: Vec::with_capacity(16) })
    }

    /// Sets a label and replaces the user's value.
    pub fn label(&mut self, key: &str, value: &str) {
        set(&mut self.edits, pointer_to("/metadata/labels/", key), value);
    }

    /// Sets an annotation and replaces the user's value.
    pub fn annotation(&mut self, key: &str, value: &str) {
        set(&mut self.edits, pointer_to("/metadata/annotations/", key), value);
    }

    /// Returns the user's value of a field of the pod spec. None if it is absent, null or of another type.
    #[must_use]
    pub fn get<T: Deserialize<'a>>(&self, field: &str) -> Option<T> {
        self.spec.get(field)
    }

    /// Sets a field of the pod spec and replaces the user's value.
    pub fn set(&mut self, field: &str, value: impl Serialize) {
        set(&mut self.edits, pointer_to("/spec/", field), value);
    }

    /// Appends to a list of the pod spec (`volumes`, `initContainers`).
    pub fn push(&mut self, list: &str, item: impl Serialize) {
        append(&mut self.edits, pointer_to("/spec/", list), item);
    }

    /// Appends an init container of the plugin's.
    pub fn add_init_container(&mut self, container: &InitContainer<'_>) {
        append_text(&mut self.edits, pointer_to("/spec/", "initContainers"), &container.to_json());
    }

    /// Returns the first container, which runs the framework's program.
    pub fn first_container(&mut self) -> Container<'_, 'a> {
        Container { at: FIRST_CONTAINER.into(), user: &self.containers[0], edits: &mut self.edits }
    }

    /// Returns the container of this name, if the user's template has one.
    pub fn container(&mut self, name: &str) -> Option<Container<'_, 'a>> {
        let place = self.containers.iter().position(|container| container.get("name") == Some(Cow::Borrowed(name)))?;
        Some(self.container_at(place))
    }

    /// Edits each container in the order of the user's template. Init containers are none of them.
    pub fn each_container(&mut self, edit: impl Fn(&mut Container<'_, 'a>)) {
        for place in 0..self.containers.len() {
            edit(&mut self.container_at(place));
        }
    }

    /// Edits each init container in the order of the user's template.
    pub fn each_init_container(&mut self, edit: impl Fn(&mut Container<'_, 'a>)) {
        let containers: Vec<Fields<'a>> = self.spec.get("initContainers").unwrap_or_default();
        for (place, user) in containers.iter().enumerate() {
            let at = ["/spec/initContainers/", &place.to_string(), "/"].concat().into();
            edit(&mut Container { at, user, edits: &mut self.edits });
        }
    }

    fn container_at(&mut self, place: usize) -> Container<'_, 'a> {
        let at = match place {
            0 => FIRST_CONTAINER.into(),
            place => ["/spec/containers/", &place.to_string(), "/"].concat().into(),
        };
        Container { at, user: &self.containers[place], edits: &mut self.edits }
    }

    /// Returns the template, with its edits, for a plan.
    #[must_use]
    pub fn into_template(self) -> Template {
        Template::Edited((self.at, self.edits))
    }
}

/// Returns the path, below the template, of the field that is missing or wrong, and what the field must have.
fn missing_field(template: Option<&UserTemplate>) -> (&'static str, &'static str) {
    let fields: Option<Fields<'_>> = template.and_then(UserTemplate::read);
    match fields.map(|fields| fields.get::<Fields<'_>>("spec").is_some()) {
        None => ("", "is required: a pod template with at least one container"),
        Some(false) => (".spec", "is required: a pod spec with at least one container"),
        Some(true) => (".spec.containers", "must define at least one container"),
    }
}

const FIRST_CONTAINER: &str = "/spec/containers/0/";

/// A container of a template.
#[derive(Debug)]
pub struct Container<'t, 'a> {
    /// The pointer of its fields in the template: `/spec/containers/0/`.
    at: Cow<'static, str>,
    user: &'t Fields<'a>,
    edits: &'t mut Vec<Edit>,
}

/// An environment variable with a value or with the source of its value.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EnvVar<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_from: Option<EnvVarSource<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EnvVarSource<'a> {
    field_ref: ObjectFieldSelector<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectFieldSelector<'a> {
    field_path: &'a str,
}

impl<'a> Container<'_, 'a> {
    /// Returns the container's name. None if it is absent, null or no text.
    #[must_use]
    pub fn name(&self) -> Option<Cow<'a, str>> {
        self.user.get("name")
    }

    /// Returns the user's `resources` as JSON, without those that belong to one container: devices, huge pages and claims.
    /// None if nothing is left.
    pub(crate) fn shared_resources(&self) -> Option<Cow<'a, str>> {
        let text = self.user.raw("resources")?;
        // Most containers have nothing of their own, and a look at each byte costs a third of parsing and writing it again.
        // The name of a device has a slash, that of a huge page a `g`, claims are a list, and a backslash may hide either.
        if text.bytes().any(|byte| matches!(byte, b'/' | b'g' | b'[' | b'\\')) {
            return serde_json::from_str(text).ok().and_then(|resources| without_own(&resources)).map(Cow::Owned);
        }
        Some(Cow::Borrowed(text)).filter(|text| !matches!(&**text, "{}" | "null"))
    }

    /// Returns whether the user's field is absent, null or an empty list.
    #[must_use]
    pub fn lacks(&self, field: &str) -> bool {
        self.user.get(field).is_none_or(|value: Value| value.as_array().is_some_and(Vec::is_empty))
    }

    /// Returns whether the user's command or arguments have this text. The text has no character that JSON escapes.
    #[must_use]
    pub fn runs(&self, text: &str) -> bool {
        ["command", "args"].iter().any(|field| self.user.raw(field).is_some_and(|words| words.contains(text)))
    }

    /// Sets a field of the container and replaces the user's value.
    pub fn set(&mut self, field: &str, value: impl Serialize) {
        set(self.edits, pointer_to(&self.at, field), value);
    }

    /// Returns whether the user's container has an environment variable of this name.
    #[must_use]
    pub fn has_env(&self, name: &str) -> bool {
        let env: Option<Vec<Fields<'_>>> = self.user.get("env");
        env.is_some_and(|env| env.iter().any(|entry| entry.get("name") == Some(Cow::Borrowed(name))))
    }

    /// Returns the names of the environment variables of the user's container, in their order.
    #[must_use]
    pub fn env_names(&self) -> Vec<Cow<'a, str>> {
        let env: Vec<Fields<'a>> = self.user.get("env").unwrap_or_default();
        env.iter().filter_map(|entry| entry.get("name")).collect()
    }

    /// Appends an environment variable. Of variables with the same name, Kubernetes uses the last.
    pub fn env(&mut self, name: &str, value: &str) {
        self.push("env", EnvVar { name, value: Some(value), value_from: None });
    }

    /// Appends an environment variable, unless the user's container has one of this name.
    pub fn env_unless_set(&mut self, name: &str, value: &str) {
        if !self.has_env(name) {
            self.env(name, value);
        }
    }

    /// Appends an environment variable whose value is a field of the pod.
    pub fn env_from_field(&mut self, name: &str, path: &str) {
        let field_ref = ObjectFieldSelector { field_path: path };
        self.push("env", EnvVar { name, value: None, value_from: Some(EnvVarSource { field_ref }) });
    }

    /// Appends to a list of the container (`envFrom`, `ports`, `volumeMounts`).
    pub fn push(&mut self, list: &str, item: impl Serialize) {
        append(self.edits, pointer_to(&self.at, list), item);
    }
}

/// Returns the `requests` and `limits` of a container's resources with what any container may ask for beside it. None if there
/// is nothing.
fn without_own(resources: &Fields<'_>) -> Option<String> {
    let mut text = String::from("{");
    for (part, begin) in [("requests", "\"requests\":{\""), ("limits", "\"limits\":{\"")] {
        let empty = text.len();
        let Some(entries) = resources.get::<Fields<'_>>(part) else { continue };
        for (name, amount) in &entries.0 {
            if ["cpu", "memory", "ephemeral-storage"].contains(&&*name.0) {
                text.push_str(if text.len() == empty { begin } else { ",\"" });
                text.push_str(&name.0);
                text.push_str("\":");
                text.push_str(amount.get());
            }
        }
        if text.len() > empty {
            text.push_str("},");
        }
    }
    // Of the comma behind the last part the end is made.
    text.pop();
    (!text.is_empty()).then(|| text + "}")
}

/// Returns the JSON pointer of a field. Concatenates, because `format!` costs ten times as much.
fn pointer_to(place: &str, field: &str) -> String {
    if field.bytes().any(|byte| matches!(byte, b'~' | b'/')) {
        return [place, &field.replace('~', "~0").replace('/', "~1")].concat();
    }
    [place, field].concat()
}

fn set(edits: &mut Vec<Edit>, at: String, value: impl Serialize) {
    edits.push(Edit::Set((at, json_text(&value))));
}

/// Adds an append edit. Consecutive items of the same list share one edit.
fn append(edits: &mut Vec<Edit>, at: String, item: impl Serialize) {
    append_text(edits, at, &json_text(&item));
}

fn append_text(edits: &mut Vec<Edit>, at: String, item: &str) {
    match edits.last_mut() {
        Some(Edit::Append((list, items))) if *list == at => {
            items.pop();
            items.push(',');
            items.push_str(item);
            items.push(']');
        }
        _ => edits.push(Edit::Append((at, format!("[{item}]")))),
    }
}

/// The part of a template that is parsed, in one pass.
#[derive(Deserialize)]
struct Outline<'a> {
    #[serde(borrow)]
    spec: Spec<'a>,
}

/// A pod spec. `fields` has every field except `containers`.
struct Spec<'a> {
    fields: Fields<'a>,
    containers: Vec<Fields<'a>>,
}

/// The fields of an object. A field's value stays unparsed until [`Fields::get`] reads it.
#[derive(Debug)]
struct Fields<'a>(Vec<(Name<'a>, &'a RawValue)>);

#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Fields<'a> {
    /// Returns the value of a field as text. None if it is absent.
    fn raw(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(field, _)| field.0 == name).map(|(_, value)| value.get())
    }

    /// Returns the value of a field. None if it is absent, null or of another type.
    fn get<T: Deserialize<'a>>(&self, name: &str) -> Option<T> {
        serde_json::from_str(self.raw(name)?).ok().flatten()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields<'de>, M::Error> {
                let mut fields = Vec::with_capacity(8);
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        reader.deserialize_map(FieldsVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Spec<'a> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct SpecVisitor;
        impl<'de> Visitor<'de> for SpecVisitor {
            type Value = Spec<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a pod's spec")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Spec<'de>, M::Error> {
                let (mut fields, mut containers) = (Vec::with_capacity(8), Vec::new());
                while let Some(name) = map.next_key::<Name<'de>>()? {
                    match &*name.0 {
                        "containers" => containers = map.next_value()?,
                        _ => fields.push((name, map.next_value()?)),
                    }
                }
                Ok(Spec { fields: Fields(fields), containers })
            }
        }
        reader.deserialize_map(SpecVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit;
    use serde_json::json;

    /// Returns the user's template after the edits, as the host applies them.
    fn edited(user: &Value, edit: impl FnOnce(&mut PodTemplate<'_>)) -> Value {
        let read: UserTemplate = serde_json::from_value(user.clone()).unwrap();
        let mut template = PodTemplate::from_user(Some(&read), "/ps/template").unwrap();
        edit(&mut template);
        testkit::template(&template.into_template(), &json!({ "ps": { "template": user } }))
    }

    #[test]
    fn unknown_fields_are_kept() {
        let user = json!({ "spec": { "containers": [{ "name": "a", "command": null, "resources": { "limits": { "cpu": 1 } } }], "future": [1] } });
        let json = edited(&user, |template| {
            assert!(template.first_container().lacks("command"));
            template.first_container().env("X", "1");
        });
        assert_eq!(json["spec"]["future"], json!([1]));
        assert_eq!(json["spec"]["containers"][0]["resources"]["limits"]["cpu"], json!(1));
        assert_eq!(json["spec"]["containers"][0]["env"], json!([{ "name": "X", "value": "1" }]));
    }

    #[test]
    fn init_containers_are_edited_one_by_one() {
        let user = json!({ "spec": { "containers": [{ "name": "a" }], "initContainers": [{ "name": "b" }, { "name": "c", "env": [{ "name": "X" }] }] } });
        let json = edited(&user, |template| {
            template.each_init_container(|container| {
                if !container.has_env("X") {
                    container.env("X", "1");
                }
            });
        });
        let env = |at: usize| json["spec"]["initContainers"][at]["env"].clone();
        assert_eq!((env(0), env(1)), (json!([{ "name": "X", "value": "1" }]), json!([{ "name": "X" }])));
        assert_eq!(json["spec"]["containers"], json!([{ "name": "a" }]));
    }

    #[test]
    fn user_fields_are_read_and_items_of_one_list_share_an_edit() {
        let user = json!({ "metadata": { "labels": null }, "spec": { "hostNetwork": true, "volumes": [],
            "containers": [{ "args": [], "env": [{ "name": "A" }] }, { "name": "side" }] } });
        let read: UserTemplate = serde_json::from_value(user.clone()).unwrap();
        let mut template = PodTemplate::from_user(Some(&read), "/ps/template").unwrap();
        assert_eq!((template.get("hostNetwork"), template.get::<String>("hostNetwork")), (Some(true), None));
        let mut container = template.first_container();
        assert_eq!((container.lacks("args"), container.lacks("env")), (true, false));
        assert_eq!((container.has_env("A"), container.has_env("B")), (true, false));
        container.env("B", "2");
        container.env("C", "3");
        template.label("example.org/a~b", "x");
        let Template::Edited((at, edits)) = template.into_template() else { panic!("the template is not the user's") };
        assert_eq!((at.as_str(), edits.len()), ("/ps/template", 2));
        let made = testkit::template(&Template::Edited((at, edits)), &json!({ "ps": { "template": user } }));
        assert_eq!(made["metadata"]["labels"], json!({ "example.org/a~b": "x" }));
        let names: Vec<_> =
            made["spec"]["containers"][0]["env"].as_array().unwrap().iter().map(|v| &v["name"]).collect();
        assert_eq!(names, ["A", "B", "C"]);
        assert_eq!(made["spec"]["containers"][1], json!({ "name": "side" }));
    }

    #[test]
    fn each_container_is_edited_in_its_place_and_one_is_found_by_its_name() {
        let user = json!({ "spec": { "initContainers": [{ "name": "init" }],
            "containers": [{ "name": "side" }, { "name": "main", "env": [{ "name": "A" }] }] } });
        let json = edited(&user, |template| {
            template.each_container(|container| container.env("B", "1"));
            template.container("main").unwrap().push("ports", json!({ "containerPort": 1 }));
            assert!(template.container("init").is_none());
        });
        let containers = json!([
            { "name": "side", "env": [{ "name": "B", "value": "1" }] },
            { "name": "main", "env": [{ "name": "A" }, { "name": "B", "value": "1" }], "ports": [{ "containerPort": 1 }] },
        ]);
        assert_eq!(json["spec"]["containers"], containers);
        assert_eq!(json["spec"]["initContainers"], json!([{ "name": "init" }]));
    }

    #[test]
    fn a_template_without_containers_is_refused_by_its_path() {
        for (user, path) in [
            (json!([]), "spec.ps.template"),
            (json!({ "spec": null }), "spec.ps.template.spec"),
            (json!({ "spec": { "containers": [] } }), "spec.ps.template.spec.containers"),
            (json!({ "spec": { "containers": [{}, 3] } }), "spec.ps.template.spec.containers"),
        ] {
            let user = serde_json::from_value(user).unwrap();
            let Err(Refusal::Invalid(errors)) = PodTemplate::from_user(Some(&user), "/ps/template") else {
                panic!("it was accepted");
            };
            assert_eq!(errors[0].path, path);
        }
    }
}
