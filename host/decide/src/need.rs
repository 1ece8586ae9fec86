//! What a plan may need beyond what every pod and every object may have.

/// A need of a plan. A word says which one: a name, a path, a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Objects of a kind: `Job.batch`.
    Kind,
    /// Deletion of objects of a kind before their job is deleted, or of jobs themselves.
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
    /// A privileged container: all rights of root on the node.
    Privileged,
    /// More rights than the container's first process has.
    PrivilegeEscalation,
    /// User 0, or permission to run as user 0.
    RunAsRoot,
    /// A Linux capability.
    Capability,
    /// A way to mount `/proc`.
    ProcMount,
    /// A kernel parameter.
    Sysctl,
    /// A seccomp profile other than the runtime's default.
    SeccompProfile,
    /// An AppArmor profile other than the runtime's default.
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
    /// Nodes with a taint, by the taint's key.
    Toleration,
    /// Nodes with a label, by the label's key.
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
    /// A type of Service other than ClusterIP.
    ServiceType,
    /// The command of a container, its arguments, and those of probes and hooks. The word is the container's image.
    Command,
    /// How a pod resolves names: DNS servers, host aliases.
    Dns,
    /// A field that this host does not know to be harmless.
    Field,
    /// A namespace other than the job's.
    Namespace,
    /// A host that the kubelet is to call.
    ProbeHost,
    /// A label or annotation that Kubernetes or the host interprets.
    Mark,
    /// Owner references and finalizers of an object.
    Identity,
}

impl Need {
    /// All needs.
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
