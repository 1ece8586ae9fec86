//! Writes a folder as an OCI image archive with one layer, as `ctr images import`, `kind load image-archive` and
//! `skopeo copy oci-archive:` take it.

use crate::run::output;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{
    fs::{self, File},
    io,
    path::Path,
    process::Command,
};

const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Options of GNU tar for the same bytes from the same files, whoever packs them and whenever.
const SAME_BYTES: [&str; 5] = ["--sort=name", "--format=gnu", "--mtime=@0", "--owner=0", "--group=0"];

/// What an image is called, and what it runs where the pod does not say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Image<'a> {
    /// The fully qualified reference, such as `docker.io/local/pause:1`.
    pub name: &'a str,
    /// The program and its arguments.
    pub entrypoint: &'a [&'a str],
    /// `NAME=value` each; a `PATH` is always there.
    pub env: &'a [&'a str],
    /// The user and group as numbers, `65532:65532`; root if it is empty.
    pub user: &'a str,
    /// What tools show of the image, by the keys `org.opencontainers.image.*`.
    pub labels: &'a [(&'a str, &'a str)],
}

/// How the files of a folder become a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// With the owners and times that they have, not compressed.
    AsItIs,
    /// All of root and of 1970, compressed: the same files give the same bytes.
    Reproducible,
}

/// Writes the image of the root file system `rootfs` to `archive`. `work` is an empty folder for parts of it.
/// Returns the digest of the manifest, `sha256:...`, by which a registry will know the image.
///
/// # Errors
/// A file cannot be read or written, or GNU tar or gzip does not succeed.
pub fn write(image: Image<'_>, rootfs: &Path, layer: Layer, work: &Path, archive: &Path) -> Result<String> {
    let layout = work.join("layout");
    fs::create_dir_all(layout.join("blobs/sha256"))?;
    let (diff, layer) = pack(rootfs, layer, work, &layout)?;
    let env: Vec<&str> = [PATH].into_iter().chain(image.env.iter().copied()).collect();
    let labels: serde_json::Map<_, _> = image.labels.iter().map(|(key, value)| ((*key).into(), json!(value))).collect();
    let config = json!({
        "architecture": architecture(),
        "os": "linux",
        "config": { "Entrypoint": image.entrypoint, "Env": env, "User": image.user, "Labels": labels },
        "rootfs": { "type": "layers", "diff_ids": [diff] },
    });
    let config = add(&layout, work, &config, "application/vnd.oci.image.config.v1+json")?;
    let media_type = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({ "schemaVersion": 2, "mediaType": media_type, "config": config, "layers": [layer] });
    let mut manifest = add(&layout, work, &manifest, media_type)?;
    let digest = manifest["digest"].as_str().unwrap_or_default().to_owned();
    let tag = image.name.rsplit_once(':').map_or("latest", |(_, tag)| tag);
    manifest["platform"] = json!({ "architecture": architecture(), "os": "linux" });
    manifest["annotations"] =
        json!({ "io.containerd.image.name": image.name, "org.opencontainers.image.ref.name": tag });
    fs::write(layout.join("index.json"), json!({ "schemaVersion": 2, "manifests": [manifest] }).to_string())?;
    fs::write(layout.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
    tar(&layout, &SAME_BYTES, archive)?;
    Ok(digest)
}

/// Returns the digest of the layer's tar file, and the descriptor of the blob that it becomes.
fn pack(rootfs: &Path, layer: Layer, work: &Path, layout: &Path) -> Result<(String, Value)> {
    let file = work.join("layer.tar");
    let options: &[&str] = if layer == Layer::Reproducible { &SAME_BYTES } else { &["--sort=name"] };
    tar(rootfs, options, &file)?;
    let diff = format!("sha256:{}", sha256(&file)?);
    let media_type = "application/vnd.oci.image.layer.v1.tar";
    if layer == Layer::AsItIs {
        return Ok((diff, adopt(layout, &file, media_type)?));
    }
    output(Command::new("gzip").args(["--no-name", "--best", "--force"]).arg(&file))?;
    Ok((diff, adopt(layout, &work.join("layer.tar.gz"), &format!("{media_type}+gzip"))?))
}

fn tar(folder: &Path, options: &[&str], file: &Path) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.arg("--numeric-owner").args(options).arg("-cf").arg(file).arg("-C").arg(folder).arg(".");
    output(&mut tar).map(drop)
}

/// Returns the descriptor of a document that becomes a blob.
fn add(layout: &Path, work: &Path, document: &Value, media_type: &str) -> Result<Value> {
    let file = work.join("document.json");
    fs::write(&file, document.to_string())?;
    adopt(layout, &file, media_type)
}

/// Returns the descriptor of a file that is moved to the blobs.
fn adopt(layout: &Path, file: &Path, media_type: &str) -> Result<Value> {
    let digest = sha256(file)?;
    let size = fs::metadata(file)?.len();
    fs::rename(file, layout.join("blobs/sha256").join(&digest))?;
    Ok(json!({ "mediaType": media_type, "digest": format!("sha256:{digest}"), "size": size }))
}

fn sha256(path: &Path) -> Result<String> {
    let mut file = File::open(path).with_context(|| format!("failed to open {}", path.display()))?;
    let mut hash = Sha256::new();
    io::copy(&mut file, &mut hash)?;
    Ok(format!("{:x}", hash.finalize()))
}

/// Returns Go's name of this machine's architecture.
#[must_use]
pub fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
