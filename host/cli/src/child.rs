//! `troupe compile` and `troupe check-settings`: the child processes that the host starts to compile a component from an
//! untrusted source, and to check settings by its schema.

use crate::args::ChildArgs;
use sandbox::{check_settings_as_child, compile_as_child};
use std::{fmt::Display, process::ExitCode};
use troupe::out;

pub(super) fn compile(args: &ChildArgs) -> ExitCode {
    ended(compile_as_child(args.cpu_seconds, args.memory_bytes))
}

pub(super) fn check_settings(args: &ChildArgs) -> ExitCode {
    ended(check_settings_as_child(args.cpu_seconds, args.memory_bytes))
}

fn ended(result: Result<(), impl Display>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            out::diagnostic(format_args!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}
