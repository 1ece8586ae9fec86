//! The pure core of the host: every decision is a function from values to values.
//!
//! No I/O, no clock, no randomness: `now` is in the [`Snapshot`], and this package depends on no runtime.

pub mod addresses;
pub mod attempts;
pub mod back_off;
pub mod blocker;
pub mod build;
pub mod cleanup;
pub mod condition;
mod contest;
mod counted;
pub mod criteria;
mod decide;
pub mod decision;
mod diff;
pub mod difference;
pub mod digest;
pub mod failures;
mod fault;
mod first_failure;
mod flaw;
pub mod gang;
pub mod grants;
pub mod jobs;
pub mod ledger;
pub mod lifecycle;
pub mod names;
pub mod outdated;
pub mod outlook;
mod over;
pub mod ownership;
pub mod plan;
mod pod_group;
mod pointer;
pub mod ports;
#[cfg(test)]
mod properties;
pub mod published;
mod queue;
pub mod ranges;
pub mod rejection;
mod replicas;
mod restarts;
mod runs;
pub mod snapshot;
pub mod standing;
pub mod status;
pub mod summary;
mod suspend;
pub mod template;
pub mod testkit;
pub mod time;
mod ttl;
mod turns;
pub mod vet;
pub mod waiting;
pub mod weight;
pub mod workload;

pub use decide::{decide, is_at_rest};
pub use decision::{Action, Applied, Decision, Report, Wake, Write};
pub use digest::{Digest, RecordedDigest};
pub use lifecycle::{Triage, triage};
pub use outlook::Outlook;
pub use snapshot::Snapshot;
pub use standing::Standing;
pub use waiting::Waiting;
