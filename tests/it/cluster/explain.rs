//! What the real API server and the real kubectl make of the schemas of pod templates: what is explained of a field, which
//! lists are merged under server-side apply, and that the types are those of Kubernetes itself.

use super::{documented::Shell, world::World};
use crate::crds::{Template, templates};
use http::Request;
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs};

/// What kubectl prints of a field.
fn explained(shell: &Shell, template: &Template, field: &str) -> String {
    let path = format!("{}.{}.{field}", template.plural, template.fields().join("."));
    shell.prints(&format!("kubectl explain {path} --api-version={}", template.api_version))
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn kubectl_explains_the_fields_of_the_pods_of_each_kind() {
    let world = World::shared("explain").await;
    let shell = Shell::of(&world, "explain");
    let templates = templates();
    assert_eq!(templates.len(), 11, "ps, worker and heter of one kind, and one each of eight others");
    for template in &templates {
        let env = explained(&shell, template, "spec.containers.env");
        let told = env.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains("FIELD: env <[]Object>"), "{told}");
        assert!(told.contains("Environment variables."), "{told}");
        assert!(told.contains("name <string> -required- The variable's name."), "{told}");
        let limits = explained(&shell, template, "spec.containers.resources.limits");
        assert!(limits.contains("nvidia.com/gpu: 1"), "{limits}");
    }
    let one = &templates[0];
    for (field, words) in [
        ("metadata.labels", "FIELD: labels <map[string]string>"),
        ("spec.terminationGracePeriodSeconds", "Seconds between SIGTERM and SIGKILL"),
        ("spec.volumes.persistentVolumeClaim.claimName", "FIELD: claimName <string>"),
        ("spec.tolerations.effect", "NoSchedule, PreferNoSchedule or NoExecute"),
    ] {
        let told = explained(&shell, one, field);
        assert!(told.split_whitespace().collect::<Vec<_>>().join(" ").contains(words), "{told}");
    }
}

/// A job of the kind of this template, whose only pods have this variable.
fn job(template: &Template, variable: &str) -> Value {
    // The kinds of training-operator want a container of their name, with an image.
    let kind = template.kind.to_lowercase();
    let name = if kind == "tfjob" { "tensorflow" } else { kind.trim_end_matches("job") };
    let container = json!({ "name": name, "image": "x", "env": [{ "name": variable, "value": "1" }] });
    let mut inner = json!({ "spec": { "containers": [container] } });
    for field in template.path.iter().rev() {
        // The replicas of a type stand beside the template.
        if field == "template" && template.path.len() > 2 && template.path[1] != "jobTemplate" {
            inner = json!({ "template": inner, "replicas": 1 });
            continue;
        }
        let name = match field.as_str() {
            // A type of replicas that each of those kinds has.
            "*" if template.plural == "xgboostjobs" => "Master",
            "*" => "Worker",
            name => name,
        };
        inner = json!({ (name): inner });
    }
    if template.path[1] == "jobTemplate" {
        inner["spec"]["schedule"] = json!("@yearly");
    }
    if template.plural == "mpijobs" {
        // Without a launcher it is refused.
        let launcher = json!({ "spec": { "containers": [{ "name": "launcher", "image": "x" }] } });
        inner["spec"]["mpiReplicaSpecs"]["Launcher"] = json!({ "replicas": 1, "template": launcher });
    }
    inner["apiVersion"] = template.api_version.as_str().into();
    inner["kind"] = template.kind.as_str().into();
    inner["metadata"] = json!({ "name": format!("merged-{}", template.path[1].to_lowercase()) });
    inner
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn two_managers_set_a_variable_each_where_the_originals_merge_them() {
    let world = World::shared("merged").await;
    let shell = Shell::of(&world, "merged");
    let apply = |template: &Template, variable: &str| {
        let file = shell.folder.join("job.json");
        fs::write(&file, job(template, variable).to_string()).unwrap();
        let command = format!("kubectl apply --server-side --namespace merged --field-manager {variable} -f job.json");
        shell.tries(&command)
    };
    for template in templates() {
        apply(&template, "A").unwrap();
        let second = apply(&template, "B");
        if !template.merges {
            let refused = second.unwrap_err();
            assert!(refused.contains("conflict with \"A\""), "{refused}");
            continue;
        }
        second.unwrap();
        let name = job(&template, "A")["metadata"]["name"].as_str().unwrap().to_owned();
        let resource = template.resource();
        let stored = shell.prints(&format!("kubectl get {resource} {name} --namespace merged -o json"));
        let stored: Value = serde_json::from_str(&stored).unwrap();
        let spec = template.path.iter().fold(&stored, |at, field| match field.as_str() {
            // A launcher has no variable.
            "*" => at.as_object().and_then(|types| types.values().next_back()).unwrap_or(&Value::Null),
            field => &at[field],
        });
        let variable = |name: &str| json!({ "name": name, "value": "1" });
        assert_eq!(spec["spec"]["containers"][0]["env"], json!([variable("A"), variable("B")]), "{resource}");
    }
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_client_side_apply_takes_each_definition_and_each_example() {
    let world = World::shared("applied").await;
    let workspace = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let shell = Shell::of(&world, "applied").at(workspace.into());
    shell.runs("kubectl apply -f crds/");
    shell.runs("troupe crds | kubectl apply -f -");
    let examples = "$(ls deploy/examples/*.yaml | grep -v plugin | sed 's/^/-f /')";
    let told = shell.runs(&format!("kubectl apply --namespace applied --dry-run=server --validate=strict {examples}"));
    assert!(!told.contains("Warning: unknown"), "{told}");
}

/// What Kubernetes' document requires and our schemas do not: a value that is missing is a valid one for pods.
const NOT_REQUIRED: [&str; 5] = ["lun", "preference", "seconds", "template", "value"];
/// The fields of metadata that have no meaning in a template. They are kept.
const NOT_OF_TEMPLATES: [&str; 9] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Compares schemas of ours with Kubernetes' document.
struct Comparison<'a> {
    theirs: &'a Value,
    fields: usize,
    differences: Vec<String>,
    not_required: BTreeSet<String>,
}

impl<'a> Comparison<'a> {
    /// Returns the schema that a field refers to.
    fn resolved(&self, schema: &'a Value) -> &'a Value {
        let reference = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
        match reference {
            Some(reference) => &self.theirs["components"]["schemas"][reference.rsplit('/').next().unwrap()],
            None => schema,
        }
    }

    fn compare(&mut self, ours: &Value, theirs: &'a Value, at: &str) {
        let field = theirs;
        let theirs = self.resolved(theirs);
        let is_any = ours["x-kubernetes-preserve-unknown-fields"] == true && ours["properties"].is_null();
        // A quantity, or an object of which we say nothing.
        if is_any {
            let is_quantity = theirs["oneOf"].is_array();
            if is_quantity != ours["type"].is_null() {
                self.differences.push(format!("{at}: {theirs}"));
            }
            return;
        }
        if theirs["format"] == "int-or-string" {
            let same = ours["x-kubernetes-int-or-string"] == true;
            if !same {
                self.differences.push(format!("{at}: int-or-string"));
            }
            return;
        }
        for key in ["type", "format", "x-kubernetes-map-type"] {
            let theirs = if theirs[key].is_null() { &field[key] } else { &theirs[key] };
            if ours[key] != *theirs {
                self.differences.push(format!("{at}: {key} {} is {theirs}", ours[key]));
            }
        }
        let keys = |schema: &Value| match schema["x-kubernetes-list-type"].as_str() {
            Some("map") => schema["x-kubernetes-list-map-keys"].clone(),
            _ => Value::Null,
        };
        // Of ephemeral containers we say nothing: no template may have them.
        if keys(ours) != keys(theirs) && ours["items"]["properties"].is_object() {
            self.differences.push(format!("{at}: merged by {} instead of {}", keys(ours), keys(theirs)));
        }
        let required = |schema: &Value| -> BTreeSet<String> {
            let names = schema["required"].as_array().into_iter().flatten();
            names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
        };
        for name in required(ours).difference(&required(theirs)) {
            self.differences.push(format!("{at}.{name} is not required"));
        }
        self.not_required.extend(required(theirs).difference(&required(ours)).cloned());
        let names = |schema: &Value| -> BTreeSet<String> {
            schema["properties"].as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
        };
        for name in names(ours).difference(&names(theirs)) {
            self.differences.push(format!("{at}.{name} is not there"));
        }
        for name in names(theirs) {
            let below = format!("{at}.{name}");
            let is_metadata = at.ends_with("metadata") && NOT_OF_TEMPLATES.contains(&name.as_str());
            match ours["properties"].get(&name) {
                Some(ours) => {
                    self.fields += 1;
                    self.compare(ours, &theirs["properties"][&name], &below);
                }
                None if is_metadata => {}
                None => self.differences.push(format!("{below} is unknown to us")),
            }
        }
        for part in ["items", "additionalProperties"] {
            if ours[part].is_object() && theirs[part].is_object() {
                self.compare(&ours[part], &theirs[part], &format!("{at}[]"));
            }
        }
    }
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn the_fields_of_templates_are_those_of_kubernetes_with_their_types_and_keys() {
    let world = World::shared("types").await;
    let request = Request::get("/openapi/v3/apis/batch/v1").body(vec![]).unwrap();
    let document: Value = world.client.request(request).await.unwrap();
    let schemas = &document["components"]["schemas"];
    let (pods, jobs) = ("io.k8s.api.core.v1.PodTemplateSpec", "io.k8s.api.batch.v1.JobSpec");
    let of_path = |first: &str| templates().into_iter().find(|template| template.path[1] == first).unwrap();
    let job = of_path("jobTemplate").outer.unwrap()["properties"]["spec"].clone();
    let cases = [(of_path("template").schema, pods), (job, jobs)];
    for (ours, theirs) in cases {
        let mut compared =
            Comparison { theirs: &document, fields: 0, differences: vec![], not_required: BTreeSet::new() };
        compared.compare(&ours, &schemas[theirs], "");
        let differences = compared.differences.join("\n");
        assert!(differences.is_empty(), "{theirs}:\n{differences}");
        assert!(compared.fields > 700, "{} fields", compared.fields);
        let known: BTreeSet<_> = NOT_REQUIRED.into_iter().map(str::to_owned).collect();
        assert!(compared.not_required.is_subset(&known), "{:?}", compared.not_required);
    }
}
