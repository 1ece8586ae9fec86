//! The digest of a plugin.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr, sync::Arc};

/// Number of digits of a digest where people read it, and in names of objects.
const SHORT: usize = 12;

/// The SHA-256 of a plugin's bytes, as 64 hex digits in lower case. A clone allocates nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Digest(Arc<str>);

/// The error for a text that is not a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a digest has 64 hex digits in lower case")]
pub struct InvalidDigest;

impl Digest {
    /// Returns the 64 digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the first twelve digits.
    #[must_use]
    pub fn short(&self) -> &str {
        &self.0[..SHORT]
    }
}

impl From<[u8; 32]> for Digest {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into())
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if text.len() == 64 && is_hex { Ok(Self(text.into())) } else { Err(InvalidDigest) }
    }
}

impl TryFrom<String> for Digest {
    type Error = InvalidDigest;

    fn try_from(text: String) -> Result<Self, InvalidDigest> {
        text.parse()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl AsRef<str> for Digest {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// What the status of a job says of the digest that plans the job. Everybody who may write the status may write any text
/// there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum RecordedDigest {
    /// Nothing: no plugin has planned the job, or the job is suspended and nothing of it runs.
    #[default]
    None,
    /// A digest, which need not be of a plugin that this host knows.
    Digest(Digest),
    /// A text that is not a digest.
    Invalid(String),
}

impl RecordedDigest {
    /// Returns the digest, if there is a valid one.
    #[must_use]
    pub fn digest(&self) -> Option<&Digest> {
        match self {
            Self::Digest(digest) => Some(digest),
            Self::None | Self::Invalid(_) => None,
        }
    }
}

impl From<Option<Digest>> for RecordedDigest {
    fn from(digest: Option<Digest>) -> Self {
        digest.map_or(Self::None, Self::Digest)
    }
}

impl From<String> for RecordedDigest {
    fn from(text: String) -> Self {
        match text.parse() {
            Ok(digest) => Self::Digest(digest),
            Err(InvalidDigest) if text.is_empty() => Self::None,
            Err(InvalidDigest) => Self::Invalid(text),
        }
    }
}

impl From<RecordedDigest> for String {
    fn from(recorded: RecordedDigest) -> Self {
        match recorded {
            RecordedDigest::None => Self::new(),
            RecordedDigest::Digest(digest) => digest.to_string(),
            RecordedDigest::Invalid(text) => text,
        }
    }
}

/// An optional digest in JSON, for `#[serde(with)]`: "" for none, as recorded passes have it.
pub(crate) mod or_empty {
    use super::{Digest, InvalidDigest, RecordedDigest};
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    #[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
    pub(crate) fn serialize<S: Serializer>(digest: &Option<Digest>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(digest.as_ref().map_or("", Digest::as_str))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Digest>, D::Error> {
        match RecordedDigest::deserialize(deserializer)? {
            RecordedDigest::None => Ok(None),
            RecordedDigest::Digest(digest) => Ok(Some(digest)),
            RecordedDigest::Invalid(_) => Err(D::Error::custom(InvalidDigest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_digest_has_64_hex_digits_in_lower_case() {
        let text = "0a".repeat(32);
        let digest: Digest = text.parse().unwrap();
        assert_eq!((digest.to_string(), digest.short()), (text, "0a0a0a0a0a0a"));
        assert_eq!(Digest::from([10; 32]), digest);
        for text in ["", "0a", &"0A".repeat(32), &"0a".repeat(33), &"../".repeat(22), &"é".repeat(32)] {
            assert_eq!(text.parse::<Digest>(), Err(InvalidDigest), "{text}");
        }
    }

    #[test]
    fn only_a_digest_is_deserialized_to_one() {
        let digest = Digest::from([7; 32]);
        assert_eq!(serde_json::from_value::<Digest>(json!(digest)).unwrap(), digest);
        assert_eq!(json!(digest), json!("07".repeat(32)));
        assert!(serde_json::from_value::<Digest>(json!("nonsense")).is_err());
    }

    #[test]
    fn any_text_in_a_status_is_read_and_written_back_unchanged() {
        let digest = Digest::from([7; 32]);
        let invalid = RecordedDigest::Invalid("nonsense".into());
        for (text, recorded) in [
            ("", RecordedDigest::None),
            (digest.as_str(), RecordedDigest::Digest(digest.clone())),
            ("nonsense", invalid),
        ] {
            assert_eq!(serde_json::from_value::<RecordedDigest>(json!(text)).unwrap(), recorded);
            assert_eq!(json!(recorded), json!(text));
        }
    }
}
