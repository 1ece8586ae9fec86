//! Decoding of jobs.

use super::{
    Held, Metadata, Object, Wire, or_default,
    sections::{Parts, metadata, section},
};
use crate::observe::{decode, layout::WatchSpec};
use decide::{plan::FieldError, snapshot::Job};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// A job with spec and status as text, which takes a tenth of the memory of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Packed {
    /// The job without spec and status.
    job: Job,
    spec: Box<str>,
    status: Box<str>,
}

impl Packed {
    pub(crate) fn unpacked(&self) -> Job {
        Job { spec: value(&self.spec), status: self.status(), ..self.job.clone() }
    }

    pub(crate) fn status(&self) -> Value {
        value(&self.status)
    }

    /// Returns the status as JSON.
    #[must_use]
    pub fn status_text(&self) -> &str {
        &self.status
    }

    /// Returns the job without its spec and its status.
    #[must_use]
    pub fn job(&self) -> &Job {
        &self.job
    }
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).expect("its JSON was read before")
}

/// A job. Its text is kept as it is.
#[derive(Deserialize)]
pub(super) struct JobWire<'a> {
    #[serde(default, deserialize_with = "or_default")]
    metadata: Metadata,
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

impl<'a> Wire<'a> for JobWire<'a> {
    fn object(self, _: &WatchSpec) -> Option<Object> {
        let text = |part: Option<&RawValue>| match part.map(RawValue::get) {
            None => Some("{}".into()),
            Some(text) => decode::is_object(text).then(|| text.into()),
        };
        let (spec, status) = (text(self.spec)?, text(self.status)?);
        Some(job(self.metadata, spec, status, None))
    }
}

/// Decodes a job section by section.
pub(super) fn by_section(parts: &Parts<'_>) -> Object {
    let (metadata, wrong_metadata) = metadata(parts);
    let (spec, wrong_spec) = section("spec", parts.spec);
    let (status, wrong_status) = section("status", parts.status);
    let text = |part: &Value| serde_json::to_string(part).expect("its keys are text").into();
    let unreadable = wrong_metadata.or(wrong_spec).or(wrong_status);
    job(metadata, text(&spec), text(&status), unreadable)
}

fn job(metadata: Metadata, spec: Box<str>, status: Box<str>, unreadable: Option<FieldError>) -> Object {
    let job = Job {
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
        resource_version: metadata.resource_version.clone(),
        generation: metadata.generation,
        created: metadata.creation_timestamp.unwrap_or_default(),
        deleting: metadata.deletion_timestamp.is_some(),
        finalizers: metadata.finalizers.clone(),
        labels: metadata.labels.clone(),
        annotations: metadata.annotations.clone(),
        spec: Value::Null,
        status: Value::Null,
    };
    metadata.object(unreadable, Held::Job(Box::new(Packed { job, spec, status })))
}
