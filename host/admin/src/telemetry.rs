//! Logs: one line per event, facts as fields.

use std::io::IsTerminal;
use tracing_subscriber::{EnvFilter, Layer, fmt, layer::SubscriberExt, registry, util::SubscriberInitExt};
use troupe::{out, traces::SpanLayer};

/// Sends logs to standard error: text by default, JSON if `json`. `RUST_LOG` overrides the `default` filter. Lines are
/// dropped if standard error is closed. Spans go to `spans` too.
pub fn start(json: bool, default: &str, spans: Option<SpanLayer>) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let colours = std::io::stderr().is_terminal();
    // An internal error would be printed to standard error, which fails too, and panic.
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(colours).log_internal_errors(false);
    let lines = if json { lines.json().with_filter(filter).boxed() } else { lines.with_filter(filter).boxed() };
    let layers: Vec<SpanLayer> = [lines].into_iter().chain(spans).collect();
    if let Err(error) = registry().with(layers).try_init() {
        out::diagnostic(format_args!("logs go where an earlier call sent them: {error}"));
    }
}
