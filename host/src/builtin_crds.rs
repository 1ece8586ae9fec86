// The one list of built-in plugins in this package beside build.rs: their CRDs, and the operators that they replace.
fn builtin_crds() -> Vec<CustomResourceDefinition> {
    vec![mpi::crd::crd(), paddle::crd::crd(), rhino::crd::crd()]
}

fn builtin_originals() -> [Original; 3] {
    [mpi::original::ORIGINAL, paddle::original::ORIGINAL, rhino::original::ORIGINAL]
}
