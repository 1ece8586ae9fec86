// The one list of built-in plugins in this package beside build.rs: their CRDs.
fn builtin_crds() -> Vec<CustomResourceDefinition> {
    vec![mpi::crd::crd(), paddle::crd::crd(), rhino::crd::crd()]
}
