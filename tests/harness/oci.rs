//! Writes a folder as an OCI image archive with one layer, which `ctr images import` takes.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::process::output;

/// What the image runs when the pod does not say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Defaults<'a> {
    /// The program and its arguments.
    pub entrypoint: &'a [&'a str],
    /// `NAME=value` each; a `PATH` is always there.
    pub env: &'a [&'a str],
}

/// Writes `<work>/layout` and packs it as `archive`. `name` is the fully qualified reference, such as `docker.io/local/pause:1`.
pub(crate) fn write(name: &str, rootfs: &Path, defaults: Defaults<'_>, work: &Path, archive: &Path) -> Result<()> {
    let layout = work.join("layout");
    fs::create_dir_all(layout.join("blobs/sha256"))?;
    let layer_file = work.join("layer.tar");
    output(
        Command::new("tar")
            .args(["--numeric-owner", "--sort=name", "-cf"])
            .arg(&layer_file)
            .arg("-C")
            .arg(rootfs)
            .arg("."),
    )?;
    let layer = adopt(&layout, &layer_file, "application/vnd.oci.image.layer.v1.tar")?;

    let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let env: Vec<&str> = [path].into_iter().chain(defaults.env.iter().copied()).collect();
    let config = json!({
        "architecture": architecture(),
        "os": "linux",
        "config": {"Entrypoint": defaults.entrypoint, "Env": env},
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    });
    let config = add(&layout, work, &config, "application/vnd.oci.image.config.v1+json")?;
    let manifest_type = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({"schemaVersion": 2, "mediaType": manifest_type, "config": config, "layers": [layer]});
    let mut manifest = add(&layout, work, &manifest, manifest_type)?;
    manifest["annotations"] = json!({"io.containerd.image.name": name});
    fs::write(layout.join("index.json"), json!({"schemaVersion": 2, "manifests": [manifest]}).to_string())?;
    fs::write(layout.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
    output(Command::new("tar").arg("-cf").arg(archive).arg("-C").arg(&layout).arg("."))?;
    Ok(())
}

/// The descriptor of a document that becomes a blob.
fn add(layout: &Path, work: &Path, document: &Value, media_type: &str) -> Result<Value> {
    let file = work.join("document.json");
    fs::write(&file, document.to_string())?;
    adopt(layout, &file, media_type)
}

/// The descriptor of a file that is moved to the blobs.
fn adopt(layout: &Path, file: &Path, media_type: &str) -> Result<Value> {
    let digest = sha256(file)?;
    let size = fs::metadata(file)?.len();
    fs::rename(file, layout.join("blobs/sha256").join(&digest))?;
    Ok(json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": size}))
}

fn sha256(path: &Path) -> Result<String> {
    let mut file = File::open(path).with_context(|| format!("failed to open {}", path.display()))?;
    let mut hash = Sha256::new();
    io::copy(&mut file, &mut hash)?;
    Ok(format!("{:x}", hash.finalize()))
}

/// Go's name of this machine's architecture.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
