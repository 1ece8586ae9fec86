//! Texts that the host fills in for each replica.

use crate::types::Piece;

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
