//! Templates of plugins that reach beyond their job, each with the grant that allows it.

use serde_json::{Value, json};

/// One attempt: fields of the pod, the container and the metadata; the place in the message; the grant that allows it.
pub(super) struct Attempt {
    pub(super) pod: Value,
    pub(super) container: Value,
    pub(super) metadata: Value,
    pub(super) at: &'static str,
    pub(super) grant: Option<Value>,
}

fn in_pod(pod: Value, at: &'static str, grant: Value) -> Attempt {
    Attempt { pod, container: json!({}), metadata: json!({}), at, grant: Some(grant) }
}

fn in_container(container: Value, at: &'static str, grant: Value) -> Attempt {
    Attempt { container, ..in_pod(json!({}), at, grant) }
}

fn volume(source: Value, at: &'static str, grant: Value) -> Attempt {
    let mut volume = source;
    volume["name"] = json!("v");
    in_pod(json!({ "volumes": [volume] }), at, grant)
}

/// Marks an attempt that no grant allows.
fn never(attempt: Attempt) -> Attempt {
    Attempt { grant: None, ..attempt }
}

fn marked(metadata: Value, at: &'static str) -> Attempt {
    never(Attempt { metadata, ..in_pod(json!({}), at, json!({})) })
}

fn of_nodes() -> Vec<Attempt> {
    let terms = |term: Value| {
        json!({ "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [term] } } } })
    };
    vec![
        in_pod(json!({ "hostNetwork": true }), "/spec/hostNetwork is true", json!({ "hostNetwork": true })),
        in_pod(json!({ "hostPID": true }), "/spec/hostPID is true", json!({ "hostPID": true })),
        in_pod(json!({ "hostIPC": true }), "/spec/hostIPC is true", json!({ "hostIPC": true })),
        in_pod(json!({ "nodeName": "n1" }), "/spec/nodeName is n1", json!({ "nodeNames": ["n1"] })),
        in_pod(
            json!({ "nodeSelector": { "role/x": "db" } }),
            "/spec/nodeSelector/role~1x is role/x",
            json!({ "nodeSelectors": ["role/x"] }),
        ),
        in_pod(
            terms(json!({ "matchExpressions": [{ "key": "gpu", "operator": "Exists" }] })),
            "/nodeSelectorTerms/0/matchExpressions/0 is gpu",
            json!({ "nodeSelectors": ["gpu"] }),
        ),
        in_pod(
            terms(json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n1"] }] })),
            "/nodeSelectorTerms/0/matchFields/0 is n1",
            json!({ "nodeNames": ["n1"] }),
        ),
        in_pod(
            json!({ "tolerations": [{ "key": "control", "operator": "Exists" }] }),
            "/spec/tolerations/0 is control",
            json!({ "tolerations": ["control"] }),
        ),
        in_pod(
            json!({ "tolerations": [{ "operator": "Exists" }] }),
            "/spec/tolerations/0 is *",
            json!({ "tolerations": ["*"] }),
        ),
        in_pod(json!({ "schedulerName": "mine" }), "/spec/schedulerName is mine", json!({ "schedulers": ["mine"] })),
        in_pod(
            json!({ "priorityClassName": "system-node-critical" }),
            "/spec/priorityClassName is system-node-critical",
            json!({ "priorityClasses": ["system-node-critical"] }),
        ),
        in_pod(
            json!({ "priority": 2_000_000_000 }),
            "/spec/priority is priority",
            json!({ "otherFields": ["priority"] }),
        ),
        in_pod(
            json!({ "runtimeClassName": "host" }),
            "/spec/runtimeClassName is host",
            json!({ "runtimeClasses": ["host"] }),
        ),
        in_pod(
            json!({ "resourceClaims": [{ "name": "gpu" }] }),
            "/spec/resourceClaims is resourceClaims",
            json!({ "otherFields": ["resourceClaims"] }),
        ),
        in_pod(
            json!({ "fieldOfTomorrow": true }),
            "/spec/fieldOfTomorrow",
            json!({ "otherFields": ["fieldOfTomorrow"] }),
        ),
        in_container(
            json!({ "ports": [{ "containerPort": 22, "hostPort": 22 }] }),
            "/spec/containers/0/ports/0/hostPort is 22",
            json!({ "hostPorts": true }),
        ),
        volume(
            json!({ "hostPath": { "path": "/var/run" } }),
            "/spec/volumes/0/hostPath/path is /var/run",
            json!({ "hostPaths": ["/var"] }),
        ),
    ]
}

fn of_rights() -> Vec<Attempt> {
    let security = |field: &str, value: Value| json!({ "securityContext": { field: value } });
    let at = |field: &'static str, value: Value, at: &'static str, grant: Value| {
        in_container(security(field, value), at, grant)
    };
    vec![
        at(
            "privileged",
            json!(true),
            "/spec/containers/0/securityContext/privileged is true",
            json!({ "privileged": true }),
        ),
        at(
            "allowPrivilegeEscalation",
            json!(true),
            "/securityContext/allowPrivilegeEscalation is true",
            json!({ "allowPrivilegeEscalation": true }),
        ),
        at("runAsUser", json!(0), "/securityContext/runAsUser is runAsUser 0", json!({ "runAsRoot": true })),
        at("runAsNonRoot", json!(false), "/securityContext/runAsNonRoot", json!({ "runAsRoot": true })),
        at(
            "capabilities",
            json!({ "add": ["SYS_ADMIN"] }),
            "/securityContext/capabilities/add/0 is SYS_ADMIN",
            json!({ "capabilities": ["SYS_ADMIN"] }),
        ),
        at(
            "procMount",
            json!("Unmasked"),
            "/securityContext/procMount is Unmasked",
            json!({ "procMounts": ["Unmasked"] }),
        ),
        at(
            "seccompProfile",
            json!({ "type": "Unconfined" }),
            "/securityContext/seccompProfile is Unconfined",
            json!({ "seccompProfiles": ["Unconfined"] }),
        ),
        at(
            "appArmorProfile",
            json!({ "type": "Localhost", "localhostProfile": "p" }),
            "/securityContext/appArmorProfile is Localhost/p",
            json!({ "appArmorProfiles": ["Localhost/p"] }),
        ),
        at(
            "seLinuxOptions",
            json!({ "type": "spc_t" }),
            "/securityContext/seLinuxOptions",
            json!({ "otherFields": ["securityContext.seLinuxOptions"] }),
        ),
        at(
            "windowsOptions",
            json!({ "hostProcess": true }),
            "/securityContext/windowsOptions",
            json!({ "otherFields": ["securityContext.windowsOptions"] }),
        ),
        in_pod(
            json!({ "securityContext": { "sysctls": [{ "name": "kernel.x", "value": "1" }] } }),
            "/spec/securityContext/sysctls/0 is kernel.x",
            json!({ "sysctls": ["kernel.x"] }),
        ),
        in_pod(
            json!({ "serviceAccountName": "admin" }),
            "/spec/serviceAccountName is admin",
            json!({ "serviceAccounts": ["admin"] }),
        ),
        in_pod(
            json!({ "serviceAccount": "admin" }),
            "/spec/serviceAccount is admin",
            json!({ "serviceAccounts": ["admin"] }),
        ),
        in_pod(
            json!({ "automountServiceAccountToken": true }),
            "/spec/automountServiceAccountToken is true",
            json!({ "serviceAccountToken": true }),
        ),
        Attempt {
            metadata: json!({ "annotations": { "container.apparmor.security.beta.kubernetes.io/c": "unconfined" } }),
            ..in_pod(
                json!({}),
                "/metadata/annotations/container.apparmor.security.beta.kubernetes.io~1c is Unconfined",
                json!({ "appArmorProfiles": ["Unconfined"] }),
            )
        },
        never(in_container(
            json!({ "livenessProbe": { "httpGet": { "host": "169.254.169.254", "port": 80 } } }),
            "/spec/containers/0/livenessProbe/httpGet/host is 169.254.169.254",
            json!({}),
        )),
        never(in_pod(
            json!({ "affinity": { "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
            { "topologyKey": "kubernetes.io/hostname", "namespaces": ["theirs"] }] } } }),
            "/namespaces/0 is theirs",
            json!({}),
        )),
        marked(json!({ "labels": { "controller-uid": "x" } }), "/metadata/labels/controller-uid"),
        marked(
            json!({ "labels": { "batch.kubernetes.io/job-name": "x" } }),
            "/metadata/labels/batch.kubernetes.io~1job-name",
        ),
        marked(json!({ "annotations": { "troupe.dev/run-for": "x" } }), "/metadata/annotations/troupe.dev~1run-for"),
        marked(
            json!({ "annotations": { "k8s.v1.cni.cncf.io/networks": "host" } }),
            "/metadata/annotations/k8s.v1.cni.cncf.io~1networks",
        ),
    ]
}

fn of_references() -> Vec<Attempt> {
    let from = |source: Value| json!({ "env": [{ "name": "X", "valueFrom": source }] });
    let projected = |source: Value| json!({ "projected": { "sources": [source] } });
    vec![
        in_container(
            from(json!({ "secretKeyRef": { "name": "s", "key": "k" } })),
            "/spec/containers/0/env/0/valueFrom/secretKeyRef/name is s",
            json!({ "secrets": ["s"] }),
        ),
        in_container(
            from(json!({ "configMapKeyRef": { "name": "m", "key": "k" } })),
            "/spec/containers/0/env/0/valueFrom/configMapKeyRef/name is m",
            json!({ "configMaps": ["m"] }),
        ),
        in_container(
            json!({ "envFrom": [{ "secretRef": { "name": "s" } }] }),
            "/spec/containers/0/envFrom/0/secretRef/name is s",
            json!({ "secrets": ["s"] }),
        ),
        in_container(
            json!({ "envFrom": [{ "configMapRef": { "name": "m" } }] }),
            "/spec/containers/0/envFrom/0/configMapRef/name is m",
            json!({ "configMaps": ["m"] }),
        ),
        in_container(
            json!({ "envFrom": [{ "vaultRef": { "name": "m" } }] }),
            "/spec/containers/0/envFrom/0/vaultRef is env.vaultRef",
            json!({ "otherFields": ["env.vaultRef"] }),
        ),
        in_container(json!({ "image": "evil" }), "/spec/containers/0/image is evil", json!({ "images": ["evil"] })),
        in_pod(
            json!({ "initContainers": [{ "name": "i", "image": "evil:1" }] }),
            "/spec/initContainers/0/image is evil:1",
            json!({ "images": ["evil"] }),
        ),
        in_pod(
            json!({ "ephemeralContainers": [{ "name": "e", "image": "users", "securityContext": { "privileged": true } }] }),
            "/spec/ephemeralContainers/0/securityContext/privileged",
            json!({ "privileged": true }),
        ),
        in_pod(
            json!({ "imagePullSecrets": [{ "name": "theirs" }] }),
            "/spec/imagePullSecrets/0/name is theirs",
            json!({ "imagePullSecrets": ["theirs"] }),
        ),
        volume(
            json!({ "secret": { "secretName": "s" } }),
            "/spec/volumes/0/secret/secretName is s",
            json!({ "secrets": ["s"] }),
        ),
        volume(
            json!({ "configMap": { "name": "m" } }),
            "/spec/volumes/0/configMap/name is m",
            json!({ "configMaps": ["m"] }),
        ),
        volume(
            json!({ "persistentVolumeClaim": { "claimName": "c" } }),
            "/spec/volumes/0/persistentVolumeClaim/claimName is c",
            json!({ "persistentVolumeClaims": ["c"] }),
        ),
        volume(
            projected(json!({ "secret": { "name": "s" } })),
            "/spec/volumes/0/projected/sources/0/secret/name is s",
            json!({ "secrets": ["s"] }),
        ),
        volume(
            projected(json!({ "serviceAccountToken": { "path": "t", "audience": "vault" } })),
            "/spec/volumes/0/projected/sources/0/serviceAccountToken",
            json!({ "serviceAccountToken": true }),
        ),
        volume(
            projected(json!({ "podCertificate": {} })),
            "/spec/volumes/0/projected/sources/0/podCertificate",
            json!({ "volumes": ["projected.podCertificate"] }),
        ),
        volume(
            json!({ "nfs": { "server": "s", "path": "/" } }),
            "/spec/volumes/0/nfs is nfs",
            json!({ "volumes": ["nfs"] }),
        ),
        volume(
            json!({ "csi": { "driver": "d", "nodePublishSecretRef": { "name": "s" } } }),
            "/spec/volumes/0/csi",
            json!({ "volumes": ["csi"], "secrets": ["s"] }),
        ),
        volume(
            json!({ "image": { "reference": "evil" } }),
            "/spec/volumes/0/image/reference is evil",
            json!({ "images": ["evil"] }),
        ),
        volume(
            json!({ "volumeOfTomorrow": {} }),
            "/spec/volumes/0/volumeOfTomorrow",
            json!({ "volumes": ["volumeOfTomorrow"] }),
        ),
    ]
}

fn of_what_runs() -> Vec<Attempt> {
    let exec = json!({ "exec": { "command": ["sh", "-c", "evil"] } });
    vec![
        in_container(json!({ "command": ["evil"] }), "/containers/0/command", json!({ "commands": true })),
        in_container(json!({ "args": ["evil"] }), "/containers/0/args", json!({ "commands": true })),
        in_container(json!({ "command": ["evil"] }), "/containers/0/command", json!({ "images": ["users"] })),
        in_container(
            json!({ "lifecycle": { "preStop": exec } }),
            "/lifecycle/preStop/exec/command",
            json!({ "commands": true }),
        ),
        in_container(json!({ "livenessProbe": exec }), "/livenessProbe/exec/command", json!({ "commands": true })),
        in_pod(json!({ "dnsConfig": { "nameservers": ["6.6.6.6"] } }), "/spec/dnsConfig", json!({ "dns": true })),
        in_pod(json!({ "dnsPolicy": "None" }), "/spec/dnsPolicy", json!({ "dns": true })),
        in_pod(
            json!({ "hostAliases": [{ "ip": "6.6.6.6", "hostnames": ["bank"] }] }),
            "/spec/hostAliases",
            json!({ "dns": true }),
        ),
    ]
}

/// Returns every attempt.
pub(super) fn attempts() -> Vec<Attempt> {
    [of_nodes(), of_rights(), of_references(), of_what_runs()].into_iter().flatten().collect()
}
