//! The SHA-256 digest that identifies content of a registry.

use sandbox::source;
use std::fmt;

/// A SHA-256 digest, written as `sha256:` and 64 hex digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Digest(decide::Digest);

impl Digest {
    /// Returns the digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(source::digest(bytes))
    }

    /// Parses a digest. Returns None if it is malformed or of another algorithm.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.strip_prefix("sha256:")?.parse().ok().map(Self)
    }

    /// Returns the digest without the algorithm.
    #[must_use]
    pub fn hex(&self) -> &decide::Digest {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_complete_lower_case_sha256_is_a_digest() {
        let digest = Digest::of(b"wasm");
        assert_eq!(Digest::parse(&digest.to_string()), Some(digest.clone()));
        for wrong in ["", "sha256:", &digest.to_string()[..70], &digest.to_string().to_uppercase(), "sha512:00"] {
            assert_eq!(Digest::parse(wrong), None, "{wrong}");
        }
    }
}
