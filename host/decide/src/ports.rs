//! Host ports: which jobs need them, and when they release them.

use crate::{
    Snapshot,
    condition::Condition,
    decision::{Decision, Report},
    ledger::{HostPorts, Ledger},
    plan::{Outcome, Plan},
};

pub use crate::ledger::NoPorts;

/// Returns whether the job needs host ports before anything is created: its plan asks for ports, replicas are wanted
/// now, and its ledger has no block of this size.
#[must_use]
pub fn lacks(snapshot: &Snapshot, plan: &Plan) -> bool {
    plan.host_ports > 0 && wants_replicas(snapshot, plan) && held(snapshot, plan).is_none()
}

/// Returns whether the status already names the ports that the host has set aside, written by an earlier host or by the
/// user. Then no write, and no watch event, follows.
pub(crate) fn are_written_down(snapshot: &Snapshot) -> bool {
    let job = &snapshot.job;
    snapshot.set_aside.is_some() && snapshot.set_aside == Ledger::read(&job.status, &job.uid).host_ports
}

/// Returns the ports that the job holds from now on: those of live replicas and of replicas wanted now.
pub(crate) fn next(snapshot: &Snapshot, plan: &Plan, outcome: Outcome) -> Option<HostPorts> {
    let wants = outcome == Outcome::Open && wants_replicas(snapshot, plan);
    if wants || has_live_pods(snapshot) { held(snapshot, plan).or(snapshot.set_aside) } else { None }
}

/// Returns whether a job keeps its ports after this decision. A rejected job does while it has live pods, or a Job that may
/// make some: its other children use no port. Put right, it is given ports anew.
///
/// A job whose plugin fails keeps them whatever it has, since that is not its user's doing and may be over soon.
#[must_use]
pub fn keeps(snapshot: &Snapshot, decision: &Decision) -> bool {
    match &decision.report {
        Report::Verdict { ledger, .. } => ledger.host_ports.is_some(),
        Report::Condition(condition) if condition.kind == Condition::Rejected => {
            has_live_pods(snapshot) || snapshot.has_active_job()
        }
        Report::Condition(_) => true,
        Report::Unchanged => has_live_pods(snapshot),
    }
}

fn held(snapshot: &Snapshot, plan: &Plan) -> Option<HostPorts> {
    snapshot.ledger.host_ports.filter(|ports| ports.count == plan.host_ports)
}

fn wants_replicas(snapshot: &Snapshot, plan: &Plan) -> bool {
    !snapshot.suspended() && plan.roles.iter().any(|role| role.replicas > 0)
}

fn has_live_pods(snapshot: &Snapshot) -> bool {
    snapshot.pods.iter().any(|pod| !pod.phase.is_terminal())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        decide,
        decision::Wake,
        plan::{Answer, Bindings, Fault, Rejection, Verdict},
        snapshot::PodPhase,
        testkit::{self, text},
    };
    use serde_json::json;
    use std::sync::Arc;

    const PORTS: HostPorts = HostPorts { first: 100, count: 20 };

    fn plan(replicas: u32) -> Plan {
        let worker = testkit::role("worker", replicas, text(&["JOB", "-worker-", "INDEX"]), json!({}));
        Plan { host_ports: 20, ..testkit::plan(vec![worker]) }
    }

    /// Returns a job whose ledger has these ports, with one pod if a phase is given.
    fn job(has: Option<HostPorts>, pod: Option<PodPhase>) -> Snapshot {
        let mut snapshot = testkit::snapshot(testkit::job("job", "uid"));
        snapshot.ledger.host_ports = has;
        snapshot.ledger.headline = "y".into();
        snapshot.pods.extend(pod.map(|phase| Arc::new(testkit::pod("job-worker-0", "uid", phase))));
        snapshot
    }

    fn decided(snapshot: &Snapshot, plan: Plan, outcome: Outcome) -> Decision {
        let verdict = Verdict::new(json!({}), "x", outcome);
        decide(snapshot, &Answer::Judged { plan: Arc::new(plan), bindings: Bindings::default(), verdict })
    }

    fn has_after(snapshot: &Snapshot, replicas: u32, outcome: Outcome) -> Option<HostPorts> {
        let decision = decided(snapshot, plan(replicas), outcome);
        let Report::Verdict { ledger, .. } = &decision.report else { panic!("{decision:?}") };
        assert_eq!(keeps(snapshot, &decision), ledger.host_ports.is_some());
        ledger.host_ports
    }

    #[test]
    fn a_job_has_ports_while_replicas_exist_or_are_wanted() {
        use Outcome::{Open, Succeeded};
        use PodPhase::{Running, Succeeded as Ended};
        let has = |pod| job(Some(PORTS), pod);
        assert_eq!(has_after(&has(None), 1, Open), Some(PORTS));
        assert_eq!(has_after(&has(None), 0, Open), None);
        assert_eq!(has_after(&has(Some(Running)), 0, Open), Some(PORTS));
        assert_eq!(has_after(&has(Some(Running)), 1, Succeeded), Some(PORTS));
        assert_eq!(has_after(&has(Some(Ended)), 1, Succeeded), None);
        let mut suspended = has(None);
        Arc::make_mut(&mut suspended.job).spec = json!({ "suspend": true });
        assert_eq!(has_after(&suspended, 1, Open), None);
        let misfit = Some(HostPorts { count: 1, ..PORTS });
        assert_eq!(has_after(&job(misfit, None), 1, Open), None, "not the size that the plan asks for");
    }

    #[test]
    fn a_job_with_wanted_replicas_gets_ports_or_waits_with_the_reason() {
        let job = job(None, None);
        assert!(lacks(&job, &plan(1)) && !lacks(&job, &plan(0)));
        assert!(!lacks(&job, &Plan { host_ports: 0, ..plan(1) }));
        let given = Snapshot { set_aside: Some(PORTS), ..job.clone() };
        assert_eq!(has_after(&given, 1, Outcome::Open), Some(PORTS));
        assert!(decided(&given, plan(1), Outcome::Open).actions.is_empty(), "it is written down first");
        let refused = Snapshot { no_ports: Some(NoPorts::Quota { used: 90, most: 100 }), ..job };
        assert_eq!(
            decided(&refused, plan(1), Outcome::Open).waiting[0].to_string(),
            "20 consecutive ports of the nodes; jobs of this namespace have 90 of the 100 that they may have"
        );
    }

    #[test]
    fn ports_already_in_the_status_requeue_the_job_at_once() {
        let given = Snapshot { set_aside: Some(PORTS), ..job(None, None) };
        assert_eq!(decided(&given, plan(1), Outcome::Open).wake, Wake::OnChange);
        let written = |ports: HostPorts| {
            let mut snapshot = given.clone();
            Arc::make_mut(&mut snapshot.job).status = json!({ "troupe": { "uid": "uid", "hostPorts": ports } });
            snapshot
        };
        assert_eq!(decided(&written(PORTS), plan(1), Outcome::Open).wake, Wake::At(given.now));
        // A finished job releases its ports: an immediate requeue would repeat forever.
        assert_eq!(decided(&written(PORTS), plan(1), Outcome::Succeeded).wake, Wake::OnChange);
        let others = written(HostPorts { first: 200, ..PORTS });
        assert_eq!(decided(&others, plan(1), Outcome::Open).wake, Wake::OnChange);
    }

    #[test]
    fn a_rejected_job_keeps_its_ports_while_it_has_live_pods() {
        let rejected = |snapshot: &Snapshot| {
            let rejection = Rejection::Unsupported("no".into());
            keeps(snapshot, &decide(snapshot, &Answer::Rejected(rejection)))
        };
        assert!(!rejected(&job(Some(PORTS), None)));
        assert!(!rejected(&job(Some(PORTS), Some(PodPhase::Failed))));
        assert!(rejected(&job(Some(PORTS), Some(PodPhase::Running))));
        let with = |child| Snapshot { children: vec![child], ..job(Some(PORTS), None) };
        let suspended = [("/spec/suspend", json!(true))];
        assert!(!rejected(&with(testkit::child("ConfigMap", "job", &[]))), "a ConfigMap uses no port");
        assert!(!rejected(&with(testkit::child("Job", "job-launcher", &suspended))));
        assert!(rejected(&with(testkit::child("Job", "job-launcher", &[]))), "it may make a pod");
    }

    #[test]
    fn a_rejected_job_that_gave_its_ports_back_needs_some_again_once_it_is_put_right() {
        // The host has taken the block out of the ledger, since the job does not hold it.
        let cured = job(None, Some(PodPhase::Failed));
        assert!(lacks(&cured, &plan(1)));
        let others = HostPorts { first: 200, ..PORTS };
        assert_eq!(has_after(&Snapshot { set_aside: Some(others), ..cured }, 1, Outcome::Open), Some(others));
    }

    #[test]
    fn a_job_whose_plugin_fails_keeps_its_ports_without_pods() {
        let fault = Fault::Missing { digest: None, why: String::new() };
        let job = job(Some(PORTS), None);
        assert!(keeps(&job, &decide(&job, &Answer::Faulted(fault))));
    }
}
