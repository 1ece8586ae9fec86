//! All integration tests are one binary, so that the workspace links once. A new test goes into the module of what it
//! runs on: scenarios for decisions, allocations for what they cost, campaign, watches, budget and by_hand for the simulator,
//! cluster and node for the real thing.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by its panic")]

mod allocations;
mod author;
mod book;
mod budget;
mod built_in;
mod by_hand;
#[path = "../bench/calls.rs"]
mod calls;
mod campaign;
mod chart;
mod cluster;
mod conformance;
mod crds;
mod cycles;
mod driver;
#[path = "../bench/fleet.rs"]
mod fleet;
mod fuzz;
mod host_ports;
mod hostile;
mod image;
#[path = "../bench/job.rs"]
mod job;
mod kubectl;
mod languages;
mod lease;
mod lists;
mod machine;
mod metrics;
mod mistakes;
mod monitoring;
mod node;
mod operator;
mod page;
mod rbac;
mod readers;
mod recording;
mod registry;
mod resident;
mod scenarios;
mod specs;
mod tidy;
mod traces;
mod trust;
mod values;
mod watches;
mod ways;

/// libtest has no place for what comes before the first test.
#[ctor::ctor(unsafe)]
fn set_up() {
    harness::set_up::before_the_tests("it");
}
