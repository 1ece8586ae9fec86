//! What can be granted: one table, from which the needs of plans, the grants and what belongs to which follow. A new
//! grant is a row here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The grant of a need.
#[derive(Debug, Clone, Copy)]
pub(super) enum Held<'a> {
    /// Granted or not.
    Flag(bool),
    /// The granted words.
    List(&'a BTreeSet<String>),
    /// No grant can allow the need.
    Never,
}

/// A field of [`Grants`].
trait Field {
    fn held(&self) -> Held<'_>;
    /// Grants this word, or all there is to grant.
    fn grant(&mut self, word: &str);
}

impl Field for bool {
    fn held(&self) -> Held<'_> {
        Held::Flag(*self)
    }

    fn grant(&mut self, _: &str) {
        *self = true;
    }
}

impl Field for BTreeSet<String> {
    fn held(&self) -> Held<'_> {
        Held::List(self)
    }

    fn grant(&mut self, word: &str) {
        self.insert(word.to_owned());
    }
}

fn is_nothing(field: &impl Field) -> bool {
    match field.held() {
        Held::Flag(is_granted) => !is_granted,
        Held::List(words) => words.is_empty(),
        Held::Never => true,
    }
}

/// Each row: what a plan may need, the name of its grant in `spec.grants`, and the field that holds the grant. `never`
/// has the needs that no grant can allow.
macro_rules! table {
    (
        grants { $($(#[$need_doc:meta])* $need:ident = $name:literal: $(#[$doc:meta])* $field:ident: $type:ty,)* }
        never { $($(#[$never_doc:meta])* $never:ident,)* }
    ) => {
        /// A need of a plan, beyond what every pod and every object may have. A word says which one: a name, a path, a
        /// capability.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Need {
            $($(#[$need_doc])* $need,)*
            $($(#[$never_doc])* $never,)*
        }

        impl Need {
            /// All needs.
            pub const ALL: &'static [Self] = &[$(Self::$need,)* $(Self::$never,)*];

            /// Returns the name of the grant in `spec.grants`; `None` where no grant can allow the need.
            #[must_use]
            pub fn grant(self) -> Option<&'static str> {
                match self {
                    $(Self::$need => Some($name),)*
                    $(Self::$never => None,)*
                }
            }
        }

        /// What the plans of a plugin may contain beyond what the job's user asks for. In every list but `kinds` and
        /// `deletes`, `*` grants everything.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", default)]
        pub struct Grants {
            $(
                $(#[$doc])*
                #[serde(rename = $name, skip_serializing_if = "is_nothing")]
                pub $field: $type,
            )*
            /// Namespaces whose jobs the plugin may serve; all namespaces if absent.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub namespaces: Option<BTreeSet<String>>,
            /// Maximum number of pods of one job; the host's own limit if absent.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(range(max = 4_294_967_295_u64))]
            pub max_replicas: Option<u32>,
            /// Maximum number of other objects of one job; the host's own limit if absent.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(range(max = 4_294_967_295_u64))]
            pub max_objects: Option<u32>,
        }

        impl Grants {
            /// Returns the grant of a need.
            pub(super) fn held(&self, need: Need) -> Held<'_> {
                match need {
                    $(Need::$need => self.$field.held(),)*
                    $(Need::$never)|* => Held::Never,
                }
            }

            /// Grants `word` for a need. Does nothing where no grant can allow the need.
            pub fn grant(&mut self, need: Need, word: &str) {
                match need {
                    $(Need::$need => self.$field.grant(word),)*
                    $(Need::$never)|* => {}
                }
            }
        }
    };
}

table! {
    grants {
        /// Objects of a kind: `Job.batch`.
        Kind = "kinds":
            /// Kinds of object that plans may contain: `Pod`, `Job.batch`, `PodGroup.scheduling.volcano.sh` (which allows
            /// the PodGroup of every scheduler). `Secret` allows key pairs, which the host generates and the plugin never
            /// sees.
            kinds: BTreeSet<String>,
        /// Deletion of objects of a kind before their job is deleted, or of jobs themselves.
        Deletion = "deletes":
            /// Kinds of object that the host may delete before it deletes their job. The kind of a job allows a time to
            /// live of jobs. Deleting pods needs no grant.
            deletes: BTreeSet<String>,
        /// The network of the node.
        HostNetwork = "hostNetwork":
            /// Pods in the network namespace of their node: `hostNetwork: true`.
            host_network: bool,
        /// The processes of the node.
        HostPid = "hostPID":
            /// Pods in the process namespace of their node: `hostPID: true`.
            host_pid: bool,
        /// The shared memory of the node.
        HostIpc = "hostIPC":
            /// Pods in the IPC namespace of their node: `hostIPC: true`.
            host_ipc: bool,
        /// A port of the node.
        HostPort = "hostPorts":
            /// Host ports, whether the host assigns them or the plan names them.
            host_ports: bool,
        /// A path of the node.
        HostPath = "hostPaths":
            /// Paths of `hostPath` volumes. A path includes everything below it.
            host_paths: BTreeSet<String>,
        /// A privileged container: all rights of root on the node.
        Privileged = "privileged":
            /// Privileged containers.
            privileged: bool,
        /// More rights than the container's first process has.
        PrivilegeEscalation = "allowPrivilegeEscalation":
            /// Containers with `allowPrivilegeEscalation: true`.
            allow_privilege_escalation: bool,
        /// User 0, or permission to run as user 0.
        RunAsRoot = "runAsRoot":
            /// Containers that may run as root: `runAsUser: 0` and `runAsNonRoot: false`.
            run_as_root: bool,
        /// A Linux capability.
        Capability = "capabilities":
            /// Linux capabilities: `IPC_LOCK`.
            capabilities: BTreeSet<String>,
        /// A way to mount `/proc`.
        ProcMount = "procMounts":
            /// Values of `procMount`: `Unmasked`.
            proc_mounts: BTreeSet<String>,
        /// A kernel parameter.
        Sysctl = "sysctls":
            /// Kernel parameters (sysctls), by name.
            sysctls: BTreeSet<String>,
        /// A seccomp profile other than the runtime's default.
        SeccompProfile = "seccompProfiles":
            /// Seccomp profiles: `Unconfined`, `Localhost/PROFILE`.
            seccomp_profiles: BTreeSet<String>,
        /// An AppArmor profile other than the runtime's default.
        AppArmorProfile = "appArmorProfiles":
            /// AppArmor profiles: `Unconfined`, `Localhost/PROFILE`.
            app_armor_profiles: BTreeSet<String>,
        /// A ServiceAccount.
        ServiceAccount = "serviceAccounts":
            /// ServiceAccounts, in the job's namespace.
            service_accounts: BTreeSet<String>,
        /// A token of the pod's ServiceAccount.
        ServiceAccountToken = "serviceAccountToken":
            /// Whether pods may mount a token of their ServiceAccount.
            service_account_token: bool,
        /// A PriorityClass.
        PriorityClass = "priorityClasses":
            /// PriorityClasses.
            priority_classes: BTreeSet<String>,
        /// A RuntimeClass.
        RuntimeClass = "runtimeClasses":
            /// RuntimeClasses.
            runtime_classes: BTreeSet<String>,
        /// A scheduler.
        Scheduler = "schedulers":
            /// Schedulers: `volcano`.
            schedulers: BTreeSet<String>,
        /// Nodes with a taint, by the taint's key.
        Toleration = "tolerations":
            /// Taints that its pods may tolerate, by key.
            tolerations: BTreeSet<String>,
        /// Nodes with a label, by the label's key.
        NodeSelector = "nodeSelectors":
            /// Node labels that select the nodes of its pods, by key.
            node_selectors: BTreeSet<String>,
        /// A node.
        NodeName = "nodeNames":
            /// Nodes that `nodeName` of its pods may name.
            node_names: BTreeSet<String>,
        /// A Secret to pull images with.
        PullSecret = "imagePullSecrets":
            /// Secrets to pull images with, in the job's namespace.
            image_pull_secrets: BTreeSet<String>,
        /// An image.
        Image = "images":
            /// Images of the containers that it adds. An image without tag and digest allows every image of its
            /// repository.
            images: BTreeSet<String>,
        /// A Secret.
        Secret = "secrets":
            /// Secrets, in the job's namespace.
            secrets: BTreeSet<String>,
        /// A ConfigMap.
        ConfigMap = "configMaps":
            /// ConfigMaps, in the job's namespace.
            config_maps: BTreeSet<String>,
        /// A PersistentVolumeClaim.
        Claim = "persistentVolumeClaims":
            /// PersistentVolumeClaims, in the job's namespace.
            persistent_volume_claims: BTreeSet<String>,
        /// A kind of volume: `nfs`.
        Volume = "volumes":
            /// Other types of volume: `nfs`, `csi`, `projected.podCertificate`.
            volumes: BTreeSet<String>,
        /// A type of Service other than ClusterIP.
        ServiceType = "serviceTypes":
            /// Types of Service other than ClusterIP: `NodePort`.
            service_types: BTreeSet<String>,
        /// The command of a container, its arguments, and those of probes and hooks. The word is the container's image.
        Command = "commands":
            /// Commands of containers with an image of the job's user: `command`, `args`, and those of probes and
            /// hooks. Containers with a granted image may run any command.
            commands: bool,
        /// How a pod resolves names: DNS servers, host aliases.
        Dns = "dns":
            /// How pods resolve names: `dnsConfig`, `hostAliases`, and a `dnsPolicy` that leaves out the cluster's DNS.
            dns: bool,
        /// The content of objects of a kind that the job's user names.
        Reading = "reads":
            /// Kinds of object, `ConfigMap` and `Secret`, whose content its plans may depend on where the job's user names
            /// one. Of a Secret it is shown hashes.
            reads: BTreeSet<String>,
        /// A field that this host does not know to be harmless.
        Field = "otherFields":
            /// Fields of pods, containers and Services that the host does not know to be harmless: `resourceClaims`,
            /// `securityContext.seLinuxOptions`.
            other_fields: BTreeSet<String>,
    }
    never {
        /// A namespace other than the job's.
        Namespace,
        /// A host that the kubelet is to call.
        ProbeHost,
        /// A label or annotation that Kubernetes or the host interprets.
        Mark,
        /// Owner references and finalizers of an object.
        Identity,
    }
}
