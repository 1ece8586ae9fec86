//! Tests of the stores with decoded objects, without a watch, a client or a clock.

use super::*;
use crate::observe::{layout::Route, wire};
use decide::{
    plan::{ChildKind, Descriptor, JobKind, OwnedBy},
    snapshot::{ContainerState, PodPhase},
    testkit,
};
use futures::FutureExt;
use serde_json::{Value, json};

mod optional_kinds;
mod users;

fn digest() -> Digest {
    testkit::digest("digest")
}

/// Stores for tests; objects are fed by the name of their kind.
struct Shown(Stores);

impl Shown {
    fn nothing() -> Self {
        let shown = Self(Stores::new(layout()));
        for kind in ["Tale", "Pod", "Service", "Job"] {
            shown.lists(kind, &[], 1);
        }
        shown
    }

    fn lists(&self, kind: &str, objects: &[Value], version: u64) -> BTreeSet<JobKey> {
        self.0.replace(self.watch(kind), objects.iter().map(|object| self.decoded(kind, object)).collect(), version)
    }

    /// Reports that the object was added or changed.
    fn has(&self, kind: &str, object: &Value) -> BTreeSet<JobKey> {
        self.0.upsert(self.watch(kind), self.decoded(kind, object))
    }

    fn lacks(&self, kind: &str, object: &Value) -> BTreeSet<JobKey> {
        self.0.remove(self.watch(kind), &self.decoded(kind, object))
    }

    fn expects(&self, kind: &str, expected: Expected) {
        let api_version = self.0.layout().watches()[&self.watch(kind)].resource.api_version();
        self.0.expect(&key("hamlet"), Some(&digest()), (&api_version, kind), expected);
    }

    fn watch(&self, kind: &str) -> WatchId {
        let layout = self.0.layout();
        *layout.watches().iter().find(|(_, watch)| watch.resource.kind == kind).unwrap().0
    }

    fn decoded(&self, kind: &str, object: &Value) -> Object {
        wire::object(&object.to_string(), &self.0.layout().watches()[&self.watch(kind)]).unwrap()
    }

    /// Adds a plugin that keeps other fields of Jobs. Returns its watch of them.
    fn gets_another_watch_of_jobs(&self) -> WatchId {
        let own = self.0.layout();
        let tales = own.descriptor(&digest()).unwrap();
        let jobs = ChildKind { keep: vec!["/status".into(), "/spec".into()], ..tales.children[2].clone() };
        let kind = JobKind { kind: "Song".into(), plural: "songs".into(), ..tales.kinds[0].clone() };
        let songs = Descriptor { name: "songs".into(), kinds: vec![kind], children: vec![jobs], ..(**tales).clone() };
        self.0.change(|layout| layout.add(&Arc::new(songs), &testkit::digest("songs")));
        let another = *self.0.layout().watches().iter().rfind(|(_, watch)| watch.resource.kind == "Job").unwrap().0;
        assert_ne!(another, self.watch("Job"));
        another
    }

    fn seen(&self, name: &str) -> Observed {
        self.0.observe(&key(name), Timestamp::UNIX_EPOCH)
    }

    fn snapshot(&self) -> Snapshot {
        match self.seen("hamlet") {
            Observed::Ready(snapshot) => *snapshot,
            other => panic!("{other:?}"),
        }
    }

    fn is_stale(&self) -> bool {
        matches!(self.seen("hamlet"), Observed::Stale)
    }
}

fn layout() -> Layout {
    let child = |api_version: &str, kind: &str, keep: &[&str]| ChildKind {
        api_version: api_version.into(),
        kind: kind.into(),
        plural: format!("{}s", kind.to_lowercase()),
        selector: None,
        keep: keep.iter().map(ToString::to_string).collect(),
        optional: false,
        owned_by: OwnedBy::Job,
    };
    let kind = JobKind { suspend: None, ..testkit::kind() };
    let framework = Arc::new(Descriptor {
        name: "tales".into(),
        version: "1.0.0".into(),
        kinds: vec![kind],
        children: vec![
            child("v1", "Pod", &[]),
            child("v1", "Service", &["/spec"]),
            child("batch/v1", "Job", &["/status"]),
        ],
        config_schema: json!({}),
        reads: vec![],
        event_reasons: BTreeMap::new(),
        asks: decide::grants::Grants::default(),
    });
    let mut layout = Layout::default();
    layout.add(&framework, &digest());
    layout.route("tales", &Route::to(&digest()));
    layout
}

fn key(name: &str) -> JobKey {
    JobKey::new(&GroupKind::new("example.com", "Tale"), "ns", name)
}

fn keys(names: &[&str]) -> BTreeSet<JobKey> {
    names.iter().map(|name| key(name)).collect()
}

fn tale(uid: &str, version: u64) -> Value {
    let metadata = json!({ "namespace": "ns", "name": "hamlet", "uid": uid, "resourceVersion": version.to_string() });
    json!({ "metadata": metadata, "spec": { "acts": 5 }, "status": {} })
}

/// Returns an object with this controller.
fn owned(name: &str, version: u64, (api_version, kind, owner): (&str, &str, &str), uid: &str) -> Value {
    let owner = json!({ "apiVersion": api_version, "kind": kind, "name": owner, "uid": uid, "controller": true });
    json!({ "metadata": {
        "namespace": "ns", "name": name, "uid": format!("uid-of-{name}"), "resourceVersion": version.to_string(),
        "ownerReferences": [owner],
    } })
}

/// Returns an object whose controller is the job with this uid.
fn of_job(name: &str, version: u64, uid: &str) -> Value {
    owned(name, version, ("example.com/v1", "Tale", "hamlet"), uid)
}

/// Returns an object whose controller is the Job `hamlet-stage`.
fn of_stage(name: &str, version: u64) -> Value {
    owned(name, version, ("batch/v1", "Job", "hamlet-stage"), "uid-of-hamlet-stage")
}

fn with(mut object: Value, section: &str, value: Value) -> Value {
    object[section] = value;
    object
}

fn pods(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.pods.iter().map(|pod| pod.name.as_str()).collect()
}

#[test]
fn a_job_with_its_pods_and_other_children_makes_a_snapshot() {
    let shown = Shown::nothing();
    assert_eq!(shown.has("Tale", &tale("u", 2)), keys(&["hamlet"]));
    let status = json!({ "phase": "Running", "podIP": "10.0.0.1",
        "containerStatuses": [{ "name": "main", "restartCount": 3, "state": { "waiting": { "reason": "CrashLoopBackOff" } } }] });
    assert_eq!(shown.has("Pod", &with(of_job("hamlet-1", 3, "u"), "status", status)), keys(&["hamlet"]));
    shown.has("Pod", &of_job("hamlet-0", 4, "u"));
    shown.has("Service", &with(of_job("hamlet", 5, "u"), "spec", json!({ "clusterIP": "None" })));

    let snapshot = shown.snapshot();
    assert_eq!((&snapshot.digest, &snapshot.job.spec["acts"]), (&Some(digest()), &json!(5)));
    assert_eq!(pods(&snapshot), ["hamlet-0", "hamlet-1"]);
    let pod = &snapshot.pods[1];
    assert_eq!(
        (pod.phase, pod.ips.as_slice(), pod.containers[0].restarts),
        (PodPhase::Running, &["10.0.0.1".into()][..], 3)
    );
    assert!(matches!(&pod.containers[0].state, ContainerState::Waiting { reason, .. } if reason == "CrashLoopBackOff"));
    assert_eq!(snapshot.children[0].fields["/spec"], json!({ "clusterIP": "None" }));
    assert!(snapshot.taken.is_empty() && snapshot.unreadable.is_none());
}

#[test]
fn pods_of_a_jobs_own_job_are_its_pods() {
    let shown = Shown::nothing();
    shown.has("Tale", &tale("u", 2));
    shown.has("Job", &of_job("hamlet-stage", 3, "u"));
    assert_eq!(shown.has("Pod", &of_stage("hamlet-stage-x", 4)), keys(&["hamlet"]));
    assert_eq!(pods(&shown.snapshot()), ["hamlet-stage-x"]);
}

#[test]
fn what_a_pod_of_the_job_controls_is_seen_with_it() {
    let own = layout();
    let mut tales = Descriptor::clone(own.descriptor(&digest()).unwrap());
    let selector = Some("troupe".into());
    tales.children.push(ChildKind {
        kind: "Prop".into(),
        plural: "props".into(),
        selector,
        owned_by: OwnedBy::Pod,
        ..tales.children[1].clone()
    });
    let shown = Shown(Stores::new(own));
    shown.0.change(|layout| layout.describe(&Arc::new(tales), &digest()));
    for kind in ["Tale", "Pod", "Service", "Job", "Prop"] {
        shown.lists(kind, &[], 1);
    }
    shown.has("Tale", &tale("u", 2));
    shown.has("Pod", &of_job("hamlet-0", 3, "u"));
    let of_pod = |name: &str, version| owned(name, version, ("v1", "Pod", "hamlet-0"), "uid-of-hamlet-0");
    assert_eq!(shown.has("Prop", &of_pod("skull", 4)), keys(&["hamlet"]));
    assert_eq!(shown.has("Prop", &of_job("hamlet-sword", 5, "u")), keys(&[]), "another watch is for those of the job");
    let alien = owned("cup", 6, ("v1", "Pod", "hamlet-0"), "uid-of-another");
    assert_eq!(shown.has("Prop", &alien), keys(&[]), "the pod of that name is another");
    assert_eq!(shown.has("Prop", &elsewhere(of_pod("crown", 6))), keys(&[]), "the pod is not in that namespace");
    let snapshot = shown.snapshot();
    let seen: Vec<_> = snapshot.dependents.iter().map(|it| (it.pod.as_str(), it.object.name.as_str())).collect();
    assert_eq!(seen, [("hamlet-0", "skull")]);
    assert!(snapshot.children.is_empty());
    assert_eq!(shown.lacks("Prop", &of_pod("skull", 7)), keys(&["hamlet"]));
    assert!(shown.snapshot().dependents.is_empty());
}

/// Returns the object as it would be in another namespace.
fn elsewhere(mut object: Value) -> Value {
    object["metadata"]["namespace"] = json!("elsewhere");
    object
}

fn made_by(mut object: Value, digest: &Digest) -> Value {
    object["metadata"]["annotations"] = json!({ decide::ownership::PLUGIN_DIGEST_ANNOTATION: digest });
    object
}

// An owner reference never crosses namespaces: whoever may make pods in a namespace may write any uid into one.
#[test]
fn an_object_of_another_namespace_that_names_the_jobs_uid_is_none_of_its_children() {
    let shown = Shown::nothing();
    let another = shown.gets_another_watch_of_jobs();
    shown.0.replace(another, vec![], 1);
    shown.has("Tale", &tale("u", 2));
    let alien = [
        ("Pod", of_job("hamlet-0", 3, "u")),
        ("Service", of_job("hamlet", 4, "u")),
        ("Job", of_job("hamlet-stage", 5, "u")),
    ];
    for (kind, object) in alien {
        let object = made_by(elsewhere(object), &digest());
        assert!(!shown.has(kind, &object).contains(&key("hamlet")), "{kind}");
    }
    let over = json!({ "conditions": [{ "type": "Complete", "status": "True" }] });
    let over = with(elsewhere(of_job("hamlet-over", 6, "u")), "status", over);
    shown.0.upsert(another, shown.decoded("Job", &over));
    let snapshot = shown.snapshot();
    assert!(snapshot.pods.is_empty() && snapshot.children.is_empty() && snapshot.taken.is_empty(), "{snapshot:?}");
    let seen = |namespace: &str| {
        let hamlet = Controller { namespace, name: "hamlet", uid: "u" };
        shown.0.read(|cache| (cache.runs_pods_of(hamlet), cache.digest_of_children(hamlet, |_| true)))
    };
    assert_eq!(seen("ns"), (false, None));

    shown.has("Pod", &made_by(of_job("hamlet-1", 7, "u"), &testkit::digest("own")));
    assert_eq!(seen("ns"), (true, Some(testkit::digest("own"))));
    assert_eq!(pods(&shown.snapshot()), ["hamlet-1"]);
    shown.lacks("Pod", &of_job("hamlet-1", 8, "u"));
    assert_eq!(seen("ns"), (false, None));

    shown.has("Job", &of_job("hamlet-stage", 9, "u"));
    shown.has("Pod", &elsewhere(of_stage("hamlet-stage-x", 10)));
    assert!(pods(&shown.snapshot()).is_empty(), "nor of its Jobs");
}

#[test]
fn nothing_is_observed_before_every_watch_that_the_job_needs_has_listed() {
    let shown = Shown(Stores::new(layout()));
    for kind in ["Tale", "Pod", "Service"] {
        shown.lists(kind, &[], 1);
    }
    shown.has("Tale", &tale("u", 2));
    assert!(shown.is_stale());
    assert_eq!(shown.lists("Job", &[], 3), keys(&["hamlet"]), "it waits for this list");
    shown.snapshot();
}

#[test]
fn nothing_is_kept_of_a_job_that_went_before_its_kind_was_listed() {
    let shown = Shown(Stores::new(layout()));
    for kind in ["Pod", "Service", "Job"] {
        shown.lists(kind, &[], 1);
    }
    let mut pod = of_job("hamlet-0", 2, "u");
    pod["status"]["phase"] = "Succeeded".into();
    assert_eq!(shown.has("Pod", &pod), keys(&["hamlet"]));
    assert!(matches!(shown.seen("hamlet"), Observed::Unlisted));
    assert_eq!(shown.lacks("Pod", &pod), keys(&["hamlet"]));
    assert_eq!(shown.0.count_tombstones(&key("hamlet")), 1);
    assert_eq!(shown.lists("Tale", &[], 3), keys(&["hamlet"]));
    assert!(matches!(shown.seen("hamlet"), Observed::Gone));
    assert_eq!(shown.0.count_tombstones(&key("hamlet")), 0);
}

#[test]
fn the_fields_of_a_jobs_children_take_no_more_than_a_pass_may_hold() {
    let shown = Shown::nothing();
    shown.has("Tale", &tale("u", 2));
    let large = json!({ "x": "y".repeat(3 << 19) });
    for number in 0..12 {
        let service = of_job(&format!("hamlet-{number:02}"), 3, "u");
        shown.has("Service", &with(service, "spec", large.clone()));
    }
    shown.has("Job", &with(of_job("hamlet-stage", 3, "u"), "status", large));
    let snapshot = shown.snapshot();
    let whole = |kind: &str| {
        let of_kind = snapshot.children.iter().filter(|child| child.kind == kind);
        of_kind.filter(|child| !child.fields.is_empty()).count()
    };
    assert_eq!((snapshot.children.len(), whole("Service"), whole("Job")), (13, 10, 1));
    let wrong = snapshot.unreadable.as_ref().unwrap();
    assert_eq!(wrong.path, "Service hamlet-10");
    assert!(wrong.message.starts_with("the objects of the job have more than 16 MiB"), "{}", wrong.message);
}

#[test]
fn a_job_is_stale_until_its_watches_have_shown_what_was_written() {
    let shown = Shown::nothing();
    shown.has("Tale", &tale("u", 2));
    shown.expects("Pod", Expected::Version(10));
    shown.expects("Service", Expected::Version(11));
    assert!(shown.is_stale());
    shown.has("Pod", &of_job("hamlet-0", 10, "u"));
    assert!(shown.is_stale(), "the Service is not shown");
    assert_eq!(shown.0.bookmark(shown.watch("Service"), 11), keys(&["hamlet"]));
    assert_eq!(pods(&shown.snapshot()), ["hamlet-0"]);
}

#[test]
fn a_deletion_is_shown_by_the_pod_on_its_way_or_gone_and_not_by_versions() {
    let shown = Shown::nothing();
    shown.has("Tale", &tale("u", 2));
    shown.has("Pod", &of_job("hamlet-0", 3, "u"));
    shown.expects("Pod", Expected::Going { name: "hamlet-0".into(), uid: "uid-of-hamlet-0".into() });
    shown.has("Pod", &of_job("hamlet-1", 9, "u"));
    assert!(shown.is_stale());
    let mut going = of_job("hamlet-0", 10, "u");
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    shown.has("Pod", &going);
    assert!(shown.snapshot().pods[0].terminating);
}

#[test]
fn a_lost_create_is_settled_by_a_version_and_its_object_is_found_even_if_it_is_gone_again() {
    let shown = Shown::nothing();
    shown.has("Tale", &tale("u", 2));
    shown.expects("Job", Expected::InDoubt { name: "hamlet-job".into() });
    shown.0.bookmark(shown.watch("Job"), 5);
    let Observed::InDoubt(doubt) = shown.seen("hamlet") else { panic!("no version that a watch shows is enough") };
    assert_eq!((doubt.resource.plural.as_str(), doubt.name.as_str()), ("jobs", "hamlet-job"));
    shown.0.settle(&key("hamlet"), &doubt, 8);
    assert!(shown.is_stale(), "the watch has not reached the version");
    let made = of_job("hamlet-job", 6, "u");
    shown.has("Job", &made);
    shown.lacks("Job", &made);
    assert!(shown.is_stale());
    assert_eq!(shown.0.bookmark(shown.watch("Job"), 8), keys(&["hamlet"]));
    assert!(shown.snapshot().children.iter().any(|child| child.name == "hamlet-job"), "its tombstone");
}

// Seed 12829 of a campaign: no event of the job's own was to come, and a preflight had looked before the bookmark came.
#[test]
fn a_settled_doubt_ends_with_any_event_of_the_version_and_whoever_else_looks_takes_no_wake() {
    let doubtful = || {
        let shown = Shown::nothing();
        shown.has("Tale", &tale("u", 2));
        shown.expects("Pod", Expected::InDoubt { name: "hamlet-1".into() });
        let Observed::InDoubt(doubt) = shown.seen("hamlet") else { panic!("no version is enough") };
        shown.0.settle(&key("hamlet"), &doubt, 8);
        shown
    };
    let of_another = |version| owned("macbeth-0", version, ("example.com/v1", "Tale", "macbeth"), "v");

    let shown = doubtful();
    assert_eq!(shown.has("Pod", &of_another(7)), keys(&["macbeth"]));
    assert_eq!(shown.has("Pod", &of_another(8)), keys(&["hamlet", "macbeth"]));
    assert_eq!(shown.has("Pod", &of_another(9)), keys(&["macbeth"]), "once");

    let shown = doubtful();
    assert_eq!(shown.lacks("Pod", &of_another(9)), keys(&["hamlet", "macbeth"]));

    let shown = doubtful();
    shown.has("Pod", &of_another(9));
    assert!(!shown.is_stale(), "a look");
    assert_eq!(shown.0.bookmark(shown.watch("Pod"), 10), keys(&["hamlet"]), "its pass is still to come");
    shown.0.forget_shown_writes(&key("hamlet"));
    assert_eq!(shown.0.bookmark(shown.watch("Pod"), 11), keys(&[]));
}

// Real Volcano says in an event alone why a queue has no room.
#[test]
fn what_a_scheduler_says_of_a_pod_group_in_events_is_shown_to_its_own_job_alone() {
    const GROUP: &str = "scheduling.volcano.sh/v1beta1";
    let shown = Shown::nothing();
    let mut tales = Descriptor::clone(shown.0.layout().descriptor(&digest()).unwrap());
    let of_volcano = ChildKind { kind: "PodGroup".into(), plural: "podgroups".into(), ..tales.children[0].clone() };
    tales.children.push(ChildKind { api_version: GROUP.into(), ..of_volcano });
    shown.0.change(|layout| layout.add(&Arc::new(tales), &digest()));
    let mut served = std::pin::pin!(shown.0.can_be_reported());
    assert!(served.as_mut().now_or_never().is_none(), "the kind may not be served");
    shown.lists("PodGroup", &[], 1);
    assert!(served.now_or_never().is_some());

    shown.has("Tale", &tale("u", 2));
    shown.has("PodGroup", &of_job("hamlet", 3, "u"));
    let report = |namespace: &str, uid: &str, message: &str, second: i64| {
        let event = json!({
            "metadata": { "namespace": namespace, "name": "e", "resourceVersion": "9" },
            "involvedObject": { "apiVersion": GROUP, "kind": "PodGroup", "name": "hamlet", "uid": uid },
            "message": message,
            "lastTimestamp": Timestamp::from_second(second).unwrap(),
        });
        shown.0.report(&serde_json::from_value(event).unwrap())
    };
    let seen_at = |second| match shown.0.observe(&key("hamlet"), Timestamp::from_second(second).unwrap()) {
        Observed::Ready(snapshot) => snapshot.reports.get("uid-of-hamlet").cloned(),
        other => panic!("{other:?}"),
    };
    let uid = "uid-of-hamlet";
    assert_eq!(report("ns", uid, "no room", 1), Some(key("hamlet")));
    assert_eq!(report("ns", uid, "no room", 2), None, "a repetition wakes nobody");
    assert_eq!(report("ns", uid, "earlier", 1), None);
    for (namespace, uid) in [("elsewhere", uid), ("ns", "u"), ("ns", "uid-of-an-earlier-one")] {
        assert_eq!(report(namespace, uid, "believe me", 3), None, "{namespace} {uid}");
    }
    assert_eq!((seen_at(2), seen_at(902), seen_at(903)), (Some("no room".into()), Some("no room".into()), None));
    assert_eq!(report("ns", uid, &"long".repeat(1000), 4), Some(key("hamlet")));
    assert!(seen_at(4).unwrap().len() < 500);

    shown.lacks("PodGroup", &of_job("hamlet", 4, "u"));
    assert!(shown.0.inner.lock().reports.is_empty());
}

#[test]
fn a_job_that_is_gone_is_gone_and_nothing_of_it_is_another_jobs_of_its_name() {
    let shown = Shown::nothing();
    shown.has("Tale", &tale("u", 2));
    shown.has("Pod", &of_job("hamlet-0", 3, "u"));
    assert_eq!(shown.lacks("Tale", &tale("u", 4)), keys(&["hamlet"]));
    assert!(matches!(shown.seen("hamlet"), Observed::Gone));
    assert!(matches!(shown.seen("macbeth"), Observed::Gone));

    shown.has("Tale", &tale("v", 5));
    let snapshot = shown.snapshot();
    assert!(snapshot.pods.is_empty(), "its owner has another uid");
    assert_eq!(snapshot.taken, BTreeSet::from([("Pod".to_owned(), "hamlet-0".to_owned())]));
    assert_eq!(shown.lacks("Pod", &of_job("hamlet-0", 6, "u")), keys(&["hamlet"]), "its name is free");
    assert!(shown.snapshot().taken.is_empty());
}

#[test]
fn a_pod_that_ended_and_went_is_evidence_until_a_pass_has_written_it_down() {
    let shown = Shown::nothing();
    shown.has("Tale", &tale("u", 2));
    let [done, other] = ["hamlet-0", "hamlet-1"].map(|name| of_job(name, 3, "u"));
    let done = with(done, "status", json!({ "phase": "Succeeded" }));
    for pod in [&done, &other] {
        shown.has("Pod", pod);
        shown.lacks("Pod", pod);
    }
    let snapshot = shown.snapshot();
    assert_eq!(pods(&snapshot), ["hamlet-0"], "how the other would have ended nobody knows");
    assert_eq!((snapshot.pods[0].phase, snapshot.pods[0].terminating), (PodPhase::Succeeded, true));
    let count = shown.0.count_tombstones(&key("hamlet"));
    assert!(shown.0.forget_tombstones(&key("hamlet"), count) && pods(&shown.snapshot()).is_empty());
}

// A kubelet ends with a deletion without grace, which takes away what told that the pod ran when it was deleted.
#[test]
fn a_pod_that_was_deleted_while_it_ran_is_known_as_such_to_its_end() {
    let state = |phase: &str, grace: Option<i64>| {
        let mut pod = with(of_job("hamlet-0", 3, "u"), "status", json!({ "phase": phase }));
        if let Some(grace) = grace {
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:30Z");
            pod["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
        }
        pod
    };
    let drained = [("Running", None), ("Running", Some(30)), ("Succeeded", Some(30)), ("Succeeded", Some(0))];
    let collected = [("Running", None), ("Succeeded", None), ("Succeeded", Some(0))];
    for (story, is_stopped) in [(&drained[..], true), (&collected[..], false)] {
        for last_is_listed in [false, true] {
            let shown = Shown::nothing();
            shown.has("Tale", &tale("u", 2));
            let ((phase, grace), before) = story.split_last().unwrap();
            for (phase, grace) in before {
                shown.has("Pod", &state(phase, *grace));
            }
            let last = state(phase, *grace);
            if last_is_listed {
                shown.lists("Pod", std::slice::from_ref(&last), 4)
            } else {
                shown.has("Pod", &last)
            };
            assert_eq!(shown.snapshot().pods[0].stopped, is_stopped, "listed: {last_is_listed}");
            shown.lacks("Pod", &last);
            assert_eq!(shown.snapshot().pods[0].stopped, is_stopped, "as a tombstone, listed: {last_is_listed}");
        }
    }
}

/// Returns the Job of the first stage, with these conditions.
fn stage(version: u64, conditions: &Value) -> Value {
    let job = of_job("hamlet-stage", version, "u");
    let job = with(job, "status", json!({ "conditions": conditions }));
    with(with(job, "apiVersion", json!("batch/v1")), "kind", json!("Job"))
}

// Seed 66 of a campaign with a delivered plugin: the watch of the launchers was silent, another one of all Jobs showed the
// end and the deletion. A pass before the first was listed again ignored that, and forgot it.
#[test]
fn an_end_that_another_watch_has_shown_counts_while_its_own_is_behind() {
    let shown = Shown::nothing();
    let another = shown.gets_another_watch_of_jobs();
    shown.has("Tale", &tale("u", 2));
    shown.has("Job", &stage(3, &json!([])));
    let over = stage(4, &json!([{ "type": "Complete", "status": "True" }]));
    shown.0.upsert(another, shown.decoded("Job", &over));
    assert!(!shown.snapshot().children[0].job_is_over(), "it is there, as its own watch shows it");
    shown.0.remove(another, &shown.decoded("Job", &over));
    let [child] = &shown.snapshot().children[..] else { panic!("one Job") };
    assert!(child.job_is_over() && child.terminating, "{child:?}");
}

// Seed 4547: the watch of the launchers was listed anew after one had gone. Another one of all Jobs had shown the end, and
// its deletion came later. Seed 25318: that one had not shown the end yet.
#[test]
fn an_end_that_another_watch_shows_counts_also_when_a_list_lacks_the_object() {
    let shown = Shown::nothing();
    let another = shown.gets_another_watch_of_jobs();
    shown.has("Tale", &tale("u", 2));
    let (going, over) = (stage(3, &json!([])), stage(4, &json!([{ "type": "Complete", "status": "True" }])));
    shown.has("Job", &going);
    shown.0.upsert(another, shown.decoded("Job", &going));
    shown.lists("Job", &[], 6);
    assert!(shown.is_stale(), "another watch, which is behind, may show how it ended");
    assert_eq!(shown.0.upsert(another, shown.decoded("Job", &over)), keys(&["hamlet"]));
    assert!(shown.is_stale(), "it has not reached the list");
    assert_eq!(shown.0.bookmark(another, 6), keys(&["hamlet"]));
    let [child] = &shown.snapshot().children[..] else { panic!("one Job") };
    assert!(child.job_is_over() && child.terminating, "{child:?}");
    let mut gone = over;
    gone["metadata"]["resourceVersion"] = json!("7");
    shown.0.remove(another, &shown.decoded("Job", &gone));
    assert_eq!(shown.snapshot().children.len(), 1, "its tombstone");
    assert!(shown.0.forget_tombstones(&key("hamlet"), 1) && shown.snapshot().children.is_empty());
}

#[test]
fn a_job_that_its_own_watch_does_not_select_is_awaited_no_longer_than_another_watch_is_behind() {
    let shown = Shown::nothing();
    let another = shown.gets_another_watch_of_jobs();
    shown.has("Tale", &tale("u", 2));
    shown.lists("Job", &[], 6);
    shown.0.upsert(another, shown.decoded("Job", &stage(3, &json!([]))));
    assert!(shown.is_stale());
    assert_eq!(shown.0.upsert(another, shown.decoded("Job", &stage(7, &json!([])))), keys(&["hamlet"]));
    assert!(shown.snapshot().children.is_empty());
}

#[test]
fn a_job_does_not_wait_for_a_watch_that_has_ended() {
    let shown = Shown::nothing();
    let another = shown.gets_another_watch_of_jobs();
    shown.has("Tale", &tale("u", 2));
    shown.0.upsert(another, shown.decoded("Job", &stage(3, &json!([]))));
    shown.lists("Job", &[], 6);
    assert!(shown.is_stale());
    shown.0.change(|layout| layout.remove(&testkit::digest("songs")));
    shown.0.prune();
    assert_eq!(shown.0.bookmark(shown.watch("Pod"), 7), keys(&["hamlet"]), "any event wakes it");
    assert!(shown.snapshot().children.is_empty());
}

#[test]
fn the_name_of_a_deleted_job_is_taken_until_its_pod_is_gone_also_while_another_watch_still_shows_it() {
    let shown = Shown::nothing();
    let another = shown.gets_another_watch_of_jobs();
    shown.has("Tale", &tale("u", 2));
    let job = stage(3, &json!([]));
    shown.has("Job", &job);
    shown.0.upsert(another, shown.decoded("Job", &job));
    let pod = of_stage("hamlet-stage-x", 4);
    shown.has("Pod", &pod);
    let name = ("Job".to_owned(), "hamlet-stage".to_owned());
    assert!(!shown.snapshot().taken.contains(&name), "it is there");

    shown.lacks("Job", &job);
    assert!(shown.0.forget_tombstones(&key("hamlet"), 1));
    let snapshot = shown.snapshot();
    assert!(snapshot.children.is_empty() && snapshot.taken.contains(&name), "{:?}", snapshot.taken);
    assert_eq!(shown.lacks("Pod", &pod), keys(&["hamlet"]), "its name is free");
    assert!(shown.snapshot().taken.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_name_of_a_deleted_job_is_taken_until_the_watch_of_pods_has_shown_those_that_it_had() {
    let name = BTreeSet::from([("Job".to_owned(), "hamlet-stage".to_owned())]);
    let with_status = |version, status: Value| with(stage(version, &json!([])), "status", status);
    let deleted = |status: &Value| {
        let shown = Shown::nothing();
        shown.has("Tale", &tale("u", 2));
        shown.has("Job", &with_status(3, status.clone()));
        shown.lacks("Job", &with_status(6, status.clone()));
        shown
    };
    let shown = deleted(&json!({ "active": 1 }));
    assert_eq!(shown.snapshot().taken, name, "its pod of version 4 is on its way");
    shown.0.bookmark(shown.watch("Pod"), 5);
    assert_eq!(shown.snapshot().taken, name);
    shown.0.bookmark(shown.watch("Pod"), 6);
    assert!(shown.snapshot().taken.is_empty(), "it went before the Job did");

    let shown = deleted(&json!({ "active": 1 }));
    tokio::time::advance(std::time::Duration::from_secs(100)).await;
    assert!(shown.snapshot().taken.is_empty(), "an API server without bookmarks");

    let complete = json!({ "active": 1, "conditions": [{ "type": "Complete", "status": "True" }] });
    for without_live_pods in [json!({}), json!({ "active": 0 }), complete] {
        assert!(deleted(&without_live_pods).snapshot().taken.is_empty(), "{without_live_pods}");
    }
}

#[test]
fn a_list_without_an_object_wakes_its_job() {
    let shown = Shown::nothing();
    shown.has("Tale", &tale("u", 2));
    let service = of_job("hamlet", 3, "u");
    shown.has("Service", &service);
    assert_eq!(shown.lists("Service", std::slice::from_ref(&service), 4), keys(&[]), "it is as it was");
    assert_eq!(shown.lists("Service", &[], 5), keys(&["hamlet"]));
    assert!(shown.snapshot().children.is_empty());
}

#[test]
fn an_object_that_cannot_be_read_is_reported_with_its_own_job_alone() {
    let shown = Shown::nothing();
    shown.has("Tale", &tale("u", 2));
    let mut macbeth = tale("m", 3);
    macbeth["metadata"]["name"] = json!("macbeth");
    shown.has("Tale", &macbeth);
    shown.has("Pod", &with(of_job("hamlet-0", 4, "u"), "status", json!({ "phase": "Running", "podIP": 7 })));
    let snapshot = shown.snapshot();
    let reported = snapshot.unreadable.unwrap();
    assert!(reported.path.starts_with("Pod hamlet-0: status") && !reported.message.is_empty(), "{reported:?}");
    assert_eq!(snapshot.pods[0].phase, PodPhase::Unknown);
    assert!(matches!(shown.seen("macbeth"), Observed::Ready(snapshot) if snapshot.unreadable.is_none()));
}

#[test]
fn an_object_of_nobody_or_of_kubernetes_own_controllers_is_not_kept() {
    let shown = Shown::nothing();
    let of_a_set = owned("hamlet-0", 3, ("apps/v1", "ReplicaSet", "hamlet"), "u");
    let of_nobody =
        json!({ "metadata": { "namespace": "ns", "name": "hamlet-1", "uid": "x", "resourceVersion": "4" } });
    assert_eq!((shown.has("Pod", &of_a_set), shown.has("Pod", &of_nobody)), (keys(&[]), keys(&[])));
    assert_eq!(shown.0.progress().iter().map(|watch| watch.objects).sum::<usize>(), 0);
}

// A plugin that serves the kind may be loaded when its children are listed already.
#[test]
fn an_object_of_a_custom_kind_that_nobody_serves_is_kept() {
    let shown = Shown::nothing();
    let of_another = owned("hamlet-0", 3, ("example.org/v1", "Tale", "hamlet"), "u");
    assert_eq!(shown.has("Pod", &of_another), keys(&[]), "it concerns no job");
    assert_eq!(shown.0.progress().iter().map(|watch| watch.objects).sum::<usize>(), 1);
}

#[test]
fn a_kind_that_nobody_serves_is_watched_until_its_last_job_has_ended() {
    let shown = Shown::nothing();
    shown.has("Tale", &tale("u", 2));
    let ended = json!({ "troupe": { "uid": "u", "finished": { "at": "2026-01-01T00:00:00Z", "outcome": "succeeded", "clean": "keep" } } });
    shown.0.change(|layout| {
        layout.route("tales", &Route::default());
        layout.remove(&digest());
    });
    let watch = shown.watch("Tale");
    assert_eq!((shown.0.prune(), shown.0.progress().len()), (keys(&[]), 4));
    shown.has("Tale", &with(tale("u", 3), "status", ended));
    let late = shown.decoded("Tale", &tale("u", 4));
    assert_eq!((shown.0.prune(), shown.0.progress().len()), (keys(&["hamlet"]), 0));
    assert!(matches!(shown.seen("hamlet"), Observed::Gone));
    assert_eq!(shown.0.upsert(watch, late), keys(&[]), "a watch that has ended changes nothing");
}
