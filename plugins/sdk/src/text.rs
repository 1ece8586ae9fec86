//! Pieces of text that the host expands for each replica, and JSON as text.

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
