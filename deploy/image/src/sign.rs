//! Signs an image as `cosign sign` does with a key of one's own: a payload that names the manifest, and its signature.

use anyhow::{Context, Result, bail};
use base64::{Engine, prelude::BASE64_STANDARD};
use p256::{
    SecretKey,
    ecdsa::{Signature, SigningKey, signature::Signer},
    pkcs8::DecodePrivateKey,
};
use serde_json::json;
use std::{fs, path::Path};

/// What makes a key.
const MAKE_A_KEY: &str = "openssl ecparam -name prime256v1 -genkey -noout";

/// A payload, and the signature of its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// What is signed: a JSON document.
    pub payload: String,
    /// The ECDSA signature over SHA-256, in DER and base64.
    pub signature: String,
}

/// A private key of ECDSA P-256. It is never printed.
pub struct Key(SigningKey);

impl Key {
    /// Reads a key of a file in PEM, without a password: of PKCS #8 or SEC 1, as `openssl` writes both.
    ///
    /// # Errors
    /// The file cannot be read or contains no such key; the error does not contain what it contains.
    pub fn read(file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file).with_context(|| format!("failed to read the key {}", file.display()))?;
        Self::parse(&text).with_context(|| format!("{} cannot sign", file.display()))
    }

    /// As [`Key::read`], of the text of the file.
    ///
    /// # Errors
    /// It is no such key.
    pub fn parse(pem: &str) -> Result<Self> {
        let pem = pem.trim();
        if pem.contains("ENCRYPTED") {
            bail!("the key has a password: sign by `cosign sign --key`, or give a key without one");
        }
        // `openssl ecparam -genkey` writes the parameters of the curve before the key.
        let pem = pem.find("-----BEGIN EC PRIVATE KEY-----").map_or(pem, |start| &pem[start..]);
        let key = SecretKey::from_pkcs8_pem(pem).ok().or_else(|| SecretKey::from_sec1_pem(pem).ok());
        let key =
            key.with_context(|| format!("it is no private key of ECDSA P-256 in PEM, such as `{MAKE_A_KEY}` writes"))?;
        Ok(Self(key.into()))
    }

    /// Returns the signed statement that the manifest with this digest, `sha256:...`, is the image of this name. The same
    /// key, name and digest give the same bytes.
    #[must_use]
    pub fn sign(&self, name: &str, digest: &str) -> Signed {
        let repository = name.rsplit_once(':').map_or(name, |(repository, _)| repository);
        let critical = json!({
            "identity": { "docker-reference": repository },
            "image": { "docker-manifest-digest": digest },
            "type": "cosign container image signature",
        });
        let payload = json!({ "critical": critical, "optional": null }).to_string();
        let signature: Signature = self.0.sign(payload.as_bytes());
        Signed { signature: BASE64_STANDARD.encode(signature.to_der()), payload }
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p256::{
        ecdsa::signature::Verifier,
        pkcs8::{EncodePrivateKey, LineEnding},
    };

    fn secret() -> SecretKey {
        SecretKey::from_slice(&[7; 32]).unwrap()
    }

    #[test]
    fn a_key_of_openssl_signs_what_names_the_image_and_its_digest() {
        let [pkcs8, sec1] =
            [secret().to_pkcs8_pem(LineEnding::LF).unwrap(), secret().to_sec1_pem(LineEnding::LF).unwrap()];
        let with_parameters =
            format!("-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n{}", *sec1);
        let digest = format!("sha256:{}", "ab".repeat(32));
        for pem in [pkcs8.as_str(), sec1.as_str(), &with_parameters] {
            let key = Key::parse(pem).unwrap();
            let signed = key.sign("registry.example.org:5000/team/troupe:1.0", &digest);
            assert_eq!(signed, key.sign("registry.example.org:5000/team/troupe:1.0", &digest));
            let payload: serde_json::Value = serde_json::from_str(&signed.payload).unwrap();
            assert_eq!(payload["critical"]["identity"]["docker-reference"], "registry.example.org:5000/team/troupe");
            assert_eq!(payload["critical"]["image"]["docker-manifest-digest"], digest.as_str());
            let signature = Signature::from_der(&BASE64_STANDARD.decode(&signed.signature).unwrap()).unwrap();
            let public = *key.0.verifying_key();
            assert!(public.verify(signed.payload.as_bytes(), &signature).is_ok());
            assert!(public.verify(signed.payload.replace("ab", "ba").as_bytes(), &signature).is_err());
        }
    }

    #[test]
    fn a_key_that_cannot_sign_is_refused_without_a_word_of_it() {
        let encrypted =
            "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nc2VjcmV0\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----";
        assert!(Key::parse(encrypted).unwrap_err().to_string().contains("has a password"));
        for text in ["", "c2VjcmV0", include_str!("../../../host/registry/src/signature/cosign/cosign.pub")] {
            let told = format!("{:?}", Key::parse(text).unwrap_err());
            assert!(told.contains("no private key of ECDSA P-256") && !told.contains("c2VjcmV0"), "{told}");
        }
        let missing = format!("{:#}", Key::read(Path::new("no-such.key")).unwrap_err());
        assert!(missing.contains("no-such.key"), "{missing}");
        assert_eq!(format!("{:?}", Key::parse(&secret().to_sec1_pem(LineEnding::LF).unwrap()).unwrap()), "Key(..)");
    }
}
