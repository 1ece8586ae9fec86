//! The same values as edits of jobs that run.

use super::{
    Case,
    outcome::{Outcome, requests, said, try_all},
};
use crate::cluster::objects::{Namespace, PODS, at, text};
use anyhow::{Result, ensure};
use decide::status::merge_patch;
use futures::{StreamExt, TryStreamExt, stream};
use harness::until;
use kube::api::{GetParams, Patch, PatchParams};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

const PATIENCE: Duration = Duration::from_secs(120);
const AT_ONCE: usize = 16;

/// Edits jobs that run, each by one of the cases, and returns what went wrong: an edit that the API server takes though it
/// takes no new job so, and pods that are gone, or new, after an edit that the host refuses or warns of.
pub(crate) async fn disturbed(
    namespace: &Namespace,
    valid: &[Case],
    cases: &[Case],
    outcomes: &[Outcome],
) -> Result<Vec<String>> {
    let mut wrong = refused_only_at_creation(namespace, valid, cases, outcomes).await?;
    // One job for each edit: a copy of the valid one that the case differs from in one field.
    let edits = cases.iter().zip(outcomes).filter(|(case, outcome)| {
        matches!(outcome, Outcome::Rejected(_) | Outcome::Warned(_)) && at(&case.job, "/metadata/name").is_null()
    });
    let original = |case: &Case| {
        let job = valid[case.sample].job.clone();
        Case { resource: case.resource.clone(), job, ..Case::default() }
    };
    let (edited, originals): (Vec<&Case>, Vec<Case>) = edits.map(|(case, _)| (case, original(case))).unzip();
    let begun = try_all(namespace, "edit-", &originals).await?;
    ensure!(!begun.iter().any(|outcome| matches!(outcome, Outcome::Rejected(_) | Outcome::Refused(_))), "{begun:?}");
    let all_pods = || async {
        let pods = pods(namespace).await?;
        let lacking: Vec<_> = (0..edited.len())
            .filter(|number| has_pods(&originals[*number]) && !pods.contains_key(&format!("edit-{number}")))
            .collect();
        ensure!(lacking.is_empty(), "without pods: {lacking:?}");
        Ok(Some(pods))
    };
    let before = until(PATIENCE, "the jobs to have pods", all_pods).await?;

    let patched = edited.iter().zip(&originals).enumerate().map(|(number, (case, original))| async move {
        let patch = json!({ "spec": merge_patch(&original.job["spec"], &case.job["spec"]) });
        let request = requests(namespace, &case.resource, &case.job);
        let request = request.patch(&format!("edit-{number}"), &PatchParams::default(), &Patch::Merge(&patch))?;
        match namespace.client.request::<Value>(request).await {
            Ok(_) => Ok(true),
            // A field that cannot be changed at all.
            Err(kube::Error::Api(status)) if status.code == 422 => Ok(false),
            Err(error) => Err(anyhow::Error::from(error)),
        }
    });
    let taken: Vec<bool> = stream::iter(patched).buffered(AT_ONCE).try_collect().await?;
    let told = until(PATIENCE, "the host to say something of each edit", || async {
        let mut silent = vec![];
        for (number, case) in edited.iter().enumerate().filter(|(number, _)| taken[*number]) {
            let request = requests(namespace, &case.resource, &case.job);
            let request = request.get(&format!("edit-{number}"), &GetParams::default())?;
            let outcome = said(&namespace.client.request::<Value>(request).await?);
            if !case.is_named_in(outcome.words()) {
                silent.push(format!("{}: {outcome:?}", case.text()));
            }
        }
        ensure!(silent.is_empty(), "{silent:#?}");
        Ok(Some(()))
    });
    wrong.extend(told.await.err().map(|error| format!("{error:#}")));
    let after = pods(namespace).await?;
    for (number, case) in edited.iter().enumerate().filter(|(_, case)| !may_change_pods(case)) {
        let (before, after) = (before.get(&format!("edit-{number}")), after.get(&format!("edit-{number}")));
        if before != after {
            wrong.push(format!("{}: pods were {before:?} and are {after:?}", case.text()));
        }
    }
    eprintln!("values: {} edits of running jobs, {} taken", edited.len(), taken.iter().filter(|taken| **taken).count());
    Ok(wrong)
}

/// Returns the cases that the API server refuses for a new job and takes as an edit.
async fn refused_only_at_creation(
    namespace: &Namespace,
    valid: &[Case],
    cases: &[Case],
    outcomes: &[Outcome],
) -> Result<Vec<String>> {
    let refused = cases
        .iter()
        .zip(outcomes)
        .filter(|(case, outcome)| matches!(outcome, Outcome::Refused(_)) && at(&case.job, "/metadata/name").is_null());
    let tried = refused.map(|(case, _)| async move {
        let patch = json!({ "spec": merge_patch(&valid[case.sample].job["spec"], &case.job["spec"]) });
        let request = requests(namespace, &case.resource, &case.job);
        let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
        let request = request.patch(&format!("valid-{}", case.sample), &dry_run, &Patch::Merge(&patch))?;
        match namespace.client.request::<Value>(request).await {
            Ok(_) => Ok(Some(case.text())),
            Err(kube::Error::Api(status)) if status.code == 422 => Ok(None),
            Err(error) => Err(anyhow::Error::from(error)),
        }
    });
    let tried: Vec<Option<String>> = stream::iter(tried).buffered(AT_ONCE).try_collect().await?;
    let taken = tried.into_iter().flatten();
    Ok(taken.map(|text| format!("{text}: refused for a new job, taken as an edit")).collect())
}

/// A CronJob has runs, not pods; a launcher of a RhinoJob is made by a Job.
fn has_pods(case: &Case) -> bool {
    !["cronjobs.", "rhinojobs."].iter().any(|kind| case.resource.starts_with(kind))
}

/// An edit of a number of replicas, or of which roles there are, is what its user wants, though it is warned of.
fn may_change_pods(case: &Case) -> bool {
    case.is_relation || case.name.contains("replicas") || case.name.contains("launcherCreationPolicy")
}

/// The uids of the pods of each owner, and which are being deleted.
async fn pods(namespace: &Namespace) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut pods: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for pod in namespace.list(&PODS).await? {
        let state = if at(&pod, "/metadata/deletionTimestamp").is_null() { "" } else { " (deleted)" };
        let owner = text(&pod, "/metadata/ownerReferences/0/name").to_owned();
        pods.entry(owner).or_default().insert(format!("{}{state}", text(&pod, "/metadata/uid")));
    }
    Ok(pods)
}
