//! Requests to the API server: kinds as URLs name them, answers, deadlines and waits.

pub(crate) mod answer;
pub(crate) mod back_off;
pub(crate) mod deadline;
pub mod resource;

use std::time::Duration;

/// Who writes, in managed fields.
pub const FIELD_MANAGER: &str = "troupe";

/// Every request is answered within this, or counts as lost.
pub const DEADLINE: Duration = Duration::from_secs(10);
