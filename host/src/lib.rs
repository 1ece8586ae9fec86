//! Troupe's host: it owns the reconcile loop and all API I/O; what a job of a framework becomes is said by plugins.
//!
//! Start reading at [`reconcile`], then `ARCHITECTURE.md` beside this package.
#![deny(unsafe_code)]
// A closed pipe would be a panic: `out` prints.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod accepted;
pub mod admin;
mod api;
pub mod apply;
pub mod args;
mod back_off;
mod bundled;
pub mod campaign;
pub mod cli;
pub mod clock;
mod course;
pub mod crds;
mod deadline;
mod decode;
pub mod delivery;
mod departed;
pub mod fuzz;
pub mod host_ports;
mod keys;
mod lanes;
pub mod layout;
pub mod lease;
pub mod metrics;
pub mod oci;
pub mod operator;
pub mod out;
mod pages;
pub mod passes;
pub mod plugin;
pub mod plugin_resource;
pub mod preflight;
pub mod publish;
pub mod queue;
pub mod rbac;
pub mod reconcile;
pub mod replay;
pub mod resource;
pub mod scenario;
pub mod stores;
mod supervise;
mod table;
pub mod telemetry;
mod turns;
pub mod warnings;
pub mod watch;
mod weight;
mod wire;
