//! What tools that read the status of these kinds conclude, over every status that the host writes in every scenario. Their rules
//! are those of Flyte 1.16.8 (kfoperators/common), HyperPod's command line 2.2.0 (list_training_jobs), Rancher's wrangler 3.7.1
//! (pkg/summary) and the first kubeflow SDKs (the last of the list), in words of our own.

use super::written;
use serde_json::Value;
use std::collections::BTreeMap;

/// The types of condition that the original of each kind writes, and those that Troupe's own kinds document.
const OF_FRAMEWORK: [(&str, &[&str]); 10] = [
    ("CronJob", &["Available", "Progressing", "Degraded"]),
    ("IndexedJob", &["Suspended", "SuccessCriteriaMet", "Complete", "FailureTarget", "Failed"]),
    ("JAXJob", &TRAINING),
    ("MPIJob", &TRAINING),
    ("PaddleJob", &TRAINING),
    ("PyTorchJob", &TRAINING),
    ("RhinoJob", &[]),
    ("TFJob", &TRAINING),
    ("XGBoostJob", &TRAINING),
    ("Echo", &[]),
];

const TRAINING: [&str; 6] = ["Created", "Running", "Restarting", "Suspended", "Succeeded", "Failed"];

/// Types for which Rancher shows an error where the condition is False, as far as a job could have them.
const ERRORS_WHERE_FALSE: [&str; 8] =
    ["Active", "Created", "Deployed", "Inactive", "Initialized", "Pending", "PodScheduled", "Waiting"];

fn conditions(job: &Value) -> Vec<&Value> {
    job["status"]["conditions"].as_array().into_iter().flatten().collect()
}

fn kind(condition: &Value) -> &str {
    condition["type"].as_str().unwrap()
}

/// Flyte: the newest condition that is True, the first in the list of those that are as new.
fn newest_true(job: &Value) -> Option<&str> {
    let mut all = conditions(job);
    all.sort_by_key(|it| std::cmp::Reverse(it["lastTransitionTime"].as_str()));
    all.into_iter().find(|it| it["status"] == "True").map(kind)
}

/// HyperPod's command line: the newest condition, whatever its status.
fn newest(job: &Value) -> Option<&str> {
    let mut all = conditions(job);
    all.sort_by_key(|it| std::cmp::Reverse(it["lastTransitionTime"].as_str()));
    all.first().copied().map(kind)
}

/// Rancher: an error by the type of a condition that is False.
fn shown_as_error(job: &Value) -> Option<&str> {
    let is_error = |it: &&Value| it["status"] == "False" && ERRORS_WHERE_FALSE.contains(&kind(it));
    conditions(job).into_iter().find(is_error).map(kind)
}

/// The first SDKs: the last of the list.
fn last(job: &Value) -> Option<&str> {
    conditions(job).last().copied().map(kind)
}

#[test]
fn tools_that_read_conditions_find_those_of_the_framework_alone() {
    let of_framework: BTreeMap<_, _> = OF_FRAMEWORK.into_iter().collect();
    let (mut statuses, mut own) = (0, 0);
    for (file, written) in written() {
        for job in written.jobs.iter().filter(|job| !job["status"].is_null()) {
            let known = of_framework[job["kind"].as_str().unwrap()];
            for (tool, found) in [("Flyte", newest_true(job)), ("HyperPod", newest(job)), ("the first SDKs", last(job))]
            {
                let is_known = found.is_none_or(|kind| known.contains(&kind));
                assert!(is_known, "{tool} takes {found:?} for the state in {}: {:#}", file.display(), job["status"]);
            }
            assert_eq!(shown_as_error(job), None, "Rancher, {}: {:#}", file.display(), job["status"]);
            statuses += 1;
            own += usize::from(job["status"]["troupe"]["conditions"].as_array().is_some_and(|all| !all.is_empty()));
        }
    }
    eprintln!("{statuses} statuses, of which {own} have conditions of the host");
    assert!(statuses > 500 && own * 10 > statuses * 9, "{own} of {statuses}");
}
