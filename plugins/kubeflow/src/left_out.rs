//! Which workers go when an elastic job is scaled down: its user may name them.

use crate::TrainingJob;
use crate::family::Group;
use crate::kind::ReplicaType;
use troupe_plugin::{Indexes, MAX_REPLICAS};

/// The annotation of a job with the indexes of the workers that it is to be without: `2,4-5`. The original has none: the
/// workers with the highest indexes go.
pub(crate) const LEFT_OUT_WORKERS: &str = "kubeflow.troupe.dev/left-out-workers";

/// Returns the workers that the job is to be without.
///
/// # Errors
/// What is wrong with the annotation.
pub(crate) fn workers(job: &TrainingJob) -> Result<Indexes, String> {
    let named = job.view.annotations.iter().find(|(name, _)| name == LEFT_OUT_WORKERS);
    let Some((_, text)) = named.filter(|(_, text)| !text.is_empty()) else { return Ok(Indexes::default()) };
    if job.spec.elastic_policy.is_none() || job.view.kind != "PyTorchJob" {
        return Err("needs a PyTorchJob with spec.elasticPolicy: other workers know each other by their indexes".into());
    }
    let indexes =
        Indexes::parse(text).map_err(|why| format!("{why}; the indexes of workers are meant, as in 2,4-5"))?;
    match indexes.last() {
        Some(last) if last >= MAX_REPLICAS => Err(format!("index {last} is not below {MAX_REPLICAS}")),
        _ if indexes.contains(0) => Err("worker 0 stays: others may meet there".into()),
        _ => Ok(indexes),
    }
}

/// Returns the replicas of a type that the job is to be without.
pub(crate) fn of_type(job: &TrainingJob, of: &ReplicaType) -> Indexes {
    if of.name == "Worker" { workers(job).unwrap_or_default() } else { Indexes::default() }
}

/// Returns the indices of a group's role that have no replica.
pub(crate) fn of_group(job: &TrainingJob, group: &Group<'_>) -> Vec<(u32, u32)> {
    if group.is_first() {
        return vec![];
    }
    let ranges = of_type(job, group.of).into_ranges();
    ranges.into_iter().map(|(first, last)| (first - group.from, last - group.from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::Family;
    use crate::fixtures::{job, spec};
    use serde_json::json;

    fn elastic(text: &str) -> TrainingJob {
        let mut job = job("PyTorchJob", &spec("PyTorchJob", &[("Worker", 3)], &json!({ "elasticPolicy": {} })));
        job.view.annotations = vec![(LEFT_OUT_WORKERS.into(), text.into())];
        job
    }

    // AC-27
    #[test]
    fn the_named_workers_of_an_elastic_job_have_no_pods() {
        let job = elastic("2,4-5");
        let family = Family::of(&job).unwrap();
        let left_out: Vec<_> = family.groups().iter().map(|group| (group.role, of_group(&job, group))).collect();
        assert_eq!(left_out, [("master", vec![]), ("worker-0", vec![]), ("worker", vec![(1, 1), (3, 4)])]);
    }

    // AC-27
    #[test]
    fn workers_that_cannot_be_left_out_are_refused() {
        for (text, why) in [
            ("0-1", "worker 0 stays: others may meet there"),
            ("one", "\"one\" is no index; the indexes of workers are meant, as in 2,4-5"),
            ("10000", "index 10000 is not below 10000"),
        ] {
            assert_eq!(workers(&elastic(text)), Err(why.into()));
        }
        let mut other = job("JAXJob", &spec("JAXJob", &[("Worker", 3)], &json!({})));
        other.view.annotations = vec![(LEFT_OUT_WORKERS.into(), "1".into())];
        assert!(workers(&other).unwrap_err().starts_with("needs a PyTorchJob"));
    }
}
