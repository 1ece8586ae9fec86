//! Requests to the API server: kinds as URLs name them, answers, deadlines and waits.

pub(crate) mod answer;
pub(crate) mod back_off;
pub mod bounds;
pub mod continued;
pub(crate) mod deadline;
pub(crate) mod discovery;
pub(crate) mod forbidden;
pub(crate) mod names;
pub(crate) mod patient;
pub mod resource;

use std::time::Duration;

/// The field manager of all writes.
pub const FIELD_MANAGER: &str = "troupe";

/// The deadline of every request.
pub const DEADLINE: Duration = Duration::from_secs(10);
