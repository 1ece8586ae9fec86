//! What the host's own rules say of a job at an instant; the plugin's `judge` reports it in the framework's terms.

use crate::{Snapshot, plan::Plan, standing::Standing};
use serde::{Deserialize, Serialize};

/// What the host's own rules say of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outlook {
    /// Whether the user has suspended the job.
    pub suspended: bool,
    /// What the job waits for, as a message.
    pub waiting: Option<String>,
}

/// Returns the outlook of a job, and the keys of the bodies to ask `bind` for.
#[must_use]
pub fn outlook(snapshot: &Snapshot, plan: &Plan) -> (Outlook, Vec<String>) {
    let standing = Standing::of(snapshot, plan);
    let outlook =
        Outlook { suspended: snapshot.suspended(), waiting: standing.waiting().map(|waiting| waiting.to_string()) };
    (outlook, standing.bodies_wanted())
}
