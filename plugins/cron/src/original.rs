//! The operator that CronJobs had before.

use troupe_plugin::original::Original;

/// The project of kubebuilder's tutorial. Its image is called `controller`, as that of every such project, and is no mark.
pub const ORIGINAL: Original = Original {
    name: "kubebuilder's CronJob tutorial",
    leases: &["80807133.tutorial.kubebuilder.io"],
    deployments: &["project-controller-manager"],
    images: &[],
    webhooks: &["project-validating-webhook-configuration"],
    flags: &[],
    metrics: None,
};
