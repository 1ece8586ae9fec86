//! What the host counts and times while it works. The admin port shows it; no decision depends on it.

pub mod jobs;
pub mod originals;
pub mod passes;
pub mod requests;

use crate::job_key::GroupKind;
use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder},
    metrics::{family::Family, gauge::Gauge, histogram::Histogram},
};
use std::fmt::{self, Write};

/// Histograms by label set, each with the buckets that its constructor sets.
pub type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// A kind of job as the value of a label: `talejob.example.com`. controller-runtime names a controller after the kind
/// alone, but two API groups may have kinds of the same name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Controller(pub GroupKind);

impl EncodeLabelValue for Controller {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        let (kind, group) = (self.0.kind(), self.0.group());
        kind.chars().try_for_each(|letter| encoder.write_char(letter.to_ascii_lowercase()))?;
        if group.is_empty() { Ok(()) } else { write!(encoder, ".{group}") }
    }
}

/// The labels of a metric of one admission policy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfPolicy {
    /// The name of the policy.
    pub policy: &'static str,
}

/// Which of the policies around the host are applied; nothing where that is not known.
pub type Policies = Family<OfPolicy, Gauge>;

/// The labels of a metric of one kind of job.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfKind {
    /// The kind.
    pub controller: Controller,
}

impl OfKind {
    /// Returns the labels of this kind; clones share its text.
    #[must_use]
    pub fn new(kind: &GroupKind) -> Self {
        Self { controller: Controller(kind.clone()) }
    }
}

/// The labels of a metric of one kind of job and one cause.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfReason {
    /// The kind.
    pub controller: Controller,
    /// The reason, as in the job's conditions.
    pub reason: &'static str,
}
