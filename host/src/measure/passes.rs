//! Passes and their results, by controller-runtime's names and rules.

use super::{Controller, OfKind};
use crate::job_key::GroupKind;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, exemplar::HistogramWithExemplars, family::Family},
};
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

/// controller-runtime's buckets of `controller_runtime_reconcile_time_seconds`.
const BUCKETS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
];

/// How a pass ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassEnd {
    /// It succeeded, and the job is looked at again when something changes.
    Success,
    /// It succeeded, and the job is looked at again at a time.
    RequeueAfter,
    /// It failed, and is tried again.
    Error,
    /// The host panicked in it.
    Panic,
}

impl PassEnd {
    /// Every end, in the order of their definition.
    const ALL: [Self; 4] = [Self::Success, Self::RequeueAfter, Self::Error, Self::Panic];

    /// Returns the result as controller-runtime names it; a panic is an error there.
    #[must_use]
    pub fn result(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::RequeueAfter => "requeue_after",
            Self::Error | Self::Panic => "error",
        }
    }
}

/// The labels of passes by result.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfResult {
    controller: Controller,
    result: &'static str,
}

/// The label of an exemplar: the trace of a pass.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfTrace {
    /// The trace's id, in lower-case hexadecimal.
    pub trace_id: String,
}

/// Counters and times of passes.
#[derive(Debug)]
pub struct Passes {
    /// Passes by result.
    pub results: Family<OfResult, Counter>,
    /// Passes that failed.
    pub errors: Family<OfKind, Counter>,
    /// Passes in which the host panicked.
    pub panics: Family<OfKind, Counter>,
    /// How long passes took, in seconds, with the latest traced pass of each bucket.
    pub seconds: Family<OfKind, HistogramWithExemplars<OfTrace>, fn() -> HistogramWithExemplars<OfTrace>>,
    all_panics: AtomicU64,
}

impl Default for Passes {
    fn default() -> Self {
        Self {
            results: Family::default(),
            errors: Family::default(),
            panics: Family::default(),
            seconds: Family::new_with_constructor(|| HistogramWithExemplars::new(BUCKETS.into_iter())),
            all_panics: AtomicU64::new(0),
        }
    }
}

impl Passes {
    /// Sets the counters of a kind to zero where they are not counted yet: a first error is an increase only then.
    pub fn begin(&self, kind: &GroupKind) {
        let labels = OfKind::new(kind);
        drop(self.errors.get_or_create(&labels));
        drop(self.panics.get_or_create(&labels));
        for end in PassEnd::ALL {
            drop(self.results.get_or_create(&OfResult { controller: labels.controller.clone(), result: end.result() }));
        }
    }

    /// Counts a pass over a job of this kind, which may have a trace and ends now.
    pub fn record(&self, kind: &GroupKind, end: PassEnd, took: Duration, trace: Option<(OfTrace, SystemTime)>) {
        let labels = OfKind::new(kind);
        let (trace, now) = trace.unzip();
        self.seconds.get_or_create(&labels).observe(took.as_secs_f64(), trace, now);
        match end {
            PassEnd::Success | PassEnd::RequeueAfter => {}
            PassEnd::Error => drop(self.errors.get_or_create(&labels).inc()),
            PassEnd::Panic => {
                self.errors.get_or_create(&labels).inc();
                self.panics.get_or_create(&labels).inc();
                self.all_panics.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.results.get_or_create(&OfResult { controller: labels.controller, result: end.result() }).inc();
    }

    /// Returns how many passes ended in a panic of the host, over all kinds.
    #[must_use]
    pub fn count_panics(&self) -> u64 {
        self.all_panics.load(Ordering::Relaxed)
    }
}
