//! Checks that a key has signed a manifest, by the signatures that cosign stores in the manifest's repository.

mod document;

use super::{
    digest::Digest,
    error::RegistryError,
    manifest::{Descriptor, Manifest},
    reference::Version,
    repository::{Found, Repository},
};
use document::{bundle, simple_signing};
use p256::{
    ecdsa::{VerifyingKey, signature::Verifier},
    pkcs8::DecodePublicKey,
};
use serde::Deserialize;

/// The media types of a payload that cosign signs, and of the bundle that it writes since version 3.
const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// The annotation that holds the signature of a payload.
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";

/// Maximum number of signatures to check in a list: everybody who may write to the repository can add some.
const MOST_SIGNATURES: usize = 16;

/// Maximum bytes of a signed document. Most have a few hundred bytes, those with a log entry some thousands.
const MOST_BYTES: u64 = 64 << 10;

/// An ECDSA P-256 public key, as `cosign generate-key-pair` writes it to `cosign.pub`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

/// The reason why a text is not a public key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The text is a private key.
    #[error("this is a private key, keep it to yourself: the public key is in cosign.pub")]
    Private,
    /// The text is a key of another kind, or no key.
    #[error(
        "this is no public key of ECDSA P-256 in PEM: cosign.pub, which begins with -----BEGIN PUBLIC KEY-----, is one"
    )]
    Malformed,
}

impl PublicKey {
    /// Parses a key in PEM.
    ///
    /// # Errors
    /// Returns an error if the text is not an ECDSA P-256 public key.
    pub fn parse(pem: &str) -> Result<Self, KeyError> {
        if pem.contains("PRIVATE KEY-----") {
            return Err(KeyError::Private);
        }
        VerifyingKey::from_public_key_pem(pem.trim()).map(Self).map_err(|_| KeyError::Malformed)
    }

    /// Returns whether the key has signed the message. The signature is in DER.
    fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        p256::ecdsa::Signature::from_der(signature).is_ok_and(|signature| self.0.verify(message, &signature).is_ok())
    }
}

/// The reason why a manifest does not count as signed.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    /// There is no signature.
    #[error("there is no signature: make one with `cosign sign --key cosign.key REPOSITORY@{manifest}`")]
    Absent {
        /// The digest of the manifest.
        manifest: Digest,
    },
    /// All signatures are by other keys.
    #[error("none of its {0} signatures is by this key")]
    OtherKey(usize),
    /// The key has signed another manifest, and the signature was copied to this one.
    #[error("the key has signed {signed}, not {manifest}: the signature was moved here from another artifact")]
    OtherDigest {
        /// The digests that were signed.
        signed: String,
        /// The digest of the manifest.
        manifest: Digest,
    },
    /// The key has signed a statement that vouches for no artifact.
    #[error("the key has signed a statement of {0:?}, which vouches for no artifact: sign it with `cosign sign`")]
    OtherStatement(String),
    /// The signatures cannot be fetched.
    #[error("its signatures cannot be read")]
    Registry(#[from] RegistryError),
}

/// The result of checking one document for the manifest.
#[derive(Debug, PartialEq, Eq)]
enum Verification {
    /// The key vouches for the manifest.
    Vouches,
    /// The document is not signed by the key, or cannot be read.
    NotByKey,
    /// The key vouches for another manifest.
    Other(String),
    /// The key has signed something that is not a manifest.
    NoVoucher(String),
}

/// A signature to check.
enum UncheckedSignature {
    /// A payload with a separate signature.
    Payload { payload: Vec<u8>, signature: String },
    /// A document with payload and signature.
    Bundle(Vec<u8>),
}

/// Checks that one of the manifest's signatures is by the key.
///
/// # Errors
/// Returns an error if there is no such signature, or if signatures cannot be fetched.
pub(super) async fn check(
    repository: &mut Repository<'_>,
    manifest: &Digest,
    key: &PublicKey,
) -> Result<(), SignatureError> {
    let mut seen = Vec::new();
    for descriptor in [payloads(repository, manifest).await?, bundles(repository, manifest).await?].concat() {
        let verification = match fetch(repository, &descriptor).await? {
            Some(UncheckedSignature::Payload { payload, signature }) => {
                simple_signing(key, &payload, &signature, manifest)
            }
            Some(UncheckedSignature::Bundle(document)) => bundle(key, &document, manifest),
            None => Verification::NotByKey,
        };
        if verification == Verification::Vouches {
            return Ok(());
        }
        seen.push(verification);
    }
    Err(failure(seen, manifest))
}

/// Returns the error for documents of which none vouches. Prefers what the key has signed to what other keys have
/// signed.
fn failure(seen: Vec<Verification>, manifest: &Digest) -> SignatureError {
    let count = seen.len();
    let by_key = seen.into_iter().find_map(|verification| match verification {
        Verification::Other(signed) => Some(SignatureError::OtherDigest { signed, manifest: manifest.clone() }),
        Verification::NoVoucher(statement) => Some(SignatureError::OtherStatement(statement)),
        Verification::Vouches | Verification::NotByKey => None,
    });
    by_key.unwrap_or_else(|| match count {
        0 => SignatureError::Absent { manifest: manifest.clone() },
        count => SignatureError::OtherKey(count),
    })
}

/// Returns the payloads under cosign's tag for signatures.
async fn payloads(repository: &mut Repository<'_>, manifest: &Digest) -> Result<Vec<Descriptor>, RegistryError> {
    let tag = Version::Tag(format!("sha256-{}.sig", manifest.hex()));
    Ok(present(repository.manifest(&tag).await)?.map(|found| layers(&found, SIMPLE_SIGNING)).unwrap_or_default())
}

/// Returns the bundles that refer to the manifest, from the registry's list or, if it keeps none, from a tag.
async fn bundles(repository: &mut Repository<'_>, manifest: &Digest) -> Result<Vec<Descriptor>, RegistryError> {
    let index = match repository.referrers(manifest).await? {
        Some(index) => Some(index),
        None => {
            let tag = Version::Tag(format!("sha256-{}", manifest.hex()));
            present(repository.manifest(&tag).await)?.map(|found| found.bytes)
        }
    };
    let mut found = Vec::new();
    for referrer in index.map(|index| referrers(&index)).unwrap_or_default() {
        if let Some(manifest) = present(repository.manifest(&Version::Digest(referrer)).await)? {
            found.extend(layers(&manifest, BUNDLE));
        }
    }
    Ok(found)
}

/// Fetches what the descriptor names. Returns None if it names no signature.
async fn fetch(
    repository: &mut Repository<'_>,
    descriptor: &Descriptor,
) -> Result<Option<UncheckedSignature>, RegistryError> {
    let Some(digest) = Digest::parse(&descriptor.digest).filter(|_| descriptor.size <= MOST_BYTES) else {
        return Ok(None);
    };
    let content = repository.blob(&digest, descriptor.size).await?;
    Ok(match descriptor.annotations.get(SIGNATURE) {
        Some(signature) if descriptor.media_type == SIMPLE_SIGNING => {
            Some(UncheckedSignature::Payload { payload: content, signature: signature.clone() })
        }
        _ => (descriptor.media_type == BUNDLE).then_some(UncheckedSignature::Bundle(content)),
    })
}

/// Returns the manifest, or None if it is missing.
fn present(found: Result<Found, RegistryError>) -> Result<Option<Found>, RegistryError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(RegistryError::Missing { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the first layers of this media type, or none if the manifest cannot be read.
fn layers(found: &Found, media_type: &str) -> Vec<Descriptor> {
    let layers = Manifest::read(&found.bytes, &found.media_type).map(|manifest| manifest.layers).unwrap_or_default();
    layers.into_iter().filter(|layer| layer.media_type == media_type).take(MOST_SIGNATURES).collect()
}

/// Returns the digests of the first bundles in an index.
fn referrers(index: &[u8]) -> Vec<Digest> {
    #[derive(Deserialize)]
    struct Index {
        manifests: Vec<Referrer>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Referrer {
        digest: String,
        #[serde(default)]
        artifact_type: String,
    }
    let referrers = serde_json::from_slice(index).map(|index: Index| index.manifests).unwrap_or_default();
    let of_bundles = referrers.iter().filter(|referrer| referrer.artifact_type == BUNDLE);
    of_bundles.filter_map(|referrer| Digest::parse(&referrer.digest)).take(MOST_SIGNATURES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_public_key_of_p256_is_a_key() {
        const P256: &str = include_str!("signature/cosign/cosign.pub");
        const P384: &str = "-----BEGIN PUBLIC KEY-----\nMHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEquG7X9rBZyhVS+pmnFbXtPfjnMjCGnKR\n-----END PUBLIC KEY-----\n";
        assert!(PublicKey::parse(P256).is_ok());
        assert!(PublicKey::parse(&format!("\n {P256}\n\n")).is_ok());
        for wrong in ["", "cosign.pub", P384, &P256[..100], &P256.replace('M', "N")] {
            assert_eq!(PublicKey::parse(wrong), Err(KeyError::Malformed), "{wrong}");
        }
        let private =
            "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nAA==\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n";
        assert_eq!(PublicKey::parse(private), Err(KeyError::Private));
    }

    #[test]
    fn what_the_key_has_signed_precedes_other_keys_in_the_error() {
        let manifest = Digest::of(b"");
        let message = |seen: Vec<Verification>| failure(seen, &manifest).to_string();
        assert!(message(vec![]).starts_with("there is no signature: make one with `cosign sign"));
        assert!(message(vec![Verification::NotByKey, Verification::NotByKey]).starts_with("none of its 2 signatures"));
        let other = message(vec![Verification::NotByKey, Verification::Other("sha256:00".to_owned())]);
        assert!(other.starts_with("the key has signed sha256:00, not sha256:"), "{other}");
    }
}
