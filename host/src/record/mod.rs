//! Passes that are kept for people, and their replay.

pub mod events;
pub mod passes;
pub mod replay;
