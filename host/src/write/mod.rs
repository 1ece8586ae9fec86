//! The only way back to the API server: children by `apply`, statuses and events by `publish`.

pub mod apply;
mod bodies;
pub mod error;
pub(crate) mod keys;
pub mod publish;
pub(crate) mod published;
pub mod warnings;
