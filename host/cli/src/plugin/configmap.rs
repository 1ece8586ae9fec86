//! `troupe plugin configmap`: a component as an immutable ConfigMap with the digest in its name.

use super::recording::replayer;
use crate::{args::ConfigmapArgs, input};
use anyhow::{Context, ensure};
use k8s_openapi::{ByteString, api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use sandbox::source;
use std::{collections::BTreeMap, process::ExitCode};
use troupe::out;

/// The largest component for a ConfigMap: the API server's limit less some room for the rest of the object.
pub(super) const ROOM: usize = (1 << 20) - 4096;

/// The largest object that `kubectl apply` takes without `--server-side`: it keeps a copy of the object in an
/// annotation, and the API server allows 256 KiB of annotations.
const ANNOTATIONS: usize = 256 << 10;

pub(super) fn configmap(args: &ConfigmapArgs) -> anyhow::Result<ExitCode> {
    let file = args.file.display();
    let wasm = input::component(&args.file)?;
    // No ConfigMap of a component that no host would serve.
    let plugin = replayer(&args.file, &wasm)?;
    let digest = plugin.digest();
    let bytes = source::compress(&wasm, source::Ratio::Small).context("it cannot be compressed")?;
    ensure!(
        bytes.len() <= ROOM,
        "{file} has {} bytes when compressed, and a ConfigMap has room for {ROOM}: build it with opt-level \"s\", LTO and \
         strip, or take it to a registry with `troupe plugin push`",
        bytes.len()
    );
    let stem = args.file.file_stem().map(|stem| stem.to_string_lossy().replace('_', "-")).unwrap_or_default();
    let name = args.name.clone().unwrap_or_else(|| format!("{stem}-{}", digest.short()));
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(args.namespace.clone()),
            annotations: Some(BTreeMap::from([(source::DIGEST_ANNOTATION.to_owned(), digest.to_string())])),
            ..ObjectMeta::default()
        },
        binary_data: Some(BTreeMap::from([(source::COMPRESSED_KEY.to_owned(), ByteString(bytes))])),
        // A ConfigMap whose name is given stays mutable.
        immutable: args.name.is_none().then_some(true),
        ..ConfigMap::default()
    };
    let yaml = serde_norway::to_string(&map)?;
    if yaml.len() > ANNOTATIONS {
        out::diagnostic("apply it with `kubectl apply --server-side -f -`: it is too large for a client-side apply");
    }
    out::text(yaml);
    Ok(ExitCode::SUCCESS)
}
