//! The original operator of MPIJobs.

use troupe_plugin::original::Original;

/// Kubeflow's mpi-operator, the versions that serve v2beta1.
pub const ORIGINAL: Original = Original {
    name: "mpi-operator",
    leases: &["mpi-operator"],
    deployments: &["mpi-operator"],
    images: &["mpioperator/mpi-operator", "kubeflow/mpi-operator/controller"],
    webhooks: &[],
    flags: &["gang-scheduling", "lock-namespace"],
};
