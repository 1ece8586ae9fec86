//! Pulls a component from a registry and checks it.

use super::{
    credentials::DockerConfig,
    error::RegistryError,
    manifest::{Manifest, ManifestError},
    reference::Reference,
    repository::Repository,
    signature::{self, PublicKey, SignatureError},
    transport::Speech,
};
use decide::Digest;
use sandbox::{Limits, source};
use std::{future::Future, time::Duration};

/// Options of [`pull`].
#[derive(Debug, Clone)]
pub struct PullOptions {
    /// Credentials, in case the registry requires them.
    pub credentials: DockerConfig,
    /// Whether plain HTTP is used instead of TLS.
    pub insecure: bool,
    /// The key that must have signed the artifact, if any.
    pub public_key: Option<PublicKey>,
    /// Maximum bytes of the component.
    pub limit: usize,
    /// Timeout of the whole pull.
    pub patience: Duration,
}

impl Default for PullOptions {
    /// Returns options with TLS, without credentials and key, with the host's size limit and a timeout of one minute.
    fn default() -> Self {
        Self {
            credentials: DockerConfig::default(),
            insecure: false,
            public_key: None,
            limit: Limits::default().component,
            patience: Duration::from_secs(60),
        }
    }
}

/// A pulled component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulled {
    /// The component's bytes.
    pub wasm: Vec<u8>,
    /// The component's SHA-256, in hex.
    pub digest: Digest,
    /// The reference by the digest of the artifact's manifest: `registry/repository@sha256:...`.
    pub resolved: String,
}

/// The reason why a component was not pulled.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// The artifact cannot be fetched, or differs from the requested one.
    #[error("failed to pull {reference}")]
    Registry {
        /// The reference of the artifact.
        reference: String,
        /// The cause.
        source: RegistryError,
    },
    /// The artifact is not a plugin.
    #[error("{reference} is not the artifact of a plugin")]
    Manifest {
        /// The reference of the artifact.
        reference: String,
        /// The cause.
        source: ManifestError,
    },
    /// The artifact is not signed by the required key.
    #[error("{reference} is not signed by the public key")]
    Signature {
        /// The reference of the artifact, by digest.
        reference: String,
        /// The cause.
        source: SignatureError,
    },
}

/// Pulls the component that the reference names. With a public key, it verifies the signature before it fetches the
/// component.
///
/// # Errors
/// Returns an error if the component cannot be fetched in time, has another digest, is too large, is not a component,
/// or is not signed by the key.
pub async fn pull(reference: &Reference, options: &PullOptions) -> Result<Pulled, PullError> {
    let failed = |source| PullError::Registry { reference: reference.to_string(), source };
    match patiently(options.patience, fetch(reference, options)).await {
        Ok(pulled) => pulled,
        Err(slow) => Err(failed(slow)),
    }
}

/// Returns the result of the work, or [`RegistryError::Slow`] if it takes longer than `patience`.
pub(super) async fn patiently<T>(patience: Duration, work: impl Future<Output = T>) -> Result<T, RegistryError> {
    tokio::time::timeout(patience, work).await.map_err(|_| RegistryError::Slow(patience))
}

async fn fetch(reference: &Reference, options: &PullOptions) -> Result<Pulled, PullError> {
    let failed = |source| PullError::Registry { reference: reference.to_string(), source };
    let refused = |source| PullError::Manifest { reference: reference.to_string(), source };
    let speech = Speech::new(options.insecure);
    let mut repository = Repository::new(reference, speech, &options.credentials).map_err(failed)?;
    let found = repository.manifest(reference.version()).await.map_err(failed)?;
    let resolved = reference.at(&found.digest).to_string();

    let manifest = Manifest::read(&found.bytes, &found.media_type).map_err(refused)?;
    let layer = manifest.component(options.limit as u64).map_err(refused)?;
    if let Some(key) = &options.public_key {
        let signed = signature::check(&mut repository, &found.digest, key).await;
        signed.map_err(|source| PullError::Signature { reference: resolved.clone(), source })?;
    }
    let wasm = repository.blob(&layer.digest, layer.size).await.map_err(failed)?;
    source::component(&wasm).map_err(|error| refused(ManifestError::NotAComponent(error)))?;
    Ok(Pulled { wasm, digest: layer.digest.hex().clone(), resolved })
}
