//! The commands of the binary `troupe`.
#![forbid(unsafe_code)]
// `println!` panics if the pipe is closed; `troupe::out` does not.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod args;
mod compile;
mod explain;
mod input;
mod plugin;
mod preflight;
mod rbac;
mod serve;
#[cfg(feature = "lab")]
mod simulate;

use crate::args::{Args, Command};
use anyhow::Context;
use std::process::ExitCode;
use troupe::{install::crds, out};

/// Runs the command.
///
/// # Errors
/// What the user has to change to make the command work.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Operator(args) => serve::serve(args),
        Command::Preflight(args) => preflight::preflight(args),
        #[cfg(feature = "lab")]
        Command::Demo(args) => {
            let patience = std::time::Duration::from_secs(args.patience);
            lab::demo::demo(&lab::demo::Demo { manifests: args.manifests, explain: args.explain, patience })
        }
        Command::Crds => {
            let documents: Result<Vec<_>, _> = crds::all().iter().map(crds::yaml).collect();
            out::text(documents.context("a CRD as YAML")?.join("---\n"));
            Ok(ExitCode::SUCCESS)
        }
        Command::Rbac(args) => rbac::rbac(&args),
        Command::Plugin { command } => plugin::plugin(command),
        #[cfg(feature = "lab")]
        Command::Sim(args) => simulate::simulate(&args),
        Command::Explain(args) => explain::explain(&args),
        Command::Compile(args) => Ok(compile::compile(&args)),
    }
}
