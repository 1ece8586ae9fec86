//! `troupe plugin pull`: fetches a component from a registry, as the host would.

use super::registry::credentials;
use crate::{args::PullArgs, input, runtime};
use anyhow::Context;
use registry::{self, PublicKey, PullOptions};
use sandbox::LARGEST_COMPONENT;
use std::{path::PathBuf, process::ExitCode};
use troupe::out;

pub(super) fn pull(args: &PullArgs) -> anyhow::Result<ExitCode> {
    let public_key = args.public_key.as_ref().map(|file| {
        let pem = input::small_text(file)?;
        PublicKey::parse(&pem).with_context(|| file.display().to_string())
    });
    let (credentials, insecure) = (credentials(&args.registry)?, args.registry.insecure);
    let public_key = public_key.transpose()?;
    let options = PullOptions { credentials, insecure, public_key, limit: LARGEST_COMPONENT, ..PullOptions::default() };
    let pulled = runtime::on_one_thread(Box::pin(registry::pull(&args.reference, &options)))??;

    let output = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.wasm", args.reference.stem())));
    std::fs::write(&output, &pulled.wasm).with_context(|| format!("{} cannot be written", output.display()))?;
    out::diagnostic(format_args!(
        "pulled {} bytes, digest {}, to {}",
        pulled.wasm.len(),
        pulled.digest,
        output.display()
    ));
    out::line(pulled.resolved);
    Ok(ExitCode::SUCCESS)
}
