//! The original operator of MPIJobs.

use troupe_plugin::original::{Counted, Metrics, Original};

/// Kubeflow's mpi-operator, the versions that serve v2beta1.
pub const ORIGINAL: Original = Original {
    name: "mpi-operator",
    leases: &["mpi-operator"],
    deployments: &["mpi-operator"],
    images: &["mpioperator/mpi-operator", "kubeflow/mpi-operator/controller"],
    webhooks: &[],
    flags: &["gang-scheduling", "lock-namespace"],
    metrics: Some(Metrics {
        kinds: &[("MPIJob.kubeflow.org", "mpi")],
        labels: &[],
        counters: &[
            (Counted::Created, "mpi_operator_jobs_created_total", "MPIJobs that were seen for the first time"),
            (Counted::Succeeded, "mpi_operator_jobs_successful_total", "MPIJobs that succeeded"),
            (Counted::Failed, "mpi_operator_jobs_failed_total", "MPIJobs that failed"),
        ],
        launchers: Some(("mpi_operator_job_info", "Launchers of MPIJobs that are there: 1 for each")),
        leader: Some(("mpi_operator_is_leader", "Whether this host serves: 1 or 0")),
    }),
};
