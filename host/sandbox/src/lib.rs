//! Plugins: components of `wit/framework.wit`, loaded once and called on fresh instances.
//!
//! The reconcile loop uses only [`Plugins`]. `gate` checks the complexity of components and `needs` what they import,
//! `remedy` words what to tell the tool that made one; `compile` compiles them, `child` does so for foreign ones and checks
//! their settings, `precompiled` ahead of time for the built-in ones. `wasi` decides what a component may import, `call`
//! calls it within its `limits`, and `convert` checks its answers and converts them to the host's types. `determinism`
//! compares two answers to one call; `breaker` and `allowance` decide when a plugin is not called. `executor` says where
//! calls run, `beside` is where those do that no live job waits for. `trace` makes spans of calls.

mod allowance;
mod ask;
mod beside;
mod breaker;
mod call;
mod child;
mod child_error;
mod compile;
mod compiler;
mod convert;
mod description;
mod determinism;
mod executor;
mod fuzz;
mod gate;
mod guest;
mod limits;
mod load_error;
mod log;
mod logging;
mod needs;
mod observe;
mod plan_cache;
mod precompiled;
mod registry;
mod remedy;
mod settings;
pub mod source;
mod stats;
pub mod surface;
pub mod trace;
mod twin;
mod verdict;
mod wasi;

pub use ask::PassAnswer;
pub use breaker::{BreakerState, Position};
pub use call::NoPlan;
pub use child::{Bounds, check_settings_as_child, compile_as_child};
pub use child_error::ChildError;
pub use compiler::Compiler;
pub use description::DescriptionError;
pub use executor::Executor;
pub use fuzz::calls as calls_of_stubs;
pub use limits::{LARGEST_COMPONENT, Limits, PluginLimits};
pub use load_error::LoadError;
pub use precompiled::{PrecompileError, precompile};
pub use registry::{Options, Plugins, Prepared, Vet};
pub use settings::{ConfigError, Settings, configured, wanted};
pub use stats::{BUCKETS, CallStats};
