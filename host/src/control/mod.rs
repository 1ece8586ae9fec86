//! The loop: which job is next, one pass over it, and which host may write.

pub mod host_ports;
pub mod lease;
mod memory;
pub mod operator;
mod pace;
pub mod queue;
mod recent;
pub mod reconcile;
pub mod supervise;
