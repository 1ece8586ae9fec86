//! A component into a registry, as the Wasm OCI artifact layout has it.

use super::{
    config::config,
    credentials::DockerConfig,
    digest::Digest,
    error::RegistryError,
    manifest::{Descriptor, MANIFEST, Manifest, WASM, WASM_CONFIG},
    pull::patiently,
    reference::{Reference, Version},
    repository::Repository,
    transport::Speech,
};
use bytes::Bytes;
use decide::plan::Descriptor as Description;
use std::{collections::BTreeMap, time::Duration};

/// How to push.
#[derive(Debug, Clone)]
pub struct PushOptions {
    /// What the registry is told if it asks who is asking.
    pub credentials: DockerConfig,
    /// The registry is asked by plain HTTP.
    pub insecure: bool,
    /// All of it takes no longer than this.
    pub patience: Duration,
}

impl Default for PushOptions {
    /// By TLS, without credentials, within five minutes.
    fn default() -> Self {
        Self { credentials: DockerConfig::default(), insecure: false, patience: Duration::from_secs(300) }
    }
}

/// Why a component was not pushed.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The registry does not take it.
    #[error("failed to push {reference}")]
    Registry {
        /// Where to.
        reference: String,
        /// Why.
        source: RegistryError,
    },
    /// The reference names what is to be, by its digest.
    #[error("{reference} has a digest, which follows from what is pushed: name a tag")]
    Digest {
        /// Where to.
        reference: String,
    },
    /// It is no component.
    #[error("the component is malformed")]
    Malformed(#[source] wasmparser::BinaryReaderError),
}

/// Gives the component the reference's tag, and returns what it can be pulled by for ever: `registry/repository@sha256:...`.
/// The same component and description make the same artifact.
///
/// # Errors
/// The registry does not take it, the reference has no tag, or it is no component.
pub async fn push(
    reference: &Reference,
    wasm: &[u8],
    description: &Description,
    options: &PushOptions,
) -> Result<String, PushError> {
    let failed = |source| PushError::Registry { reference: reference.to_string(), source };
    let Version::Tag(tag) = reference.version() else {
        return Err(PushError::Digest { reference: reference.to_string() });
    };
    let config = config(wasm).map_err(PushError::Malformed)?;
    let mut repository =
        Repository::new(reference, Speech::new(options.insecure), &options.credentials).map_err(failed)?;
    let upload = async {
        let layer = repository.put_blob(Bytes::copy_from_slice(wasm)).await?;
        let config = repository.put_blob(config.to_string().into()).await?;
        let manifest = Bytes::from(manifest(config, layer, description));
        let digest = Digest::of(&manifest);
        repository.put_manifest(tag, MANIFEST, manifest).await?;
        Ok(reference.at(&digest).to_string())
    };
    patiently(options.patience, upload).await.and_then(|done| done).map_err(failed)
}

fn manifest(config: Descriptor, layer: Descriptor, description: &Description) -> Vec<u8> {
    let title = |name: &str| BTreeMap::from([("org.opencontainers.image.title".to_owned(), name.to_owned())]);
    let manifest = Manifest {
        schema_version: 2,
        media_type: MANIFEST.to_owned(),
        config: Descriptor { media_type: WASM_CONFIG.to_owned(), ..config },
        // Tools that unpack an artifact give the layer this file's name.
        layers: vec![Descriptor { media_type: WASM.to_owned(), annotations: title("plugin.wasm"), ..layer }],
        annotations: annotations(description),
    };
    serde_json::to_vec(&manifest).expect("texts, numbers and maps of texts are JSON")
}

/// What can be read of a plugin without fetching it.
fn annotations(description: &Description) -> BTreeMap<String, String> {
    let kinds: Vec<_> =
        description.kinds.iter().map(|job| format!("{}/{} {}", job.group, job.version, job.kind)).collect();
    let pairs = [
        ("org.opencontainers.image.title", description.name.clone()),
        ("org.opencontainers.image.version", description.version.clone()),
        ("dev.troupe.plugin.serves", kinds.join(", ")),
    ];
    pairs.map(|(key, value)| (key.to_owned(), value)).into()
}
