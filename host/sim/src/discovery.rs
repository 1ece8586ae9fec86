//! `/version`, `/api`, `/apis` and the resource lists, as far as kube's discovery reads them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::store::{Kind, Store};

/// Returns the response to a request that names no resource; None if the path is unknown.
pub(crate) fn answer(store: &Store, path: &str, accept: &str) -> Option<Value> {
    let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
    match steps[..] {
        ["version"] => Some(json!({
            "major": "1", "minor": "36", "gitVersion": "v1.36.0-sim", "gitCommit": "", "gitTreeState": "clean",
            "buildDate": "2026-01-01T00:00:00Z", "goVersion": "", "compiler": "", "platform": "sim/sim",
            "emulationMajor": "1", "emulationMinor": "36", "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
        })),
        ["healthz" | "readyz" | "livez"] => Some(json!("ok")),
        ["api"] if accept.contains("APIGroupDiscoveryList") => Some(aggregated(store, true)),
        ["apis"] if accept.contains("APIGroupDiscoveryList") => Some(aggregated(store, false)),
        ["api"] => Some(json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{ "clientCIDR": "0.0.0.0/0", "serverAddress": "sim:443" }],
        })),
        ["apis"] => {
            let groups: Vec<Value> = groups(store)
                .iter()
                .filter(|(name, _)| !name.is_empty())
                .map(|(name, kinds)| group(name, kinds))
                .collect();
            Some(json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups }))
        }
        ["apis", name] => {
            let groups = groups(store);
            let mut group = group(name, groups.get(name)?);
            group["kind"] = json!("APIGroup");
            group["apiVersion"] = json!("v1");
            Some(group)
        }
        ["api", version] => resources(store, "", version),
        ["apis", group, version] => resources(store, group, version),
        _ => None,
    }
}

fn groups(store: &Store) -> BTreeMap<&str, Vec<&Kind>> {
    let mut groups: BTreeMap<&str, Vec<&Kind>> = BTreeMap::new();
    for table in store.tables.values() {
        groups.entry(&table.kind.group).or_default().push(&table.kind);
    }
    groups
}

fn group(name: &str, kinds: &[&Kind]) -> Value {
    let mut versions: Vec<&str> = kinds.iter().map(|kind| kind.version.as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({ "groupVersion": format!("{name}/{version}"), "version": version }))
        .collect();
    json!({ "name": name, "versions": versions, "preferredVersion": versions[0] })
}

fn verbs() -> Value {
    json!(["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"])
}

fn resources(store: &Store, group: &str, version: &str) -> Option<Value> {
    let mut list = Vec::new();
    for kind in store.tables.values().map(|table| &table.kind) {
        if kind.group != group || kind.version != version {
            continue;
        }
        let singular = kind.kind.to_lowercase();
        list.push(json!({
            "name": kind.plural, "singularName": singular, "namespaced": kind.namespaced, "kind": kind.kind,
            "verbs": verbs(),
        }));
        if kind.status {
            list.push(json!({
                "name": format!("{}/status", kind.plural), "singularName": "", "namespaced": kind.namespaced,
                "kind": kind.kind, "verbs": ["get", "patch", "update"],
            }));
        }
    }
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    (!list.is_empty()).then(
        || json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": list }),
    )
}

fn aggregated(store: &Store, core: bool) -> Value {
    let items: Vec<Value> = groups(store)
        .iter()
        .filter(|(name, _)| name.is_empty() == core)
        .map(|(name, kinds)| {
            let mut versions: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
            for kind in kinds {
                let subresources = if kind.status {
                    json!([{ "subresource": "status", "verbs": ["get", "patch", "update"],
                        "responseKind": { "group": kind.group, "version": kind.version, "kind": kind.kind } }])
                } else {
                    json!([])
                };
                versions.entry(&kind.version).or_default().push(json!({
                    "resource": kind.plural, "singularResource": kind.kind.to_lowercase(),
                    "scope": if kind.namespaced { "Namespaced" } else { "Cluster" }, "verbs": verbs(),
                    "responseKind": { "group": kind.group, "version": kind.version, "kind": kind.kind },
                    "subresources": subresources,
                }));
            }
            let versions: Vec<Value> = versions
                .into_iter()
                .map(|(version, resources)| json!({ "version": version, "resources": resources, "freshness": "Current" }))
                .collect();
            json!({ "metadata": { "name": name }, "versions": versions })
        })
        .collect();
    json!({ "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items })
}
