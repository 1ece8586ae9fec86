//! Checks signed documents. The signature is verified before the signed payload is read.

use super::{super::digest::Digest, super::error::tame, PublicKey, Verification};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;

/// The type of cosign's own payloads.
const COSIGN: &str = "cosign container image signature";

/// The type of cosign's statement about a signed artifact. Statements about a scan or a build vouch for no artifact.
const SIGNED: &str = "https://sigstore.dev/cosign/sign/v1";

/// The type of an envelope's payload that is a statement.
const STATEMENT: &str = "application/vnd.in-toto+json";

/// Returns whether a payload with its base64 signature vouches for the manifest.
pub(super) fn simple_signing(key: &PublicKey, payload: &[u8], signature: &str, manifest: &Digest) -> Verification {
    #[derive(Deserialize)]
    struct Payload {
        critical: Critical,
    }
    #[derive(Deserialize)]
    struct Critical {
        image: Image,
        r#type: String,
    }
    #[derive(Deserialize)]
    struct Image {
        #[serde(rename = "docker-manifest-digest")]
        digest: String,
    }
    let signature = BASE64_STANDARD.decode(signature.trim()).unwrap_or_default();
    if !key.has_signed(payload, &signature) {
        return Verification::NotByKey;
    }
    match serde_json::from_slice(payload) {
        Ok(Payload { critical }) if critical.r#type == COSIGN => names([critical.image.digest], manifest),
        Ok(Payload { critical }) => Verification::NoVoucher(tame(&critical.r#type)),
        Err(_) => Verification::NoVoucher("nothing that can be read".to_owned()),
    }
}

/// Returns whether a bundle vouches for the manifest.
pub(super) fn bundle(key: &PublicKey, bundle: &[u8], manifest: &Digest) -> Verification {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Bundle {
        dsse_envelope: Envelope,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Envelope {
        payload: String,
        payload_type: String,
        signatures: Vec<Signature>,
    }
    #[derive(Deserialize)]
    struct Signature {
        sig: String,
    }
    let Ok(Bundle { dsse_envelope: envelope }) = serde_json::from_slice(bundle) else { return Verification::NotByKey };
    let Ok(payload) = BASE64_STANDARD.decode(&envelope.payload) else { return Verification::NotByKey };
    let message = pre_authentication(&envelope.payload_type, &payload);
    let signatures = envelope.signatures.iter().filter_map(|signature| BASE64_STANDARD.decode(&signature.sig).ok());
    if !signatures.take(super::MOST_SIGNATURES).any(|signature| key.has_signed(&message, &signature)) {
        return Verification::NotByKey;
    }
    if envelope.payload_type == STATEMENT {
        statement(&payload, manifest)
    } else {
        Verification::NoVoucher(tame(&envelope.payload_type))
    }
}

/// Returns whether a statement with a valid signature vouches for the manifest.
fn statement(payload: &[u8], manifest: &Digest) -> Verification {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Statement {
        predicate_type: String,
        subject: Vec<Subject>,
    }
    #[derive(Deserialize)]
    struct Subject {
        digest: Digests,
    }
    #[derive(Deserialize)]
    struct Digests {
        sha256: String,
    }
    match serde_json::from_slice(payload) {
        Ok(Statement { predicate_type, subject }) if predicate_type == SIGNED => {
            names(subject.into_iter().map(|subject| format!("sha256:{}", subject.digest.sha256)), manifest)
        }
        Ok(Statement { predicate_type, .. }) => Verification::NoVoucher(tame(&predicate_type)),
        Err(_) => Verification::NoVoucher("nothing that can be read".to_owned()),
    }
}

/// Returns the signed bytes of an envelope: type and payload with their lengths, so that neither is mistaken for the
/// other.
fn pre_authentication(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

fn names(digests: impl IntoIterator<Item = String>, manifest: &Digest) -> Verification {
    let manifest = manifest.to_string();
    let digests: Vec<_> = digests.into_iter().collect();
    if digests.contains(&manifest) { Verification::Vouches } else { Verification::Other(tame(&digests.join(", "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    // `cosign/README.md` says how cosign wrote them.
    const KEY: &str = include_str!("cosign/cosign.pub");
    const MANIFEST: &[u8] = include_bytes!("cosign/artifact.json");
    const PAYLOAD: &[u8] = include_bytes!("cosign/payload.json");
    const SIGNATURES: &str = include_str!("cosign/signatures.json");
    const BUNDLE: &str = include_str!("cosign/bundle.json");

    fn key() -> PublicKey {
        PublicKey::parse(KEY).unwrap()
    }

    /// Returns the text at a JSON pointer of a document.
    fn text(document: &str, pointer: &str) -> String {
        let document: serde_json::Value = serde_json::from_str(document).unwrap();
        document.pointer(pointer).unwrap().as_str().unwrap().to_owned()
    }

    /// Returns the bytes with one bit of one byte changed, for each byte.
    fn spoiled(bytes: &[u8]) -> Vec<Vec<u8>> {
        let spoil = |at: usize| bytes.iter().enumerate().map(|(i, byte)| byte ^ u8::from(i == at)).collect();
        (0..bytes.len()).map(spoil).collect()
    }

    /// Returns the base64 text with one bit of one encoded byte changed, for each byte.
    fn spoiled_base64(encoded: &str) -> Vec<String> {
        let bytes = BASE64_STANDARD.decode(encoded).unwrap();
        spoiled(&bytes).iter().map(|bytes| BASE64_STANDARD.encode(bytes)).collect()
    }

    #[test]
    fn a_payload_that_cosign_signed_vouches_for_its_manifest_only() {
        let signature = text(SIGNATURES, "/layers/0/annotations/dev.cosignproject.cosign~1signature");
        let verification =
            |payload: &[u8], signature: &str, of: &[u8]| simple_signing(&key(), payload, signature, &Digest::of(of));
        assert_eq!(verification(PAYLOAD, &signature, MANIFEST), Verification::Vouches);
        assert_eq!(
            verification(PAYLOAD, &signature, b"another"),
            Verification::Other(Digest::of(MANIFEST).to_string())
        );
        for payload in spoiled(PAYLOAD) {
            assert_eq!(verification(&payload, &signature, MANIFEST), Verification::NotByKey);
        }
        for signature in spoiled_base64(&signature) {
            assert_eq!(verification(PAYLOAD, &signature, MANIFEST), Verification::NotByKey);
        }
    }

    #[test]
    fn a_bundle_that_cosign_signed_vouches_for_its_manifest_only() {
        let verification = |document: &str, of: &[u8]| bundle(&key(), document.as_bytes(), &Digest::of(of));
        assert_eq!(verification(BUNDLE, MANIFEST), Verification::Vouches);
        assert_eq!(verification(BUNDLE, b"another"), Verification::Other(Digest::of(MANIFEST).to_string()));
        for signed in ["/dsseEnvelope/payload", "/dsseEnvelope/signatures/0/sig"] {
            let signed = text(BUNDLE, signed);
            for other in spoiled_base64(&signed) {
                assert_eq!(verification(&BUNDLE.replace(&signed, &other), MANIFEST), Verification::NotByKey, "{other}");
            }
        }
        // The type is signed too.
        assert_eq!(verification(&BUNDLE.replace("vnd.in-toto", "vnd.other"), MANIFEST), Verification::NotByKey);
        for broken in ["", "{}", &BUNDLE.replace("dsseEnvelope", "messageSignature"), &BUNDLE[..200]] {
            assert_eq!(verification(broken, MANIFEST), Verification::NotByKey, "{broken}");
        }
    }
}
