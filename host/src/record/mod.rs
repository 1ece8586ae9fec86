//! Passes that are kept for people, and asked again.

pub mod passes;
pub mod replay;
