//! The parameters of the admission policy in `deploy/fence.yaml`, which denies what no plugin is granted.

use super::{Host, Plugin};
use crate::crds;
use decide::{
    grants::{Grants, GrantsError, Need},
    plan::JobKind,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// What the policy denies unless somebody is granted it, beside [`OF_USERS`]: what reaches the node that a pod runs on, or
/// out of the cluster.
const FENCED: [Need; 13] = [
    Need::HostNetwork,
    Need::HostPid,
    Need::HostIpc,
    Need::HostPort,
    Need::Privileged,
    Need::HostPath,
    Need::Capability,
    Need::ProcMount,
    Need::Sysctl,
    Need::SeccompProfile,
    Need::AppArmorProfile,
    Need::ServiceType,
    Need::Field,
];

/// What the policy denies as well, and the user of a job can give his own pods without the host: the API server lets
/// whoever makes pods in a namespace name it. The policy cannot see who named it, so it allows all unless somebody says
/// which.
const OF_USERS: [Need; 6] = [
    Need::ServiceAccount,
    Need::ServiceAccountToken,
    Need::Secret,
    Need::NodeName,
    Need::Toleration,
    Need::PriorityClass,
];

/// Returns the grants for pods of users' jobs where nobody says otherwise.
#[must_use]
pub fn users_by_default() -> Grants {
    let mut grants = Grants::default();
    OF_USERS.into_iter().for_each(|need| grants.grant(need, "*"));
    grants
}

/// Returns the grants for pods of users' jobs of what somebody says of them: a field as in `spec.grants` of a Plugin
/// replaces that of [`users_by_default`].
///
/// # Errors
/// A field is no grant.
pub fn users(said: &Value) -> Result<Grants, GrantsError> {
    let mut all = serde_json::to_value(users_by_default()).unwrap_or_default();
    if let (Value::Object(all), Value::Object(said)) = (&mut all, said) {
        all.extend(said.clone());
        return Grants::asked(&Value::Object(std::mem::take(all)));
    }
    Grants::asked(said)
}

/// Returns the ConfigMap that the policy `fence` reads. Lists have one word per line. `users` are the grants for pods of
/// users' jobs beyond those of plugins.
#[must_use]
pub fn parameters(host: &Host, plugins: &[Plugin], users: &Grants) -> Value {
    let all = plugins.iter().fold(users.clone(), |all, plugin| all.with(&plugin.grants));
    let kinds = || plugins.iter().flat_map(|plugin| &plugin.descriptor.kinds);
    let job_kinds: BTreeSet<_> = kinds().map(JobKind::id).collect();
    let job_resources: BTreeSet<_> = kinds().map(|kind| format!("{}.{}", kind.plural, kind.group)).collect();
    let definitions: BTreeSet<_> = crds::all().into_iter().filter_map(|crd| crd.metadata.name).collect();
    let granted =
        FENCED.into_iter().chain(OF_USERS).filter_map(|need| Some((need.grant()?.to_owned(), all.text(need)?.into())));
    let mut data: Map<String, Value> = granted.collect();
    data.insert("jobKinds".into(), lines(&job_kinds).into());
    data.insert("jobResources".into(), lines(&job_resources).into());
    data.insert("definitions".into(), lines(&definitions).into());
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "troupe-fence", "namespace": host.namespace },
        "data": data,
    })
}

fn lines(words: &BTreeSet<String>) -> String {
    words.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
}
