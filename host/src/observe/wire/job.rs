//! Decoding of jobs.

use super::{
    Held, Metadata, Object, Wire, or_default,
    sections::{Parts, metadata, section, unreadable},
};
use crate::observe::{decode, layout::WatchSpec};
use decide::{Digest, RecordedDigest, ledger::Ledger, plan::FieldError, snapshot::Job, weight};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// A job with spec and status as text, which takes a tenth of the memory of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Packed {
    /// The job without spec and status.
    job: Job,
    spec: Box<str>,
    status: Box<str>,
    recorded: Recorded,
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
        #[derive(Deserialize)]
        struct Status<'a> {
            #[serde(borrow)]
            troupe: Option<&'a RawValue>,
        }
        let part = serde_json::from_str::<Status<'_>>(status).ok().and_then(|status| status.troupe);
        let ledger = part.and_then(|part| serde_json::from_str::<Ledger>(part.get()).ok());
        let Ledger { digest, headline, finished, .. } = ledger.filter(|it| it.uid == uid).unwrap_or_default();
        Self {
            digest: digest.digest().cloned(),
            is_unplanned: digest == RecordedDigest::None,
            is_unwritten: headline.is_empty(),
            has_ended: finished.is_some(),
        }
    }
}

impl Packed {
    pub(crate) fn unpacked(&self) -> Job {
        Job { spec: value(&self.spec), status: self.status(), ..self.job.clone() }
    }

    pub(crate) fn status(&self) -> Value {
        value(&self.status)
    }

    pub(crate) fn recorded(&self) -> &Recorded {
        &self.recorded
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
    job(metadata, text(&spec), text(&status), wrong_metadata.or(wrong_spec).or(wrong_status))
}

/// Labels, annotations and finalizers of a job take at most so many bytes, as estimated. The API server takes 256 KiB of
/// annotations, and of the others what an object has room for.
const MOST_METADATA: usize = 512 << 10;

fn job(mut metadata: Metadata, spec: Box<str>, status: Box<str>, mut wrong: Option<FieldError>) -> Object {
    let finalizers = metadata.finalizers.iter().map(|name| size_of::<String>() + name.len()).sum::<usize>();
    if weight::texts(&metadata.labels) + weight::texts(&metadata.annotations) + finalizers > MOST_METADATA {
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
    metadata.object(wrong, Held::Job(Box::new(Packed { job, spec, status, recorded })))
}
