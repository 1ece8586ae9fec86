//! Decoding of jobs.

use super::{
    Held, Metadata, Object, Wire, or_default,
    sections::{Parts, metadata, section, unreadable},
};
use crate::observe::{decode, layout::WatchSpec};
use decide::{Digest, RecordedDigest, ledger::Ledger, plan::FieldError, snapshot::Job, weight};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use std::collections::BTreeMap;

/// The text of a spec or a status that is not kept.
const NOTHING: &str = "{}";

/// Of a spec that is not kept, values stay that are no list and no long text, up to this number and on these levels: `spec.suspend` and
/// `spec.runPolicy.managedBy`, and none of a pod template.
const MOST_SWITCHES: usize = 64;
const SWITCH_LEVELS: usize = 2;
const LONGEST_SWITCH: usize = 63;

/// The maximum bytes of the ledger of a job of which little is kept.
const LARGEST_LEDGER: usize = 64 << 10;

/// The maximum bytes of the finalizers of a job of which little is kept, as estimated.
const MOST_FINALIZERS: usize = 4 << 10;

/// Returns the short values of a map and of the maps in it, at most `left`.
fn switches(of: &Value, levels: usize, left: &mut usize) -> Value {
    let fields = of.as_object().into_iter().flatten().filter(|(name, _)| name.len() <= LONGEST_SWITCH);
    let (maps, others): (Vec<_>, Vec<_>) = fields.partition(|(_, value)| value.is_object());
    let is_short = |value: &Value| match value {
        Value::String(text) => text.len() <= LONGEST_SWITCH,
        Value::Bool(_) | Value::Number(_) => true,
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    };
    let mut kept = serde_json::Map::new();
    for (name, value) in others.into_iter().filter(|(_, value)| is_short(value)) {
        if let Some(rest) = left.checked_sub(1) {
            *left = rest;
            kept.insert(name.clone(), value.clone());
        }
    }
    for (name, value) in maps.into_iter().filter(|_| levels > 1) {
        let below = switches(value, levels - 1, left);
        if below.as_object().is_some_and(|below| !below.is_empty()) {
            kept.insert(name.clone(), below);
        }
    }
    kept.into()
}

/// A job with spec and status as text, which takes a tenth of the memory of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Packed {
    /// The job without spec and status.
    job: Job,
    spec: Box<str>,
    status: Box<str>,
    recorded: Recorded,
    lacks_ledger: bool,
}

/// What the ledger of a job says that is asked about all jobs at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recorded {
    /// The digest that has planned the job, if it is a digest.
    pub(crate) digest: Option<Digest>,
    /// No digest has planned the job, valid or not.
    pub(crate) is_unplanned: bool,
    /// The host has never written the status.
    pub(crate) is_unwritten: bool,
    /// The job has ended.
    pub(crate) has_ended: bool,
}

impl Recorded {
    /// Reads the ledger in a status of the job with this uid, and nothing else of the status.
    fn of(status: &str, uid: &str) -> Self {
        let ledger = ledger_of(status).and_then(|part| serde_json::from_str::<Ledger>(part.get()).ok());
        let Ledger { digest, headline, finished, .. } = ledger.filter(|it| it.uid == uid).unwrap_or_default();
        Self {
            digest: digest.digest().cloned(),
            is_unplanned: digest == RecordedDigest::None,
            is_unwritten: headline.is_empty(),
            has_ended: finished.is_some(),
        }
    }
}

/// Returns the text of the ledger in a status.
fn ledger_of(status: &str) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct Status<'a> {
        #[serde(borrow)]
        troupe: Option<&'a RawValue>,
    }
    serde_json::from_str::<Status<'_>>(status).ok().and_then(|status| status.troupe)
}

impl Packed {
    pub(crate) fn unpacked(&self) -> Job {
        Job { spec: value(&self.spec), status: self.status(), ..self.job.clone() }
    }

    pub(crate) fn status(&self) -> Value {
        value(&self.status)
    }

    /// Estimates the bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        let Job { labels, annotations, finalizers, .. } = &self.job;
        self.spec.len() + self.status.len() + texts_of(labels, annotations, finalizers)
    }

    /// Returns the size of the spec as JSON if that is more than `most` bytes. The API server may write it longer.
    pub(crate) fn large_spec(&self, most: usize) -> Option<usize> {
        let bytes = (self.spec.len() > most).then(|| value(&self.spec).to_string().len())?;
        (bytes > most).then_some(bytes)
    }

    /// Drops the spec but for its switches, which count also in a job that is refused: who manages it, whether it is suspended.
    pub(crate) fn drop_spec(&mut self) {
        let mut left = MOST_SWITCHES;
        self.spec = switches(&value(&self.spec), SWITCH_LEVELS, &mut left).to_string().into();
    }

    /// Drops all but that, the ledger, what identifies the job, and what is asked about all jobs at once.
    pub(crate) fn drop_texts(&mut self) {
        self.drop_spec();
        let ledger = ledger_of(&self.status).map_or(NOTHING, RawValue::get);
        self.lacks_ledger = ledger.len() > LARGEST_LEDGER;
        self.status = if self.lacks_ledger { NOTHING.into() } else { format!(r#"{{"troupe":{ledger}}}"#).into() };
        (self.job.labels, self.job.annotations) = Default::default();
        if texts_of(&self.job.labels, &self.job.annotations, &self.job.finalizers) > MOST_FINALIZERS {
            self.job.finalizers.clear();
        }
    }

    pub(crate) fn recorded(&self) -> &Recorded {
        &self.recorded
    }

    /// Returns the status as JSON.
    #[must_use]
    pub fn status_text(&self) -> &str {
        &self.status
    }

    /// Returns whether the ledger of the job is not kept: nothing may be decided of it.
    pub(crate) fn lacks_ledger(&self) -> bool {
        self.lacks_ledger
    }

    /// Returns the job without its spec and its status.
    #[must_use]
    pub fn job(&self) -> &Job {
        &self.job
    }
}

/// Returns the value of a text that was read before.
fn value(text: &str) -> Value {
    decode::value(text).unwrap_or_default().value
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
            None => Some(NOTHING.into()),
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
    job(metadata, text(&spec), text(&status), wrong_metadata.or(wrong_spec).or(wrong_status))
}

/// Labels, annotations and finalizers of a job take at most so many bytes, as estimated. The API server takes 256 KiB of
/// annotations, and of the others what an object has room for.
const MOST_METADATA: usize = 512 << 10;

fn texts_of(labels: &BTreeMap<String, String>, annotations: &BTreeMap<String, String>, finalizers: &[String]) -> usize {
    let finalizers = finalizers.iter().map(|name| size_of::<String>() + name.len()).sum::<usize>();
    weight::texts(labels) + weight::texts(annotations) + finalizers
}

fn job(mut metadata: Metadata, spec: Box<str>, status: Box<str>, mut wrong: Option<FieldError>) -> Object {
    if texts_of(&metadata.labels, &metadata.annotations, &metadata.finalizers) > MOST_METADATA {
        let why = format!("has more than {} KiB of labels, annotations and finalizers", MOST_METADATA >> 10);
        wrong.get_or_insert(unreadable("metadata", &why));
        (metadata.labels, metadata.annotations, metadata.finalizers) = Default::default();
    }
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
    let recorded = Recorded::of(&status, &job.uid);
    metadata.object(wrong, Held::Job(Box::new(Packed { job, spec, status, recorded, lacks_ledger: false })))
}
