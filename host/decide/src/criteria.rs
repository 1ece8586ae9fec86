//! Whether a job's work is done, by the criteria of its plan.

use crate::{
    counted,
    plan::{Backing, Criterion, Role, Success},
    snapshot::PodPhase,
    standing::{Replica, Standing},
};

/// Returns the place of the first list of criteria that are all met. A list without criteria is not met.
#[must_use]
pub fn met(standing: &Standing<'_>) -> Option<usize> {
    let is_met = |criteria: &Vec<Criterion>| !criteria.is_empty() && criteria.iter().all(|one| holds(standing, one));
    standing.plan.success_criteria.iter().position(is_met)
}

fn holds(standing: &Standing<'_>, criterion: &Criterion) -> bool {
    let mut roles = standing.plan.roles.iter().enumerate();
    let Some((place, role)) = roles.find(|(_, role)| role.name == criterion.role) else { return false };
    let all = if criterion.indices.is_empty() { role.indices() } else { criterion.indices.clone() };
    let have = match role.backing {
        // The Job decides: one pod that has succeeded may not be enough.
        Backing::Job(_) => u64::from(standing.snapshot.job_behind(role).is_some_and(|job| job.job_has("Complete"))),
        Backing::Pods => {
            let of_role = standing.replicas.iter().filter(|it| it.place == place && all.contains(it.index));
            of_role.filter(|replica| succeeds(standing, role, replica)).count() as u64
        }
    };
    // What is none of none has not succeeded.
    have >= criterion.at_least.map_or_else(|| all.count(), u64::from).max(1)
}

/// Where a success is momentary the pod itself has to be there, and how one ends that is being deleted says nothing of its
/// work.
fn succeeds(standing: &Standing<'_>, role: &Role, replica: &Replica<'_>) -> bool {
    if role.success != Success::Momentary {
        return standing.has_succeeded(replica);
    }
    replica.pod.is_some_and(|pod| {
        let counts = counted::succeeds(standing.snapshot, role, replica.index, pod);
        pod.phase == PodPhase::Succeeded && !pod.terminating && counts
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Snapshot,
        ranges::Ranges,
        testkit::{self, child, job, pod, snapshot, text},
    };
    use serde_json::json;
    use std::sync::Arc;

    fn role(name: &str, replicas: u32) -> Role {
        testkit::role(name, replicas, text(&["JOB", &format!("-{name}-"), "INDEX"]), json!({}))
    }

    fn criterion(role: &str, indices: &[(u32, u32)], at_least: Option<u32>) -> Criterion {
        Criterion { role: role.into(), indices: Ranges::from(indices.to_vec()), at_least }
    }

    /// A job with pods of these names that have succeeded.
    fn with(names: &[&str]) -> Snapshot {
        let mut snapshot = snapshot(job("j", "u"));
        snapshot.pods = names.iter().map(|name| Arc::new(pod(name, "u", PodPhase::Succeeded))).collect();
        snapshot
    }

    fn met_by(snapshot: &Snapshot, roles: Vec<Role>, criteria: Vec<Vec<Criterion>>) -> Option<usize> {
        let mut plan = testkit::plan(roles);
        plan.success_criteria = criteria;
        met(&Standing::of(snapshot, &Arc::new(plan)))
    }

    #[test]
    fn all_replicas_or_enough_of_them_or_certain_ones_are_a_success() {
        let done = with(&["j-w-0", "j-w-2"]);
        let met = |indices: &[(u32, u32)], at_least| {
            met_by(&done, vec![role("w", 3)], vec![vec![criterion("w", indices, at_least)]]).is_some()
        };
        assert!(!met(&[], None) && met(&[], Some(2)) && !met(&[], Some(3)));
        assert!(met(&[(0, 0), (2, 2)], None) && !met(&[(0, 1)], None) && met(&[(0, 1)], Some(1)));
        assert!(!met(&[(2, 7)], None), "an index without a replica never succeeds");
    }

    #[test]
    fn a_list_holds_as_a_whole_and_the_first_that_does_counts() {
        let (a, b) = (|| criterion("a", &[], None), || criterion("b", &[], None));
        let roles = || vec![role("a", 1), role("b", 1)];
        let met = |pods: &[&str], lists| met_by(&with(pods), roles(), lists);
        assert_eq!(met(&["j-a-0"], vec![vec![a(), b()], vec![a()]]), Some(1));
        assert_eq!(met(&["j-a-0", "j-b-0"], vec![vec![a(), b()], vec![a()]]), Some(0));
        assert_eq!(met(&["j-a-0"], vec![vec![]]), None, "no criteria are none that are met");
        assert_eq!(met_by(&with(&[]), vec![role("a", 0)], vec![vec![a()]]), None, "none of none");
    }

    #[test]
    fn what_the_ledger_remembers_counts_unless_a_success_is_momentary() {
        let mut gone = with(&[]);
        gone.ledger.succeeded.entry("w".into()).or_default().insert(0);
        let lists = || vec![vec![criterion("w", &[], None)]];
        assert_eq!(met_by(&gone, vec![role("w", 1)], lists()), Some(0));
        let momentary = || Role { success: Success::Momentary, ..role("w", 1) };
        assert_eq!(met_by(&gone, vec![momentary()], lists()), None);
        let mut done = with(&["j-w-0"]);
        assert_eq!(met_by(&done, vec![momentary()], lists()), Some(0));
        Arc::make_mut(&mut done.pods[0]).terminating = true;
        assert_eq!(met_by(&done, vec![momentary()], lists()), None);
    }

    #[test]
    fn a_role_that_a_job_backs_succeeds_with_it() {
        let launcher = || Role { backing: Backing::Job(json!({})), pod_name: text(&["JOB", "-l"]), ..role("l", 1) };
        let mut snapshot = with(&[]);
        let lists = || vec![vec![criterion("l", &[], None)]];
        assert_eq!(met_by(&snapshot, vec![launcher()], lists()), None);
        let job = |status| child("Job", "j-l", &[("/status", status)]);
        snapshot.children = vec![job(json!({}))];
        snapshot.pods = vec![Arc::new(pod("j-l-x", "uid-of-j-l", PodPhase::Succeeded))];
        assert_eq!(met_by(&snapshot, vec![launcher()], lists()), None, "the Job may need more pods");
        let complete = json!({ "conditions": [{ "type": "Complete", "status": "True" }] });
        snapshot.children = vec![job(complete)];
        assert_eq!(met_by(&snapshot, vec![launcher()], lists()), Some(0));
    }
}
