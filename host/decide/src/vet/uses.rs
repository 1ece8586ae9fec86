//! Collects everything that a piece of JSON uses, in one walk, by the names and places of its fields. The same walk
//! reads a user's job and a plugin's plan, so that a use means the same in both.

use crate::{grants::Need, pointer::escaped};
use serde_json::{Map, Value};
use std::{borrow::Cow, fmt};

/// One use of something that needs a permission.
#[derive(Debug, Clone)]
pub(super) struct Use<'a> {
    pub(super) need: Need,
    /// The word of the need, as in a grant.
    pub(super) word: Cow<'a, str>,
    /// A user's use allows only the same.
    pub(super) exact: Exact<'a>,
    pub(super) at: Place<'a>,
}

/// What exactly is used.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Exact<'a> {
    /// What the word names.
    Word(Cow<'a, str>),
    /// The whole value, under a name.
    Whole(Cow<'a, str>, &'a Value),
}

impl fmt::Display for Exact<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => f.write_str(word),
            Self::Whole(name, value) => write!(f, "{name} {value}"),
        }
    }
}

/// The place of a use. Its `Display` is the JSON pointer, which is written only for an error.
#[derive(Debug, Clone)]
pub(super) struct Place<'a>(Vec<Step<'a>>);

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|step| match step {
            Step::Key(name) => write!(f, "/{}", escaped(name)),
            Step::Index(index) => write!(f, "/{index}"),
        })
    }
}

/// What a part of JSON describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Anything.
    Any,
    /// A pod's spec.
    Pod,
    /// A container of a pod.
    Container,
    /// A volume of a pod.
    Volume,
    /// A projected volume.
    Projected,
    /// The source of a variable's value.
    ValueFrom,
    /// A source of variables.
    EnvFrom,
}

/// Fields of a pod's spec that have no effect beyond the pod. The walk enters them.
const PLAIN_IN_POD: &[&str] = &[
    "activeDeadlineSeconds",
    "affinity",
    "enableServiceLinks",
    "hostname",
    "os",
    "preemptionPolicy",
    "readinessGates",
    "resources",
    "restartPolicy",
    "schedulingGates",
    "schedulingGroup",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
    "subdomain",
    "terminationGracePeriodSeconds",
    "topologySpreadConstraints",
];

/// Fields of a container that have no effect beyond the pod.
const PLAIN_IN_CONTAINER: &[&str] = &[
    "env",
    "imagePullPolicy",
    "lifecycle",
    "livenessProbe",
    "name",
    "ports",
    "readinessProbe",
    "resizePolicy",
    "resources",
    "restartPolicy",
    "restartPolicyRules",
    "startupProbe",
    "stdin",
    "stdinOnce",
    "targetContainerName",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "tty",
    "volumeDevices",
    "volumeMounts",
    "workingDir",
];

/// Maps whose keys are free names and not fields.
const FREE: &[&str] = &["labels", "annotations", "matchLabels", "limits", "requests", "minResources"];

/// Returns everything that the JSON uses.
pub(super) fn uses(json: &Value) -> Vec<Use<'_>> {
    let mut walk = Walk::default();
    walk.value(json, Part::Any);
    walk.found
}

/// Returns everything that a Service uses. A Service has its own fields.
pub(super) fn of_service(json: &Value) -> Vec<Use<'_>> {
    let mut walk = Walk::default();
    for (name, value) in json.as_object().into_iter().flatten() {
        walk.under(name, |walk| if name == "spec" { walk.service(value) } else { walk.field(name, value, Part::Any) });
    }
    walk.found
}

/// A walk through JSON.
#[derive(Default)]
pub(super) struct Walk<'a> {
    path: Vec<Step<'a>>,
    found: Vec<Use<'a>>,
    /// The image of the current container; "" outside of any.
    image: &'a str,
}

impl<'a> Walk<'a> {
    pub(super) fn value(&mut self, value: &'a Value, part: Part) {
        match value {
            Value::Array(items) => self.each(items, |walk, item| walk.value(item, part)),
            Value::Object(fields) => self.fields(fields, part),
            _ => {}
        }
    }

    fn fields(&mut self, fields: &'a Map<String, Value>, part: Part) {
        let is_pod = part == Part::Any && fields.get("containers").is_some_and(Value::is_array);
        let part = if is_pod { Part::Pod } else { part };
        let around = self.image;
        let image = fields.get("image").and_then(Value::as_str).filter(|_| part == Part::Container);
        self.image = image.unwrap_or(around);
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            self.under(name, |walk| walk.field(name, value, part));
        }
        self.image = around;
    }

    fn field(&mut self, name: &'a str, value: &'a Value, part: Part) {
        if self.reference(name, value) || self.feature(name, value) {
            return;
        }
        let next = match (part, name) {
            (_, name) if FREE.contains(&name) => return,
            (Part::Pod | Part::Any, "containers" | "initContainers" | "ephemeralContainers") => Part::Container,
            (Part::Pod | Part::Any, "volumes") => Part::Volume,
            (Part::Any, _) => Part::Any,
            (Part::Pod, name) if PLAIN_IN_POD.contains(&name) => Part::Any,
            (Part::Container, "envFrom") => Part::EnvFrom,
            (Part::Container, "env") => Part::Container,
            (Part::Container, "value") => return,
            (Part::Container, "valueFrom") => Part::ValueFrom,
            (Part::Container, name) if PLAIN_IN_CONTAINER.contains(&name) => Part::Any,
            (Part::ValueFrom, "fieldRef" | "resourceFieldRef" | "fileKeyRef") | (Part::EnvFrom, "prefix") => return,
            (Part::Volume, "name" | "emptyDir" | "downwardAPI") => return,
            (Part::Volume, "projected") | (Part::Projected, "sources") => Part::Projected,
            (Part::Projected, "defaultMode" | "downwardAPI") => return,
            (Part::Volume, kind) => {
                self.use_whole(Need::Volume, kind, value);
                Part::Any
            }
            (Part::Projected, source) => {
                self.use_whole(Need::Volume, format!("projected.{source}"), value);
                Part::Any
            }
            (Part::ValueFrom | Part::EnvFrom, name) => {
                return self.use_whole(Need::Field, format!("env.{name}"), value);
            }
            (Part::Pod | Part::Container, name) => return self.use_whole(Need::Field, name, value),
        };
        self.value(value, next);
    }

    pub(super) fn each(&mut self, items: &'a [Value], mut visit: impl FnMut(&mut Self, &'a Value)) {
        for (index, item) in items.iter().enumerate() {
            self.path.push(Step::Index(index));
            visit(self, item);
            self.path.pop();
        }
    }

    pub(super) fn under<T>(&mut self, name: &'a str, visit: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(Step::Key(name));
        let result = visit(self);
        self.path.pop();
        result
    }

    /// Returns the depth of the current place.
    pub(super) fn depth(&self) -> usize {
        self.path.len()
    }

    /// Records a use that one word describes completely. Does nothing for an empty word.
    pub(super) fn use_word(&mut self, need: Need, word: impl Into<Cow<'a, str>>) {
        let word = word.into();
        if !word.is_empty() {
            self.record(need, word.clone(), Exact::Word(word));
        }
    }

    /// Records the command that the current container runs.
    pub(super) fn use_command(&mut self, field: &'a str, whole: &'a Value) {
        self.record(Need::Command, self.image.into(), Exact::Whole(field.into(), whole));
    }

    /// Records a use that equals another one only if their whole values are equal.
    pub(super) fn use_whole(&mut self, need: Need, word: impl Into<Cow<'a, str>>, whole: &'a Value) {
        let word = word.into();
        self.record(need, word.clone(), Exact::Whole(word, whole));
    }

    fn record(&mut self, need: Need, word: Cow<'a, str>, exact: Exact<'a>) {
        self.found.push(Use { need, word, exact, at: Place(self.path.clone()) });
    }
}
