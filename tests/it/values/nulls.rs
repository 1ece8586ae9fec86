//! A null is as good as no field at all.

use super::{
    fields::fields,
    outcome::{refused_by_dry_run, requests},
    samples::samples,
};
use crate::cluster::objects::Namespace;
use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

/// Returns the fields for which the API server takes a job without them and refuses one in which they are null.
pub(crate) async fn not_as_absent(namespace: &Namespace, crds: &[CustomResourceDefinition]) -> Result<Vec<String>> {
    let mut tried = vec![];
    for of in samples() {
        let resource = of.kind.resource();
        let crd = crds.iter().find(|crd| crd.metadata.name.as_deref() == Some(&resource)).unwrap();
        for field in fields(crd) {
            for sample in &of.jobs {
                // An entry of a map and an item of a list are there or not.
                for place in field.places(&sample.job).into_iter().filter(|place| !place.name.ends_with(']')) {
                    let (parent, name) = place.pointer.rsplit_once('/').unwrap();
                    let mut without = sample.job.clone();
                    without.pointer_mut(parent).and_then(Value::as_object_mut).unwrap().remove(name);
                    tried.push((resource.clone(), place.name.clone(), without, place.with(&sample.job, &Value::Null)));
                }
            }
        }
    }
    let differing = tried.iter().map(|(resource, name, without, null)| async move {
        let requests = requests(namespace, resource, null);
        let [without, null] = [without, null].map(|job| {
            let mut job = job.clone();
            job["metadata"]["name"] = json!("null");
            job
        });
        let without = refused_by_dry_run(namespace, &requests, &without).await?;
        let null = refused_by_dry_run(namespace, &requests, &null).await?;
        let differs = without.is_none() && null.is_some();
        anyhow::Ok(differs.then(|| format!("{resource} {name}: {}", null.unwrap_or_default())))
    });
    let differing: Vec<Option<String>> = stream::iter(differing).buffered(16).try_collect().await?;
    Ok(differing.into_iter().flatten().collect())
}
