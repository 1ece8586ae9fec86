//! `troupe preflight`: whether anything stands in the way of serving this cluster's jobs, and what to do about it.
//!
//! `look` reads the cluster, and only reads. All else is pure: each file makes findings of one part of the facts.

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

use jiff::Timestamp;
use serde_json::Value;
use troupe_plugin::original::Original;

/// What was read, or why it could not be.
pub type Read<T> = Result<T, String>;

/// Everything that the findings depend on.
#[derive(Debug)]
pub struct Facts {
    /// The instant.
    pub now: Timestamp,
    /// What tells the operators that Troupe replaces.
    pub originals: Vec<Original>,
    /// Leases that are called like one of theirs.
    pub leases: Read<Vec<Value>>,
    /// All Deployments.
    pub deployments: Read<Vec<Value>>,
    /// The definitions of the kinds of job.
    pub definitions: Vec<Definition>,
    /// The jobs, by kind, namespace and name.
    pub jobs: Vec<JobFacts>,
    /// Kinds of object whose objects are not known.
    pub unlisted: Vec<String>,
    /// Whose rights were asked for, in words.
    pub who: String,
    /// The rights that the host needs.
    pub rights: Vec<Answered>,
}

/// What there is to say about the facts.
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
