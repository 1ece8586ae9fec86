//! Maps each need to its grant, and decides what a grant covers.

use super::Grants;
use crate::need::Need;
use std::collections::BTreeSet;

/// The grant of a need.
#[derive(Debug)]
pub(super) enum Held<'a> {
    /// Granted or not.
    Flag(bool),
    /// The granted words.
    List(&'a BTreeSet<String>),
    /// No grant can allow the need.
    Never,
}

/// Returns the name of the grant in `spec.grants`; `None` where no grant can allow the need.
pub(crate) fn name(need: Need) -> Option<&'static str> {
    Some(match need {
        Need::Kind => "kinds",
        Need::Deletion => "deletes",
        Need::HostNetwork => "hostNetwork",
        Need::HostPid => "hostPID",
        Need::HostIpc => "hostIPC",
        Need::HostPort => "hostPorts",
        Need::HostPath => "hostPaths",
        Need::Privileged => "privileged",
        Need::PrivilegeEscalation => "allowPrivilegeEscalation",
        Need::RunAsRoot => "runAsRoot",
        Need::Capability => "capabilities",
        Need::ProcMount => "procMounts",
        Need::Sysctl => "sysctls",
        Need::SeccompProfile => "seccompProfiles",
        Need::AppArmorProfile => "appArmorProfiles",
        Need::ServiceAccount => "serviceAccounts",
        Need::ServiceAccountToken => "serviceAccountToken",
        Need::PriorityClass => "priorityClasses",
        Need::RuntimeClass => "runtimeClasses",
        Need::Scheduler => "schedulers",
        Need::Toleration => "tolerations",
        Need::NodeSelector => "nodeSelectors",
        Need::NodeName => "nodeNames",
        Need::PullSecret => "imagePullSecrets",
        Need::Image => "images",
        Need::Secret => "secrets",
        Need::ConfigMap => "configMaps",
        Need::Claim => "persistentVolumeClaims",
        Need::Volume => "volumes",
        Need::ServiceType => "serviceTypes",
        Need::Command => "commands",
        Need::Dns => "dns",
        Need::Field => "otherFields",
        Need::Namespace | Need::ProbeHost | Need::Mark | Need::Identity => return None,
    })
}

impl Grants {
    /// Returns the grant of a need.
    pub(super) fn held(&self, need: Need) -> Held<'_> {
        match need {
            Need::HostNetwork => Held::Flag(self.host_network),
            Need::HostPid => Held::Flag(self.host_pid),
            Need::HostIpc => Held::Flag(self.host_ipc),
            Need::HostPort => Held::Flag(self.host_ports),
            Need::Privileged => Held::Flag(self.privileged),
            Need::PrivilegeEscalation => Held::Flag(self.allow_privilege_escalation),
            Need::RunAsRoot => Held::Flag(self.run_as_root),
            Need::ServiceAccountToken => Held::Flag(self.service_account_token),
            Need::Command => Held::Flag(self.commands),
            Need::Dns => Held::Flag(self.dns),
            Need::Kind => Held::List(&self.kinds),
            Need::Deletion => Held::List(&self.deletes),
            Need::HostPath => Held::List(&self.host_paths),
            Need::Capability => Held::List(&self.capabilities),
            Need::ProcMount => Held::List(&self.proc_mounts),
            Need::Sysctl => Held::List(&self.sysctls),
            Need::SeccompProfile => Held::List(&self.seccomp_profiles),
            Need::AppArmorProfile => Held::List(&self.app_armor_profiles),
            Need::ServiceAccount => Held::List(&self.service_accounts),
            Need::PriorityClass => Held::List(&self.priority_classes),
            Need::RuntimeClass => Held::List(&self.runtime_classes),
            Need::Scheduler => Held::List(&self.schedulers),
            Need::Toleration => Held::List(&self.tolerations),
            Need::NodeSelector => Held::List(&self.node_selectors),
            Need::NodeName => Held::List(&self.node_names),
            Need::PullSecret => Held::List(&self.image_pull_secrets),
            Need::Image => Held::List(&self.images),
            Need::Secret => Held::List(&self.secrets),
            Need::ConfigMap => Held::List(&self.config_maps),
            Need::Claim => Held::List(&self.persistent_volume_claims),
            Need::Volume => Held::List(&self.volumes),
            Need::ServiceType => Held::List(&self.service_types),
            Need::Field => Held::List(&self.other_fields),
            Need::Namespace | Need::ProbeHost | Need::Mark | Need::Identity => Held::Never,
        }
    }

    /// Grants `word` for a need. Does nothing where no grant can allow the need.
    pub fn grant(&mut self, need: Need, word: &str) {
        let list = match need {
            Need::HostNetwork => return self.host_network = true,
            Need::HostPid => return self.host_pid = true,
            Need::HostIpc => return self.host_ipc = true,
            Need::HostPort => return self.host_ports = true,
            Need::Privileged => return self.privileged = true,
            Need::PrivilegeEscalation => return self.allow_privilege_escalation = true,
            Need::RunAsRoot => return self.run_as_root = true,
            Need::ServiceAccountToken => return self.service_account_token = true,
            Need::Command => return self.commands = true,
            Need::Dns => return self.dns = true,
            Need::Namespace | Need::ProbeHost | Need::Mark | Need::Identity => return,
            Need::Kind => &mut self.kinds,
            Need::Deletion => &mut self.deletes,
            Need::HostPath => &mut self.host_paths,
            Need::Capability => &mut self.capabilities,
            Need::ProcMount => &mut self.proc_mounts,
            Need::Sysctl => &mut self.sysctls,
            Need::SeccompProfile => &mut self.seccomp_profiles,
            Need::AppArmorProfile => &mut self.app_armor_profiles,
            Need::ServiceAccount => &mut self.service_accounts,
            Need::PriorityClass => &mut self.priority_classes,
            Need::RuntimeClass => &mut self.runtime_classes,
            Need::Scheduler => &mut self.schedulers,
            Need::Toleration => &mut self.tolerations,
            Need::NodeSelector => &mut self.node_selectors,
            Need::NodeName => &mut self.node_names,
            Need::PullSecret => &mut self.image_pull_secrets,
            Need::Image => &mut self.images,
            Need::Secret => &mut self.secrets,
            Need::ConfigMap => &mut self.config_maps,
            Need::Claim => &mut self.persistent_volume_claims,
            Need::Volume => &mut self.volumes,
            Need::ServiceType => &mut self.service_types,
            Need::Field => &mut self.other_fields,
        };
        list.insert(word.to_owned());
    }
}

/// Returns whether the granted words cover this one.
pub(super) fn covers(need: Need, granted: &BTreeSet<String>, word: &str) -> bool {
    let any = granted.contains("*") && !matches!(need, Need::Kind | Need::Deletion);
    any || granted.contains(word)
        || match need {
            Need::HostPath => granted.iter().any(|path| is_below(path, word)),
            Need::Image => granted.iter().any(|repository| is_of(repository, word)),
            _ => false,
        }
}

/// Returns whether the path is the folder or below it. A path with `..` is below no folder.
fn is_below(folder: &str, path: &str) -> bool {
    let parts = |path: &str| -> Vec<String> {
        path.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect()
    };
    let path = parts(path);
    folder.starts_with('/') && !path.iter().any(|part| part == "..") && path.starts_with(&parts(folder))
}

/// Returns whether the image is of this repository, with any tag or digest.
fn is_of(repository: &str, image: &str) -> bool {
    let rest = image.strip_prefix(repository).unwrap_or_default();
    rest.starts_with('@') || (rest.starts_with(':') && !rest.contains('/'))
}
