//! A project of Go: go builds a module with the bindings that are made here of the contract, and the module is made a
//! component here too.

use super::{COMPONENT, module, run};
use anyhow::Context;
use std::{fs, path::Path, process::Command};
use wit_bindgen_go::Opts;

/// Where the bindings are, and the package `main`.
const BINDINGS: &str = "bindings";

/// What says what the project's own package is called.
const MANIFEST: &str = "go.mod";

/// What go builds.
const MODULE: &str = "target/module.wasm";

const TO_INSTALL: &str = "install Go 1.25 or later from https://go.dev/dl";

/// Builds the component of the project in this folder.
pub(super) fn build(folder: &Path) -> anyhow::Result<()> {
    let manifest = fs::read_to_string(folder.join(MANIFEST)).with_context(|| format!("{MANIFEST} cannot be read"))?;
    let package = package(&manifest).with_context(|| format!("{MANIFEST} has no line `module NAME`"))?;
    let generated = Opts { pkg_name: Some(format!("{package}/{BINDINGS}")), ..Opts::default() };
    let (resolve, world) = module::bindings(folder, BINDINGS, &mut *generated.build())?;
    for (file, text) in glue(package) {
        module::write(&folder.join(BINDINGS).join(file), text.as_bytes())?;
    }
    let mut go = Command::new("go");
    go.envs([("GOOS", "wasip1"), ("GOARCH", "wasm"), ("CGO_ENABLED", "0")]);
    // checklinkname: what the bindings share asks Go's runtime for memory before it runs.
    go.args(["build", "-buildmode=c-shared", "-buildvcs=false", "-trimpath", "-ldflags=-s -w -checklinkname=0"]);
    run(folder, go.args(["-o", MODULE, "./bindings"]), TO_INSTALL)?;
    let mut module = fs::read(folder.join(MODULE)).with_context(|| format!("{MODULE} cannot be read"))?;
    module::embed(&mut module, &resolve, world)?;
    let component = module::component(&module).context("the module that go built is no plugin")?;
    fs::write(folder.join(COMPONENT), component).with_context(|| format!("{COMPONENT} cannot be written"))
}

/// Returns the path of the project's own package.
fn package(manifest: &str) -> Option<&str> {
    manifest.lines().find_map(|line| line.trim().strip_prefix("module ")).map(|path| path.trim().trim_matches('"'))
}

/// The files between the bindings and the project's own package: they call its functions, so that its folder and its name
/// are its own.
fn glue(package: &str) -> [(&'static str, String); 2] {
    let of = |text: &str| text.replace("PACKAGE", package);
    [
        ("main.go", of(include_str!("go/main.go.txt"))),
        ("export_troupe_framework_framework/glue.go", of(include_str!("go/glue.go.txt"))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_is_named_by_the_manifest() {
        assert_eq!(package("// One.\nmodule example.org/echo\n\ngo 1.25\n"), Some("example.org/echo"));
        assert_eq!(package("module \"example.org/echo\"\n"), Some("example.org/echo"));
        assert_eq!(package("go 1.25\n"), None);
    }
}
