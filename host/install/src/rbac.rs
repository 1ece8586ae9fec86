//! The rights that the host needs, computed from the descriptions and grants of plugins: `deploy/rbac.yaml`.
//!
//! One ClusterRole holds the common rights and one holds those of each plugin. The host's own ClusterRole aggregates
//! all that carry the label [`AGGREGATE`], so a plugin's rights are added and removed with its ClusterRole. A host that
//! serves one namespace has Roles instead.

mod fence;
mod host;
mod policy;
mod users;

pub use fence::{parameters, users, users_by_default};
pub use host::{Host, Serves};
pub use policy::Policy;
pub use users::job_roles;

use decide::{
    gang,
    grants::{Grants, Need},
    plan::{ChildKind, Descriptor, JobKind, OwnedBy, group},
    vet,
    workload::{CLASSES, WORKLOADS},
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// ClusterRoles with this label set to "true" are aggregated into the host's.
pub const AGGREGATE: &str = "troupe.dev/aggregate-to-operator";

/// The name of the host's ClusterRole or Role and of their bindings.
const NAME: &str = "troupe";

const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// A plugin that needs rights.
#[derive(Debug, Clone)]
pub struct Plugin {
    /// The plugin's description of itself.
    pub descriptor: Descriptor,
    /// The grants of the plugin.
    pub grants: Grants,
}

/// A plugin describes kinds that it must not have, for example Secrets: the host would get the right to read them.
#[derive(Debug, thiserror::Error)]
#[error("plugin {plugin}: {why}")]
pub struct NotAllowed {
    /// The plugin's name.
    pub plugin: String,
    /// The kind, and what is wrong with it.
    pub why: String,
}

/// Returns all documents to apply, in order: the host's namespace, its service account, its [`rights`] and the parameters
/// of the fence. `users` are the grants for pods of users' jobs beyond those of plugins, [`users_by_default`] or more.
///
/// # Errors
/// The description of a plugin is not allowed.
pub fn documents(host: &Host, plugins: &[Plugin], users: &Grants) -> Result<Vec<Value>, NotAllowed> {
    let mut documents = vec![
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": host.namespace } }),
        json!({ "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": { "name": host.service_account, "namespace": host.namespace } }),
    ];
    documents.extend(rights(host, plugins)?);
    documents.push(parameters(host, plugins, users));
    Ok(documents)
}

/// Returns the host's roles and their bindings.
///
/// # Errors
/// The description of a plugin is not allowed.
pub fn rights(host: &Host, plugins: &[Plugin]) -> Result<Vec<Value>, NotAllowed> {
    check(plugins)?;
    let mut documents = match &host.serves {
        Serves::Cluster => of_cluster(host, plugins),
        Serves::Namespace(namespace) => {
            let rules = [vec![events()], plugins.iter().flat_map(of_plugin).collect()].concat();
            of_namespace(host, namespace, NAME, &rules).into()
        }
    };
    documents.extend(of_namespace(host, &host.namespace, &format!("{NAME}-own"), &own()));
    Ok(documents)
}

/// Returns the ClusterRoles and the binding of a host that serves all namespaces.
fn of_cluster(host: &Host, plugins: &[Plugin]) -> Vec<Value> {
    // While the roles that it aggregates are deleted, Kubernetes' controller may create this one again: a
    // `helm uninstall --wait` would wait for it for ever.
    let kept = json!({ "helm.sh/resource-policy": "keep" });
    let mut documents = vec![
        json!({
            "apiVersion": RBAC,
            "kind": "ClusterRole",
            "metadata": { "name": NAME, "annotations": kept },
            "aggregationRule": { "clusterRoleSelectors": [{ "matchLabels": { AGGREGATE: "true" } }] },
        }),
        cluster_role("troupe-host", &common(host)),
    ];
    documents.extend(
        plugins
            .iter()
            .map(|plugin| cluster_role(&format!("troupe-plugin-{}", plugin.descriptor.name), &of_plugin(plugin))),
    );
    documents.push(binding(host, "ClusterRoleBinding", &json!({ "name": NAME }), "ClusterRole", NAME));
    documents
}

/// Returns a Role in a namespace and the binding that gives it to the host.
fn of_namespace(host: &Host, namespace: &str, role: &str, rules: &[Value]) -> [Value; 2] {
    let metadata = json!({ "name": role, "namespace": namespace });
    [
        json!({ "apiVersion": RBAC, "kind": "Role", "metadata": metadata, "rules": rules }),
        binding(host, "RoleBinding", &metadata, "Role", role),
    ]
}

/// Fails if the description of a plugin is not allowed.
fn check(plugins: &[Plugin]) -> Result<(), NotAllowed> {
    plugins.iter().try_for_each(|Plugin { descriptor, .. }| {
        let refused = vet::description(descriptor);
        refused.map_err(|why| NotAllowed { plugin: descriptor.name.clone(), why: why.to_string() })
    })
}

/// Returns the documents as the content of a file such as `deploy/rbac.yaml`.
///
/// # Errors
/// A document cannot be written as YAML.
pub fn yaml(documents: &[Value]) -> Result<String, serde_norway::Error> {
    let texts: Result<Vec<_>, _> = documents.iter().map(serde_norway::to_string).collect();
    Ok(format!("# Generated by `troupe rbac`; a test keeps it so.\n{}", texts?.join("---\n")))
}

fn cluster_role(name: &str, rules: &[Value]) -> Value {
    let metadata = json!({ "name": name, "labels": { AGGREGATE: "true" } });
    json!({ "apiVersion": RBAC, "kind": "ClusterRole", "metadata": metadata, "rules": rules })
}

fn binding(host: &Host, kind: &str, metadata: &Value, role_kind: &str, role: &str) -> Value {
    json!({
        "apiVersion": RBAC,
        "kind": kind,
        "metadata": metadata,
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role },
        "subjects": [{ "kind": "ServiceAccount", "name": host.service_account, "namespace": host.namespace }],
    })
}

/// The rights that the host needs in all namespaces with any plugins.
fn common(host: &Host) -> Vec<Value> {
    let mut rules = vec![
        events(),
        rule("troupe.dev", "plugins", &["get", "list", "watch"]),
        rule("troupe.dev", "plugins/status", &["patch"]),
        // To see whether the policies around the host are applied.
        rule("admissionregistration.k8s.io", "validatingadmissionpolicies", &["get"]),
        rule("admissionregistration.k8s.io", "validatingadmissionpolicybindings", &["get"]),
        // To authorize readers of the admin port.
        rule("authentication.k8s.io", "tokenreviews", &["create"]),
        rule("authorization.k8s.io", "subjectaccessreviews", &["create"]),
    ];
    if host.installs_crds {
        rules.push(rule("apiextensions.k8s.io", "customresourcedefinitions", &["create", "patch"]));
    }
    rules
}

fn events() -> Value {
    rule("", "events", &["create"])
}

/// The rights in the host's own namespace: the lease, the plugin archive and the fence's parameters, and Secrets to fetch
/// plugins with.
fn own() -> Vec<Value> {
    vec![
        rule("coordination.k8s.io", "leases", &["get", "create", "update"]),
        rule("", "configmaps", &["get", "list", "watch", "create", "delete", "patch"]),
        rule("", "secrets", &["get"]),
    ]
}

/// The minimal rights for the plugin's jobs; kinds that are not granted add no rights.
fn of_plugin(Plugin { descriptor, grants }: &Plugin) -> Vec<Value> {
    let mut rules: Vec<_> = descriptor.kinds.iter().flat_map(|kind| of_jobs(kind, grants)).collect();
    for child in descriptor.children.iter().filter(|child| grants.allows(Need::Kind, &child.id())) {
        if child.owned_by == OwnedBy::Pod {
            rules.push(rule(child.group(), &child.plural, &["list", "watch"]));
            continue;
        }
        let rights = rule(child.group(), &child.plural, &verbs(child, grants));
        // A kind in two versions has its rights once.
        if !rules.contains(&rights) {
            rules.push(rights);
        }
        if child.id() == "Job.batch" && child.can_be_followed() {
            // The status of a Job that counts as started is reset before the Job is released.
            rules.push(rule("batch", "jobs/status", &["patch"]));
        }
    }
    if grants.allows(Need::Kind, "Secret") {
        rules.push(rule("", "secrets", &["get", "create"]));
    }
    let read: BTreeSet<_> = descriptor.reads.iter().map(|reference| reference.kind).collect();
    for kind in read.into_iter().filter(|kind| grants.allows(Need::Reading, kind.kind())) {
        rules.push(rule("", kind.plural(), &["get"]));
    }
    if descriptor.children.iter().any(|child| gang::is_reported(&child.api_version, &child.kind)) {
        // What the scheduler of a gang says in events alone.
        rules.push(rule("", "events", &["list", "watch"]));
    }
    if descriptor.may_be_queued_by_host() {
        rules.extend(of_queues());
    }
    rules
}

/// The rights to queue jobs: used only where the API server serves these kinds.
fn of_queues() -> Vec<Value> {
    let (workloads, plural) = (group(WORKLOADS.api_version), WORKLOADS.plural);
    let mut rules = vec![
        rule(workloads, plural, &["get", "list", "watch", "create", "patch", "delete"]),
        rule(workloads, &format!("{plural}/status"), &["patch"]),
    ];
    rules.extend(CLASSES.iter().map(|class| rule(class.group(), class.plural, &["list", "watch"])));
    rules
}

fn of_jobs(kind: &JobKind, grants: &Grants) -> [Value; 3] {
    let mut verbs = vec!["list", "watch"];
    if !kind.retired_finalizers.is_empty() {
        verbs.push("patch");
    }
    if grants.allows(Need::Deletion, &kind.id()) {
        verbs.push("delete");
    }
    [
        rule(&kind.group, &kind.plural, &verbs),
        rule(&kind.group, &format!("{}/status", kind.plural), &["patch"]),
        // Required to set `blockOwnerDeletion` in an owner reference to a job.
        rule(&kind.group, &format!("{}/finalizers", kind.plural), &["update"]),
    ]
}

/// Returns the verbs for a kind of child: `get` to read the object on a name conflict, `patch` only for kinds with fields
/// that a plan may change (not for pods), `delete` for pods and where it is granted.
fn verbs(child: &ChildKind, grants: &Grants) -> Vec<&'static str> {
    let mut verbs = vec!["get", "list", "watch", "create"];
    let is_pod = child.id() == "Pod";
    if child.can_be_followed() && !is_pod {
        verbs.push("patch");
    }
    if is_pod || grants.allows(Need::Deletion, &child.id()) {
        verbs.push("delete");
    }
    verbs
}

fn rule(group: &str, resource: &str, verbs: &[&str]) -> Value {
    json!({ "apiGroups": [group], "resources": [resource], "verbs": verbs })
}
