//! Fresh key pairs for Secrets that a plugin asks for by recipe.

use decide::plan::Algorithm;
use p521::pkcs8::LineEnding;
use rand_chacha::rand_core::{CryptoRng, RngCore};
use sec1::EncodeEcPrivateKey;
use ssh_key::public::EcdsaPublicKey;

/// A private key as PEM and its public key as an authorized_keys line.
pub(crate) struct Pair {
    pub(crate) private: String,
    pub(crate) public: String,
}

/// A key pair cannot be encoded.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The private key as SEC1 PEM.
    #[error("private key as PEM: {0}")]
    Private(String),
    /// The public key as an authorized_keys line.
    #[error("public key as an authorized_keys line")]
    Public(#[source] ssh_key::Error),
}

/// Returns a fresh key pair.
pub(crate) fn pair(algorithm: Algorithm, random: &mut (impl RngCore + CryptoRng)) -> Result<Pair, KeyError> {
    match algorithm {
        Algorithm::EcdsaP521 => {
            let private = p521::SecretKey::random(random);
            // Not the key's own method of this name, which leaves out the curve; OpenSSH refuses such a key.
            let pem = EncodeEcPrivateKey::to_sec1_pem(&private, LineEnding::LF)
                .map_err(|error| KeyError::Private(error.to_string()))?;
            let point = p521::EncodedPoint::from(private.public_key());
            let line =
                ssh_key::PublicKey::from(EcdsaPublicKey::NistP521(point)).to_openssh().map_err(KeyError::Public)?;
            Ok(Pair { private: pem.to_string(), public: format!("{}\n", line.trim_end()) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

    // M01: type, key names and the public line that matches the private key.
    #[test]
    fn the_public_line_matches_the_private_key() {
        let mut random = ChaCha20Rng::seed_from_u64(7);
        let made = pair(Algorithm::EcdsaP521, &mut random).unwrap();
        assert!(made.private.starts_with("-----BEGIN EC PRIVATE KEY-----"), "{}", made.private);
        assert!(made.public.starts_with("ecdsa-sha2-nistp521 ") && made.public.ends_with('\n'));
        let private = p521::SecretKey::from_sec1_pem(&made.private).unwrap();
        let public = ssh_key::PublicKey::from_openssh(&made.public).unwrap();
        let Some(EcdsaPublicKey::NistP521(point)) = public.key_data().ecdsa() else { panic!("another algorithm") };
        assert_eq!(*point, p521::EncodedPoint::from(private.public_key()));
    }

    #[test]
    fn the_private_key_names_its_curve_as_openssh_wants() {
        let made = pair(Algorithm::EcdsaP521, &mut ChaCha20Rng::seed_from_u64(7)).unwrap();
        let (_, document) = sec1::der::SecretDocument::from_pem(&made.private).unwrap();
        let key: sec1::EcPrivateKey<'_> = document.decode_msg().unwrap();
        let curve = key.parameters.and_then(sec1::EcParameters::named_curve);
        assert_eq!(curve.unwrap().to_string(), "1.3.132.0.35", "secp521r1");
    }
}
