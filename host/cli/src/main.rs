//! The `troupe` binary: installs the TLS provider, reads the command line, runs the command.
#![forbid(unsafe_code)]

use mimalloc::MiMalloc;
use std::process::ExitCode;
use troupe::out;
use troupe_cli::{parse, run};

/// Objects, JSON and the input of plugins are many small allocations, for which the system's allocator is slow.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        out::diagnostic("troupe: another TLS provider is installed already");
        return ExitCode::FAILURE;
    }
    match run(parse()) {
        Ok(code) => code,
        Err(error) => {
            out::diagnostic(format_args!("troupe: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
