//! What languages share that are compiled to a core module: bindings of the contract, and the component of the module.

use super::WIT;
use anyhow::{Context, ensure};
use std::{
    fs,
    path::{Component, Path},
};
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wit_bindgen_core::{
    Files, WorldGenerator,
    wit_parser::{Resolve, WorldId},
};
use wit_component::{ComponentEncoder, StringEncoding};

/// Makes the bindings of the contract in a folder of the project, and returns the contract.
pub(super) fn bindings(
    folder: &Path,
    bindings: &str,
    generator: &mut dyn WorldGenerator,
) -> anyhow::Result<(Resolve, WorldId)> {
    let wit = folder.join(WIT);
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(&wit).with_context(|| format!("the contract in {}", wit.display()))?;
    let world = resolve.select_world(&[package], Some("plugin"))?;
    let mut files = Files::default();
    generator.generate(&mut resolve, world, &mut files)?;
    for (name, text) in files.iter() {
        let is_inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        ensure!(is_inside, "a file of the bindings is called {name}");
        write(&folder.join(bindings).join(name), text)?;
    }
    Ok((resolve, world))
}

/// Writes a file, unless it has this text: what is made of it stays as it is.
pub(super) fn write(file: &Path, text: &[u8]) -> anyhow::Result<()> {
    if fs::read(file).ok().as_deref() == Some(text) {
        return Ok(());
    }
    let written = file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(file, text));
    written.with_context(|| format!("{} cannot be written", file.display()))
}

/// Puts the types of the contract into a module whose compiler does not.
pub(super) fn embed(module: &mut Vec<u8>, resolve: &Resolve, world: WorldId) -> anyhow::Result<()> {
    wit_component::embed_component_metadata(module, resolve, world, StringEncoding::UTF8)
}

/// Makes a component of a module that has the types of the contract.
pub(super) fn component(module: &[u8]) -> anyhow::Result<Vec<u8>> {
    // A standard library calls an older WASI, which the adapter turns into the one that the host offers.
    let name = WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME;
    let mut encoder = ComponentEncoder::default();
    encoder.validate(true).module(module)?.adapter(name, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)?;
    encoder.encode()
}
