//! Properties of `decide` over generated snapshots: it is total and idempotent, makes nothing behind a closed gate, and
//! destroys no evidence.

use crate::{
    Action, Snapshot, Triage, Wake, Write, build, decide,
    decision::Part,
    ledger::Ledger,
    names,
    plan::{
        Answer, Backing, Bindings, Body, Clean, Deletion, Fault, Gate, Moment, Object, OnNewAddress, Outcome, Plan,
        Policy, Reached, Role, Scope, Success, Upkeep, Verdict,
    },
    ranges::Ranges,
    snapshot::{Child, Job, Pod, PodPhase},
    standing::{self, Standing},
    testkit::{self, text},
    triage,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};

const UID: &str = "uid-1";

/// Passes after the first until a job rests: one makes what waited for the first, and begins to resume a Job; one resumes
/// that Job; two find nothing to do.
const MOST_PASSES: usize = 4;

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
        failures: vec![],
        deletion: Deletion::Uncounted,
        at_once: None,
        template_hash: String::new(),
        failures_per_replica: None,
        left_out: Ranges::default(),
        on_new_address: OnNewAddress::Keep,
        after,
    }
}

/// An object of the whole job.
fn object(kind: &str, name: &str, body: Body) -> Object {
    Object {
        key: name.into(),
        api_version: "v1".into(),
        kind: kind.into(),
        name: text(&["JOB", "-", name]),
        per_pod_of: None,
        body,
        upkeep: Upkeep::CreateOnly,
        after: vec![],
        remove_when: vec![],
    }
}

fn gates() -> impl Strategy<Value = Vec<Gate>> {
    let reached = prop_oneof![
        Just(Reached::Exists),
        Just(Reached::Ip),
        Just(Reached::Running),
        Just(Reached::Ready),
        Just(Reached::Succeeded)
    ];
    let pods = reached.prop_map(|reached| Gate::Pods { role: "a".into(), reached });
    let field = Gate::Field { key: "group".into(), at: "/status/phase".into(), one_of: vec!["Running".into()] };
    proptest::collection::vec(prop_oneof![pods, Just(field)], 0..3)
}

fn upkeep(pointer: &'static str) -> impl Strategy<Value = Upkeep> {
    prop_oneof![Just(Upkeep::CreateOnly), Just(Upkeep::Follow(vec![pointer.into()]))]
}

/// A Service for each pod of role `a`, a ConfigMap that `bind` fills in, and a group whose status gates wait for.
fn objects() -> impl Strategy<Value = Vec<Object>> {
    let services = (upkeep("/spec/selector"), gates(), any::<bool>()).prop_map(|(upkeep, after, pauses)| {
        let body =
            Body::Fixed(json!({ "spec": { "selector": "" } }).into(), vec![("/spec/selector".into(), text(&["POD"]))]);
        let remove_when = if pauses { vec![Moment::Suspended] } else { vec![Moment::Cleaned] };
        let remove_when = [remove_when, vec![Moment::ReplicaGone]].concat();
        let (name, per_pod_of) = (text(&["POD"]), Some("a".into()));
        Object { name, per_pod_of, upkeep, after, remove_when, ..object("Service", "services", body) }
    });
    let hosts = (upkeep("/data"), gates(), any::<bool>()).prop_map(|(upkeep, after, pauses)| {
        let remove_when = if pauses { vec![Moment::Suspended, Moment::Finished] } else { vec![] };
        Object { upkeep, after, remove_when, ..object("ConfigMap", "hosts", Body::Bound) }
    });
    let group = (upkeep("/spec"), 0..4_u32).prop_map(|(upkeep, size)| {
        let body = Body::Fixed(json!({ "spec": { "size": size } }).into(), vec![]);
        Object { upkeep, ..object("Group", "group", body) }
    });
    (services, hosts, group).prop_map(|(services, hosts, group)| vec![services, hosts, group])
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

fn plan() -> impl Strategy<Value = Arc<Plan>> {
    let of_b = (0..4_u32, gates(), any::<bool>()).prop_map(|(replicas, after, momentary)| {
        let success = if momentary { Success::Momentary } else { Success::Final };
        Role { success, ..role("b", replicas, after) }
    });
    let left_out = prop_oneof![Just(vec![]), Just(vec![(1, 1)]), Just(vec![(0, 1), (3, 3)])].prop_map(Ranges::from);
    let of_b = (of_b, left_out).prop_map(|(role, left_out)| Role { left_out, ..role });
    let launcher = (any::<bool>(), gates()).prop_map(|(vanishes, after)| launcher(vanishes, after));
    let roles = (0..4_u32, of_b, launcher).prop_map(|(a, b, launcher)| vec![role("a", a, vec![]), b, launcher]);
    let plan =
        (roles, objects(), clean(), clean(), clean()).prop_map(|(roles, objects, well, badly, suspended)| Plan {
            roles,
            objects,
            secrets: vec![],
            series: vec![],
            success_criteria: vec![],
            host_ports: 0,
            policy: Policy { clean_on_success: well, clean_on_failure: badly, clean_on_suspend: suspended, ttl: None },
            warnings: vec![],
        });
    plan.prop_map(Arc::new)
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

/// The objects beside the pods that exist, as the plan wants them or not.
fn others() -> impl Strategy<Value = Vec<Arc<Child>>> {
    let selector =
        |index| prop_oneof![Just(json!(format!("job-a-{index}"))), Just(json!("job-a-9")), Just(Value::Null)];
    let service = |index: u32| found("Service", format!("job-a-{index}"), "/spec/selector", selector(index));
    let services = (service(0), service(1), service(2), service(5));
    let data = prop_oneof![Just(json!({ "hosts": "" })), Just(json!({ "stale": "x" })), Just(Value::Null)];
    let spec = prop_oneof![(0..4_u32).prop_map(|size| json!({ "size": size, "more": 1 })), Just(json!({ "size": 1 }))];
    let phase = prop_oneof![Just(json!("Running")), Just(json!("Pending")), Just(Value::Null)];
    let group = (found("Group", "job-group".into(), "/spec", spec), phase).prop_map(|(group, phase)| {
        group.map(|mut group| {
            group.fields.insert("/status/phase".into(), phase);
            group
        })
    });
    let hosts = found("ConfigMap", "job-hosts".into(), "/data", data);
    (services, hosts, group).prop_map(|((a, b, c, d), hosts, group)| {
        [a, b, c, d, hosts, group].into_iter().flatten().map(Arc::new).collect()
    })
}

/// A child with such a value of a field, if it exists.
fn found(
    kind: &'static str,
    name: String,
    pointer: &'static str,
    value: impl Strategy<Value = Value>,
) -> impl Strategy<Value = Option<Child>> {
    prop::option::of(value.prop_map(move |value| child("v1", kind, &name, [(pointer.to_owned(), value)].into())))
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
    (pods(), launchers(), others(), ledger(), any::<bool>()).prop_map(|(pods, launchers, others, ledger, suspend)| {
        let children = [others, launchers].concat();
        let job = Job { spec: json!({ "suspend": suspend }), ..testkit::job("job", UID) };
        Snapshot { ledger, pods, children, ..testkit::snapshot(job) }
    })
}

/// Returns the answer of a plugin whose bodies hold the addresses of the pods of role `a` while the job runs.
fn judged(snapshot: &Snapshot, plan: &Arc<Plan>, outcome: Outcome) -> Answer {
    let wanted = Standing::of(snapshot, plan).bodies_wanted();
    let replicas = if snapshot.suspended() { 0 } else { plan.roles[0].replicas };
    let hosts: Vec<_> = (0..replicas).filter_map(|index| standing::address(snapshot, plan, "a", index)).collect();
    let body = json!({ "data": { "hosts": hosts.join(",") } });
    let bodies = wanted.into_iter().map(|key| (key, body.clone())).collect();
    let verdict = Verdict::new(json!({ "phase": "x" }), "x", outcome);
    Answer::Judged { plan: Arc::clone(plan), bindings: Bindings { bodies, ..Bindings::default() }, verdict }
}

/// Returns the gates of what the action writes.
fn gates_of<'a>(plan: &'a Plan, action: &Action) -> &'a [Gate] {
    let pod = names::role_of_pod(plan, "job", &action.name).filter(|_| action.kind == "Pod");
    let role = pod.map(|(role, _)| role).or_else(|| (action.kind == "Job").then_some(2));
    let object = || names::key_of_child(plan, "job", &action.api_version, &action.kind, &action.name);
    match role {
        Some(role) => &plan.roles[role].after,
        None => plan.objects.iter().find(|it| Some(it.key.as_str()) == object()).map_or(&[], |it| &it.after),
    }
}

/// Returns the fields that the watch of an object keeps.
fn kept(object: &Object) -> &[String] {
    match &object.upkeep {
        Upkeep::Follow(pointers) => pointers,
        Upkeep::CreateOnly => &[],
    }
}

/// Returns the snapshot after these writes, with every deleted object gone.
fn applied(snapshot: &Snapshot, answer: &Answer, actions: &[Action]) -> Snapshot {
    let mut after = snapshot.clone();
    for action in actions {
        match (&action.write(), action.kind.as_str()) {
            (Write::Create(_), "Pod") => after.pods.push(pod(&action.name, PodPhase::Pending, false, false)),
            (Write::Create(part), kind) => {
                let made = build::body(snapshot, answer, *part).expect("a decision makes parts of the plan");
                let field = |pointer: &str| Some((pointer.to_owned(), made.pointer(pointer)?.clone()));
                let fields = match (part, answer) {
                    (Part::Object { object, .. }, Answer::Judged { plan, .. }) => {
                        kept(&plan.objects[*object]).iter().filter_map(|pointer| field(pointer)).collect()
                    }
                    _ => BTreeMap::from([field("/spec/suspend").unwrap_or(("/spec/suspend".into(), json!(false)))]),
                };
                after.children.push(Arc::new(child(&action.api_version, kind, &action.name, fields)));
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
            (Write::Patch(patch), kind) => {
                let there = after.children.iter_mut().find(|child| child.kind == kind && child.name == action.name);
                for (pointer, value) in &mut Arc::make_mut(there.expect("it is there")).fields {
                    patch.pointer(pointer).into_iter().for_each(|patch| json_patch::merge(value, patch));
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
    fn deciding_again_after_applying_yields_nothing_but_what_the_writes_have_opened(
        snapshot in snapshot(),
        plan in plan(),
    ) {
        let decided = |snapshot: &Snapshot| {
            let answer = judged(snapshot, &plan, Outcome::Open);
            let actions = decide(snapshot, &answer).actions;
            (applied(snapshot, &answer, &actions), actions)
        };
        let (mut before, (mut after, mut actions)) = (snapshot.clone(), decided(&snapshot));
        for _ in 0..MOST_PASSES {
            let (next, again) = decided(&after);
            let was_closed = |action: &Action| !Standing::of(&before, &plan).open(gates_of(&plan, action));
            // A Job with a start time is resumed in two steps.
            let has_begun = |it: &Action| it.kind == "Job" && matches!(it.write(), Write::PatchStatus(_));
            let resumes = |it: &Action| it.kind == "Job" && matches!(it.write(), Write::Patch(_));
            for action in &again {
                let follows = was_closed(action) || (resumes(action) && actions.iter().any(has_begun));
                prop_assert!(follows, "{action:?} after {actions:?}");
            }
            (before, after, actions) = (after, next, again);
        }
        prop_assert!(actions.is_empty(), "{actions:?} in the last pass");
    }

    #[test]
    fn nothing_is_made_before_its_gates_are_open(snapshot in snapshot(), plan in plan()) {
        let standing = Standing::of(&snapshot, &plan);
        for action in decide(&snapshot, &judged(&snapshot, &plan, Outcome::Open)).actions {
            // The Job of a suspended job is made suspended.
            if action.creates() && !(action.kind == "Job" && snapshot.suspended()) {
                let closed = standing.closed(gates_of(&plan, &action));
                prop_assert!(closed.is_none(), "{action} although {closed:?}");
            }
        }
    }

    #[test]
    fn no_wanted_success_is_deleted_before_the_ledger_holds_it(snapshot in snapshot(), plan in plan()) {
        let decision = decide(&snapshot, &judged(&snapshot, &plan, Outcome::Open));
        // Of a suspended job that begins anew nothing is remembered.
        prop_assume!(!(snapshot.suspended() && plan.policy.clean_on_suspend == Clean::All));
        for action in decision.actions.iter().filter(|it| it.kind == "Pod" && matches!(it.write(), Write::Delete { .. })) {
            let Some(pod) = snapshot.pods.iter().find(|pod| pod.name == action.name) else { continue };
            let place = names::role_of_pod(&plan, "job", &pod.name);
            let wanted = place.filter(|(role, index)| {
                plan.roles[*role].wants(*index) && plan.roles[*role].success == Success::Final
            });
            if let (PodPhase::Succeeded, Some((role, index))) = (pod.phase, wanted) {
                prop_assert!(snapshot.ledger.has_succeeded(&plan.roles[role].name, index), "{action}");
            }
        }
    }

    #[test]
    fn a_success_in_the_ledger_is_not_made_again(snapshot in snapshot(), plan in plan()) {
        let decision = decide(&snapshot, &judged(&snapshot, &plan, Outcome::Open));
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
        let decision = decide(&noted, &judged(&noted, &plan, Outcome::Open));
        let makes = decision.actions.iter().any(|action| action.kind == "Job" && matches!(action.write(), Write::Create(_)));
        prop_assert!(!(makes && plan.roles[2].removes_itself()), "{:?}", decision.actions);
    }

    #[test]
    fn a_finished_job_is_cleaned_only_from_the_ledger(snapshot in snapshot(), plan in plan(), well in any::<bool>()) {
        let outcome = if well { Outcome::Succeeded } else { Outcome::Failed };
        let decision = decide(&snapshot, &judged(&snapshot, &plan, outcome));
        prop_assert!(decision.actions.is_empty(), "{:?}", decision.actions);
        let mut noted = snapshot.clone();
        noted.ledger.finished = Some(crate::cleanup::finished(&snapshot, &plan, (outcome, None), snapshot.now));
        let settled = |snapshot: &Snapshot| match triage(snapshot) {
            Triage::Settled(decision) => decision,
            Triage::NeedsPlan => decide(snapshot, &judged(snapshot, &plan, outcome)),
        };
        let first = settled(&noted);
        prop_assert!(settled(&applied(&noted, &judged(&noted, &plan, outcome), &first.actions)).actions.is_empty());
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
