//! Turns by namespace: what waits is served from the namespace that has the least under way.

mod lanes;
mod turns;

pub use lanes::{Amount, Lanes, Shares};
pub use turns::{Rank, Turn, Turns};
