//! Texts that the host fills in for each replica, and JSON as text.

use crate::types::Piece;
use serde::Serialize;

/// JSON text: straight from a type of one's own, which costs far less than by way of a `Value`.
///
/// # Panics
/// For a map with keys that are no text, and a type that refuses to be serialised.
pub fn json_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("a plugin's own types serialise")
}

/// A fixed part of a text.
pub fn text(part: impl Into<String>) -> Piece {
    Piece::Text(part.into())
}

/// The replica's index.
#[must_use]
pub fn index() -> Piece {
    Piece::Index(0)
}

/// The job's name.
#[must_use]
pub fn job_name() -> Piece {
    Piece::JobName
}

/// The name of the replica's pod.
#[must_use]
pub fn pod_name() -> Piece {
    Piece::PodName
}
