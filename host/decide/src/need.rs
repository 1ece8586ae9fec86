//! What a plan may need beyond what every pod and every object may have, and the name of the grant that allows it.

/// What a plan may need. A word or more says which: a name, a path, a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Objects of a kind: `Job.batch`.
    Kind,
    /// Objects of a kind removed before their job goes, or jobs themselves.
    Deletion,
    /// The network of the node.
    HostNetwork,
    /// The processes of the node.
    HostPid,
    /// The shared memory of the node.
    HostIpc,
    /// A port of the node.
    HostPort,
    /// A path of the node.
    HostPath,
    /// Everything the node's root may do.
    Privileged,
    /// More rights than the container's first process has.
    PrivilegeEscalation,
    /// User 0, or leave to be it.
    RunAsRoot,
    /// A Linux capability.
    Capability,
    /// A way to mount `/proc`.
    ProcMount,
    /// A kernel parameter.
    Sysctl,
    /// A seccomp profile but the runtime's own.
    SeccompProfile,
    /// An AppArmor profile but the runtime's own.
    AppArmorProfile,
    /// A ServiceAccount.
    ServiceAccount,
    /// A token of the pod's ServiceAccount.
    ServiceAccountToken,
    /// A PriorityClass.
    PriorityClass,
    /// A RuntimeClass.
    RuntimeClass,
    /// A scheduler.
    Scheduler,
    /// Nodes with a taint, by its key.
    Toleration,
    /// Nodes with a label, by its key.
    NodeSelector,
    /// A node.
    NodeName,
    /// A Secret to pull images with.
    PullSecret,
    /// An image.
    Image,
    /// A Secret.
    Secret,
    /// A ConfigMap.
    ConfigMap,
    /// A PersistentVolumeClaim.
    Claim,
    /// A kind of volume: `nfs`.
    Volume,
    /// A type of Service but ClusterIP.
    ServiceType,
    /// What a container runs: the command, its arguments, and those of probes and hooks. The word is the container's image.
    Command,
    /// How a pod finds names: servers, aliases of hosts.
    Dns,
    /// A field that this host does not know to be harmless.
    Field,
    /// A namespace that is not the job's.
    Namespace,
    /// A host that the node's kubelet shall call.
    ProbeHost,
    /// A label or annotation that means something to Kubernetes or to the host.
    Mark,
    /// Who owns an object, and who holds it.
    Identity,
}

impl Need {
    /// All of them.
    pub const ALL: [Self; 37] = [
        Self::Kind,
        Self::Deletion,
        Self::HostNetwork,
        Self::HostPid,
        Self::HostIpc,
        Self::HostPort,
        Self::HostPath,
        Self::Privileged,
        Self::PrivilegeEscalation,
        Self::RunAsRoot,
        Self::Capability,
        Self::ProcMount,
        Self::Sysctl,
        Self::SeccompProfile,
        Self::AppArmorProfile,
        Self::ServiceAccount,
        Self::ServiceAccountToken,
        Self::PriorityClass,
        Self::RuntimeClass,
        Self::Scheduler,
        Self::Toleration,
        Self::NodeSelector,
        Self::NodeName,
        Self::PullSecret,
        Self::Image,
        Self::Secret,
        Self::ConfigMap,
        Self::Claim,
        Self::Volume,
        Self::ServiceType,
        Self::Command,
        Self::Dns,
        Self::Field,
        Self::Namespace,
        Self::ProbeHost,
        Self::Mark,
        Self::Identity,
    ];
}
