//! Pieces of text that the host expands for each replica, JSON as text, and names.

use crate::types::Piece;
use serde::Serialize;

/// Serialises a value as JSON text. A type of the plugin costs far less than a `Value`.
///
/// # Panics
/// If the value has a map whose keys are not strings, or if its `Serialize` implementation fails.
pub fn json_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("a plugin's own types serialise")
}

/// A piece with a fixed text.
pub fn text(part: impl Into<String>) -> Piece {
    Piece::Text(part.into())
}

/// A piece that expands to the replica's index.
#[must_use]
pub fn index() -> Piece {
    Piece::Index(0)
}

/// A piece that expands to the job's name.
#[must_use]
pub fn job_name() -> Piece {
    Piece::JobName
}

/// A piece that expands to the name of the replica's pod.
#[must_use]
pub fn pod_name() -> Piece {
    Piece::PodName
}

/// Returns why this text is not an RFC 1035 label, or None if it is one.
#[must_use]
pub fn dns_label_problem(label: &str) -> Option<&'static str> {
    let letter = |byte: &u8| byte.is_ascii_lowercase();
    let letter_or_digit = |byte: &u8| letter(byte) || byte.is_ascii_digit();
    let bytes = label.as_bytes();
    if !bytes.first().is_some_and(letter) {
        return Some("it must start with a lower case letter");
    }
    if !bytes.iter().all(|byte| letter_or_digit(byte) || *byte == b'-') {
        return Some("it may only have lower case letters, digits and '-'");
    }
    if !bytes.last().is_some_and(letter_or_digit) {
        return Some("it must end with a lower case letter or a digit");
    }
    (bytes.len() > 63).then_some("it must be no more than 63 characters")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_that_cannot_name_a_service_is_refused_with_the_reason() {
        for (label, why) in [("1a", "start"), ("", "start"), ("a.b", "only"), ("aB", "only"), ("a-", "end")] {
            assert!(dns_label_problem(label).unwrap().contains(why), "{label}");
        }
        assert!(dns_label_problem(&"a".repeat(64)).unwrap().contains("63"));
        assert_eq!((dns_label_problem("a-1"), dns_label_problem(&"a".repeat(63))), (None, None));
    }
}
