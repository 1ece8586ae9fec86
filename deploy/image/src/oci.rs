//! Writes folders as an OCI image archive with one layer for each architecture, as `ctr images import`,
//! `kind load image-archive` and `skopeo copy oci-archive:` take it.

use crate::run::output;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeSet,
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

/// What an image contains on machines of one architecture.
#[derive(Clone, Copy, Debug)]
pub struct Platform<'a> {
    /// Go's name of the architecture: `amd64`.
    pub architecture: &'a str,
    /// The root file system.
    pub rootfs: &'a Path,
}

/// The digests by which a registry will know an image, `sha256:...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digests {
    /// That of the image: of its one manifest, or of the index of several.
    pub image: String,
    /// Those of the manifests, in the order of the platforms.
    pub manifests: Vec<String>,
}

/// How the files of a folder become a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// With the owners and times that they have, not compressed.
    AsItIs,
    /// All of root and of 1970, compressed: the same files give the same bytes.
    Reproducible,
}

const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Writes the image of these platforms to `archive`. `work` is an empty folder for parts of it.
///
/// # Errors
/// There is no platform or one twice, a file cannot be read or written, or GNU tar or gzip does not succeed.
pub fn write(
    image: Image<'_>,
    platforms: &[Platform<'_>],
    layer: Layer,
    work: &Path,
    archive: &Path,
) -> Result<Digests> {
    let layout = work.join("layout");
    fs::create_dir_all(layout.join("blobs/sha256"))?;
    let architectures: BTreeSet<_> = platforms.iter().map(|platform| platform.architecture).collect();
    ensure!(architectures.len() == platforms.len(), "the image would have two programs for one architecture");
    let manifests = platforms.iter().map(|platform| manifest(image, *platform, layer, work, &layout));
    let manifests = manifests.collect::<Result<Vec<_>>>()?;
    let digest = |descriptor: &Value| descriptor["digest"].as_str().unwrap_or_default().to_owned();
    let digests: Vec<_> = manifests.iter().map(digest).collect();
    // Tools take one entry for the image: an image of several platforms is an index in the layout's index.
    let mut entry = match &manifests[..] {
        [] => bail!("the image would have no program"),
        [one] => one.clone(),
        several => {
            let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": several });
            add(&layout, work, &index, INDEX)?
        }
    };
    let tag = image.name.rsplit_once(':').map_or("latest", |(_, tag)| tag);
    entry["annotations"] = json!({ "io.containerd.image.name": image.name, "org.opencontainers.image.ref.name": tag });
    let digests = Digests { image: digest(&entry), manifests: digests };
    fs::write(layout.join("index.json"), json!({ "schemaVersion": 2, "manifests": [entry] }).to_string())?;
    fs::write(layout.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
    tar(&layout, &SAME_BYTES, archive)?;
    Ok(digests)
}

/// Returns the descriptor of the manifest for one platform.
fn manifest(image: Image<'_>, platform: Platform<'_>, layer: Layer, work: &Path, layout: &Path) -> Result<Value> {
    let (diff, layer) = pack(platform.rootfs, layer, work, layout)?;
    let env: Vec<&str> = [PATH].into_iter().chain(image.env.iter().copied()).collect();
    let labels: serde_json::Map<_, _> = image.labels.iter().map(|(key, value)| ((*key).into(), json!(value))).collect();
    let config = json!({
        "architecture": platform.architecture,
        "os": "linux",
        "config": { "Entrypoint": image.entrypoint, "Env": env, "User": image.user, "Labels": labels },
        "rootfs": { "type": "layers", "diff_ids": [diff] },
    });
    let config = add(layout, work, &config, "application/vnd.oci.image.config.v1+json")?;
    let media_type = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({ "schemaVersion": 2, "mediaType": media_type, "config": config, "layers": [layer] });
    let mut manifest = add(layout, work, &manifest, media_type)?;
    manifest["platform"] = json!({ "architecture": platform.architecture, "os": "linux" });
    Ok(manifest)
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

/// Returns the SHA-256 of a file in hexadecimal digits.
pub(crate) fn sha256(path: &Path) -> Result<String> {
    let mut file = File::open(path).with_context(|| format!("failed to open {}", path.display()))?;
    let mut hash = Sha256::new();
    io::copy(&mut file, &mut hash)?;
    Ok(format!("{:x}", hash.finalize()))
}
