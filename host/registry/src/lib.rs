//! Pulls components from registries, pushes them, and checks them against a cosign key.
//!
//! The entry points are [`pull`] and [`push`]. `repository` sends requests to a registry and authenticates with an
//! `identity`, over a `transport` that refuses addresses out of `reach`. `manifest` defines the artifact of a plugin,
//! `config` describes a component, and `signature` checks who has signed it.

mod answer;
mod challenge;
mod config;
mod credentials;
mod digest;
mod error;
mod identity;
mod manifest;
mod pull;
mod push;
mod reach;
mod reference;
mod repository;
mod signature;
mod token_server;
mod transport;

/// Returns the digest of the component in this manifest of a plugin, if the component has at most `limit` bytes.
///
/// # Errors
/// Returns an error if the bytes are not such a manifest, or the component is larger.
pub fn component_of(bytes: &[u8], limit: u64) -> Result<Digest, ManifestError> {
    let manifest = manifest::Manifest::read(bytes, manifest::MANIFEST)?;
    Ok(manifest.component(limit)?.digest)
}

pub use credentials::{CredentialsError, DockerConfig};
pub use digest::Digest;
pub use error::{ChallengeError, RedactedUrl, RegistryError};
pub use manifest::ManifestError;
pub use pull::{PullError, PullOptions, Pulled, pull};
pub use push::{PushError, PushOptions, push};
pub use reach::Forbidden;
pub use reference::{Reference, ReferenceError};
pub use signature::{KeyError, PublicKey, SignatureError};
