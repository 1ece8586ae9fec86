//! Watches, the stores that they fill, and the snapshots that decisions are made from.

pub(crate) mod accepted;
pub mod cache;
pub(crate) mod children;
pub(crate) mod contents;
pub(crate) mod decode;
mod departures;
pub(crate) mod events;
mod kept;
pub mod layout;
mod observed;
pub(crate) mod pages;
pub mod places;
pub(crate) mod position;
pub(crate) mod records;
pub(crate) mod reports;
pub mod stores;
pub mod table;
pub(crate) mod tombstones;
pub mod watch;
pub mod wire;

pub use decode::of_any_depth;
pub use wire::read_pod;
