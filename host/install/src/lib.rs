//! What a cluster needs before a host runs in it: CRDs, rights, and checks of the cluster (`troupe preflight`).

pub mod check;
pub mod crds;
pub mod preflight;
pub mod rbac;
