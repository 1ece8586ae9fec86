//! Passes that are kept for people, and their replay.

pub mod passes;
pub mod replay;
