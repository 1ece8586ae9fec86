//! `troupe check`: reports what is wrong with a host that is installed, and what to do about it.
//!
//! `look` reads the cluster and changes nothing. All else is pure: each file turns one part of the facts into findings. What
//! holds before an installation too is in `preflight`.

mod hosts;
mod look;
mod plugins;
mod policies;

pub use look::look;
pub use policies::applied;

use super::preflight::{Definition, Originals, Read, Report, Section, operators, rights, schema};
use crate::preflight::Answered;
use decide::plan::JobKind;
use jiff::Timestamp;
use serde_json::Value;

/// Where the host is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its namespace.
    pub namespace: String,
    /// The name of its service account.
    pub service_account: String,
}

/// All input of the findings.
#[derive(Debug)]
pub struct Facts {
    /// The current time.
    pub now: Timestamp,
    /// Where the host is installed.
    pub place: Place,
    /// The host's namespace, if it exists.
    pub namespace: Read<Option<Value>>,
    /// The pods of the host's service account.
    pub hosts: Read<Vec<Value>>,
    /// The host's Lease, if it exists.
    pub lease: Read<Option<Value>>,
    /// What there is of operators that Troupe replaces.
    pub originals: Originals,
    /// The definitions of the kinds of job and of Plugin.
    pub definitions: Vec<Definition>,
    /// The rights that the host needs.
    pub rights: Vec<Answered>,
    /// The ValidatingAdmissionPolicies.
    pub policies: Read<Vec<Value>>,
    /// The ValidatingAdmissionPolicyBindings.
    pub bindings: Read<Vec<Value>>,
    /// The ConfigMap with the parameters of the fence, if it exists.
    pub parameters: Read<Option<Value>>,
    /// The Plugin resources.
    pub plugins: Read<Vec<Value>>,
    /// The kinds of job that the built-in plugins serve.
    pub kinds: Vec<JobKind>,
}

/// Returns the findings about the facts.
#[must_use]
pub fn report(facts: &Facts) -> Report {
    let Place { namespace, service_account } = &facts.place;
    let who = format!("service account {namespace}/{service_account}");
    Report {
        sections: vec![
            Section::new("definitions", facts.definitions.iter().map(schema::finding).collect()),
            Section::new("rights", rights::findings(&who, &facts.rights)),
            Section::new("policies", policies::findings(facts)),
            Section::new("hosts", hosts::findings(facts)),
            Section::new("plugins", plugins::findings(&facts.plugins)),
            Section::new("original operators", operators::findings(facts.now, &facts.originals)),
        ],
    }
}

#[cfg(test)]
mod tests;
