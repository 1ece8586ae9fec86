//! The same for the fields of pod templates, with one kind for all: they are Kubernetes' own. What the API server refuses of the
//! job or of its pod is told with its words; a pod that it makes means something.

use super::outcome::{Outcome, said};
use crate::cluster::objects::{Namespace, PODS, text};
use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use harness::until;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    api::{ListParams, PostParams},
    core::Request,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// How many values there are, by what happens to them.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) fields: usize,
    pub(crate) values: usize,
    /// By the definition.
    pub(crate) refused: usize,
    /// By the API server when the host makes the pod, or by the host.
    pub(crate) told: usize,
    /// Kubernetes makes a pod.
    pub(crate) taken: usize,
}

const PATIENCE: Duration = Duration::from_secs(180);
const AT_ONCE: usize = 16;
const RESOURCE: &str = "indexedjobs.batch.troupe.dev";

/// Submits a job for each value, and returns what happens; an error names those of which nothing is said and that have no pod.
pub(crate) async fn tried(namespace: &Namespace, crds: &[CustomResourceDefinition]) -> Result<Counts> {
    let schema = template_of(crds);
    let mut fields = vec![];
    leaves(&schema, &[], &mut fields);
    let cases: Vec<(String, Value)> = fields
        .iter()
        .flat_map(|(path, leaf)| {
            nonsense(leaf).into_iter().map(move |value| (format!("{} = {value}", path.concat()), job(path, value)))
        })
        .collect();
    let requests = Request::new(format!("/apis/batch.troupe.dev/v1alpha1/namespaces/{}/indexedjobs", namespace.name));
    let requests = &requests;
    let created = cases.iter().enumerate().map(|(number, (_, job))| async move {
        let mut job = job.clone();
        job["metadata"]["name"] = json!(format!("template-{number}"));
        let request = requests.create(&PostParams::default(), serde_json::to_vec(&job)?)?;
        match namespace.client.request::<Value>(request).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 422 => Ok(false),
            Err(error) => Err(anyhow::Error::from(error)),
        }
    });
    let stored: Vec<bool> = stream::iter(created).buffered(AT_ONCE).try_collect().await?;
    let mut counts = Counts { fields: fields.len(), values: cases.len(), ..Counts::default() };
    counts.refused = stored.iter().filter(|stored| !**stored).count();
    let seen = until(PATIENCE, "each job to have a pod or words", || async {
        let list: Value = namespace.client.request(requests.list(&ListParams::default())?).await?;
        let jobs = list["items"].as_array().into_iter().flatten();
        let outcomes: BTreeMap<&str, Outcome> = jobs.map(|job| (text(job, "/metadata/name"), said(job))).collect();
        let pods = namespace.list(&PODS).await?;
        let with_pods: BTreeSet<&str> = pods.iter().map(|pod| text(pod, "/metadata/ownerReferences/0/name")).collect();
        let (mut told, mut taken, mut silent) = (0, 0, vec![]);
        for (number, (case, _)) in cases.iter().enumerate().filter(|(number, _)| stored[*number]) {
            let name = format!("template-{number}");
            match outcomes.get(name.as_str()) {
                Some(Outcome::Rejected(_) | Outcome::Waits(_)) => told += 1,
                _ if with_pods.contains(name.as_str()) => taken += 1,
                _ => silent.push(case),
            }
        }
        ensure!(silent.is_empty(), "{silent:#?}");
        Ok(Some((told, taken)))
    });
    (counts.told, counts.taken) = seen.await?;
    eprintln!("values: templates: {counts:?}");
    Ok(counts)
}

fn template_of(crds: &[CustomResourceDefinition]) -> Value {
    let crd = crds.iter().find(|crd| crd.metadata.name.as_deref() == Some(RESOURCE)).unwrap();
    let version = serde_json::to_value(&crd.spec.versions[0]).unwrap();
    version.pointer("/schema/openAPIV3Schema/properties/spec/properties/template").cloned().unwrap()
}

/// Parts of a path: `.name` of a field, `[0]` of a list, `[key]` of a map.
type Path = Vec<String>;

fn leaves(schema: &Value, at: &[String], found: &mut Vec<(Path, Value)>) {
    let deeper = |part: String| [at, &[part]].concat();
    let fields = schema["properties"].as_object();
    for (name, inner) in fields.into_iter().flatten() {
        leaves(inner, &deeper(format!(".{name}")), found);
    }
    if schema["additionalProperties"].is_object() {
        leaves(&schema["additionalProperties"], &deeper("[key]".into()), found);
    }
    if schema["items"].is_object() {
        leaves(&schema["items"], &deeper("[0]".into()), found);
    }
    let is_leaf = matches!(schema["type"].as_str(), Some("string" | "integer" | "number"));
    if is_leaf || schema["x-kubernetes-int-or-string"] == true {
        found.push((at.to_vec(), schema.clone()));
    }
}

fn nonsense(leaf: &Value) -> Vec<Value> {
    match leaf["type"].as_str() {
        Some("string") => vec![json!(" "), json!("no such word")],
        Some(_) => vec![json!(-1), json!(if leaf["format"] == "int64" { i64::MAX } else { i32::MAX.into() })],
        None => vec![json!(-1), json!("many of them")],
    }
}

/// A job whose template has the value there, and what it needs beside it.
fn job(path: &[String], value: Value) -> Value {
    let container = json!({ "name": "main", "image": "docker.io/local/train:1" });
    let mut template = json!({ "spec": { "restartPolicy": "Never", "containers": [container] } });
    let mut here = &mut template;
    for part in path {
        here = match part.strip_prefix('.') {
            Some(name) => &mut here[name],
            None if part == "[0]" => {
                if here.is_null() {
                    *here = json!([null]);
                }
                &mut here[0]
            }
            None => &mut here["key"],
        };
    }
    *here = value;
    json!({ "apiVersion": "batch.troupe.dev/v1alpha1", "kind": "IndexedJob", "metadata": {},
        "spec": { "completions": 1, "parallelism": 1, "template": template } })
}
