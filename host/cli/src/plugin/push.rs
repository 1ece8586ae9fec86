//! `troupe plugin push`: pushes a component's file to a registry.

use super::registry::{credentials, run};
use crate::args::PushArgs;
use anyhow::{Context, bail};
use registry::{self, PushOptions};
use sandbox::{Executor, Options, Plugins};
use std::process::ExitCode;
use troupe::out;

pub(super) fn push(args: &PushArgs) -> anyhow::Result<ExitCode> {
    let file = args.file.display().to_string();
    let wasm = std::fs::read(&args.file).with_context(|| format!("{file} cannot be read"))?;
    // Refuse to publish a component that no host would serve.
    let plugins = Plugins::empty(Options::new(Executor::Inline))?;
    let digest =
        plugins.load(&file, &wasm).with_context(|| format!("{file} is no plugin that the host would serve"))?;
    let frameworks = plugins.frameworks();
    let [(description, _)] = frameworks.as_slice() else { bail!("{file} does not say what it is") };

    let (credentials, insecure) = (credentials(&args.registry)?, args.registry.insecure);
    let options = PushOptions { credentials, insecure, ..PushOptions::default() };
    let resolved = run(registry::push(&args.reference, &wasm, description, &options))??;
    out::diagnostic(format_args!(
        "pushed {} {}, digest {digest}, as {}",
        description.name, description.version, args.reference
    ));
    out::line(&resolved);
    Ok(ExitCode::SUCCESS)
}
