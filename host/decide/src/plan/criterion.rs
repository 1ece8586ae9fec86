//! What has to have succeeded for a job's work to be done.

use crate::ranges::Ranges;
use serde::{Deserialize, Serialize};

/// Replicas of a role that have to have succeeded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Criterion {
    /// Name of the role.
    pub role: String,
    /// The indices that count; none for all that the role has.
    #[serde(default, skip_serializing_if = "Ranges::is_empty")]
    pub indices: Ranges,
    /// How many of them; `None` for all, of which there is at least one.
    pub at_least: Option<u32>,
}
