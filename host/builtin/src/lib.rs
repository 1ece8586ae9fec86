//! The built-in plugins. In `host/`, only this file and `build.rs` contain their names.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use troupe_plugin::original::Original;

include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

/// Returns the CRD of each kind that the plugins serve.
#[must_use]
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![mpi::crd::crd(), paddle::crd::crd(), rhino::crd::crd()]
}

/// Returns how to recognise the original operators that the plugins replace.
#[must_use]
pub fn originals() -> Vec<Original> {
    vec![mpi::original::ORIGINAL, paddle::original::ORIGINAL, rhino::original::ORIGINAL]
}
