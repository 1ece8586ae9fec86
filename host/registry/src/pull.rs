//! A component from a registry: fetched, and believed no further than it was checked.

use super::{
    credentials::DockerConfig,
    error::RegistryError,
    manifest::{Manifest, ManifestError},
    reference::Reference,
    repository::Repository,
    signature::{self, PublicKey, SignatureError},
    transport::Speech,
};
use sandbox::{Limits, source};
use std::{future::Future, time::Duration};

/// How to pull.
#[derive(Debug, Clone)]
pub struct PullOptions {
    /// What the registry is told if it asks who is asking.
    pub credentials: DockerConfig,
    /// The registry is asked by plain HTTP.
    pub insecure: bool,
    /// The artifact must be signed by this key.
    pub public_key: Option<PublicKey>,
    /// The most bytes that the component may have.
    pub limit: usize,
    /// All of it takes no longer than this.
    pub patience: Duration,
}

impl Default for PullOptions {
    /// By TLS, without credentials and signature, what the host would load, within a minute.
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

/// A component from a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulled {
    /// The component's bytes.
    pub wasm: Vec<u8>,
    /// The component's SHA-256, in hex.
    pub digest: String,
    /// What the reference stood for: `registry/repository@sha256:...`, the artifact's manifest.
    pub resolved: String,
}

/// Why a component was not pulled.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// It cannot be had, or what came is not what was asked for.
    #[error("failed to pull {reference}")]
    Registry {
        /// Which artifact.
        reference: String,
        /// Why.
        source: RegistryError,
    },
    /// It is no plugin's.
    #[error("{reference} is not the artifact of a plugin")]
    Manifest {
        /// Which artifact.
        reference: String,
        /// Why not.
        source: ManifestError,
    },
    /// It is not signed as it must be.
    #[error("{reference} is not signed by the public key")]
    Signature {
        /// Which artifact, by digest.
        reference: String,
        /// Why not.
        source: SignatureError,
    },
}

/// The component that the reference names. With a public key nothing of it is fetched before its signature holds.
///
/// # Errors
/// It cannot be had in time, is another than was named, is larger than allowed, is no component, or is not signed by the key.
pub async fn pull(reference: &Reference, options: &PullOptions) -> Result<Pulled, PullError> {
    let failed = |source| PullError::Registry { reference: reference.to_string(), source };
    match patiently(options.patience, fetch(reference, options)).await {
        Ok(pulled) => pulled,
        Err(slow) => Err(failed(slow)),
    }
}

/// What the work comes to, if it takes no longer than that.
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
    if !source::is_component(&wasm) {
        return Err(refused(ManifestError::NotAComponent));
    }
    Ok(Pulled { wasm, digest: layer.digest.hex().to_owned(), resolved })
}
