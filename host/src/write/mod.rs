//! The only way back to the API server: children by `apply`, statuses and events by `publish`.

pub mod apply;
pub(crate) mod keys;
pub mod publish;
mod published;
pub mod warnings;
