//! Fields that let a pod reach beyond itself: the node, its kernel, other nodes, the API.

use super::{
    marks,
    uses::{Part, Walk},
};
use crate::grants::Need;
use serde_json::{Map, Value};

/// Fields of a security context that remove rights or have no effect beyond the pod.
const PLAIN_IN_SECURITY: &[&str] = &[
    "fsGroup",
    "fsGroupChangePolicy",
    "readOnlyRootFilesystem",
    "runAsGroup",
    "seLinuxChangePolicy",
    "supplementalGroups",
    "supplementalGroupsPolicy",
];

/// DNS policies that resolve the cluster's names.
const OF_THE_CLUSTER: [&str; 2] = ["ClusterFirst", "ClusterFirstWithHostNet"];

impl<'a> Walk<'a> {
    /// Records what a pod may reach by this field. Returns whether the walk can skip the field.
    pub(super) fn feature(&mut self, name: &'a str, value: &'a Value) -> bool {
        match name {
            "hostNetwork" => self.flag(Need::HostNetwork, value),
            "hostPID" => self.flag(Need::HostPid, value),
            "hostIPC" => self.flag(Need::HostIpc, value),
            "automountServiceAccountToken" => self.flag(Need::ServiceAccountToken, value),
            "serviceAccountToken" => self.use_word(Need::ServiceAccountToken, "true"),
            // Without this field a pod uses the node's users anyway.
            "hostUsers" if *value == false => {}
            "hostPort" if value.as_f64() == Some(0.0) => {}
            "hostPort" => self.use_word(Need::HostPort, value.to_string()),
            "hostPath" => return self.host_path(value),
            "securityContext" => return self.security(value),
            "tolerations" => return self.tolerations(value),
            "nodeSelector" => return self.node_selector(value),
            "nodeAffinity" => self.node_affinity(value),
            "command" | "args" => self.use_command(name, value),
            "dnsPolicy" if OF_THE_CLUSTER.iter().any(|policy| value == policy) => {}
            "dnsConfig" | "dnsPolicy" | "hostAliases" => self.use_whole(Need::Dns, name, value),
            "httpGet" | "tcpSocket" => self.probe(value),
            "metadata" => return self.metadata(value),
            _ => return false,
        }
        true
    }

    fn flag(&mut self, need: Need, value: &Value) {
        if *value != false {
            self.use_word(need, value.to_string());
        }
    }

    fn host_path(&mut self, value: &'a Value) -> bool {
        match value {
            Value::String(path) => self.use_word(Need::HostPath, path.as_str()),
            Value::Object(fields) => {
                let path = fields.get("path").and_then(Value::as_str).unwrap_or("/");
                self.under("path", |walk| walk.use_word(Need::HostPath, path));
            }
            _ => return false,
        }
        true
    }

    fn security(&mut self, value: &'a Value) -> bool {
        let Value::Object(fields) = value else { return false };
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            self.under(name, |walk| walk.security_field(name, value));
        }
        true
    }

    fn security_field(&mut self, name: &'a str, value: &'a Value) {
        match name {
            "privileged" => self.flag(Need::Privileged, value),
            "allowPrivilegeEscalation" => self.flag(Need::PrivilegeEscalation, value),
            "runAsNonRoot" if *value == true => {}
            "runAsUser" if value.as_u64().is_some_and(|user| user > 0) => {}
            "runAsNonRoot" | "runAsUser" => self.use_word(Need::RunAsRoot, format!("{name} {value}")),
            "procMount" if value == "Default" => {}
            "procMount" => self.use_word(Need::ProcMount, value.as_str().unwrap_or("?")),
            "capabilities" => {
                if let Some(Value::Array(added)) = value.get("add") {
                    self.under("add", |walk| {
                        walk.each(added, |walk, one| walk.use_word(Need::Capability, one.as_str().unwrap_or("?")));
                    });
                }
            }
            "sysctls" => {
                let Value::Array(all) = value else { return };
                self.each(all, |walk, one| {
                    walk.use_whole(Need::Sysctl, one["name"].as_str().unwrap_or("?"), one);
                });
            }
            "seccompProfile" => self.profile(Need::SeccompProfile, value),
            "appArmorProfile" => self.profile(Need::AppArmorProfile, value),
            name if PLAIN_IN_SECURITY.contains(&name) => {}
            name => self.use_whole(Need::Field, format!("securityContext.{name}"), value),
        }
    }

    fn profile(&mut self, need: Need, value: &'a Value) {
        match (value["type"].as_str().unwrap_or("?"), value["localhostProfile"].as_str()) {
            ("RuntimeDefault", _) => {}
            (kind, None) => self.use_word(need, kind),
            (kind, Some(profile)) => self.use_word(need, format!("{kind}/{profile}")),
        }
    }

    fn tolerations(&mut self, value: &'a Value) -> bool {
        let Value::Array(all) = value else { return false };
        self.each(all, |walk, one| {
            let key = one["key"].as_str().filter(|key| !key.is_empty());
            walk.use_whole(Need::Toleration, key.unwrap_or("*"), one);
        });
        true
    }

    fn node_selector(&mut self, value: &'a Value) -> bool {
        let Value::Object(labels) = value else { return false };
        for (label, value) in labels {
            self.under(label, |walk| walk.use_whole(Need::NodeSelector, label.as_str(), value));
        }
        true
    }

    /// Records labels and names of nodes, at any depth.
    fn node_affinity(&mut self, value: &'a Value) {
        match value {
            Value::Array(items) => self.each(items, Self::node_affinity),
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.under(name, |walk| match (name.as_str(), value) {
                        ("matchExpressions", Value::Array(all)) => walk.each(all, |walk, one| {
                            walk.use_whole(Need::NodeSelector, one["key"].as_str().unwrap_or("?"), one);
                        }),
                        ("matchFields", Value::Array(all)) => walk.each(all, |walk, one| {
                            walk.use_whole(Need::NodeName, one["values"][0].as_str().unwrap_or("?"), one);
                        }),
                        _ => walk.node_affinity(value),
                    });
                }
            }
            _ => {}
        }
    }

    /// Records the host of a probe. Without one the kubelet calls the pod itself.
    fn probe(&mut self, value: &'a Value) {
        if let Some(host) = value.get("host").filter(|host| !host.is_null()) {
            self.under("host", |walk| walk.use_word(Need::ProbeHost, host.as_str().unwrap_or("?")));
        }
    }

    /// Records labels and annotations that others interpret. At the top of a template or an object the host sets the
    /// identity, whatever the fields say.
    fn metadata(&mut self, value: &'a Value) -> bool {
        let Value::Object(fields) = value else { return false };
        let is_hosts = self.depth() == 1;
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            self.under(name, |walk| match (name.as_str(), value) {
                ("labels", Value::Object(labels)) => walk.marks(labels, marks::is_reserved_label),
                ("annotations", Value::Object(annotations)) => walk.marks(annotations, marks::is_reserved_annotation),
                ("ownerReferences" | "finalizers", _) if !is_hosts => {
                    walk.use_whole(Need::Identity, name.as_str(), value);
                }
                ("namespace", _) if !is_hosts => {
                    walk.reference(name, value);
                }
                _ => {}
            });
        }
        true
    }

    fn marks(&mut self, marks: &'a Map<String, Value>, is_reserved: fn(&str) -> bool) {
        for (name, value) in marks {
            self.under(name, |walk| match marks::app_armor(name) {
                true if value == "runtime/default" => {}
                true => walk.use_word(Need::AppArmorProfile, marks::profile(value)),
                false if is_reserved(name) => walk.use_whole(Need::Mark, name.as_str(), value),
                false => {}
            });
        }
    }

    /// Records how far a Service can be reached. Its selector is checked elsewhere.
    pub(super) fn service(&mut self, spec: &'a Value) {
        for (name, value) in spec.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
            self.under(name, |walk| match name.as_str() {
                "type" if value == "ClusterIP" => {}
                "type" => walk.use_word(Need::ServiceType, value.as_str().unwrap_or("?")),
                "clusterIP" if value == "None" || value == "" => {}
                name if PLAIN_IN_SERVICE.contains(&name) => walk.value(value, Part::Any),
                name => walk.use_whole(Need::Field, name, value),
            });
        }
    }
}

/// Fields of a Service that neither admit nor send traffic from or to the outside.
const PLAIN_IN_SERVICE: &[&str] = &[
    "internalTrafficPolicy",
    "ipFamilies",
    "ipFamilyPolicy",
    "ports",
    "publishNotReadyAddresses",
    "selector",
    "sessionAffinity",
    "sessionAffinityConfig",
    "trafficDistribution",
];
