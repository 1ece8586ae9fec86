//! The container image of Troupe as an OCI archive, made without a container runtime: `cargo run -p image`.

pub mod build;
pub mod oci;
pub mod precompiled;
pub mod program;
pub mod run;
pub mod sbom;
pub mod sign;
pub mod troupe;
