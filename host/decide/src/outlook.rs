//! What the host's own rules say of a job at an instant; the plugin's `judge` reports it in the framework's terms.

use crate::{criteria, standing::Standing};
use serde::{Deserialize, Serialize};

/// What the host's own rules say of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outlook {
    /// Whether the user has suspended the job.
    pub suspended: bool,
    /// What the job waits for, as a message.
    pub waiting: Option<String>,
    /// The place of the first of the plan's success criteria that are met.
    #[serde(default)]
    pub criteria_met: Option<usize>,
}

impl Outlook {
    /// Returns the outlook of a job that was compared with its plan.
    #[must_use]
    pub fn of(standing: &Standing<'_>) -> Self {
        let waiting = standing.waiting().map(|waiting| waiting.to_string());
        Self { suspended: standing.snapshot.suspended(), waiting, criteria_met: criteria::met(standing) }
    }
}
