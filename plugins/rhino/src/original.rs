//! The operator that RhinoJobs had before.

use troupe_plugin::original::Original;

/// OpenRHINO's RHINO-Operator.
pub const ORIGINAL: Original = Original {
    name: "RHINO-Operator",
    leases: &["b62d3386.openrhino.org"],
    deployments: &["rhino-operator-controller-manager"],
    images: &["openrhino/controller"],
    webhooks: &[],
    flags: &[],
    metrics: None,
};
