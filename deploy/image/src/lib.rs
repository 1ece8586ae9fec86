//! The container image of Troupe as an OCI archive, made without a container runtime: `cargo run -p image`.

pub mod build;
pub mod oci;
pub mod run;
pub mod troupe;
