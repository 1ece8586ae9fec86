//! `troupe plugin`: commands for authors and users of plugins.

mod changes;
mod configmap;
mod diff;
mod digest;
mod inspect;
mod pull;
mod push;
mod recording;
mod registry;
#[cfg(feature = "lab")]
mod scenarios;
mod test;

use crate::args::PluginCommand;
use std::process::ExitCode;

pub(super) use recording::candidate;

pub(super) fn plugin(command: PluginCommand) -> anyhow::Result<ExitCode> {
    match command {
        PluginCommand::Inspect(args) => inspect::inspect(&args),
        PluginCommand::Configmap(args) => configmap::configmap(&args),
        PluginCommand::Rollback(args) => digest::rollback(&args.name),
        PluginCommand::Approve(args) => digest::approve(&args.name),
        PluginCommand::Test(args) => test::test(&args),
        PluginCommand::Diff(args) => diff::diff(&args),
        PluginCommand::Push(args) => push::push(&args),
        PluginCommand::Pull(args) => pull::pull(&args),
    }
}
