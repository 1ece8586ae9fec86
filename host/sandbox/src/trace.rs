//! Spans of the traces of passes. They have a target of their own, so that nobody makes them where passes are not
//! traced.

use tracing::{Span, field::Empty, trace_span};

/// The target of the spans of traces. Logs show them only where `RUST_LOG` asks for it.
pub const TARGET: &str = "trace";

/// How a call of a plugin ended, for its span.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outcome {
    /// With an answer.
    Answered,
    /// With a refusal of the job, which is an answer too.
    Rejected,
    /// Without an answer.
    Faulted,
}

impl Outcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Rejected => "rejected",
            Self::Faulted => "faulted",
        }
    }
}

/// Returns the span of the pass that runs here, or of a part of it; a disabled one where none runs, or it is not
/// traced.
#[must_use]
pub fn current() -> Span {
    let span = Span::current();
    let is_ours = span.metadata().is_some_and(|metadata| metadata.target() == TARGET);
    if is_ours { span } else { Span::none() }
}

/// Returns the span of a call of a plugin in the pass that runs here; a disabled one where none runs.
pub(super) fn call(plugin: &str, function: &'static str) -> Span {
    if current().is_none() {
        return Span::none();
    }
    trace_span!(
        target: TARGET,
        "call",
        otel.name = function,
        otel.status_code = Empty,
        plugin,
        fuel = Empty,
        outcome = Empty,
    )
}

/// Notes in the span of a call what it has used and how it ended.
pub(super) fn called(span: &Span, fuel: u64, outcome: Outcome) {
    span.record("fuel", i64::try_from(fuel).unwrap_or(i64::MAX)).record("outcome", outcome.as_str());
    if matches!(outcome, Outcome::Faulted) {
        span.record("otel.status_code", "ERROR");
    }
}
