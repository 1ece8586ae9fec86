//! Plugins: components of `wit/framework.wit`, loaded once and asked on fresh instances.
//!
//! [`Plugins`] is all that the loop sees. `compile` makes a component ready, `wasi` decides what it may import, `call`
//! asks it within the `limits`, `convert` turns its answers into the host's own types and believes none of them.

mod call;
mod compile;
mod convert;
mod guest;
mod limits;
mod log;
mod memo;
mod observe;
mod registry;
mod seam;
mod stats;
mod wasi;

pub use call::NoPlan;
pub use compile::LoadError;
pub use limits::Limits;
pub use registry::{Options, Plugins, Vet};
pub use seam::Seam;
pub use stats::CallStats;
