//! `troupe plugin`: commands for authors and users of plugins.

#[cfg(feature = "lab")]
mod bench;
mod changes;
mod configmap;
mod crd;
mod diff;
mod digest;
mod inspect;
mod new;
mod precompile;
mod project;
mod pull;
mod push;
mod recording;
mod registry;
#[cfg(feature = "lab")]
mod scenarios;
mod test;
mod watch;

use crate::args::PluginCommand;
use std::process::ExitCode;

pub use new::{Language, NewKind};
pub(super) use recording::read;

pub(super) fn plugin(command: PluginCommand) -> anyhow::Result<ExitCode> {
    match command {
        PluginCommand::New(args) => new::new(&args),
        PluginCommand::Build(args) => project::build(&args),
        #[cfg(feature = "lab")]
        PluginCommand::Bench(args) => bench::bench(&args),
        PluginCommand::Inspect(args) => inspect::inspect(&args),
        PluginCommand::Configmap(args) => configmap::configmap(&args),
        PluginCommand::Rollback(args) => digest::rollback(&args.name),
        PluginCommand::Approve(args) => digest::approve(&args.name),
        PluginCommand::Test(args) => test::test(&args),
        PluginCommand::Diff(args) => diff::diff(&args),
        PluginCommand::Push(args) => push::push(&args),
        PluginCommand::Pull(args) => pull::pull(&args),
        PluginCommand::Precompile(args) => precompile::precompile(&args.folder),
    }
}
