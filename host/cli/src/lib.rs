//! The commands of the binary `troupe`.
#![forbid(unsafe_code)]
// `println!` panics if the pipe is closed; `troupe::out` does not.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod args;
mod child;
mod explain;
mod input;
mod job;
pub mod plugin;
mod preflight;
mod rbac;
mod runtime;
mod serve;
#[cfg(feature = "lab")]
mod simulate;
#[cfg(test)]
mod testkit;

use crate::args::{Args, Command, job::KubectlArgs};
use anyhow::Context;
use clap::Parser;
use install::crds;
use std::{path::Path, process::ExitCode};
use troupe::out;

/// Returns the command line, which depends on the name of the binary: `kubectl-troupe` has the commands for users of jobs
/// alone. Ends the process if it cannot be parsed.
#[must_use]
pub fn parse() -> Args {
    let program = std::env::args_os().next().unwrap_or_default();
    if Path::new(&program).file_stem().is_some_and(|name| name == "kubectl-troupe") {
        return Args { command: Command::Job(KubectlArgs::parse().job) };
    }
    Args::parse()
}

/// Runs the command.
///
/// # Errors
/// What the user has to change to make the command work.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Operator(args) => serve::serve(*args),
        Command::Job(args) => job::job(args),
        Command::Preflight(args) => preflight::preflight(args),
        Command::Check(args) => preflight::check(args),
        #[cfg(feature = "lab")]
        Command::Demo(args) => {
            let patience = std::time::Duration::from_secs(args.patience);
            let components = args.plugin.iter().map(|file| Ok((input::label(file), input::component(file)?)));
            let components = components.collect::<anyhow::Result<_>>()?;
            let (manifests, explain, web) = (args.manifests, args.explain, args.web);
            lab::demo::demo(&lab::demo::Demo { components, manifests, explain, web, patience })
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
        Command::Compile(args) => Ok(child::compile(&args)),
        Command::CheckSettings(args) => Ok(child::check_settings(&args)),
    }
}
