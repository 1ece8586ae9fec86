//! The pure core: everything the host decides, as functions from values to values.
//!
//! No I/O, no clock, no randomness: `now` is in the [`Snapshot`], and this package depends on no runtime.

pub mod ledger;
pub mod plan;
pub mod snapshot;

pub use snapshot::Snapshot;
