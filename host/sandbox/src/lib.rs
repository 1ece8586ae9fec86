//! Plugins: components of `wit/framework.wit`, loaded once and asked on fresh instances.
//!
//! [`Plugins`] is all that the loop sees. `gate` and `compile` make a component ready, `child` does so for those that
//! others made, `wasi` decides what it may import, `call` asks it within the `limits`, `convert` turns its answers into the
//! host's own types and believes none of them, `determinism` asks twice, `breaker` and `allowance` decide when not to ask.

mod allowance;
mod ask;
mod breaker;
mod call;
mod child;
mod compile;
mod compiler;
mod convert;
mod description;
mod determinism;
mod gate;
mod guest;
mod limits;
mod load_error;
mod log;
mod logging;
mod memo;
mod observe;
mod registry;
mod seam;
mod settings;
pub mod source;
mod stats;
pub mod surface;
mod wasi;

pub use ask::Asked;
pub use breaker::{BreakerState, Position};
pub use call::NoPlan;
pub use child::Bounds;
pub use child::compile_as_child;
pub use compiler::Compiler;
pub use limits::{Limits, PluginLimits};
pub use load_error::LoadError;
pub use registry::{Options, Plugins, Prepared, Vet};
pub use seam::Seam;
pub use settings::wanted;
pub use settings::{ConfigError, Settings};
pub use stats::CallStats;
pub use wasi::fuzz::calls as calls_of_stubs;
