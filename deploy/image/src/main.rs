//! `cargo run -p image`: builds the program and writes the image.
#![forbid(unsafe_code)]

use anyhow::{Context, Result};
use clap::Parser;
use image::{build, oci, troupe};
use std::{fs, path::PathBuf};

/// Build Troupe for release and write its container image as an OCI archive. Needs no container runtime.
#[derive(Debug, Parser)]
struct Args {
    /// The image's reference: host, path and tag.
    #[arg(long, default_value = troupe::NAME)]
    name: String,
    /// The archive; by default target/image/troupe-VERSION-ARCHITECTURE.tar.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Use this program instead of building one. It must need no shared library.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    troupe::check(&args.name)?;
    let program = args.program.map_or_else(build::program, Ok)?;
    let default = format!("target/image/troupe-{}-{}.tar", env!("CARGO_PKG_VERSION"), oci::architecture());
    let archive = args.output.unwrap_or_else(|| default.into());
    if let Some(folder) = archive.parent() {
        fs::create_dir_all(folder).with_context(|| format!("failed to create {}", folder.display()))?;
    }
    let digest = troupe::write(&program, &[], &args.name, &archive)?;
    let megabytes = |file: &PathBuf| Ok::<_, anyhow::Error>(fs::metadata(file)?.len() as f64 / 1e6);
    let (size, of_program) = (megabytes(&archive)?, megabytes(&program)?);
    println!("{}: {} {digest}, {size:.1} MB (program {of_program:.1} MB)", archive.display(), args.name);
    Ok(())
}
