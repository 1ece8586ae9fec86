//! The host's real parts on the simulator: scenarios, seeded campaigns and the demo.
#![forbid(unsafe_code)]

pub mod campaign;
pub mod demo;
pub mod scenario;
