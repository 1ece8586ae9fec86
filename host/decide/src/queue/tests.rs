//! A job on its way through a queue: what the host does with its Workload, and with its pods.

use crate::{
    Snapshot, build,
    decide::decide,
    decision::{Action, Decision, Part},
    ledger::Finished,
    over,
    plan::{Answer, Bindings, Clean, Outcome, Plan, Verdict},
    snapshot::{Child, Hold, PodPhase, QUEUE_LABEL, Queue},
    testkit,
    waiting::Waiting,
    workload::{self, WORKLOADS},
};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;

fn plan(replicas: u32) -> Plan {
    let container = json!({
        "name": "c",
        "image": "i",
        "env": [{ "name": "SECRET", "value": "x" }],
        "resources": { "requests": { "cpu": "1" } },
    });
    let template = json!({ "spec": { "containers": [container], "nodeSelector": { "disk": "ssd" } } });
    testkit::plan(vec![testkit::role("Player", replicas, testkit::text(&["JOB", "-", "INDEX"]), template)])
}

/// A job in a queue of a cluster with one flavor.
fn queued() -> Snapshot {
    let mut job = testkit::job("hamlet", "u");
    job.labels.insert(QUEUE_LABEL.into(), "stage".into());
    let mut snapshot = testkit::snapshot(job);
    let fields = [("/spec/nodeLabels", json!({ "kind": "spot" })), ("/spec/tolerations", json!([{ "key": "spot" }]))];
    let flavor = child("ResourceFlavor", "spot", fields.into());
    snapshot.queue = Some(Queue { workload: None, classes: vec![flavor] });
    snapshot
}

fn child(kind: &str, name: &str, fields: Vec<(&str, Value)>) -> Arc<Child> {
    let fields = fields.into_iter().map(|(at, value)| (at.to_owned(), value)).collect();
    Child {
        api_version: WORKLOADS.api_version.into(),
        kind: kind.into(),
        name: name.into(),
        uid: format!("uid-of-{name}"),
        resource_version: "3".into(),
        terminating: false,
        fields,
    }
    .into()
}

fn condition(kind: &str, status: &str, reason: &str) -> Value {
    json!({ "type": kind, "status": status, "reason": reason, "message": format!("{reason} it is"),
        "lastTransitionTime": "1969-12-31T00:00:00Z" })
}

/// The job with the Workload that the host makes of the plan, as the API server has it, with these conditions.
fn with(mut snapshot: Snapshot, plan: &Plan, conditions: &[Value]) -> Snapshot {
    let body = workload::body(&snapshot, plan).unwrap();
    let mut fields = vec![("/status/conditions", json!(conditions))];
    fields.extend(WORKLOADS.keep.iter().filter_map(|at| Some((*at, body.pointer(at)?.clone()))));
    let reserved = conditions.iter().any(|it| it["type"] == "QuotaReserved" && it["status"] == "True");
    if reserved {
        let count = plan.roles[0].replicas;
        let assigned = json!([{ "name": "player", "count": count, "flavors": { "cpu": "spot", "memory": "spot" } }]);
        fields.push(("/status/admission", json!({ "podSetAssignments": assigned })));
    }
    let name = body["metadata"]["name"].as_str().unwrap();
    snapshot.queue.as_mut().unwrap().workload = Some(child(WORKLOADS.kind, name, fields));
    snapshot
}

fn admitted() -> [Value; 2] {
    [condition("QuotaReserved", "True", "QuotaReserved"), condition("Admitted", "True", "Admitted")]
}

fn answer(plan: &Plan) -> Answer {
    let verdict = Verdict::new(json!({ "phase": "x" }), "x", Outcome::Open);
    Answer::Judged { plan: Arc::new(plan.clone()), bindings: Bindings::default(), verdict }
}

fn decided(snapshot: &Snapshot, plan: &Plan) -> Decision {
    decide(snapshot, &answer(plan))
}

fn does(snapshot: &Snapshot, plan: &Plan) -> Vec<String> {
    decided(snapshot, plan).actions.iter().map(Action::to_string).collect()
}

fn running(mut snapshot: Snapshot, pods: &[&str]) -> Snapshot {
    snapshot.pods = pods.iter().map(|name| testkit::pod(name, "u", PodPhase::Running).into()).collect();
    snapshot
}

#[test]
fn a_job_in_a_queue_has_a_workload_and_no_pods_until_that_is_admitted() {
    let (plan, new) = (plan(2), queued());
    let name = workload::name(&new);
    assert_eq!(does(&new, &plan), [format!("create workload/{name}")]);
    let body = build::body(&new, &answer(&plan), Part::Workload).unwrap();
    let container = json!({ "name": "c", "image": "i", "resources": { "requests": { "cpu": "1" } } });
    let spec = json!({ "nodeSelector": { "disk": "ssd" }, "containers": [container] });
    let pods = json!([{ "name": "player", "count": 2, "template": { "metadata": {}, "spec": spec } }]);
    assert_eq!(body["spec"], json!({ "active": true, "queueName": "stage", "priority": 0, "podSets": pods }));
    assert_eq!(body["metadata"]["ownerReferences"][0]["uid"], "u");
    let pending = with(new.clone(), &plan, &[condition("QuotaReserved", "False", "Pending")]);
    let Decision { actions, waiting, .. } = decided(&pending, &plan);
    let hold = Hold::NotAdmitted { why: "Pending it is".into() };
    assert_eq!((actions, waiting), (vec![], vec![Waiting::Queue { workload: name, hold }]));
    assert_eq!(does(&with(new, &plan, &admitted()), &plan), ["create pod/hamlet-0", "create pod/hamlet-1"]);
}

#[test]
fn pods_of_an_admitted_job_run_where_its_flavor_says() {
    let plan = plan(1);
    let snapshot = with(queued(), &plan, &admitted());
    let pod = build::body(&snapshot, &answer(&plan), Part::Pod { role: 0, index: 0 }).unwrap();
    assert_eq!(pod["spec"]["nodeSelector"], json!({ "disk": "ssd", "kind": "spot" }));
    assert_eq!(pod["spec"]["tolerations"], json!([{ "key": "spot" }]));
    let mut unseen = snapshot;
    unseen.queue.as_mut().unwrap().classes.clear();
    let hold = Hold::ClassMissing { kind: "ResourceFlavor".into(), name: "spot".into() };
    assert_eq!((does(&unseen, &plan), unseen.hold()), (vec![], Some(hold)));
}

#[test]
fn what_admission_checks_say_of_pods_is_in_their_template() {
    let plan = plan(1);
    let mut snapshot = with(queued(), &plan, &admitted());
    let update = json!({ "name": "player", "labels": { "a": "b" }, "annotations": { "c": "d" },
        "nodeSelector": { "e": "f" }, "tolerations": [{ "key": "g" }] });
    let queue = snapshot.queue.as_mut().unwrap();
    let workload = Arc::make_mut(queue.workload.as_mut().unwrap());
    workload.fields.insert("/status/admissionChecks".into(), json!([{ "podSetUpdates": [update] }]));
    let pod = build::body(&snapshot, &answer(&plan), Part::Pod { role: 0, index: 0 }).unwrap();
    assert_eq!((&pod["metadata"]["labels"]["a"], &pod["metadata"]["annotations"]["c"]), (&json!("b"), &json!("d")));
    assert_eq!(pod["spec"]["nodeSelector"], json!({ "disk": "ssd", "kind": "spot", "e": "f" }));
    assert_eq!(pod["spec"]["tolerations"], json!([{ "key": "spot" }, { "key": "g" }]));
}

#[test]
fn an_evicted_job_loses_its_pods_first_and_its_quota_when_they_have_ended() {
    let plan = plan(2);
    let mut conditions = admitted().to_vec();
    conditions.push(condition("Evicted", "True", "Preempted"));
    let evicted = with(queued(), &plan, &conditions);
    let mut stopping = running(evicted.clone(), &["hamlet-0", "hamlet-1"]);
    assert_eq!(does(&stopping, &plan), ["delete pod/hamlet-0", "delete pod/hamlet-1"]);
    // Also if the plugin cannot be asked.
    let fault = crate::plan::Fault::Missing { digest: None, why: String::new() };
    let actions = decide(&stopping, &Answer::Faulted(fault)).actions;
    assert_eq!(actions.len(), 2, "{actions:?}");
    for pod in &mut stopping.pods {
        Arc::make_mut(pod).terminating = true;
    }
    assert_eq!(does(&stopping, &plan), [""; 0]);
    let Decision { actions, .. } = decided(&evicted, &plan);
    let [action] = actions.as_slice() else { panic!("{actions:?}") };
    let crate::Write::PatchStatus(patch) = action.write() else { panic!("{action}") };
    assert_eq!(patch["metadata"]["resourceVersion"], "3");
    assert_eq!(patch["status"]["admission"], Value::Null);
    let of = |kind: &str| {
        let conditions = patch["status"]["conditions"].as_array().unwrap();
        let found = conditions.iter().find(|it| it["type"] == kind).unwrap();
        (found["status"].as_str().unwrap().to_owned(), found["reason"].as_str().unwrap().to_owned())
    };
    let is = |status: &str, reason: &str| (status.to_owned(), reason.to_owned());
    assert_eq!((of("QuotaReserved"), of("Requeued")), (is("False", "Pending"), is("True", "Preempted")));
    assert_eq!((of("Admitted"), of("Evicted")), (is("False", "NoReservation"), is("True", "Preempted")));
}

#[test]
fn only_the_workload_of_the_plans_pods_lets_the_job_run() {
    let (few, many) = (plan(1), plan(9));
    let admitted = running(with(queued(), &few, &admitted()), &["hamlet-0"]);
    assert_eq!(does(&admitted, &few).len(), 1, "it says that the pods are ready");
    let name = workload::name(&admitted);
    assert_eq!(does(&admitted, &many), [format!("delete workload/{name}")], "and makes no pod meanwhile");
    // As many were counted, but fewer admitted.
    let mut forged = with(queued(), &many, &self::admitted());
    let workload = Arc::make_mut(forged.queue.as_mut().unwrap().workload.as_mut().unwrap());
    let assigned = json!({ "podSetAssignments": [{ "name": "player", "count": 1, "flavors": {} }] });
    workload.fields.insert("/status/admission".into(), assigned);
    assert_eq!(does(&forged, &many), [format!("delete workload/{name}")]);
}

#[test]
fn what_does_not_matter_to_a_quota_takes_no_job_out_of_its_queue() {
    let (before, mut after) = (plan(1), plan(1));
    after.roles[0].template["spec"]["containers"][0]["env"] = json!([{ "name": "OTHER", "value": "y" }]);
    let snapshot = with(queued(), &before, &admitted());
    assert_eq!(does(&snapshot, &after), ["create pod/hamlet-0"]);
}

#[test]
fn a_suspended_job_keeps_its_quota_until_its_pods_have_ended() {
    let mut plan = plan(1);
    plan.policy.clean_on_suspend = Clean::All;
    let mut snapshot = running(with(queued(), &plan, &admitted()), &["hamlet-0"]);
    Arc::make_mut(&mut snapshot.job).spec = json!({ "suspend": true });
    assert_eq!(does(&snapshot, &plan), ["delete pod/hamlet-0"]);
    snapshot.pods.clear();
    let name = workload::name(&snapshot);
    assert_eq!(does(&snapshot, &plan), [format!("delete workload/{name}")]);
    snapshot.queue.as_mut().unwrap().workload = None;
    assert_eq!(does(&snapshot, &plan), [""; 0]);
    assert_eq!(decided(&snapshot, &plan).waiting, []);
}

#[test]
fn the_queue_is_reported_when_pods_are_ready_and_when_the_job_is_over() {
    let plan = plan(1);
    let snapshot = running(with(queued(), &plan, &admitted()), &["hamlet-0"]);
    let reported = |actions: &[Action]| {
        let [action] = actions else { panic!("{actions:?}") };
        let crate::Write::PatchStatus(patch) = action.write() else { panic!("{action}") };
        let last = patch["status"]["conditions"].as_array().unwrap().last().unwrap();
        format!("{} {} {}", last["type"], last["status"], last["reason"]).replace('"', "")
    };
    assert_eq!(reported(&decided(&snapshot, &plan).actions), "PodsReady True Started");
    let mut conditions = admitted().to_vec();
    conditions.push(condition("PodsReady", "True", "Started"));
    let mut ready = running(with(queued(), &plan, &conditions), &["hamlet-0"]);
    assert_eq!(does(&ready, &plan), [""; 0]);
    Arc::make_mut(&mut ready.pods[0]).ready = false;
    assert_eq!(reported(&decided(&ready, &plan).actions), "PodsReady False WaitForRecovery");
    let finished = Finished {
        at: Timestamp::UNIX_EPOCH,
        generation: None,
        outcome: Outcome::Failed,
        clean: Clean::Keep,
        clean_is_final: false,
        counting: false,
        clean_kinds: std::collections::BTreeSet::new(),
        delete_at: None,
    };
    assert_eq!(reported(&over::over(&snapshot, &finished).actions), "Finished True Failed");
    conditions.push(condition("Finished", "True", "Failed"));
    assert!(over::over(&with(snapshot, &plan, &conditions), &finished).actions.is_empty());
}

#[test]
fn a_workload_without_quota_follows_the_queue_and_the_priority_of_its_job() {
    let plan = plan(1);
    let mut snapshot = with(queued(), &plan, &[]);
    let high = child("WorkloadPriorityClass", "high", vec![("/value", json!(100))]);
    snapshot.queue.as_mut().unwrap().classes.push(high);
    let job = Arc::make_mut(&mut snapshot.job);
    job.labels.insert(QUEUE_LABEL.into(), "other".into());
    job.labels.insert("kueue.x-k8s.io/priority-class".into(), "high".into());
    let Decision { actions, .. } = decided(&snapshot, &plan);
    let crate::Write::Patch(patch) = actions[0].write() else { panic!("{actions:?}") };
    let class = json!({ "group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high" });
    assert_eq!(patch["spec"], json!({ "queueName": "other", "priority": 100, "priorityClassRef": class }));
    Arc::make_mut(&mut snapshot.job).labels.insert("kueue.x-k8s.io/priority-class".into(), "none".into());
    let hold = Hold::ClassMissing { kind: "WorkloadPriorityClass".into(), name: "none".into() };
    let waiting = Waiting::Queue { workload: workload::name(&snapshot), hold };
    assert_eq!((does(&snapshot, &plan), decided(&snapshot, &plan).waiting), (vec![], vec![waiting]));
}

#[test]
fn a_job_without_the_label_is_in_no_queue() {
    let plan = plan(1);
    let mut snapshot = with(queued(), &plan, &[]);
    Arc::make_mut(&mut snapshot.job).labels.clear();
    let name = workload::name(&snapshot);
    assert_eq!(does(&snapshot, &plan), [format!("delete workload/{name}"), "create pod/hamlet-0".to_owned()]);
}

#[test]
fn what_a_queue_says_at_length_is_shortened() {
    let plan = plan(1);
    let mut pending = condition("QuotaReserved", "False", "Pending");
    pending["message"] = json!("\u{e4}".repeat(5_000));
    let waiting = decided(&with(queued(), &plan, &[pending]), &plan).waiting;
    let [waiting] = waiting.as_slice() else { panic!("{waiting:?}") };
    let message = waiting.to_string();
    assert!(message.chars().count() < 500 && message.ends_with(" ..."), "{message}");
}

// Once an evicted job has given its quota back, Kueue does not queue it again until its Workload is active.
#[test]
fn a_job_whose_workload_is_deactivated_waits_for_its_pods_to_end_and_then_to_be_activated() {
    let plan = plan(1);
    let inactive = |conditions: &[Value]| {
        let mut snapshot = with(queued(), &plan, conditions);
        let workload = Arc::make_mut(snapshot.queue.as_mut().unwrap().workload.as_mut().unwrap());
        workload.fields.insert("/spec/active".into(), json!(false));
        snapshot
    };
    let waits = |snapshot: &Snapshot| match decided(snapshot, &plan).waiting.as_slice() {
        [waiting] => (waiting.reason().as_str(), waiting.to_string()),
        other => panic!("{other:?}"),
    };
    let name = workload::name(&queued());
    let evicted = condition("Evicted", "True", "Deactivated");
    let mut conditions = admitted().to_vec();
    conditions.push(evicted.clone());
    let ends = format!("the pods to end, since workload/{name} was evicted (Deactivated): Deactivated it is");
    assert_eq!(waits(&running(inactive(&conditions), &["hamlet-0"])), ("Evicted", ends));
    let activated = format!(
        "workload/{name} to be activated: its spec.active is false; set it to true to have the job queued again"
    );
    let pending = condition("QuotaReserved", "False", "Pending");
    let given_back = inactive(&[pending.clone(), evicted]);
    assert_eq!(waits(&given_back), ("Deactivated", format!("{activated} (Deactivated it is)")));
    assert_eq!(does(&given_back, &plan), [""; 0], "the host does not activate it");
    assert_eq!(waits(&inactive(&[pending])), ("Deactivated", activated), "one that was never admitted");
}

/// A plan of one role whose pods have these labels.
fn labelled(labels: &Value) -> Plan {
    let mut plan = plan(2);
    plan.roles[0].template["metadata"] = json!({ "labels": labels });
    plan
}

#[test]
fn a_queue_of_each_pod_is_told_with_the_place_where_the_label_belongs() {
    let mut alone = testkit::snapshot(testkit::job("hamlet", "u"));
    let told = |snapshot: &Snapshot, plan: &Plan| decided(snapshot, plan).misplaced;
    let on_pods = labelled(&json!({ QUEUE_LABEL: "stage" }));
    let words = "the label kueue.x-k8s.io/queue-name is on the pod template of role Player, where it queues each pod by \
                 itself, so that some pods of the job can start without the others; put it in metadata.labels of the job, \
                 and take it from there";
    assert_eq!(told(&alone, &on_pods).unwrap(), words);
    let words = "the label kueue.x-k8s.io/queue-name is on the pod template of role Player, too, where it queues each pod by \
                 itself, a second time; take it from there, since metadata.labels of the job has it";
    assert_eq!(told(&queued(), &on_pods).unwrap(), words);
    let mut two = on_pods.clone();
    two.roles.push(testkit::role("Guard", 1, testkit::text(&["JOB", "-guard"]), on_pods.roles[0].template.clone()));
    assert!(told(&alone, &two).unwrap().contains("on the pod templates of roles Player, Guard,"));
    for right in [
        labelled(&json!({})),
        labelled(&json!({ QUEUE_LABEL: "" })),
        // The queue admits these pods together.
        labelled(&json!({ QUEUE_LABEL: "stage", "kueue.x-k8s.io/pod-group-name": "hamlet" })),
        Plan { roles: vec![], ..on_pods.clone() },
    ] {
        assert_eq!(told(&alone, &right), None);
    }
    assert_eq!(told(&queued(), &plan(1)), None);
    Arc::make_mut(&mut alone.job).spec = json!({ "suspend": true });
    assert!(told(&alone, &on_pods).is_some(), "as long as nothing has started, too");
}

#[test]
fn a_queue_of_the_pods_of_runs_or_of_a_job_without_pods_is_told_with_the_place_where_the_label_belongs() {
    let mut plan = testkit::plan(vec![]);
    plan.series = vec![crate::plan::Series {
        key: "runs".into(),
        api_version: "example.org/v1".into(),
        kind: "Play".into(),
        template_at: "/run/template".into(),
        labels: std::collections::BTreeMap::new(),
    }];
    let told = |mut snapshot: Snapshot, run: &Value, pods: &Value| {
        let pods = json!({ "metadata": { "labels": pods }, "spec": { "containers": [] } });
        let run = json!({ "metadata": { "labels": run }, "spec": { "actors": [{ "template": pods }] } });
        Arc::make_mut(&mut snapshot.job).spec = json!({ "run": { "template": run } });
        decided(&snapshot, &plan).misplaced
    };
    let alone = || testkit::snapshot(testkit::job("hamlet", "u"));
    let (none, label) = (json!({}), json!({ QUEUE_LABEL: "stage" }));
    let words = "the label kueue.x-k8s.io/queue-name is on a pod template of the Plays, where it queues at most each pod by \
                 itself; put it in spec.run.template.metadata.labels, and take it from there";
    assert_eq!(told(alone(), &none, &label).unwrap(), words);
    let words = "the label kueue.x-k8s.io/queue-name is in metadata.labels of this job, which has no pods to queue; put it in \
                 spec.run.template.metadata.labels, so that each Play is queued";
    assert_eq!(told(queued(), &none, &none).unwrap(), words);
    assert_eq!((told(alone(), &label, &none), told(queued(), &label, &none)), (None, None));
}
