//! What a plugin's plans may contain beyond what the job's user asks for: nothing, unless it is granted.

mod held;

use crate::need::Need;
use held::Held;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeSet, fmt};

/// The JSON schema keyword of a setting that says which grant the value of the setting is.
const MARK: &str = "x-troupe-grants";

/// What is granted to a plugin, or asked for by one. What does not stand here comes from the job's user or not at all. A
/// list with `*` in it grants all, but for kinds of object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Grants {
    /// Kinds of object that it may have for its jobs: `Pod`, `Job.batch`, `PodGroup.scheduling.volcano.sh`. `Secret` lets it
    /// ask for key pairs, which it never sees.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub kinds: BTreeSet<String>,
    /// Kinds of object that it may have removed before their job goes; with the kind of a job, jobs by their time to live.
    /// Pods may be removed anyway.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub deletes: BTreeSet<String>,
    /// Namespaces whose jobs it may serve; all when it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<BTreeSet<String>>,
    /// The most pods that one job may have; the host's own limit when it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 4_294_967_295_u64))]
    pub max_replicas: Option<u32>,
    /// The most objects beside its pods that one job may have; the host's own limit when it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 4_294_967_295_u64))]
    pub max_objects: Option<u32>,
    /// `hostNetwork`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub host_network: bool,
    /// `hostPID`.
    #[serde(rename = "hostPID", skip_serializing_if = "std::ops::Not::not")]
    pub host_pid: bool,
    /// `hostIPC`.
    #[serde(rename = "hostIPC", skip_serializing_if = "std::ops::Not::not")]
    pub host_ipc: bool,
    /// Ports of the nodes, set aside by the host or named.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub host_ports: bool,
    /// Paths of the nodes, with everything below them.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub host_paths: BTreeSet<String>,
    /// Privileged containers.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub privileged: bool,
    /// `allowPrivilegeEscalation: true`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_privilege_escalation: bool,
    /// `runAsUser: 0` and `runAsNonRoot: false`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub run_as_root: bool,
    /// Linux capabilities: `IPC_LOCK`.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub capabilities: BTreeSet<String>,
    /// `procMount`: `Unmasked`.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub proc_mounts: BTreeSet<String>,
    /// Kernel parameters by name.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub sysctls: BTreeSet<String>,
    /// Seccomp profiles: `Unconfined`, `Localhost/PROFILE`.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub seccomp_profiles: BTreeSet<String>,
    /// AppArmor profiles: `Unconfined`, `Localhost/PROFILE`.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub app_armor_profiles: BTreeSet<String>,
    /// ServiceAccounts, in the job's namespace.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub service_accounts: BTreeSet<String>,
    /// Tokens of the pod's ServiceAccount.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub service_account_token: bool,
    /// PriorityClasses.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub priority_classes: BTreeSet<String>,
    /// RuntimeClasses.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub runtime_classes: BTreeSet<String>,
    /// Schedulers: `volcano`.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub schedulers: BTreeSet<String>,
    /// Taints that its pods may tolerate, by key.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub tolerations: BTreeSet<String>,
    /// Labels of nodes that its pods may be sent to, by key.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub node_selectors: BTreeSet<String>,
    /// Nodes that its pods may be sent to.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub node_names: BTreeSet<String>,
    /// Secrets to pull images with, in the job's namespace.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub image_pull_secrets: BTreeSet<String>,
    /// Images of containers that it adds; without tag and digest, any of the repository.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub images: BTreeSet<String>,
    /// Secrets, in the job's namespace.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub secrets: BTreeSet<String>,
    /// ConfigMaps, in the job's namespace.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub config_maps: BTreeSet<String>,
    /// PersistentVolumeClaims, in the job's namespace.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub persistent_volume_claims: BTreeSet<String>,
    /// Other kinds of volume: `nfs`, `csi`, `projected.podCertificate`.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub volumes: BTreeSet<String>,
    /// Types of Service but ClusterIP: `NodePort`.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub service_types: BTreeSet<String>,
    /// What containers with an image of the user's run: `command`, `args`, and those of probes and hooks. Containers with an
    /// image that is granted may run anything.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub commands: bool,
    /// How pods find names: `dnsConfig`, `hostAliases`, and a `dnsPolicy` without the cluster's own names.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dns: bool,
    /// Fields of pods, containers and Services that the host does not know to be harmless: `resourceClaims`,
    /// `securityContext.seLinuxOptions`.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub other_fields: BTreeSet<String>,
}

/// Why the grants that a plugin asks for cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrantsError {
    /// This host knows no grant of this name.
    #[error("grants: this host knows no grant {0:?}")]
    Unknown(String),
    /// A value has the wrong type; the text says which is expected.
    #[error("grants: {0}")]
    Value(String),
}

impl Grants {
    /// Parses the grants that a plugin asks for: JSON as in `spec.grants` of a Plugin.
    ///
    /// # Errors
    /// The JSON has a name that this host does not know, or a value of the wrong type.
    pub fn asked(json: &Value) -> Result<Self, GrantsError> {
        let schema = schemars::schema_for!(Self);
        let known = schema.get("properties").and_then(Value::as_object);
        let is_known = |name: &String| known.is_some_and(|known| known.contains_key(name));
        if let Some(name) = json.as_object().into_iter().flatten().map(|(name, _)| name).find(|name| !is_known(name)) {
            return Err(GrantsError::Unknown(name.clone()));
        }
        Self::deserialize(json).map_err(|error| GrantsError::Value(error.to_string()))
    }

    /// Returns what the cluster operator's settings for a plugin grant: the values of settings that the plugin's schema
    /// marks as images or schedulers (`"x-troupe-grants": "images"`). Whoever sets them wants them used.
    #[must_use]
    pub fn by_settings(schema: &Value, config: &Value) -> Self {
        let mut grants = Self::default();
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let Some(value) = config.get(name).and_then(Value::as_str).filter(|value| !value.is_empty()) else {
                continue;
            };
            match property.get(MARK).and_then(Value::as_str) {
                Some("images") => grants.grant(Need::Image, value),
                Some("schedulers") => grants.grant(Need::Scheduler, value),
                _ => {}
            }
        }
        grants
    }

    /// Returns the grants of both, with the limits of `self`.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        for (need, word) in other.all() {
            self.grant(need, &word);
        }
        self
    }

    /// Returns whether this is granted.
    #[must_use]
    pub fn allows(&self, need: Need, word: &str) -> bool {
        match self.held(need) {
            // A granted image may run any command.
            Held::Flag(is_granted) if need == Need::Command => is_granted || self.allows(Need::Image, word),
            Held::Flag(is_granted) => is_granted,
            Held::List(words) => held::covers(need, words, word),
            Held::Never => false,
        }
    }

    /// Returns whether the plugin may serve jobs of this namespace.
    #[must_use]
    pub fn serves(&self, namespace: &str) -> bool {
        self.namespaces.as_ref().is_none_or(|namespaces| namespaces.contains(namespace))
    }

    /// Returns every single grant, without limits.
    fn all(&self) -> Vec<(Need, String)> {
        let of = |need: Need| match self.held(need) {
            Held::Flag(true) => vec![(need, String::new())],
            Held::List(words) => words.iter().map(|word| (need, word.clone())).collect(),
            Held::Flag(false) | Held::Never => vec![],
        };
        Need::ALL.into_iter().flat_map(of).collect()
    }
}

/// Returns what is asked for and not granted; empty when the plugin may be used. Its `Display` is what to add under
/// `spec.grants`. Limits (`namespaces`, `maxReplicas`, `maxObjects`) are never missing.
#[must_use]
pub fn missing(asked: &Grants, granted: &Grants) -> Grants {
    let mut missing = Grants::default();
    for (need, word) in asked.all() {
        if !granted.allows(need, &word) {
            missing.grant(need, &word);
        }
    }
    missing
}

/// Returns the grant that would allow this, as in `spec.grants`; `None` where no grant can allow it.
pub(crate) fn example(need: Need, word: &str) -> Option<String> {
    let mut grants = Grants::default();
    grants.grant(need, word);
    match grants.held(need) {
        Held::Flag(_) => Some(format!("{}: true", held::name(need)?)),
        Held::List(_) => Some(format!("{}: [{word}]", held::name(need)?)),
        Held::Never => None,
    }
}

/// Formats as YAML, one line for each grant.
impl fmt::Display for Grants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = serde_json::to_value(self).unwrap_or_default();
        for (at, (name, value)) in all.as_object().into_iter().flatten().enumerate() {
            let line_break = if at == 0 { "" } else { "\n" };
            write!(f, "{line_break}{name}: {value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn grants(json: &Value) -> Grants {
        Grants::asked(json).unwrap()
    }

    #[test]
    fn the_missing_grants_are_what_to_add() {
        let asked = grants(&json!({ "kinds": ["Pod", "Job.batch"], "hostNetwork": true, "hostPaths": ["/data/sets"],
            "images": ["busybox:1.36"], "capabilities": ["IPC_LOCK", "SYS_PTRACE"], "namespaces": ["a"] }));
        let granted = grants(&json!({ "kinds": ["Pod"], "hostPaths": ["/data"], "images": ["busybox"],
            "capabilities": ["IPC_LOCK"] }));
        let missing = missing(&asked, &granted);
        assert_eq!(missing.to_string(), "capabilities: [\"SYS_PTRACE\"]\nhostNetwork: true\nkinds: [\"Job.batch\"]");
        assert_eq!(super::missing(&asked, &granted.clone().with(&missing)), Grants::default());
    }

    #[test]
    fn a_grant_that_this_host_does_not_know_is_refused_by_its_name() {
        let error = |json| Grants::asked(&json).unwrap_err().to_string();
        assert_eq!(error(json!({ "hostNetworks": true })), "grants: this host knows no grant \"hostNetworks\"");
        assert!(error(json!({ "hostNetwork": "yes" })).contains("expected a boolean"));
    }

    #[test]
    fn every_grant_is_held_under_one_need_and_every_need_but_four_has_one() {
        let mut all = Grants::default();
        for need in Need::ALL {
            all.grant(need, "x");
        }
        let names = |json: &Value| json.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        let mut known = names(schemars::schema_for!(Grants).get("properties").unwrap());
        known.retain(|name| !["namespaces", "maxReplicas", "maxObjects"].contains(&name.as_str()));
        assert_eq!(names(&serde_json::to_value(&all).unwrap()), known);
        let named: Vec<_> = Need::ALL.into_iter().filter_map(held::name).map(str::to_owned).collect();
        assert_eq!(named.iter().cloned().collect::<BTreeSet<_>>(), known);
        assert_eq!((named.len(), named.len() + 4), (known.len(), Need::ALL.len()));
    }

    #[test]
    fn a_setting_that_the_schema_marks_grants_its_own_value() {
        let schema = json!({ "properties": {
            "initImage": { "type": "string", "x-troupe-grants": "images" },
            "scheduler": { "type": "string", "x-troupe-grants": "schedulers" },
            "folder": { "type": "string", "x-troupe-grants": "hostPaths" },
        } });
        let config = json!({ "initImage": "busybox", "scheduler": "", "folder": "/" });
        assert_eq!(Grants::by_settings(&schema, &config), grants(&json!({ "images": ["busybox"] })));
    }

    #[test]
    fn a_path_covers_what_is_below_it_and_nothing_beside() {
        let data = grants(&json!({ "hostPaths": ["/data"] }));
        for (path, is_granted) in [
            ("/data", true),
            ("/data/", true),
            ("/data/x", true),
            ("/database", false),
            ("/data/../etc", false),
            ("/", false),
        ] {
            assert_eq!(data.allows(Need::HostPath, path), is_granted, "{path}");
        }
    }

    #[test]
    fn a_repository_covers_its_tags_and_digests_and_nothing_beside() {
        let images = grants(&json!({ "images": ["example.org/tools", "localhost"] }));
        for (image, is_granted) in [
            ("example.org/tools", true),
            ("example.org/tools:1", true),
            ("example.org/tools@sha256:0", true),
            ("example.org/tools/evil", false),
            ("localhost:5000/evil", false),
            ("example.org/toolsevil", false),
        ] {
            assert_eq!(images.allows(Need::Image, image), is_granted, "{image}");
        }
    }

    #[test]
    fn an_asterisk_covers_everything_but_kinds_of_object() {
        let all = grants(&json!({ "kinds": ["*"], "deletes": ["*"], "capabilities": ["*"] }));
        assert!(all.allows(Need::Capability, "SYS_ADMIN"));
        assert!(!all.allows(Need::Kind, "Pod") && !all.allows(Need::Deletion, "Service"));
    }
}
