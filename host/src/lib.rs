//! Troupe's host: it owns the reconcile loop and all API I/O; plugins define what a job of a framework becomes.
//!
//! Start reading at [`control::reconcile`], then `ARCHITECTURE.md` beside this package.
#![deny(unsafe_code)]
// `println!` panics if the pipe is closed; `out` prints instead.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod api;
pub mod clock;
pub mod control;
pub mod delivery;
pub mod error;
pub mod files;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod job_key;
pub mod measure;
pub mod observe;
pub mod out;
pub mod plugin_resource;
pub mod record;
pub mod traces;
pub mod write;
