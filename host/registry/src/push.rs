//! Pushes a component to a registry, in the Wasm OCI artifact layout.

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

/// Options of [`push`].
#[derive(Debug, Clone)]
pub struct PushOptions {
    /// Credentials, in case the registry requires them.
    pub credentials: DockerConfig,
    /// Whether plain HTTP is used instead of TLS.
    pub insecure: bool,
    /// Timeout of the whole push.
    pub patience: Duration,
}

impl Default for PushOptions {
    /// Returns options with TLS, without credentials, with a timeout of five minutes.
    fn default() -> Self {
        Self { credentials: DockerConfig::default(), insecure: false, patience: Duration::from_secs(300) }
    }
}

/// The reason why a component was not pushed.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The registry cannot be reached or refuses the component.
    #[error("failed to push {reference}")]
    Registry {
        /// The target.
        reference: String,
        /// The cause.
        source: RegistryError,
    },
    /// The reference has a digest instead of a tag.
    #[error("{reference} has a digest, which follows from what is pushed: name a tag")]
    Digest {
        /// The target.
        reference: String,
    },
    /// The bytes are not a component.
    #[error("the component is malformed")]
    Malformed(#[source] wasmparser::BinaryReaderError),
}

/// Pushes the component under the reference's tag, and returns its permanent reference:
/// `registry/repository@sha256:...`. The same component and description make the same artifact.
///
/// # Errors
/// Returns an error if the reference has no tag, the component is malformed, or the push fails.
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
        // The layer's file name for tools that unpack an artifact.
        layers: vec![Descriptor { media_type: WASM.to_owned(), annotations: title("plugin.wasm"), ..layer }],
        annotations: annotations(description),
    };
    serde_json::to_vec(&manifest).expect("texts, numbers and maps of texts are JSON")
}

/// Returns annotations that describe a plugin without its component.
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
