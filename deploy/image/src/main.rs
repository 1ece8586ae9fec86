//! `cargo run -p image`: builds the program, and writes the image with its bill of materials and its signature.
#![forbid(unsafe_code)]

use anyhow::{Context, Result, ensure};
use clap::Parser;
use image::{
    build, precompiled, program,
    sbom::{self, Subject},
    sign::Key,
    troupe::{self, Program},
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Build Troupe for release and write its container image as an OCI archive, with a bill of materials (CycloneDX) of
/// each architecture beside it. Needs no container runtime.
#[derive(Debug, Parser)]
struct Args {
    /// The image's reference: host, path and tag.
    #[arg(long, default_value = troupe::NAME)]
    name: String,
    /// The archive; by default target/image/troupe-VERSION-ARCHITECTURE.tar, of several architectures
    /// troupe-VERSION.tar.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The architectures to build for: amd64, arm64. Another than this machine's needs cargo-zigbuild and ziglang.
    #[arg(long, value_name = "ARCHITECTURES", value_delimiter = ',', default_value = program::architecture())]
    arch: Vec<String>,
    /// Use this program instead of building one; once for each architecture. It must need no shared library. There is
    /// no bill of materials then, and it compiles its plugins when it starts.
    #[arg(long, value_name = "FILE", conflicts_with = "arch")]
    program: Vec<PathBuf>,
    /// A private key of ECDSA P-256 in PEM without a password. Writes `ARCHIVE.payload.json` and `ARCHIVE.sig`, which
    /// `cosign attach signature` puts beside the image in a registry.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    troupe::check(&args.name)?;
    // Before minutes of building.
    let key = args.key.as_deref().map(Key::read).transpose()?;
    let is_built = args.program.is_empty();
    let programs = if is_built { built(&args.arch) } else { given(&args.program) }?;
    let suffix = match &programs[..] {
        [one] => format!("-{}", one.architecture),
        _ => String::new(),
    };
    let default = format!("target/image/troupe-{}{suffix}.tar", env!("CARGO_PKG_VERSION"));
    let archive = args.output.unwrap_or_else(|| default.into());
    if let Some(folder) = archive.parent() {
        fs::create_dir_all(folder).with_context(|| format!("failed to create {}", folder.display()))?;
    }
    let digests = troupe::write(&programs, &args.name, &archive)?;
    let megabytes = |file: &Path| Ok::<_, anyhow::Error>(fs::metadata(file)?.len() as f64 / 1e6);
    println!("{}: {} {}, {:.1} MB", archive.display(), args.name, digests.image, megabytes(&archive)?);
    for (program, digest) in programs.iter().zip(&digests.manifests) {
        println!("  {}: {digest}, program {:.1} MB", program.architecture, megabytes(&program.file)?);
        if is_built {
            let bill = bill(program, &args.name, digest)?;
            write(&beside(&archive, &format!("{}.cdx.json", program.architecture)), &bill)?;
        }
    }
    if let Some(key) = key {
        let signed = key.sign(&args.name, &digests.image);
        write(&beside(&archive, "payload.json"), &signed.payload)?;
        write(&beside(&archive, "sig"), &signed.signature)?;
    }
    Ok(())
}

fn built(architectures: &[String]) -> Result<Vec<Program>> {
    let program = |architecture: &String| {
        let file = build::program(architecture)?;
        let is_for = program::architecture_of(&file)?;
        ensure!(is_for == architecture, "{} is for {is_for}, not for {architecture}", file.display());
        // A program for another architecture does not run here; it compiles its plugins when it starts.
        let is_for_this_machine = architecture == program::architecture();
        let folder = file.with_file_name("precompiled");
        let others = if is_for_this_machine { precompiled::files(&file, &folder)? } else { vec![] };
        Ok(Program { architecture: architecture.clone(), file, others })
    };
    architectures.iter().map(program).collect()
}

fn given(files: &[PathBuf]) -> Result<Vec<Program>> {
    let program = |file: &PathBuf| {
        let architecture = program::architecture_of(file)?.to_owned();
        Ok(Program { architecture, file: file.clone(), others: vec![] })
    };
    files.iter().map(program).collect()
}

fn bill(program: &Program, name: &str, digest: &str) -> Result<String> {
    let files = [(troupe::CERTIFICATES, troupe::authorities()?)];
    let Program { architecture, file, .. } = program;
    let subject = Subject { name, digest, architecture, program: file, files: &files };
    sbom::bill(&build::workspace()?, &program::target(architecture)?, subject)
}

/// `ARCHIVE.END`.
fn beside(archive: &Path, end: &str) -> PathBuf {
    let mut name = archive.as_os_str().to_owned();
    name.push(format!(".{end}"));
    name.into()
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("failed to write {}", file.display()))?;
    println!("{}", file.display());
    Ok(())
}
