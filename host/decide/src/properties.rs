//! Properties of `decide` over generated snapshots: it is total and idempotent, and it destroys no evidence.

use crate::{
    Action, Snapshot, Triage, Wake, Write, build, decide,
    ledger::Ledger,
    names,
    plan::{
        Answer, Backing, Body, Clean, Fault, Gate, Moment, Object, Outcome, Plan, Policy, Reached, Role, Scope,
        Success, Text, Upkeep, Verdict,
    },
    snapshot::{Child, Job, Pod, PodPhase},
    testkit::{self, text},
    triage,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};

const UID: &str = "uid-1";

fn role(name: &str, replicas: u32, after: Vec<Gate>) -> Role {
    Role {
        name: name.into(),
        replicas,
        backing: Backing::Pods,
        pod_name: text(&["JOB", &format!("-{name}-"), "INDEX"]),
        hostname: Some(text(&["POD"])),
        subdomain: None,
        template: json!({ "spec": { "containers": [{ "name": "main" }] } }),
        template_at: None,
        env: vec![],
        labels: vec![],
        fill: vec![],
        success: Success::Final,
        after,
    }
}

fn object(key: &str, name: Text, per_pod_of: Option<&str>, remove_when: Vec<Moment>) -> Object {
    Object {
        key: key.into(),
        api_version: "v1".into(),
        kind: "Service".into(),
        name,
        per_pod_of: per_pod_of.map(Into::into),
        body: Body::Fixed(json!({ "spec": {} }), vec![]),
        upkeep: Upkeep::CreateOnly,
        after: vec![],
        remove_when,
    }
}

fn clean() -> impl Strategy<Value = Clean> {
    prop_oneof![Just(Clean::Keep), Just(Clean::Active), Just(Clean::All)]
}

/// A Job-backed role; its Job may remove itself.
fn launcher(vanishes: bool, after: Vec<Gate>) -> Role {
    let spec = if vanishes { json!({ "ttlSecondsAfterFinished": 1 }) } else { json!({}) };
    let named = text(&["JOB", "-launcher"]);
    Role { backing: Backing::Job(json!({ "spec": spec })), pod_name: named, ..role("launcher", 1, after) }
}

fn plan() -> impl Strategy<Value = Plan> {
    let roles = (0..4_u32, 0..4_u32, any::<bool>(), any::<bool>(), any::<bool>());
    (roles, clean(), clean(), clean()).prop_map(|((a, b, gated, vanishes, momentary), well, badly, suspended)| {
        let gates = || if gated { vec![Gate::Pods { role: "a".into(), reached: Reached::Ip }] } else { vec![] };
        let success = if momentary { Success::Momentary } else { Success::Final };
        let second = Role { success, ..role("b", b, gates()) };
        Plan {
            roles: vec![role("a", a, vec![]), second, launcher(vanishes, gates())],
            objects: vec![object("of-a", text(&["POD"]), Some("a"), vec![Moment::Cleaned, Moment::ReplicaGone])],
            secrets: vec![],
            host_ports: 0,
            policy: Policy { clean_on_success: well, clean_on_failure: badly, clean_on_suspend: suspended, ttl: None },
            warnings: vec![],
        }
    })
}

fn phase() -> impl Strategy<Value = PodPhase> {
    use PodPhase::{Failed, Pending, Running, Succeeded, Unknown};
    prop_oneof![Just(Pending), Just(Running), Just(Succeeded), Just(Failed), Just(Unknown)]
}

fn pod(name: &str, phase: PodPhase, terminating: bool, has_ip: bool) -> Arc<Pod> {
    Arc::new(Pod {
        terminating,
        ready: phase == PodPhase::Running,
        ips: if has_ip { vec!["10.0.0.1".into()] } else { vec![] },
        ..testkit::pod(name, UID, phase)
    })
}

fn pods() -> impl Strategy<Value = Vec<Arc<Pod>>> {
    let one = (prop_oneof![Just("a"), Just("b"), Just("c")], 0..6_u32, phase(), any::<bool>(), any::<bool>());
    proptest::collection::vec(one, 0..8).prop_map(|all| {
        let by_name: BTreeMap<_, _> = all
            .into_iter()
            .map(|(role, index, phase, going, ip)| (format!("job-{role}-{index}"), (phase, going, ip)))
            .collect();
        by_name.into_iter().map(|(name, (phase, going, ip))| pod(&name, phase, going, ip)).collect()
    })
}

fn ledger() -> impl Strategy<Value = Ledger> {
    proptest::collection::vec((prop_oneof![Just("a"), Just("b")], 0..4_u32), 0..4).prop_map(|successes| {
        let mut ledger = Ledger { uid: UID.into(), ..Ledger::default() };
        successes.iter().for_each(|(role, index)| ledger.record_success(role, *index));
        ledger
    })
}

/// The Job behind the launcher, if it exists.
fn launchers() -> impl Strategy<Value = Vec<Arc<Child>>> {
    prop::option::of((any::<bool>(), any::<bool>(), any::<bool>())).prop_map(|job| {
        let job = job.map(|(suspend, started, over)| {
            let mut status = if started { json!({ "startTime": "2026-01-01T00:00:00Z" }) } else { json!({}) };
            if over {
                status["conditions"] = json!([{ "type": "Complete", "status": "True" }]);
            }
            let fields = [("/spec/suspend".into(), json!(suspend)), ("/status".into(), status)];
            Arc::new(child("batch/v1", "Job", "job-launcher", fields.into()))
        });
        job.into_iter().collect()
    })
}

fn child(api_version: &str, kind: &str, name: &str, fields: BTreeMap<String, Value>) -> Child {
    Child {
        api_version: api_version.into(),
        kind: kind.into(),
        name: name.into(),
        uid: format!("uid-of-{kind}-{name}"),
        resource_version: "1".into(),
        terminating: false,
        fields,
    }
}

fn snapshot() -> impl Strategy<Value = Snapshot> {
    (pods(), launchers(), ledger(), any::<bool>()).prop_map(|(pods, children, ledger, suspend)| {
        let job = Job { spec: json!({ "suspend": suspend }), ..testkit::job("job", UID) };
        Snapshot { ledger, pods, children, ..testkit::snapshot(job) }
    })
}

fn judged(plan: &Plan, outcome: Outcome) -> Answer {
    let verdict = Verdict { status: json!({ "phase": "x" }), headline: "x".into(), outcome, events: vec![] };
    Answer::Judged { plan: Arc::new(plan.clone()), bodies: BTreeMap::new(), verdict }
}

/// Returns the snapshot after these writes, with every deleted object gone.
fn applied(snapshot: &Snapshot, answer: &Answer, actions: &[Action]) -> Snapshot {
    let mut after = snapshot.clone();
    for action in actions {
        match (&action.write(), action.kind.as_str()) {
            (Write::Create(_), "Pod") => after.pods.push(pod(&action.name, PodPhase::Pending, false, false)),
            (Write::Create(part), kind) => {
                let made = build::body(snapshot, answer, *part).expect("a decision makes parts of the plan");
                let suspend = made.pointer("/spec/suspend").cloned().unwrap_or(json!(false));
                let fields = [("/spec/suspend".to_owned(), suspend)];
                after.children.push(Arc::new(child(&action.api_version, kind, &action.name, fields.into())));
            }
            (Write::Patch(patch) | Write::PatchStatus(patch), "Job") => {
                let there = after.children.iter_mut().find(|child| child.name == action.name).expect("it is there");
                let fields = &mut Arc::make_mut(there).fields;
                if let Some(suspend) = patch.pointer("/spec/suspend") {
                    fields.insert("/spec/suspend".into(), suspend.clone());
                }
                if patch.pointer("/status/startTime").is_some_and(Value::is_null) {
                    fields.insert("/status".into(), json!({}));
                }
            }
            (Write::Delete { uid, .. }, _) => {
                after.pods.retain(|pod| pod.uid != *uid);
                after.children.retain(|child| child.uid != *uid);
            }
            _ => {}
        }
    }
    after
}

proptest! {
    #[test]
    fn deciding_again_after_applying_yields_nothing_more(snapshot in snapshot(), plan in plan()) {
        let answer = judged(&plan, Outcome::Open);
        let first = decide(&snapshot, &answer);
        let mut after = applied(&snapshot, &answer, &first.actions);
        let mut again = decide(&after, &answer);
        // A Job with a start time is resumed in two steps.
        if let [action] = &again.actions[..]
            && matches!(action.write(), Write::Patch(_))
        {
            prop_assert!(first.actions.iter().any(|action| matches!(action.write(), Write::PatchStatus(_))));
            after = applied(&after, &answer, &again.actions);
            again = decide(&after, &answer);
        }
        prop_assert!(again.actions.is_empty(), "{:?} after {:?}", again.actions, first.actions);
    }

    #[test]
    fn no_wanted_success_is_deleted_before_the_ledger_holds_it(snapshot in snapshot(), plan in plan()) {
        let decision = decide(&snapshot, &judged(&plan, Outcome::Open));
        for action in decision.actions.iter().filter(|action| matches!(action.write(), Write::Delete { .. })) {
            let Some(pod) = snapshot.pods.iter().find(|pod| pod.name == action.name) else { continue };
            let place = names::role_of_pod(&plan, "job", &pod.name);
            let wanted = place.filter(|(role, index)| {
                *index < plan.roles[*role].replicas && plan.roles[*role].success == Success::Final
            });
            if let (PodPhase::Succeeded, Some((role, index))) = (pod.phase, wanted) {
                prop_assert!(snapshot.ledger.has_succeeded(&plan.roles[role].name, index), "{action}");
            }
        }
    }

    #[test]
    fn a_success_in_the_ledger_is_not_made_again(snapshot in snapshot(), plan in plan()) {
        let decision = decide(&snapshot, &judged(&plan, Outcome::Open));
        for action in decision.actions.iter().filter(|action| action.kind == "Pod" && matches!(action.write(), Write::Create(_))) {
            let (role, index) = names::role_of_pod(&plan, "job", &action.name).expect("only the plan's pods are made");
            let momentary = plan.roles[role].success == Success::Momentary;
            prop_assert!(momentary || !snapshot.ledger.has_succeeded(&plan.roles[role].name, index), "{action}");
        }
    }

    #[test]
    fn a_job_that_was_made_and_may_have_removed_itself_is_not_made_again(snapshot in snapshot(), plan in plan()) {
        let mut noted = snapshot;
        noted.ledger.made.insert("job/launcher".into());
        let decision = decide(&noted, &judged(&plan, Outcome::Open));
        let makes = decision.actions.iter().any(|action| action.kind == "Job" && matches!(action.write(), Write::Create(_)));
        prop_assert!(!(makes && plan.roles[2].removes_itself()), "{:?}", decision.actions);
    }

    #[test]
    fn a_finished_job_is_cleaned_only_from_the_ledger(snapshot in snapshot(), plan in plan(), well in any::<bool>()) {
        let outcome = if well { Outcome::Succeeded } else { Outcome::Failed };
        let decision = decide(&snapshot, &judged(&plan, outcome));
        prop_assert!(decision.actions.is_empty(), "{:?}", decision.actions);
        let mut noted = snapshot.clone();
        noted.ledger.finished = Some(crate::cleanup::finished(&snapshot, &plan, outcome, snapshot.now));
        let settled = |snapshot: &Snapshot| match triage(snapshot) {
            Triage::Settled(decision) => decision,
            Triage::NeedsPlan => decide(snapshot, &judged(&plan, outcome)),
        };
        let first = settled(&noted);
        prop_assert!(settled(&applied(&noted, &judged(&plan, outcome), &first.actions)).actions.is_empty());
    }

    #[test]
    fn a_fault_touches_no_child_unless_the_user_suspended_the_job(snapshot in snapshot()) {
        let fault = Fault::Trapped { plugin: "p".into(), function: "plan".into(), message: "x".into() };
        let answer = Answer::Faulted(fault);
        let actions = decide(&snapshot, &answer).actions;
        prop_assert!(snapshot.suspended() || actions.is_empty());
        prop_assert!(actions.iter().all(|action| ["Pod", "Job"].contains(&action.kind.as_str())));
        let after = applied(&snapshot, &answer, &actions);
        prop_assert!(decide(&after, &answer).actions.is_empty());
        let runs = |snapshot: &Snapshot| snapshot.own_pods().any(|pod| !pod.terminating && pod.phase == PodPhase::Running);
        prop_assert!(!snapshot.suspended() || !runs(&after));
    }

    #[test]
    fn an_open_breaker_sets_the_wake_time(snapshot in snapshot(), seconds in 1_i64..10_000) {
        let until = snapshot.now + jiff::SignedDuration::from_secs(seconds);
        for scope in [Scope::Job, Scope::Namespace, Scope::Plugin] {
            let fault = Fault::BreakerOpen { plugin: "p".into(), scope, until, cause: "it traps".into() };
            let decision = decide(&snapshot, &Answer::Faulted(fault));
            prop_assert!(snapshot.suspended() || decision.actions.is_empty());
            prop_assert_eq!(decision.wake, Wake::At(until));
        }
    }
}
