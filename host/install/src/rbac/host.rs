//! Where and as whom a host runs.

/// Where and as whom a host runs, and what it serves. The default is `troupe-system/troupe`, which serves all namespaces
/// and may install the CustomResourceDefinitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// The host's namespace.
    pub namespace: String,
    /// The name of its service account.
    pub service_account: String,
    /// The namespaces whose jobs it serves.
    pub serves: Serves,
    /// Whether it runs with `--install-crds`, which takes the right to write CustomResourceDefinitions.
    pub installs_crds: bool,
}

/// The namespaces whose jobs a host serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Serves {
    /// All. The rights are ClusterRoles.
    Cluster,
    /// Only this one (`--namespace`). The rights are Roles: no Plugin is delivered, no CustomResourceDefinition
    /// installed, and nobody but probes reads the admin port.
    Namespace(String),
}

impl Default for Host {
    fn default() -> Self {
        Self {
            namespace: "troupe-system".into(),
            service_account: "troupe".into(),
            serves: Serves::Cluster,
            installs_crds: true,
        }
    }
}

impl Host {
    /// Returns a text about the default host as a text about this one.
    pub(super) fn named_in(&self, text: &str) -> String {
        let Self { namespace, service_account, .. } = Self::default();
        let user = |namespace: &str, name: &str| format!("system:serviceaccount:{namespace}:{name}");
        text.replace(&user(&namespace, &service_account), &user(&self.namespace, &self.service_account))
            .replace(&format!("'{namespace}'"), &format!("'{}'", self.namespace))
            .replace(&format!("namespace: {namespace}"), &format!("namespace: '{}'", self.namespace))
    }
}
