use super::*;
use crate::{
    back_off::{Attempt, Failures, LEAST_BACK_OFF, MOST_BACK_OFF},
    decide,
    decision::{Decision, Report, Write},
    plan::{Answer, Bindings, Clean, EnvEntry, FailureRule, Outcome, Piece, Text, Verdict},
    snapshot::ContainerStatus,
    testkit,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

/// A job of three workers whose failed pods with an exit code from 128 on, or without one, are replaced.
struct World {
    snapshot: Snapshot,
    plan: Plan,
    verdict: Verdict,
}

const SECOND: SignedDuration = SignedDuration::from_secs(1);

impl World {
    fn new() -> Self {
        let name = testkit::text(&["JOB", "-w-", "INDEX"]);
        let mut role = testkit::role("w", 3, name, json!({ "spec": { "containers": [{ "name": "main" }] } }));
        let main = || "main".to_owned();
        role.failures = [
            Failure::ExitCodes { container: main(), ranges: vec![(128, 255)] },
            Failure::NoExitCode { container: main() },
        ]
        .map(|about| FailureRule { about, then: Remedy::Replace })
        .into();
        let mut snapshot = testkit::snapshot(testkit::job("hamlet", "u"));
        snapshot.pods = (0..3).map(|index| Arc::new(pod(index, PodPhase::Running))).collect();
        Self { snapshot, plan: testkit::plan(vec![role]), verdict: Verdict::new(json!({}), "x", Outcome::Open) }
    }

    /// Sets the state of the pod with this index.
    fn set(&mut self, index: u32, change: impl FnOnce(&mut Pod)) {
        let name = format!("hamlet-w-{index}");
        let place = self.snapshot.pods.iter().position(|pod| pod.name == name).unwrap();
        change(Arc::make_mut(&mut self.snapshot.pods[place]));
    }

    fn fails(&mut self, index: u32, exit_code: i32) {
        self.set(index, |pod| *pod = failed(index, exit_code));
    }

    fn remove(&mut self, index: u32) {
        self.snapshot.pods.retain(|pod| pod.name != format!("hamlet-w-{index}"));
    }

    /// Decides, and keeps the ledger as if the status had been written.
    fn pass(&mut self) -> Decision {
        let answer = Answer::Judged {
            plan: self.plan.clone().into(),
            bindings: Bindings::default(),
            verdict: self.verdict.clone(),
        };
        let decision = decide(&self.snapshot, &answer);
        if let Report::Verdict { ledger, .. } = &decision.report {
            self.snapshot.ledger = Ledger::clone(ledger);
        }
        decision
    }

    fn later(&mut self, by: SignedDuration) {
        self.snapshot.now += by;
    }

    fn replacement(&self, index: u32) -> Replacement {
        let pod = self.snapshot.pods.iter().find(|pod| pod.name == format!("hamlet-w-{index}")).unwrap();
        Due::of(&self.snapshot, &self.plan).replacement(&self.plan.roles[0], index, pod)
    }

    fn count(&self) -> u32 {
        self.snapshot.ledger.failures.get("w").map_or(0, |failures| failures.count)
    }
}

fn pod(index: u32, phase: PodPhase) -> Pod {
    testkit::pod(&format!("hamlet-w-{index}"), "u", phase)
}

fn failed(index: u32, exit_code: i32) -> Pod {
    let at = Timestamp::UNIX_EPOCH;
    let state = ContainerState::Terminated { exit_code, reason: String::new(), message: String::new(), at };
    let main = ContainerStatus { name: "main".into(), init: false, ready: false, restarts: 0, state };
    Pod { containers: vec![main], uid: format!("uid-{index}-{exit_code}"), ..pod(index, PodPhase::Failed) }
}

/// The names of pods that the decision deletes and creates.
fn writes(decision: &Decision) -> Vec<String> {
    let is_pod = |action: &&Action| matches!(action.write(), Write::Create(_) | Write::Delete { .. });
    decision.actions.iter().filter(is_pod).map(ToString::to_string).collect()
}

// AC-10: a retryable failure is counted, then its pod is deleted, and another one is created when that is gone.
#[test]
fn a_failed_pod_is_counted_before_it_is_deleted_and_created_again_after_a_delay() {
    let mut world = World::new();
    world.fails(1, 137);
    assert_eq!((world.replacement(1), world.replacement(0)), (Replacement::Due, Replacement::None));
    assert_eq!(writes(&world.pass()), [""; 0], "the ledger does not hold it yet");
    assert_eq!((world.replacement(1), world.count()), (Replacement::UnderWay, 1));
    assert_eq!(writes(&world.pass()), ["delete pod/hamlet-w-1"]);
    world.remove(1);
    let decision = world.pass();
    let again = world.snapshot.now + LEAST_BACK_OFF;
    assert_eq!((writes(&decision), decision.wake), (vec![], Wake::At(again)));
    assert_eq!(decision.waiting[0].to_string(), "the end of a back-off: 1 pod of role w has failed so far");
    world.later(LEAST_BACK_OFF);
    assert_eq!(writes(&world.pass()), ["create pod/hamlet-w-1"]);
    world.snapshot.pods.insert(1, Arc::new(Pod { uid: "new".into(), ..pod(1, PodPhase::Running) }));
    assert_eq!((writes(&world.pass()), world.count()), (vec![], 1));
    assert!(world.snapshot.ledger.failures["w"].pods.is_empty(), "its uid is not kept for ever");
}

// AC-11: an exit code that no rule is about; AC-10: no exit code at all.
#[test]
fn a_failed_pod_that_no_rule_is_about_stays() {
    let mut world = World::new();
    world.fails(0, 1);
    world.set(2, |pod| pod.phase = PodPhase::Failed);
    assert_eq!((world.replacement(0), world.replacement(2)), (Replacement::None, Replacement::Due));
    world.pass();
    assert_eq!((writes(&world.pass()), world.count()), (vec!["delete pod/hamlet-w-2".to_owned()], 1));
}

// AC-13 (b), Better: each uid counts once, wherever the host crashes; the delay doubles with each failure in a row.
#[test]
fn every_failed_pod_counts_once_and_the_back_off_doubles() {
    let mut world = World::new();
    let mut delays = vec![];
    for failure in 1..=8 {
        world.fails(1, 128 + failure);
        world.pass();
        let ledger = world.snapshot.ledger.clone();
        // A host that was started again sees the same pod, and the ledger that was written.
        world.pass();
        assert_eq!((world.snapshot.ledger == ledger, world.count()), (true, failure.unsigned_abs()));
        let delay = ledger.failures["w"].row.ends_at(world.snapshot.now).unwrap().duration_since(world.snapshot.now);
        delays.push(delay.as_secs());
        world.later(delay);
    }
    assert_eq!(delays, [10, 20, 40, 80, 160, 320, 600, 600]);
    world.later(MOST_BACK_OFF);
    world.fails(1, 255);
    world.pass();
    assert_eq!((world.snapshot.ledger.failures["w"].row.in_a_row, world.count()), (1, 9), "it begins anew");
}

#[test]
fn failures_during_a_back_off_do_not_double_it() {
    let mut world = World::new();
    world.fails(0, 137);
    world.pass();
    world.later(SECOND);
    world.fails(2, 137);
    world.pass();
    let failures = &world.snapshot.ledger.failures["w"];
    assert_eq!((failures.count, failures.row.in_a_row, failures.pods.len()), (2, 1, 2));
}

// A clock that is set back, or a tenant who writes a time to come into his status, delays nothing.
#[test]
fn a_failure_that_is_later_than_now_backs_nothing_off() {
    let mut world = World::new();
    world.fails(1, 137);
    world.pass();
    world.remove(1);
    world.snapshot.ledger.failures.get_mut("w").unwrap().row.last = world.snapshot.now + SignedDuration::from_hours(1);
    assert_eq!(writes(&world.pass()), ["create pod/hamlet-w-1"]);
}

#[test]
fn pods_that_somebody_else_ends_are_not_counted() {
    let mut world = World::new();
    world.fails(0, 143);
    world.set(0, |pod| pod.terminating = true);
    world.fails(1, 137);
    let mut spec = world.snapshot.job.as_ref().clone();
    spec.spec = json!({ "suspend": true });
    world.snapshot.job = Arc::new(spec);
    world.pass();
    assert_eq!((world.count(), world.replacement(0)), (0, Replacement::UnderWay), "nor fails the job");
    // Indices beyond the replicas.
    let mut world = World::new();
    world.plan.roles[0].replicas = 1;
    world.fails(1, 137);
    assert_eq!(world.replacement(1), Replacement::None);
    world.pass();
    assert_eq!(world.count(), 0);
}

#[test]
fn a_ledger_that_is_not_kept_is_reported_and_nothing_is_deleted() {
    let mut world = World::new();
    world.fails(1, 137);
    world.snapshot.pruned = true;
    let decision = world.pass();
    assert_eq!(writes(&decision), [""; 0]);
    assert!(decision.waiting[0].to_string().contains("tales.example.com to keep status.troupe"), "{decision:?}");
}

// What a tenant writes into his own status deletes no pod but one that has failed.
#[test]
fn a_ledger_that_names_a_running_pod_deletes_nothing() {
    let mut world = World::new();
    let running = Failures { pods: BTreeMap::from([(0, "uid-of-hamlet-w-0".to_owned())]), ..Failures::default() };
    world.snapshot.ledger.failures.insert("w".into(), running);
    assert_eq!(writes(&world.pass()), [""; 0]);
}

// AC-14: the end of a deadline is seen without any event.
#[test]
fn a_plugin_is_asked_again_at_the_time_that_it_names() {
    let mut world = World::new();
    let at = world.snapshot.now + SignedDuration::from_secs(30);
    world.verdict.wake_at = Some(at);
    assert_eq!(world.pass().wake, Wake::At(at));
    world.later(SignedDuration::from_secs(60));
    assert_eq!(world.pass().wake, Wake::At(world.snapshot.now + SECOND), "a time that has come is put off");
    world.verdict.outcome = Outcome::Failed;
    assert_eq!(world.pass().wake, Wake::OnChange);
}

// 1.12, Better: when a limit ends the job, its active pods go whatever its clean-pod policy.
#[test]
fn a_verdict_can_end_a_job_with_a_clean_up_of_its_own_that_no_edit_changes() {
    let mut world = World::new();
    world.verdict.outcome = Outcome::Failed;
    world.verdict.clean = Some(Clean::Active);
    world.pass();
    let mut edited = world.snapshot.job.as_ref().clone();
    edited.generation = 2;
    world.snapshot.job = Arc::new(edited);
    world.pass();
    assert_eq!(world.snapshot.ledger.finished.as_ref().unwrap().clean, Clean::Active);
    assert_eq!(writes(&world.pass()).len(), 3);
}

/// A job of three indexes, of which each failed pod is replaced, and each deleted pod counts at once.
fn indexes() -> World {
    let mut world = World::new();
    let role = &mut world.plan.roles[0];
    role.failures = vec![FailureRule { about: Failure::Any, then: Remedy::Replace }];
    role.deletion = Deletion::AtOnce;
    role.at_once = Some(3);
    world
}

// J09, J12
#[test]
fn a_pod_that_the_host_deletes_is_settled_before_and_does_not_count() {
    let mut world = indexes();
    world.plan.roles[0].at_once = Some(2);
    assert_eq!(writes(&world.pass()), Vec::<String>::new(), "the ledger names it first");
    assert_eq!(world.snapshot.ledger.failures["w"].settled.len(), 1);
    let deleted = writes(&world.pass());
    assert_eq!(deleted, ["delete pod/hamlet-w-2"]);
    world.set(2, |pod| pod.terminating = true);
    world.pass();
    world.set(2, |pod| pod.phase = PodPhase::Failed);
    world.pass();
    world.remove(2);
    world.pass();
    assert_eq!((world.count(), world.snapshot.ledger.failures["w"].settled.len()), (0, 0));
}

// J04: seeds 52, 182, 628 and 674 of the campaign
#[test]
fn a_pod_that_fails_before_the_host_deletes_it_counts_and_is_replaced() {
    let mut world = indexes();
    world.plan.roles[0].at_once = Some(2);
    world.pass();
    world.plan.roles[0].at_once = Some(3);
    world.fails(2, 1);
    world.pass();
    assert_eq!((world.count(), world.replacement(2)), (1, Replacement::UnderWay));
    assert_eq!(writes(&world.pass()), ["delete pod/hamlet-w-2"]);
}

// J09
#[test]
fn a_pod_that_somebody_deletes_counts_once() {
    let mut world = indexes();
    world.set(1, |pod| pod.terminating = true);
    world.pass();
    world.set(1, |pod| pod.phase = PodPhase::Failed);
    world.pass();
    assert_eq!((world.count(), world.replacement(1)), (1, Replacement::UnderWay));
    world.plan.roles[0].deletion = Deletion::WhenFailed;
    world.set(0, |pod| pod.terminating = true);
    world.pass();
    assert_eq!(world.count(), 1, "it has not failed yet");
    world.set(0, |pod| pod.phase = PodPhase::Failed);
    world.pass();
    assert_eq!(world.count(), 2);
}

// J05
#[test]
fn pods_of_a_failing_job_are_counted_and_then_deleted() {
    let mut world = indexes();
    world.fails(0, 1);
    world.verdict.outcome = Outcome::Failing;
    assert_eq!(writes(&world.pass()), Vec::<String>::new());
    assert_eq!((world.count(), world.snapshot.ledger.ending), (1, Some(Ending::Failing)));
    assert_eq!(writes(&world.pass()), Vec::<String>::new());
    assert_eq!(world.count(), 3);
    assert_eq!(writes(&world.pass()), ["delete pod/hamlet-w-1", "delete pod/hamlet-w-2"]);
    world.verdict.outcome = Outcome::Open;
    world.remove(1);
    assert_eq!(writes(&world.pass()), ["delete pod/hamlet-w-2"], "it is not taken back");
    assert_eq!(world.count(), 3);
}

// J11
#[test]
fn pods_of_a_succeeding_job_do_not_count() {
    let mut world = indexes();
    world.verdict.outcome = Outcome::Succeeding;
    world.pass();
    assert_eq!(writes(&world.pass()).len(), 3);
    world.set(1, |pod| pod.phase = PodPhase::Failed);
    world.pass();
    assert_eq!(world.count(), 0);
}

// J07
#[test]
fn a_replica_that_fails_too_often_is_given_up() {
    let mut world = indexes();
    world.plan.roles[0].failures_per_replica = Some(1);
    world.fails(1, 3);
    world.pass();
    world.remove(1);
    world.later(LEAST_BACK_OFF);
    assert_eq!(writes(&world.pass()), ["create pod/hamlet-w-1"]);
    let again = Pod { uid: "again".into(), ..failed(1, 3) };
    world.snapshot.pods.push(again.into());
    world.pass();
    assert!(world.snapshot.ledger.is_given_up("w", 1));
    assert_eq!((world.count(), world.replacement(1)), (2, Replacement::GivenUp));
    assert_eq!(writes(&world.pass()), Vec::<String>::new(), "it stays, and nothing follows");
    assert_eq!(world.count(), 2);
}

// J08
#[test]
fn the_first_rule_about_a_pod_decides() {
    let mut world = indexes();
    let about = |kind: &str| Failure::Condition { kind: kind.into(), status: "True".into() };
    let code = |code| Failure::ExitCodes { container: String::new(), ranges: vec![(code, code)] };
    world.plan.roles[0].failures = [
        (about("DisruptionTarget"), Remedy::ReplaceUncounted),
        (code(3), Remedy::GiveUp),
        (code(4), Remedy::Keep),
        (Failure::Any, Remedy::Replace),
    ]
    .map(|(about, then)| FailureRule { about, then })
    .into();
    world.fails(0, 3);
    world.set(0, |pod| pod.conditions = vec![("DisruptionTarget".into(), "True".into())]);
    world.fails(1, 3);
    world.fails(2, 4);
    world.pass();
    assert_eq!(world.count(), 1);
    let fates = [0, 1, 2].map(|index| world.replacement(index));
    assert_eq!(fates, [Replacement::UnderWay, Replacement::GivenUp, Replacement::None]);
    assert_eq!(writes(&world.pass()), ["delete pod/hamlet-w-0"]);
}

// J17
#[test]
fn a_success_that_is_shared_ends_replacements() {
    let mut world = indexes();
    world.plan.roles[0].success = Success::Shared;
    world.fails(0, 1);
    world.pass();
    world.set(1, |pod| pod.phase = PodPhase::Succeeded);
    assert_eq!(writes(&world.pass()), Vec::<String>::new());
    world.remove(2);
    assert_eq!(writes(&world.pass()), Vec::<String>::new());
    assert!(world.snapshot.ledger.has_succeeded("w", 1));
}

// J16
#[test]
fn replicas_run_in_turns_and_what_is_worth_least_goes_first() {
    let mut world = indexes();
    world.plan.roles[0].at_once = Some(2);
    world.snapshot.pods.clear();
    assert_eq!(writes(&world.pass()), ["create pod/hamlet-w-0", "create pod/hamlet-w-1"]);
    world.snapshot.pods = (0..2).map(|index| Arc::new(pod(index, PodPhase::Succeeded))).collect();
    assert_eq!(writes(&world.pass()), ["create pod/hamlet-w-2"]);
    world.snapshot.pods = (0..3).map(|index| Arc::new(pod(index, PodPhase::Running))).collect();
    world.set(0, |pod| pod.ready = false);
    world.pass();
    assert_eq!(writes(&world.pass()), ["delete pod/hamlet-w-0"]);
    world.plan.roles[0].replicas = 1;
    world.pass();
    assert!(!world.snapshot.ledger.has_succeeded("w", 1), "what is beyond the replicas is forgotten");
}

// J03, J12: a shrink that is taken back
#[test]
fn a_pod_that_is_not_deleted_after_all_succeeds() {
    let mut world = indexes();
    world.plan.roles[0].at_once = Some(2);
    world.pass();
    world.plan.roles[0].at_once = Some(3);
    world.pass();
    assert!(world.snapshot.ledger.failures["w"].settled.is_empty());
    world.set(2, |pod| pod.phase = PodPhase::Succeeded);
    world.pass();
    assert!(world.snapshot.ledger.has_succeeded("w", 2));
}

// J05: no rule is about a pod that has not ended, and pods beyond the replicas go as well
#[test]
fn no_pod_of_a_failing_job_stays() {
    let mut world = indexes();
    world.plan.roles[0].failures = vec![FailureRule { about: Failure::Any, then: Remedy::Keep }];
    world.plan.roles[0].replicas = 2;
    world.verdict.outcome = Outcome::Failing;
    world.pass();
    world.pass();
    let mut deleted = writes(&world.pass());
    deleted.sort();
    assert_eq!(deleted, ["delete pod/hamlet-w-0", "delete pod/hamlet-w-1", "delete pod/hamlet-w-2"]);
    assert_eq!(world.count(), 2);
}

// J05: more failed pods than uids that the ledger holds
#[test]
fn a_wide_job_that_fails_ends() {
    let mut world = indexes();
    let role = &mut world.plan.roles[0];
    (role.replicas, role.at_once) = (1500, Some(1500));
    world.snapshot.pods = (0..1500)
        .map(|index| Arc::new(if index < 700 { failed(index, 1) } else { pod(index, PodPhase::Running) }))
        .collect();
    world.verdict.outcome = Outcome::Failing;
    world.pass();
    world.pass();
    assert_eq!((writes(&world.pass()).len(), world.count()), (800, 1500));
}

// J12: the host could not ask the plugin when it ended the pods
#[test]
fn pods_that_go_while_the_job_is_suspended_do_not_count() {
    let mut world = indexes();
    let mut job = crate::snapshot::Job::clone(&world.snapshot.job);
    job.spec = json!({ "suspend": true });
    world.snapshot.job = job.into();
    Arc::make_mut(&mut world.snapshot.kind).suspend = Some("/suspend".into());
    assert!(world.snapshot.suspended());
    world.set(0, |pod| pod.terminating = true);
    world.pass();
    Arc::make_mut(&mut world.snapshot.kind).suspend = None;
    world.set(0, |pod| pod.phase = PodPhase::Failed);
    world.pass();
    assert_eq!(world.count(), 0);
}

// J07: what is given up does not succeed
#[test]
fn a_replica_that_is_given_up_does_not_succeed() {
    let mut world = indexes();
    world.plan.roles[0].failures_per_replica = Some(0);
    world.set(1, |pod| pod.terminating = true);
    world.pass();
    assert!(world.snapshot.ledger.is_given_up("w", 1));
    world.set(1, |pod| pod.phase = PodPhase::Succeeded);
    world.pass();
    assert_eq!((world.snapshot.ledger.has_succeeded("w", 1), world.replacement(1)), (false, Replacement::GivenUp));
}

#[test]
fn failures_in_any_order_are_one_in_a_row() {
    let mut row = crate::back_off::Row::default();
    let now = Timestamp::from_second(1_000_000).unwrap();
    for second in [9, 3, 7, 1, 8] {
        row.add(now - SECOND * second, now);
    }
    assert_eq!((row.in_a_row, row.last), (1, now - SECOND));
}

impl World {
    /// The same with a second role `m` of one replica, where this becomes of every failed pod.
    fn of_gang(then: Remedy) -> Self {
        let mut world = Self::new();
        let rules = || vec![FailureRule { about: Failure::Any, then }];
        world.plan.roles[0].failures = rules();
        let main = json!({ "spec": { "containers": [{ "name": "main" }] } });
        let mut master = testkit::role("m", 1, testkit::text(&["JOB", "-m-", "INDEX"]), main);
        master.failures = rules();
        world.plan.roles.push(master);
        world.snapshot.pods.insert(0, Arc::new(testkit::pod("hamlet-m-0", "u", PodPhase::Succeeded)));
        world
    }

    fn attempts(&self) -> Vec<(&str, u32)> {
        self.snapshot.ledger.attempts.iter().map(|(role, attempt)| (role.as_str(), attempt.count)).collect()
    }
}

// AC-26: one pod fails, and all start again; a success of the attempt before is none any more.
#[test]
fn a_restart_of_the_job_replaces_every_pod_once_and_counts_one_failure() {
    let mut world = World::of_gang(Remedy::RestartJob);
    world.fails(1, 1);
    world.fails(2, 1);
    assert_eq!(writes(&world.pass()), [""; 0], "the ledger does not hold it yet");
    assert_eq!((world.attempts(), world.count()), (vec![("m", 1), ("w", 1)], 1), "what failed with it is not counted");
    assert_eq!(world.snapshot.ledger.succeeded.get("m"), None);
    let all = ["delete pod/hamlet-m-0", "delete pod/hamlet-w-0", "delete pod/hamlet-w-1", "delete pod/hamlet-w-2"];
    let mut deleted = writes(&world.pass());
    deleted.sort();
    assert_eq!(deleted, all);
    // The names of those that are gone are free, and nothing is created beside one that is not.
    world.snapshot.pods.retain(|pod| pod.name == "hamlet-w-0");
    world.set(0, |pod| pod.terminating = true);
    world.later(LEAST_BACK_OFF);
    let decision = world.pass();
    assert_eq!(writes(&decision), [""; 0]);
    assert!(decision.waiting.iter().any(|it| it.to_string().contains("pod/hamlet-w-0")), "{:?}", decision.waiting);
    world.remove(0);
    assert_eq!(writes(&world.pass()).len(), 4);
    assert_eq!(world.count(), 1);
    // Pods of the new attempt are not touched.
    world.snapshot.pods = (0..3).map(|index| Arc::new(Pod { attempt: 1, ..pod(index, PodPhase::Running) })).collect();
    assert_eq!(writes(&world.pass()), ["create pod/hamlet-m-0"]);
}

#[test]
fn a_restart_waits_for_its_back_off_in_every_role() {
    let mut world = World::of_gang(Remedy::RestartJob);
    world.fails(0, 1);
    world.pass();
    world.snapshot.pods.clear();
    let decision = world.pass();
    assert_eq!(writes(&decision), [""; 0]);
    assert_eq!(decision.wake, Wake::At(world.snapshot.now + LEAST_BACK_OFF));
    world.later(LEAST_BACK_OFF);
    assert_eq!(writes(&world.pass()).len(), 4);
}

#[test]
fn a_restart_of_a_role_leaves_the_others_alone() {
    let mut world = World::of_gang(Remedy::RestartRole);
    world.fails(2, 1);
    world.pass();
    assert_eq!(world.attempts(), [("w", 1)]);
    assert_eq!(writes(&world.pass()), ["delete pod/hamlet-w-0", "delete pod/hamlet-w-1", "delete pod/hamlet-w-2"]);
    assert!(world.snapshot.ledger.has_succeeded("m", 0));
}

// A user who empties `status.troupe` of his job must not get pods that no restart replaces.
#[test]
fn an_attempt_that_the_ledger_has_lost_is_read_from_the_pods() {
    let mut world = World::of_gang(Remedy::RestartRole);
    (0..3).for_each(|index| world.set(index, |pod| pod.attempt = 7));
    world.set(1, |pod| *pod = Pod { attempt: 7, ..failed(1, 1) });
    world.pass();
    assert_eq!(world.attempts(), [("w", 8)]);
    assert_eq!(writes(&world.pass()).len(), 3);
}

// A host that ends between the count and the deletions, or among them, goes on where it was.
#[test]
fn a_pod_of_an_earlier_attempt_is_deleted_and_never_counted() {
    let mut world = World::of_gang(Remedy::RestartJob);
    world.fails(0, 1);
    world.pass();
    world.fails(1, 2);
    assert_eq!(world.replacement(1), Replacement::UnderWay);
    world.pass();
    assert_eq!((world.attempts(), world.count()), (vec![("m", 1), ("w", 1)], 1));
}

#[test]
fn a_pod_names_its_attempt_and_its_texts_may() {
    let mut world = World::of_gang(Remedy::RestartRole);
    let text = Text(vec![Piece::Attempt]);
    world.plan.roles[0].env = vec![EnvEntry { container: String::new(), name: "ATTEMPT".into(), value: text }];
    world.plan.roles[0].template["metadata"] = json!({ "annotations": { "troupe.dev/attempt": "4294967295" } });
    let made = |world: &World| crate::build::pod(&world.snapshot, &world.plan, &world.plan.roles[0], 0, "hamlet-w-0");
    let first = made(&world);
    assert_eq!(first["metadata"]["annotations"].get("troupe.dev/attempt"), None, "not even the user's own");
    assert_eq!(first["spec"]["containers"][0]["env"][0]["value"], "0");
    world.snapshot.ledger.attempts.insert("w".into(), Attempt { count: 2, ..Attempt::default() });
    let third = made(&world);
    assert_eq!(third["metadata"]["annotations"]["troupe.dev/attempt"], "2");
    assert_eq!(third["spec"]["containers"][0]["env"][0]["value"], "2");
}

// A user may patch any number into his pods: one that failed counts once and goes, whatever it names.
#[test]
fn a_pod_of_the_greatest_attempt_counts_once() {
    let mut world = World::of_gang(Remedy::RestartRole);
    (0..3).for_each(|index| world.set(index, |pod| pod.attempt = u32::MAX));
    world.set(1, |pod| *pod = Pod { attempt: u32::MAX, ..failed(1, 1) });
    world.pass();
    assert_eq!((world.attempts(), world.count()), (vec![("w", u32::MAX)], 1));
    assert_eq!(writes(&world.pass()), ["delete pod/hamlet-w-1"]);
    assert_eq!(world.count(), 1);
}

// What decides the end must stay in sight: a failure that ends the job starts nothing again.
#[test]
fn nothing_starts_again_in_the_pass_that_ends_the_job() {
    for outcome in [Outcome::Failing, Outcome::Succeeding] {
        let mut world = World::of_gang(Remedy::RestartJob);
        world.verdict.outcome = outcome;
        world.fails(1, 1);
        world.pass();
        assert_eq!((world.attempts(), world.count()), (vec![], 1), "{outcome:?}");
    }
}

#[test]
fn other_failures_in_a_pass_with_a_restart_end_with_it() {
    let mut world = World::of_gang(Remedy::RestartJob);
    world.plan.roles[0].failures = vec![
        FailureRule {
            about: Failure::ExitCodes { container: String::new(), ranges: vec![(1, 1)] },
            then: Remedy::RestartJob,
        },
        FailureRule { about: Failure::Any, then: Remedy::GiveUp },
    ];
    world.fails(0, 2);
    world.fails(1, 1);
    world.pass();
    assert_eq!((world.count(), world.snapshot.ledger.given_up.len()), (1, 0));
    assert_eq!(world.attempts(), [("m", 1), ("w", 1)]);
}

// Attempts never meet, also while the job gets smaller.
#[test]
fn a_pod_beyond_the_wanted_replicas_holds_the_next_attempt_too() {
    let mut world = World::of_gang(Remedy::RestartRole);
    world.fails(0, 1);
    world.pass();
    world.plan.roles[0].replicas = 2;
    world.snapshot.pods.retain(|pod| pod.name == "hamlet-w-2" || pod.name == "hamlet-m-0");
    world.set(2, |pod| pod.terminating = true);
    world.later(LEAST_BACK_OFF);
    let decision = world.pass();
    assert_eq!((writes(&decision), decision.waiting.len()), (vec![], 1));
    world.remove(2);
    assert_eq!(writes(&world.pass()), ["create pod/hamlet-w-0", "create pod/hamlet-w-1"]);
}

// A pod that is deleted by hand long after a restart is made again at once.
#[test]
fn only_the_restart_itself_waits_for_its_back_off() {
    let mut world = World::of_gang(Remedy::RestartRole);
    world.fails(0, 1);
    world.pass();
    world.snapshot.pods = (0..2).map(|index| Arc::new(Pod { attempt: 1, ..pod(index, PodPhase::Running) })).collect();
    world.later(LEAST_BACK_OFF);
    assert_eq!(writes(&world.pass()), ["create pod/hamlet-w-2"]);
}

#[test]
fn a_suspended_job_keeps_no_pod_of_an_earlier_attempt() {
    let mut world = World::of_gang(Remedy::RestartJob);
    world.fails(0, 1);
    world.pass();
    let mut kind = (*world.snapshot.kind).clone();
    kind.suspend = Some("/suspend".into());
    world.snapshot.kind = Arc::new(kind);
    Arc::make_mut(&mut world.snapshot.job).spec = json!({ "suspend": true });
    world.plan.policy.clean_on_suspend = Clean::All;
    assert_eq!(writes(&world.pass()).len(), 4, "the master that had succeeded too");
}
