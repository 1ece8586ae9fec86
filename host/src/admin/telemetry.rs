//! Logs: one line per event, facts as fields.

use crate::out;
use std::io::IsTerminal;
use tracing_subscriber::{EnvFilter, fmt};

/// Sends logs to standard error: text by default, JSON if `json`. `RUST_LOG` overrides the `default` filter. Lines are
/// dropped if standard error is closed.
pub fn start(json: bool, default: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let colours = std::io::stderr().is_terminal();
    let lines = fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colours);
    // An internal error would be printed to standard error, which fails too, and panic.
    let lines = lines.log_internal_errors(false);
    let started = if json { lines.json().try_init() } else { lines.try_init() };
    if let Err(error) = started {
        out::diagnostic(format_args!("logs go where an earlier call sent them: {error}"));
    }
}
