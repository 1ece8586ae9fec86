//! `troupe plugin push`: pushes a component's file to a registry.

use super::{recording::replayer, registry::credentials};
use crate::{args::PushArgs, input, runtime};
use registry::{self, PushOptions};
use std::process::ExitCode;
use troupe::out;

pub(super) fn push(args: &PushArgs) -> anyhow::Result<ExitCode> {
    let wasm = input::component(&args.file)?;
    // Refuse to publish a component that no host would serve.
    let plugin = replayer(&args.file, &wasm)?;
    let (description, digest) = (plugin.descriptor(), plugin.digest());

    let (credentials, insecure) = (credentials(&args.registry)?, args.registry.insecure);
    let options = PushOptions { credentials, insecure, ..PushOptions::default() };
    let resolved = runtime::on_one_thread(Box::pin(registry::push(&args.reference, &wasm, description, &options)))??;
    out::diagnostic(format_args!(
        "pushed {} {}, digest {digest}, as {}",
        description.name, description.version, args.reference
    ));
    out::line(&resolved);
    Ok(ExitCode::SUCCESS)
}
