//! `troupe compile`: the child process that the host starts to compile a component from an untrusted source.

use crate::args::CompileArgs;
use sandbox::compile_as_child;
use std::process::ExitCode;
use troupe::out;

pub(super) fn compile(args: &CompileArgs) -> ExitCode {
    match compile_as_child(args.cpu_seconds, args.memory_bytes) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            out::diagnostic(format_args!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}
