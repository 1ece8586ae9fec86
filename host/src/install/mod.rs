//! What a cluster needs before a host runs in it: CRDs, rights, and a look at what is there (`troupe preflight`).

pub mod crds;
pub mod preflight;
pub mod rbac;
