//! Input of commands: components from files, and texts from files or standard input.

use anyhow::{Context, ensure};
use sandbox::{Limits, Plugins, source};
use std::{fs::File, io::Read, path::Path};

/// Returns the bytes of the component's file, or of the built-in plugin of this name if no such file exists. Reads no
/// more of a file than the host accepts of a component.
pub(super) fn component(file: &Path) -> anyhow::Result<Vec<u8>> {
    if let Some(wasm) = file.to_str().filter(|_| !file.exists()).and_then(Plugins::built_in) {
        return Ok(wasm.to_vec());
    }
    let name = file.display();
    let limit = Limits::default().component;
    let opened = File::open(file).with_context(|| format!("{name} cannot be read"))?;
    let mut wasm = Vec::new();
    opened.take(limit as u64 + 1).read_to_end(&mut wasm).with_context(|| format!("{name} cannot be read"))?;
    ensure!(wasm.len() <= limit, "{name} has more than {limit} bytes, and the host accepts no larger component");
    ensure!(source::is_component(&wasm), "{name} is no WebAssembly component; build it for the target wasm32-wasip2");
    Ok(wasm)
}

/// Returns what a component in this file is called until it has described itself.
pub(super) fn label(file: &Path) -> String {
    file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns the text of a file, or of standard input if the path is `-`.
pub(super) fn text(file: &Path) -> anyhow::Result<String> {
    if file.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("standard input cannot be read")?;
        return Ok(text);
    }
    std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))
}
