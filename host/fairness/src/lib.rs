//! Fairness by namespace: the next to be served is from the namespace with the least under way.

mod lanes;
mod turns;

pub use lanes::{Amount, Lanes, Share, Shares};
pub use turns::{Rank, Turn, Turns};
