//! What a real API server and the host say of jobs.

use super::Case;
use crate::cluster::objects::{Namespace, at, text};
use anyhow::Result;
use decide::own_conditions;
use futures::{StreamExt, TryStreamExt, stream};
use harness::until;
use kube::{
    api::{ListParams, Patch, PatchParams, PostParams},
    core::Request,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// What was said of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The API server does not store it, and says this.
    Refused(String),
    /// The host does not run it, and says this.
    Rejected(String),
    /// The API server does not store what the host makes for it, and the job waits with these words.
    Waits(String),
    /// The host runs it, and warns of this.
    Warned(String),
    /// It runs, or nobody has looked at it, without a word.
    Silent,
}

impl Outcome {
    /// What was said.
    pub(crate) fn words(&self) -> &str {
        match self {
            Self::Refused(words) | Self::Rejected(words) | Self::Waits(words) | Self::Warned(words) => words,
            Self::Silent => "",
        }
    }
}

/// How long the host may take for all jobs.
const PATIENCE: Duration = Duration::from_secs(120);

/// How many requests are under way at once.
const AT_ONCE: usize = 16;

pub(crate) fn requests(namespace: &Namespace, resource: &str, job: &Value) -> Request {
    let plural = resource.split('.').next().unwrap_or_default();
    Request::new(format!("/apis/{}/namespaces/{}/{plural}", text(job, "/apiVersion"), namespace.name))
}

/// Submits the jobs under names that begin with this, and returns what is said of each, in their order.
pub(crate) async fn try_all(namespace: &Namespace, begin: &str, cases: &[Case]) -> Result<Vec<Outcome>> {
    let created = cases.iter().enumerate().map(|(number, case)| async move {
        let mut job = case.job.clone();
        if job["metadata"]["name"].is_null() {
            job["metadata"]["name"] = json!(format!("{begin}{number}"));
        } else {
            // Of the same length, and of another kind each time.
            let name = text(&job, "/metadata/name");
            job["metadata"]["name"] = json!(format!("{begin}{}", &name[begin.len()..]));
        }
        refused(namespace, &requests(namespace, &case.resource, &job), &job).await
    });
    let refused: Vec<Option<String>> = stream::iter(created).buffered(AT_ONCE).try_collect().await?;
    let names = |number: usize, case: &Case| match text(&case.job, "/metadata/name") {
        "" => format!("{begin}{number}"),
        name => format!("{begin}{}", &name[begin.len()..]),
    };
    let accepted: BTreeSet<String> = cases
        .iter()
        .enumerate()
        .filter(|(number, _)| refused[*number].is_none())
        .map(|(number, case)| format!("{}/{}", case.resource, names(number, case)))
        .collect();
    let seen = jobs_seen_by_the_host(namespace, cases, &accepted).await?;
    let outcomes = refused.into_iter().zip(cases.iter().enumerate()).map(|(refused, (number, case))| match refused {
        Some(message) => Outcome::Refused(message),
        None => said(&seen[&format!("{}/{}", case.resource, names(number, case))]),
    });
    Ok(outcomes.collect())
}

/// Returns why the API server does not create it.
async fn refused(namespace: &Namespace, requests: &Request, job: &Value) -> Result<Option<String>> {
    answered(namespace, requests.create(&PostParams::default(), serde_json::to_vec(job)?)?).await
}

/// Returns why the API server would not create it.
pub(crate) async fn refused_by_dry_run(
    namespace: &Namespace,
    requests: &Request,
    job: &Value,
) -> Result<Option<String>> {
    let parameters = PostParams { dry_run: true, ..PostParams::default() };
    answered(namespace, requests.create(&parameters, serde_json::to_vec(job)?)?).await
}

async fn answered(namespace: &Namespace, request: http::Request<Vec<u8>>) -> Result<Option<String>> {
    match namespace.client.request::<Value>(request).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 422 => Ok(Some(status.message.clone())),
        Err(error) => Err(error.into()),
    }
}

/// Returns these jobs, by their resource and name, once the host has written of each. One that names another manager is none
/// of the host's.
async fn jobs_seen_by_the_host(
    namespace: &Namespace,
    cases: &[Case],
    names: &BTreeSet<String>,
) -> Result<BTreeMap<String, Value>> {
    let kinds: BTreeMap<&str, &Value> = cases.iter().map(|case| (case.resource.as_str(), &case.job)).collect();
    let is_seen = |job: &Value| text(job, "/status/troupe/uid") == text(job, "/metadata/uid");
    until(PATIENCE, "the host to have seen all jobs", || async {
        let mut all = BTreeMap::new();
        for (resource, job) in &kinds {
            let request = requests(namespace, resource, job).list(&ListParams::default())?;
            let list: Value = namespace.client.request(request).await?;
            for job in list["items"].as_array().into_iter().flatten() {
                let name = format!("{resource}/{}", text(job, "/metadata/name"));
                if names.contains(&name) {
                    all.insert(name, job.clone());
                }
            }
        }
        let others: Vec<_> =
            all.iter().filter(|(_, job)| !is_seen(job) && !is_anothers(job)).map(|(name, _)| name).collect();
        anyhow::ensure!(others.is_empty(), "not seen: {others:?}");
        Ok(Some(all))
    })
    .await
}

pub(crate) fn is_anothers(job: &Value) -> bool {
    let managers = ["/spec/managedBy", "/spec/runPolicy/managedBy"].map(|at| text(job, at));
    managers.iter().any(|manager| manager.trim().is_empty() && !manager.is_empty() || manager.contains("no such"))
}

/// Returns what the host says of a job that is stored.
pub(crate) fn said(job: &Value) -> Outcome {
    let message = |kind: &str| {
        let mut of = own_conditions::all(at(job, "/status")).filter(|it| it["type"] == kind && it["status"] == "True");
        of.next().map(|it| text(it, "/message").to_owned())
    };
    let refused = |words: &String| words.starts_with("the API server to let the host create");
    let outcomes = [
        message("Rejected").map(Outcome::Rejected),
        message("Waiting").filter(refused).map(Outcome::Waits),
        message("Warned").map(Outcome::Warned),
    ];
    outcomes.into_iter().flatten().next().unwrap_or(Outcome::Silent)
}

/// Changes each job that the API server has stored, and returns those whose status the host does not write any more.
pub(crate) async fn forgotten(namespace: &Namespace, cases: &[Case]) -> Result<Vec<String>> {
    let kinds: BTreeMap<&str, &Value> = cases.iter().map(|case| (case.resource.as_str(), &case.job)).collect();
    let mut names = BTreeSet::new();
    for (resource, job) in &kinds {
        let requests = requests(namespace, resource, job);
        let list: Value = namespace.client.request(requests.list(&ListParams::default())?).await?;
        let jobs = list["items"].as_array().cloned().unwrap_or_default();
        let jobs = jobs.into_iter().filter(|job| !is_anothers(job) && !at(job, "/status/troupe/conditions").is_null());
        let stored: Vec<String> = jobs.map(|job| text(&job, "/metadata/name").to_owned()).collect();
        let changed = stored.iter().map(|name| {
            let patch = json!({ "status": { "troupe": { "conditions": null } } });
            let request = requests.patch_subresource("status", name, &PatchParams::default(), &Patch::Merge(&patch));
            async move { namespace.client.request::<Value>(request?).await.map_err(anyhow::Error::from) }
        });
        let _: Vec<Value> = stream::iter(changed).buffered(AT_ONCE).try_collect().await?;
        names.extend(stored.into_iter().map(|name| format!("{resource}/{name}")));
    }
    let again = until(PATIENCE, "the host to write of all jobs again", || async {
        let mut left = vec![];
        for (resource, job) in &kinds {
            let list: Value =
                namespace.client.request(requests(namespace, resource, job).list(&ListParams::default())?).await?;
            let silent = list["items"].as_array().into_iter().flatten().filter(|job| {
                names.contains(&format!("{resource}/{}", text(job, "/metadata/name")))
                    && at(job, "/status/troupe/conditions").is_null()
            });
            left.extend(silent.map(|job| format!("{resource}/{}", text(job, "/metadata/name"))));
        }
        anyhow::ensure!(left.is_empty(), "{left:?}");
        Ok(Some(()))
    });
    Ok(again.await.err().map(|error| format!("{error:#}")).into_iter().collect())
}
