//! The files in `crds/`, and their copies in the chart, are what the types generate; each field is described, and pod
//! templates are.

use install::crds;
use serde_json::Value;
use std::path::PathBuf;

/// The most that one definition may have as JSON: `kubectl apply` keeps it in an annotation, and annotations may have
/// 262,144 bytes.
const MOST_BYTES: usize = 250_000;

/// The folders that have the files: the chart's own is there since Helm reads nothing outside of a chart.
fn folders() -> [PathBuf; 2] {
    ["../crds", "../deploy/chart/files/crds"].map(|folder| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder))
}

/// The pod template of a kind.
pub(crate) struct Template {
    /// Group and version of the kind.
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    /// The fields that lead to it; `*` stands for any key of a map.
    pub(crate) path: Vec<String>,
    pub(crate) schema: Value,
    /// The schema of the template of a Job that it is in.
    pub(crate) outer: Option<Value>,
    /// Whether containers and their variables are merged by name.
    pub(crate) merges: bool,
}

impl Template {
    /// The fields as `kubectl explain` names them, which leaves the keys of maps out.
    pub(crate) fn fields(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).filter(|field| *field != "*").collect()
    }

    /// The kind's name for kubectl, with version and group.
    pub(crate) fn resource(&self) -> String {
        let (group, version) = self.api_version.split_once('/').unwrap();
        format!("{}.{version}.{group}", self.plural)
    }
}

/// Returns the pod templates of all kinds.
pub(crate) fn templates() -> Vec<Template> {
    let mut found = vec![];
    for crd in crds::all() {
        for version in &crd.spec.versions {
            let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
            let schema = serde_json::to_value(schema).unwrap();
            let api_version = format!("{}/{}", crd.spec.group, version.name);
            let mut of_kind = vec![];
            walk(&schema, &mut vec![], &mut |path, schema| {
                let containers = &schema["properties"]["spec"]["properties"]["containers"];
                if !containers.is_object() {
                    return;
                }
                let env = &containers["items"]["properties"]["env"];
                of_kind.push(Template {
                    api_version: api_version.clone(),
                    kind: crd.spec.names.kind.clone(),
                    plural: crd.spec.names.plural.clone(),
                    path: path.to_vec(),
                    schema: schema.clone(),
                    outer: None,
                    merges: env["x-kubernetes-list-type"] == "map",
                });
            });
            for template in &mut of_kind {
                template.outer = schema.pointer("/properties/spec/properties/jobTemplate").cloned();
            }
            found.extend(of_kind);
        }
    }
    found
}

/// Shows each schema below one, with its path.
fn walk(schema: &Value, path: &mut Vec<String>, show: &mut impl FnMut(&[String], &Value)) {
    show(path.as_slice(), schema);
    let below = schema["properties"].as_object().into_iter().flatten().map(|(name, schema)| (name.as_str(), schema));
    let parts = [("[]", &schema["items"]), ("*", &schema["additionalProperties"])];
    for (name, schema) in below.chain(parts.into_iter().filter(|(_, schema)| schema.is_object())) {
        path.push(name.to_owned());
        walk(schema, path, show);
        path.pop();
    }
}

#[test]
fn the_files_are_what_the_types_generate() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    for folder in folders() {
        let mut expected = Vec::new();
        for crd in crds::all() {
            let name = format!("{}.yaml", crd.metadata.name.clone().unwrap());
            let (path, text) = (folder.join(&name), crds::yaml(&crd).unwrap());
            let bytes = serde_json::to_vec(&crd).unwrap().len();
            assert!(bytes <= MOST_BYTES, "{name} has {bytes} bytes as JSON");
            let read: Value = serde_norway::from_str(&text).unwrap();
            assert!(read == serde_json::to_value(&crd).unwrap(), "{name} says something else as YAML");
            if update {
                std::fs::write(&path, &text).unwrap();
            }
            let there = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(there == text, "{} is out of date; run the tests with UPDATE_EXPECT=1", path.display());
            expected.push(name);
        }
        let entries = std::fs::read_dir(&folder).unwrap();
        let mut there: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        there.sort();
        assert_eq!(there, expected, "{} has one file a kind and nothing else", folder.display());
    }
}

// Within a template some fields of seldom used volumes and probes have a type alone, so that a definition stays small.
#[test]
fn every_field_is_described_and_in_a_template_every_field_of_a_pod_and_of_a_container() {
    let mut lacking = vec![];
    for crd in crds::all() {
        let name = crd.metadata.name.clone().unwrap();
        for version in &crd.spec.versions {
            let schema = serde_json::to_value(&version.schema).unwrap()["openAPIV3Schema"].clone();
            let own = schema["description"].as_str().unwrap_or_default();
            assert!(own.starts_with(crd.spec.names.kind.as_str()), "{name}: {own:?}");
            walk(&schema, &mut vec![], &mut |path, schema| {
                let last = path.last().map_or("", String::as_str);
                let template = path.iter().rposition(|field| field == "template" || field == "jobTemplate");
                let depth = template.map_or(0, |at| path.len() - at - 1);
                let is_container = path.len() > 2 && path[path.len() - 3].to_lowercase().ends_with("containers");
                // Below template: spec, containers, [], env.
                let is_deep = depth > 2 && !(depth == 4 && is_container);
                let is_field = !matches!(last, "" | "[]" | "*");
                if is_field && !is_deep && schema["description"].as_str().is_none_or(|words| words.len() < 5) {
                    lacking.push(format!("{name}: {}", path.join(".")));
                }
            });
        }
    }
    assert!(lacking.is_empty(), "{lacking:#?}");
}

// The lists of paddle-operator v0.3.5 are those of Kubernetes 1.23; those of the other originals of 1.30 or later.
#[test]
fn lists_of_templates_are_merged_by_key_where_the_originals_are() {
    for template in templates() {
        let mut merged = std::collections::BTreeSet::new();
        walk(&template.schema, &mut vec![], &mut |path, schema| {
            if schema["x-kubernetes-list-type"] == "map" {
                merged.insert(path.last().unwrap().clone());
            }
        });
        let merged: Vec<_> = merged.iter().map(String::as_str).collect();
        if template.api_version == "batch.paddlepaddle.org/v1" {
            assert_eq!(merged, ["ports", "topologySpreadConstraints"]);
        } else {
            let expected = [
                "claims",
                "containers",
                "env",
                "evictionResponders",
                "hostAliases",
                "imagePullSecrets",
                "initContainers",
                "ports",
                "resourceClaims",
                "schedulingGates",
                "topologySpreadConstraints",
                "volumeDevices",
                "volumeMounts",
                "volumes",
            ];
            assert_eq!(merged, expected, "{}", template.kind);
        }
    }
}
