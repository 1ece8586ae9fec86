//! `troupe preflight`: reports what prevents Troupe from serving the cluster's jobs, and what to do about it.
//!
//! `look` reads the cluster. All else is pure: each file turns one part of the facts into findings.

mod jobs;
mod look;
mod operators;
mod report;
mod rights;
mod schema;

pub use jobs::{JobFacts, Standing};
pub use look::{Options, look};
pub use report::{Finding, Report, Section, Weight};
pub use rights::{Answered, Right};
pub use schema::Definition;

use crate::error::chain;
use jiff::Timestamp;
use serde_json::Value;
use troupe_plugin::original::Original;

/// What was read, or why it could not be read.
pub type Read<T> = Result<T, ReadError>;

/// Why something could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReadError(String);

impl ReadError {
    /// Returns the error of the client, with its causes.
    fn new(error: &dyn std::error::Error) -> Self {
        Self(chain(error))
    }
}

/// All input of the findings.
#[derive(Debug)]
pub struct Facts {
    /// The current time.
    pub now: Timestamp,
    /// How to recognise the operators that Troupe replaces.
    pub originals: Vec<Original>,
    /// The Leases whose names are those of original operators.
    pub leases: Read<Vec<Value>>,
    /// All Deployments.
    pub deployments: Read<Vec<Value>>,
    /// The definitions of the kinds of job.
    pub definitions: Vec<Definition>,
    /// The jobs, by kind, namespace and name.
    pub jobs: Vec<JobFacts>,
    /// The kinds that could not be listed.
    pub unlisted: Vec<String>,
    /// The user whose rights were checked, in words.
    pub who: String,
    /// The rights that the host needs.
    pub rights: Vec<Answered>,
}

/// Returns the findings about the facts.
#[must_use]
pub fn report(facts: &Facts) -> Report {
    let Facts { now, originals, leases, deployments, definitions, jobs, unlisted, who, rights } = facts;
    Report {
        sections: vec![
            Section::new("original operators", operators::findings(*now, originals, leases, deployments)),
            Section::new("definitions", definitions.iter().map(schema::finding).collect()),
            Section::new("jobs", jobs::findings(jobs, unlisted)),
            Section::new("rights", rights::findings(who, rights)),
        ],
    }
}
