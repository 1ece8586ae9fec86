//! The commands.

mod compile;
mod demo;
mod explain;
mod input;
mod manifest;
mod plugin;
mod preflight;
mod rbac;
mod serve;
mod simulate;
mod timeline;

use crate::{
    args::{Args, Command},
    crds, out,
};
use anyhow::Context;
use std::process::ExitCode;

/// Runs the command.
///
/// # Errors
/// What a person has to know to make it work.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Operator(args) => serve::serve(args),
        Command::Preflight(args) => preflight::preflight(args),
        Command::Demo(args) => demo::demo(&args),
        Command::Crds => {
            let documents: Result<Vec<_>, _> = crds::all().iter().map(crds::yaml).collect();
            out::text(documents.context("a CRD as YAML")?.join("---\n"));
            Ok(ExitCode::SUCCESS)
        }
        Command::Rbac(args) => rbac::rbac(&args),
        Command::Plugin { command } => plugin::plugin(command),
        Command::Sim(args) => simulate::simulate(&args),
        Command::Explain(args) => explain::explain(&args),
        Command::Compile(args) => Ok(compile::compile(&args)),
    }
}
