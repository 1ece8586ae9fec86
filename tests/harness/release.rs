//! The operator's image.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use image::{
    precompiled, program,
    troupe::{self, Program},
};

use crate::packages;
use crate::process::output;
use crate::run_dir::{cluster_dir, locked, workspace};

/// The archive that `cargo run -p image` writes, which takes some minutes.
pub fn image() -> Result<PathBuf> {
    packages::have(packages::MUSL)?;
    let mut cargo = Command::new("cargo");
    cargo.args(["run", "--locked", "-p", "image"]).current_dir(workspace());
    // What cargo tells this test of itself would look to build scripts that watch it like a change, and the next
    // `cargo test` would build their crates again.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let own = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "OUT_DIR"];
        if own.iter().any(|start| text.starts_with(start)) {
            cargo.env_remove(&name);
        }
    }
    output(&mut cargo)?;
    let name = format!("troupe-{}-{}.tar", env!("CARGO_PKG_VERSION"), program::architecture());
    Ok(workspace().join("target/image").join(name))
}

/// An archive with this program, which was built for this machine, and the shared libraries that it is linked with.
pub fn image_of(program: &Path) -> Result<PathBuf> {
    packages::have(packages::IMAGES)?;
    let images = cluster_dir().join("images");
    let _lock = locked(&images.join(".troupe.lock"))?;
    let (stripped, archive) = (images.join(".troupe"), images.join("troupe-of-tests.tar"));
    output(Command::new("strip").arg("-o").arg(&stripped).arg(program))?;
    let libraries = output(Command::new("ldd").arg(program))?;
    // `libc.so.6 => /lib/libc.so.6 (0x7f00)`, or the loader alone.
    let files = libraries.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    let libraries = files.map(|file| (PathBuf::from(file), PathBuf::from(file)));
    let others = libraries.chain(precompiled::files(program, &images.join(".precompiled"))?).collect();
    let program = Program { architecture: program::architecture().into(), file: stripped, others };
    troupe::write(&[program], troupe::NAME, &archive).context("failed to write the image")?;
    Ok(archive)
}
