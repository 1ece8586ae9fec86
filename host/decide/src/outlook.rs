//! What the host's own rules say of a job at an instant; the plugin's judge puts it in the framework's words.

use crate::{Snapshot, plan::Plan, standing::Standing};
use serde::{Deserialize, Serialize};

/// What the host's own rules say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outlook {
    /// The user wants the job kept without pods.
    pub suspended: bool,
    /// What is waited for, in words.
    pub waiting: Option<String>,
}

/// The outlook of a job, and the keys of the bodies that `bind` should be asked for.
#[must_use]
pub fn outlook(snapshot: &Snapshot, plan: &Plan) -> (Outlook, Vec<String>) {
    let standing = Standing::of(snapshot, plan);
    let outlook =
        Outlook { suspended: snapshot.suspended(), waiting: standing.waiting().map(|waiting| waiting.to_string()) };
    (outlook, standing.bodies_wanted())
}
