//! The plugins that come with the host. Their names stand in `build.rs` and in this file, and nowhere else in `host/`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use troupe_plugin::original::Original;

include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

/// The CRD of each kind that they serve.
#[must_use]
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![mpi::crd::crd(), paddle::crd::crd(), rhino::crd::crd()]
}

/// How to recognise the operators that they replace.
#[must_use]
pub fn originals() -> Vec<Original> {
    vec![mpi::original::ORIGINAL, paddle::original::ORIGINAL, rhino::original::ORIGINAL]
}
