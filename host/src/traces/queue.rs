//! Ended spans on their way to the task that sends them: a bounded queue, and what did not get through.

use opentelemetry::Context;
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{Span, SpanData, SpanProcessor},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::mpsc::Sender;

/// Why a span was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The queue was full.
    QueueFull,
    /// The collector did not take it, as far as is known.
    NotTaken,
}

impl Cause {
    /// Every cause, in the order of their definition.
    const ALL: [Self; 2] = [Self::QueueFull, Self::NotTaken];

    /// Returns the cause as the value of a label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::QueueFull => "QueueFull",
            Self::NotTaken => "NotTaken",
        }
    }
}

/// How many spans were dropped since the process began.
#[derive(Debug, Default)]
pub struct Dropped([AtomicU64; Cause::ALL.len()]);

impl Dropped {
    pub(super) fn add(&self, cause: Cause, spans: u64) {
        self.0[cause as usize].fetch_add(spans, Ordering::Relaxed);
    }

    /// Returns how many spans were dropped for each cause.
    #[must_use]
    pub fn read(&self) -> [(Cause, u64); Cause::ALL.len()] {
        Cause::ALL.map(|cause| (cause, self.0[cause as usize].load(Ordering::Relaxed)))
    }

    pub(super) fn total(&self) -> u64 {
        self.read().into_iter().map(|(_, spans)| spans).sum()
    }
}

/// Takes ended spans and waits for nothing. Of the SDK's own processors none counts what it drops.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) sender: Sender<SpanData>,
    pub(super) dropped: Arc<Dropped>,
}

impl SpanProcessor for Queue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled() && self.sender.try_send(span).is_err() {
            self.dropped.add(Cause::QueueFull, 1);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}
