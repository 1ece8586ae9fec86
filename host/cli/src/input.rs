//! Input of commands: components from files, and texts from files or standard input.

use anyhow::anyhow;
use sandbox::{LARGEST_COMPONENT, Plugins, source};
use std::path::Path;
use troupe::files;

/// The largest text that a command reads: a recording has up to 32 MiB, and may be several of them.
const LARGEST_TEXT: usize = 256 << 20;

/// The largest file of settings, of grants or with a key.
const LARGEST_SMALL_TEXT: usize = 1 << 20;

/// Returns the bytes of the component's file, or of the built-in plugin of this name if no such file exists.
pub(super) fn component(file: &Path) -> anyhow::Result<Vec<u8>> {
    if let Some(wasm) = file.to_str().filter(|_| !file.exists()).and_then(Plugins::built_in) {
        return Ok(wasm.to_vec());
    }
    let wasm = files::bytes(file, LARGEST_COMPONENT)?;
    source::component(&wasm).map_err(|error| anyhow!("{} is {error}", file.display()))?;
    Ok(wasm)
}

/// Returns what a component in this file is called until it has described itself.
pub(super) fn label(file: &Path) -> String {
    file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns the text of a file, or of standard input if the path is `-`.
pub(super) fn text(file: &Path) -> anyhow::Result<String> {
    Ok(files::text(file, LARGEST_TEXT)?)
}

/// Returns the text of a file that people write by hand.
pub(super) fn small_text(file: &Path) -> anyhow::Result<String> {
    Ok(files::text(file, LARGEST_SMALL_TEXT)?)
}
