//! `troupe preflight`: reports what prevents Troupe from serving the cluster's jobs, and what to do about it.
//!
//! `look` reads the cluster. All else is pure: each file turns one part of the facts into findings.

mod gangs;
mod jobs;
pub(super) mod look;
pub(super) mod operators;
mod report;
pub(super) mod rights;
pub mod schema;

pub use gangs::Gangs;
pub use jobs::{JobFacts, TakeOver};
pub use look::{Options, look};
pub use report::{Finding, Report, Section, Weight};
pub use rights::{Answered, Right};
pub use schema::Definition;

use jiff::Timestamp;
use serde_json::Value;
use troupe::error::chain;
use troupe_plugin::original::Original;

/// What was read, or why it could not be read.
pub type Read<T> = Result<T, ReadError>;

/// Why something could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReadError(String);

impl ReadError {
    /// Returns the error of the client, with its causes.
    pub(super) fn new(error: &(dyn std::error::Error + 'static)) -> Self {
        Self(chain(error))
    }
}

/// What there is of operators that Troupe replaces.
#[derive(Debug)]
pub struct Originals {
    /// How to recognise them.
    pub known: Vec<Original>,
    /// The Leases whose names are those of original operators.
    pub leases: Read<Vec<Value>>,
    /// All Deployments.
    pub deployments: Read<Vec<Value>>,
    /// The ValidatingWebhookConfigurations whose names are those of original operators.
    pub webhooks: Read<Vec<Value>>,
}

/// All input of the findings.
#[derive(Debug)]
pub struct Facts {
    /// The current time.
    pub now: Timestamp,
    /// What there is of operators that Troupe replaces.
    pub originals: Originals,
    /// The definitions of the kinds of job.
    pub definitions: Vec<Definition>,
    /// The jobs, by kind, namespace and name.
    pub jobs: Vec<JobFacts>,
    /// The kinds that could not be listed.
    pub unlisted: Vec<String>,
    /// Objects of gangs of Kubernetes 1.36.
    pub gangs: Gangs,
    /// The user whose rights were checked, in words.
    pub who: String,
    /// The rights that the host needs.
    pub rights: Vec<Answered>,
}

/// Returns the findings about the facts.
#[must_use]
pub fn report(facts: &Facts) -> Report {
    let Facts { now, originals, definitions, jobs, unlisted, gangs, who, rights } = facts;
    Report {
        sections: vec![
            Section::new("original operators", operators::findings(*now, originals)),
            Section::new("definitions", definitions.iter().map(schema::finding).collect()),
            Section::new("jobs", jobs::findings(jobs, unlisted)),
            Section::new("gangs", gangs::findings(gangs)),
            Section::new("rights", rights::findings(who, rights)),
        ],
    }
}
