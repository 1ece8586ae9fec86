//! The original operator of these jobs.

use troupe_plugin::original::{Counted, Metrics, Original};

/// Kubeflow's training-operator, the versions that serve `kubeflow.org/v1`.
pub const ORIGINAL: Original = Original {
    name: "training-operator",
    leases: &["1ca428e5.training-operator.kubeflow.org"],
    deployments: &["training-operator"],
    images: &["kubeflow/training-operator", "kubeflow/training-v1/training-operator"],
    webhooks: &["validator.training-operator.kubeflow.org"],
    flags: &["gang-scheduler-name", "pytorch-init-container-image", "pytorch-init-container-max-tries"],
    metrics: Some(Metrics {
        kinds: &[
            ("TFJob.kubeflow.org", "tensorflow"),
            ("PyTorchJob.kubeflow.org", "pytorch"),
            ("XGBoostJob.kubeflow.org", "xgboost"),
            ("JAXJob.kubeflow.org", "jax"),
            ("PaddleJob.kubeflow.org", "paddle"),
        ],
        labels: &["job_namespace", "framework"],
        counters: &[
            (Counted::Created, "training_operator_jobs_created_total", "Jobs that were seen for the first time"),
            (
                Counted::Deleted,
                "training_operator_jobs_deleted_total",
                "Jobs that were deleted after their time to live",
            ),
            (Counted::Succeeded, "training_operator_jobs_successful_total", "Jobs that succeeded"),
            (Counted::Failed, "training_operator_jobs_failed_total", "Jobs that failed"),
            (
                Counted::Restarted,
                "training_operator_jobs_restarted_total",
                "Failed pods that were counted, to be replaced",
            ),
        ],
        launchers: None,
        leader: None,
    }),
};
