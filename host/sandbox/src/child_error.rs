//! Errors of child processes.

use std::path::PathBuf;

/// Why a child did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// It exceeded one of its resource limits.
    #[error("it used up its {budget} ({limit})")]
    Stopped {
        /// The resource: `processor time`, `memory`, `time` or `output`.
        budget: &'static str,
        /// The limit with its unit.
        limit: String,
    },
    /// It ended unexpectedly.
    #[error("it broke down ({how}): {words}")]
    Broke {
        /// Its exit code or signal.
        how: String,
        /// Its output on standard error, cut.
        words: String,
    },
    /// It said that it cannot do the work.
    #[error("{0}")]
    Refused(String),
    /// It cannot be run.
    #[error("failed to run {}", program.display())]
    NotRun {
        /// The path of the host's own program.
        program: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}
