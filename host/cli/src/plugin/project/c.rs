//! A project of C: clang compiles it with the bindings that are made here of the contract, and what it links is made a
//! component here too.

use super::{COMPONENT, WIT, run};
use anyhow::{Context, ensure};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wit_bindgen_core::{Files, wit_parser::Resolve};
use wit_component::ComponentEncoder;

/// Where the bindings are.
const BINDINGS: &str = "bindings";

/// What clang links.
const MODULE: &str = "target/module.wasm";

const TO_INSTALL: &str = "install clang, lld, wasi-libc and libclang-rt-dev-wasm32 (packages of Debian and Ubuntu), or put a clang of wasi-sdk on PATH";

/// Builds the component of the project in this folder.
pub(super) fn build(folder: &Path) -> anyhow::Result<()> {
    bind(folder)?;
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
    // `printf` calls an older WASI, which the adapter turns into the one that the host offers.
    let encoded = || -> anyhow::Result<Vec<u8>> {
        let name = WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME;
        let mut encoder = ComponentEncoder::default();
        encoder.validate(true).module(&module)?.adapter(name, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)?;
        encoder.encode()
    };
    let component = encoded().context("the module that clang linked is no plugin")?;
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

/// Makes the bindings of the contract in the folder.
fn bind(folder: &Path) -> anyhow::Result<()> {
    let wit = folder.join(WIT);
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(&wit).with_context(|| format!("the contract in {}", wit.display()))?;
    let world = resolve.select_world(&[package], Some("plugin"))?;
    let mut files = Files::default();
    wit_bindgen_c::Opts::default().build().generate(&mut resolve, world, &mut files)?;
    let bindings: PathBuf = folder.join(BINDINGS);
    fs::create_dir_all(&bindings).with_context(|| format!("{} cannot be made", bindings.display()))?;
    for (name, text) in files.iter() {
        ensure!(!name.contains('/'), "a file of the bindings is called {name}");
        let file = bindings.join(name);
        // Not written again: what is made of it stays as it is.
        if fs::read(&file).ok().as_deref() != Some(text) {
            fs::write(&file, text).with_context(|| format!("{} cannot be written", file.display()))?;
        }
    }
    Ok(())
}
