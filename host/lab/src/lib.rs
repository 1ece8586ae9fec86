//! The host's real parts on the simulator: scenarios, seeded campaigns and the demo.
#![forbid(unsafe_code)]
// A closed pipe would be a panic: `troupe::out` prints.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod campaign;
mod children;
pub mod demo;
mod manifest;
pub mod scenario;
mod virtual_time;
