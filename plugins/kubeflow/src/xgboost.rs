//! XGBoostJob: the variables of XGBoost's tracker and of LightGBM's machine list.

use crate::env::{Variable, fixed, index, number};
use crate::family::{Family, Group};
use crate::fate::{Fate, RestartPolicy};
use crate::valid::{Valid, exactly_one};

pub(crate) fn variables(valid: &Valid<'_>, group: &Group<'_>) -> Vec<Variable> {
    let family = valid.family;
    let masters = family.replicas("Master").map_or(0, |masters| masters.count);
    let ranks_before = if group.of.name == "Worker" { masters } else { 0 };
    let mut variables = vec![
        number("MASTER_PORT", valid.port("Master")),
        fixed("MASTER_ADDR", family.host("master", 0)),
        number("WORLD_SIZE", family.total()),
        index("RANK", group, ranks_before),
        fixed("PYTHONUNBUFFERED", "1"),
    ];
    if family.total() > 1 {
        let workers: Vec<_> = (0..family.total() - masters).map(|index| family.host("worker", index)).collect();
        variables.push(number("WORKER_PORT", valid.port("Worker")));
        variables.push(fixed("WORKER_ADDRS", workers.join(",")));
    }
    variables
}

/// Only an exit code restarts a pod: with other policies its failure is the job's.
pub(crate) fn fate(policy: RestartPolicy, exit_code: Option<i32>) -> Fate {
    match policy {
        RestartPolicy::ExitCode => policy.fate(exit_code),
        RestartPolicy::Always | RestartPolicy::OnFailure | RestartPolicy::Never => Fate::Fail,
    }
}

pub(crate) fn errors(family: &Family<'_>) -> Vec<(String, String)> {
    match family.replicas("Master") {
        None => vec![(format!("{}[Master]", family.kind.field), "is required".to_owned())],
        Some(_) => exactly_one(family, "Master").into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{errors, job, spec, variables};
    use serde_json::json;

    // AC-07
    #[test]
    fn workers_are_ranked_behind_the_master() {
        let three = spec("XGBoostJob", &[("Master", 1), ("Worker", 2)], &json!({}));
        let expected = |rank: &str| {
            let rank = format!("RANK={rank}");
            let before = ["MASTER_PORT=9999", "MASTER_ADDR=j-master-0", "WORLD_SIZE=3", &rank, "PYTHONUNBUFFERED=1"];
            [&before[..], &["WORKER_PORT=9999", "WORKER_ADDRS=j-worker-0,j-worker-1"]].concat().join(" ")
        };
        for (role, index, rank) in [("master", 0, "0"), ("worker", 0, "1"), ("worker", 1, "2")] {
            assert_eq!(variables("XGBoostJob", &three, role, index).join(" "), expected(rank));
        }
    }

    // AC-07
    #[test]
    fn a_master_alone_has_no_workers_to_name() {
        let alone = spec("XGBoostJob", &[("Master", 1)], &json!({}));
        assert_eq!(variables("XGBoostJob", &alone, "master", 0).len(), 5);
    }

    // AC-07: a pod that fails for another reason than its exit code fails the job.
    #[test]
    fn only_an_exit_code_restarts_a_pod() {
        assert_eq!(fate(RestartPolicy::OnFailure, None), Fate::Fail);
        assert_eq!(fate(RestartPolicy::ExitCode, Some(137)), Fate::Restart);
        assert_eq!(fate(RestartPolicy::ExitCode, Some(1)), Fate::FailForGood);
    }

    // AC-19
    #[test]
    fn a_job_without_exactly_one_master_is_refused() {
        for (types, path) in [
            (&[("Worker", 1)][..], "spec.xgbReplicaSpecs[Master]"),
            (&[("Master", 2)], "spec.xgbReplicaSpecs[Master].replicas"),
        ] {
            let errors = errors(&job("XGBoostJob", &spec("XGBoostJob", types, &json!({}))));
            assert_eq!(errors.len(), 1);
            assert_eq!(errors[0].0, path);
        }
    }
}
