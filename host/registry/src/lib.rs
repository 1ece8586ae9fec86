//! Components in registries: pulled, pushed, and checked against a cosign key.
//!
//! [`pull`] and [`push`] are all that others call. `repository` asks a registry and tells it who asks (`identity`),
//! over a `transport` that goes to no address where no registry is (`reach`); `manifest` says what an artifact of a plugin
//! is, `config` describes a component, and `signature` checks who vouches for one.

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
mod transport;

/// Whether these bytes are the manifest of a plugin's artifact, which has at most so many bytes.
///
/// # Errors
/// Why not.
pub fn component_of(bytes: &[u8], limit: u64) -> Result<Digest, ManifestError> {
    let manifest = manifest::Manifest::read(bytes, manifest::MANIFEST)?;
    Ok(manifest.component(limit)?.digest)
}

pub use credentials::{CredentialsError, DockerConfig};
pub use digest::Digest;
pub use error::{Place, RegistryError};
pub use manifest::ManifestError;
pub use pull::{PullError, PullOptions, Pulled, pull};
pub use push::{PushError, PushOptions, push};
pub use reach::Forbidden;
pub use reference::{Reference, ReferenceError};
pub use signature::{KeyError, PublicKey, SignatureError};
