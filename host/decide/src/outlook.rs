//! What the host's own rules say of a job at an instant; the plugin's `judge` reports it in the framework's terms.

use crate::standing::Standing;
use serde::{Deserialize, Serialize};

/// What the host's own rules say of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outlook {
    /// Whether the user has suspended the job.
    pub suspended: bool,
    /// What the job waits for, as a message.
    pub waiting: Option<String>,
}

impl Outlook {
    /// Returns the outlook of a job that was compared with its plan.
    #[must_use]
    pub fn of(standing: &Standing<'_>) -> Self {
        let waiting = standing.waiting().map(|waiting| waiting.to_string());
        Self { suspended: standing.snapshot.suspended(), waiting }
    }
}
