//! A project of C: clang compiles it with the bindings that are made here of the contract, and what it links is made a
//! component here too.

use super::{COMPONENT, module, run};
use anyhow::Context;
use std::{fs, path::Path, process::Command};

/// Where the bindings are.
const BINDINGS: &str = "bindings";

/// What clang links.
const MODULE: &str = "target/module.wasm";

const TO_INSTALL: &str = "install clang, lld, wasi-libc and libclang-rt-dev-wasm32 (packages of Debian and Ubuntu), or put a clang of wasi-sdk on PATH";

/// Builds the component of the project in this folder.
pub(super) fn build(folder: &Path) -> anyhow::Result<()> {
    module::bindings(folder, BINDINGS, &mut *wit_bindgen_c::Opts::default().build())?;
    let sources: Vec<String> = sources(folder)?;
    let mut arguments = vec![
        "--target=wasm32-wasi",
        "-mexec-model=reactor",
        "-O2",
        "-Wall",
        "-o",
        MODULE,
        "bindings/plugin.c",
        "bindings/plugin_component_type.o",
    ];
    arguments.extend(sources.iter().map(String::as_str));
    run(folder, Command::new("clang").args(&arguments), TO_INSTALL)?;
    let module = fs::read(folder.join(MODULE)).with_context(|| format!("{MODULE} cannot be read"))?;
    let component = module::component(&module).context("the module that clang linked is no plugin")?;
    fs::write(folder.join(COMPONENT), component).with_context(|| format!("{COMPONENT} cannot be written"))
}

/// The files of C in the folder.
fn sources(folder: &Path) -> anyhow::Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let files = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut sources: Vec<_> = files.filter(|file| Path::new(file).extension().is_some_and(|end| end == "c")).collect();
    sources.sort();
    Ok(sources)
}
