//! The original operator of PaddleJobs.

use troupe_plugin::original::Original;

/// PaddlePaddle's paddle-operator, v0.2 to v0.3.
pub const ORIGINAL: Original = Original {
    name: "paddle-operator",
    leases: &["b2a304f2.paddlepaddle.org"],
    deployments: &["paddle-controller-manager"],
    images: &["paddlecloud/controller"],
    webhooks: &[],
    flags: &["initImage"],
    metrics: None,
};
