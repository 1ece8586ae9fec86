//! Whether somebody with a key has signed a manifest: the signatures beside it in its repository, as cosign leaves them.

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

/// The media type of a payload that cosign signs, and of the bundle that it has written since version 3.
const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// Where the signature of a payload stands.
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";

/// Signatures that are looked at; whoever may write to the repository can add more.
const MOST_SIGNATURES: usize = 16;

/// A signed document is a few hundred bytes, one with its entry of a log some thousands.
const MOST_BYTES: u64 = 64 << 10;

/// A public key of ECDSA P-256, what `cosign generate-key-pair` leaves in `cosign.pub`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

/// Why a text is no public key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It is the other half.
    #[error("this is a private key, keep it to yourself: the public key is in cosign.pub")]
    Private,
    /// It is a key of another kind, or no key at all.
    #[error(
        "this is no public key of ECDSA P-256 in PEM: cosign.pub, which begins with -----BEGIN PUBLIC KEY-----, is one"
    )]
    Malformed,
}

impl PublicKey {
    /// The key in the PEM.
    ///
    /// # Errors
    /// It is none that cosign makes.
    pub fn parse(pem: &str) -> Result<Self, KeyError> {
        if pem.contains("PRIVATE KEY-----") {
            return Err(KeyError::Private);
        }
        VerifyingKey::from_public_key_pem(pem.trim()).map(Self).map_err(|_| KeyError::Malformed)
    }

    /// Whether the key's owner has signed the message; the signature is in DER.
    fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        p256::ecdsa::Signature::from_der(signature).is_ok_and(|signature| self.0.verify(message, &signature).is_ok())
    }
}

/// Why a manifest does not count as signed.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    /// There is no signature.
    #[error("there is no signature: make one with `cosign sign --key cosign.key REPOSITORY@{manifest}`")]
    Absent {
        /// Whose.
        manifest: Digest,
    },
    /// There are signatures, by others.
    #[error("none of its {0} signatures is by this key")]
    OtherKey(usize),
    /// The key's owner has signed something else, and that was put beside this manifest.
    #[error("the key has signed {signed}, not {manifest}: the signature was moved here from another artifact")]
    OtherDigest {
        /// What was signed.
        signed: String,
        /// What was to be.
        manifest: Digest,
    },
    /// The key's owner has signed a statement that is no signature of an artifact.
    #[error("the key has signed a statement of {0:?}, which vouches for no artifact: sign it with `cosign sign`")]
    OtherStatement(String),
    /// The signatures cannot be had.
    #[error("its signatures cannot be read")]
    Registry(#[from] RegistryError),
}

/// What one document beside the manifest is worth.
#[derive(Debug, PartialEq, Eq)]
enum Worth {
    /// The key vouches for the manifest.
    Vouches,
    /// Somebody else has signed it, or nobody, or it cannot be read.
    NotByKey,
    /// The key vouches for another manifest.
    Other(String),
    /// The key vouches for something that is no manifest.
    NoVoucher(String),
}

/// A signature that may or may not hold.
enum Candidate {
    /// A payload with a signature beside it.
    Payload { payload: Vec<u8>, signature: String },
    /// Both in one.
    Bundle(Vec<u8>),
}

/// Nothing, if one of the signatures beside the manifest is of it and by the key.
///
/// # Errors
/// None is, or they cannot be had.
pub(super) async fn check(
    repository: &mut Repository<'_>,
    manifest: &Digest,
    key: &PublicKey,
) -> Result<(), SignatureError> {
    let mut seen = Vec::new();
    for descriptor in [payloads(repository, manifest).await?, bundles(repository, manifest).await?].concat() {
        let worth = match candidate(repository, &descriptor).await? {
            Some(Candidate::Payload { payload, signature }) => simple_signing(key, &payload, &signature, manifest),
            Some(Candidate::Bundle(document)) => bundle(key, &document, manifest),
            None => Worth::NotByKey,
        };
        if worth == Worth::Vouches {
            return Ok(());
        }
        seen.push(worth);
    }
    Err(verdict(seen, manifest))
}

/// What a person has to know about signatures of which none vouches: rather what the key did say than that others spoke.
fn verdict(seen: Vec<Worth>, manifest: &Digest) -> SignatureError {
    let count = seen.len();
    let said = seen.into_iter().find_map(|worth| match worth {
        Worth::Other(signed) => Some(SignatureError::OtherDigest { signed, manifest: manifest.clone() }),
        Worth::NoVoucher(statement) => Some(SignatureError::OtherStatement(statement)),
        Worth::Vouches | Worth::NotByKey => None,
    });
    said.unwrap_or_else(|| match count {
        0 => SignatureError::Absent { manifest: manifest.clone() },
        count => SignatureError::OtherKey(count),
    })
}

/// The payloads under the tag that cosign gives to signatures.
async fn payloads(repository: &mut Repository<'_>, manifest: &Digest) -> Result<Vec<Descriptor>, RegistryError> {
    let tag = Version::Tag(format!("sha256-{}.sig", manifest.hex()));
    Ok(present(repository.manifest(&tag).await)?.map(|found| layers(&found, SIMPLE_SIGNING)).unwrap_or_default())
}

/// The bundles that refer to the manifest, as the registry lists them, or the tag of a registry that keeps no list.
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

/// What the descriptor names. None if it names no signature.
async fn candidate(
    repository: &mut Repository<'_>,
    descriptor: &Descriptor,
) -> Result<Option<Candidate>, RegistryError> {
    let Some(digest) = Digest::parse(&descriptor.digest).filter(|_| descriptor.size <= MOST_BYTES) else {
        return Ok(None);
    };
    let content = repository.blob(&digest, descriptor.size).await?;
    Ok(match descriptor.annotations.get(SIGNATURE) {
        Some(signature) if descriptor.media_type == SIMPLE_SIGNING => {
            Some(Candidate::Payload { payload: content, signature: signature.clone() })
        }
        _ => (descriptor.media_type == BUNDLE).then_some(Candidate::Bundle(content)),
    })
}

/// The manifest, unless there is none.
fn present(found: Result<Found, RegistryError>) -> Result<Option<Found>, RegistryError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(RegistryError::Missing { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The first layers of this media type; none of what is no manifest.
fn layers(found: &Found, media_type: &str) -> Vec<Descriptor> {
    let layers = Manifest::read(&found.bytes, &found.media_type).map(|manifest| manifest.layers).unwrap_or_default();
    layers.into_iter().filter(|layer| layer.media_type == media_type).take(MOST_SIGNATURES).collect()
}

/// The first manifests of an index that are of bundles.
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
        const P256: &str = include_str!("signature/signed/cosign.pub");
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
    fn what_the_key_did_say_is_told_before_what_others_say() {
        let manifest = Digest::of(b"");
        let told = |seen: Vec<Worth>| verdict(seen, &manifest).to_string();
        assert!(told(vec![]).starts_with("there is no signature: make one with `cosign sign"));
        assert!(told(vec![Worth::NotByKey, Worth::NotByKey]).starts_with("none of its 2 signatures"));
        let other = told(vec![Worth::NotByKey, Worth::Other("sha256:00".to_owned())]);
        assert!(other.starts_with("the key has signed sha256:00, not sha256:"), "{other}");
    }
}
