//! The parameters of the admission policy in `deploy/fence.yaml`, which denies what no plugin is granted.

use super::{NAMESPACE, Plugin};
use crate::install::crds;
use decide::{grants::Grants, plan::JobKind};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Returns the ConfigMap that the policy reads. Lists have one word per line.
pub(super) fn parameters(plugins: &[Plugin], users: &Grants) -> Value {
    let all = plugins.iter().fold(users.clone(), |all, plugin| all.with(&plugin.grants));
    let kinds = || plugins.iter().flat_map(|plugin| &plugin.descriptor.kinds);
    let job_kinds: BTreeSet<_> = kinds().map(JobKind::id).collect();
    let job_resources: BTreeSet<_> = kinds().map(|kind| format!("{}.{}", kind.plural, kind.group)).collect();
    let definitions: BTreeSet<_> = crds::all().into_iter().filter_map(|crd| crd.metadata.name).collect();
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "troupe-fence", "namespace": NAMESPACE },
        "data": {
            "jobKinds": lines(&job_kinds),
            "jobResources": lines(&job_resources),
            "definitions": lines(&definitions),
            "hostNetwork": all.host_network.to_string(),
            "hostPID": all.host_pid.to_string(),
            "hostIPC": all.host_ipc.to_string(),
            "hostPorts": all.host_ports.to_string(),
            "privileged": all.privileged.to_string(),
            "hostPaths": lines(&all.host_paths),
            "capabilities": lines(&all.capabilities),
            "procMounts": lines(&all.proc_mounts),
            "sysctls": lines(&all.sysctls),
            "seccompProfiles": lines(&all.seccomp_profiles),
            "appArmorProfiles": lines(&all.app_armor_profiles),
        },
    })
}

fn lines(words: &BTreeSet<String>) -> String {
    words.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
}
