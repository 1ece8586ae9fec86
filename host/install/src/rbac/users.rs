//! The rights of users on jobs, which Kubernetes adds to its own roles view, edit and admin.

use super::{NotAllowed, Plugin, RBAC, check, rule};
use serde_json::{Value, json};

/// The suffix of a ClusterRole, its verbs on jobs, and the roles of Kubernetes that it is added to. Nobody is given the
/// status of jobs, which is the host's.
const ROLES: [(&str, &[&str], &[&str]); 2] = [
    ("view", &["get", "list", "watch"], &["view", "edit", "admin"]),
    ("edit", &["create", "update", "patch", "delete", "deletecollection"], &["edit", "admin"]),
];

/// Returns two ClusterRoles for the kinds of job of each plugin: to view and to edit them. Whoever is bound to one of
/// Kubernetes' roles view, edit or admin in a namespace has these rights there, too.
///
/// # Errors
/// As [`documents`](super::documents).
pub fn job_roles(plugins: &[Plugin]) -> Result<Vec<Value>, NotAllowed> {
    check(plugins)?;
    let roles = |plugin: &Plugin| {
        ROLES.map(|(suffix, verbs, added_to)| {
            let labels =
                added_to.iter().map(|role| (format!("rbac.authorization.k8s.io/aggregate-to-{role}"), json!("true")));
            let labels: serde_json::Map<_, _> = labels.collect();
            let name = format!("troupe-plugin-{}-{suffix}", plugin.descriptor.name);
            let rules = plugin.descriptor.kinds.iter().map(|kind| rule(&kind.group, &kind.plural, verbs));
            json!({ "apiVersion": RBAC, "kind": "ClusterRole", "metadata": { "name": name, "labels": labels },
            "rules": rules.collect::<Vec<_>>() })
        })
    };
    Ok(plugins.iter().flat_map(roles).collect())
}
