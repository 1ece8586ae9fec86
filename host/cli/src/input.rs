//! Input of commands: components from files, and texts from files or standard input.

use anyhow::{Context, ensure};
use sandbox::{Plugins, source};
use std::{io::Read, path::Path};

/// Returns the bytes of the component's file, or of the built-in plugin of this name if no such file exists.
pub(super) fn component(file: &Path) -> anyhow::Result<Vec<u8>> {
    if let Some(wasm) = file.to_str().filter(|_| !file.exists()).and_then(Plugins::built_in) {
        return Ok(wasm.to_vec());
    }
    let name = file.display();
    let wasm = std::fs::read(file).with_context(|| format!("{name} cannot be read"))?;
    ensure!(source::is_component(&wasm), "{name} is no WebAssembly component; build it for the target wasm32-wasip2");
    Ok(wasm)
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
