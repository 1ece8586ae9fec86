//! The original operator of these jobs.

use troupe_plugin::original::Original;

/// Kubeflow's training-operator, the versions that serve `kubeflow.org/v1`.
pub const ORIGINAL: Original = Original {
    name: "training-operator",
    leases: &["1ca428e5.training-operator.kubeflow.org"],
    deployments: &["training-operator"],
    images: &["kubeflow/training-operator", "kubeflow/training-v1/training-operator"],
    webhooks: &["validator.training-operator.kubeflow.org"],
    flags: &["gang-scheduler-name", "pytorch-init-container-image", "pytorch-init-container-max-tries"],
};
