use super::*;
use crate::api::resource::Resource;
use crate::{job_key::GroupKind, observe::places::Places};
use decide::snapshot::{Job, PodPhase};
use serde_json::json;

fn spec(kind: &str, purpose: Purpose) -> WatchSpec {
    let resource = Resource::new("v1", kind, &format!("{}s", kind.to_lowercase()));
    WatchSpec { resource, selector: None, purpose, optional: false }
}

fn read(purpose: Purpose, kind: &str, object: &Value) -> Object {
    super::object(&object.to_string(), &spec(kind, purpose)).unwrap()
}

fn metadata_of(name: &str) -> Value {
    let owner =
        json!({ "apiVersion": "example.com/v1", "kind": "Tale", "name": "hamlet", "uid": "u", "controller": true });
    json!({ "name": name, "namespace": "ns", "uid": "x", "resourceVersion": "7", "ownerReferences": [owner] })
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!({ "x": inner }))
}

#[test]
fn of_a_job_that_is_nested_too_deep_everything_else_is_read() {
    let spec = json!({ "suspend": true, "odd": nested(120) });
    let object = json!({ "metadata": metadata_of("deep"), "spec": spec, "status": { "phase": "Running" } });
    let object = read(Purpose::Jobs(GroupKind::new("example.com", "Tale")), "Tale", &object);
    let Held::Job(packed) = &object.held else { panic!("a job") };
    let job = packed.unpacked();
    assert_eq!(
        (job.name.as_str(), &job.spec["suspend"], &job.status["phase"]),
        ("deep", &json!(true), &json!("Running"))
    );
    let wrong = object.unreadable.unwrap();
    assert_eq!(
        (wrong.path.as_str(), wrong.message.as_str()),
        ("spec.odd.x.x.x.x.x", "is nested deeper than 100 levels")
    );
}

#[test]
fn metadata_that_cannot_be_read_still_says_whose_the_object_is() {
    let mut metadata = metadata_of("odd");
    metadata["labels"] = json!({ "a": 5 });
    let object = read(Purpose::Pods(Places::default()), "Pod", &json!({ "metadata": metadata }));
    assert_eq!((object.namespace.as_str(), object.name.as_str(), object.resource_version), ("ns", "odd", 7));
    assert_eq!(object.owner.unwrap().uid, "u");
    assert_eq!(object.unreadable.unwrap().path, "Pod odd: metadata");
}

// Everybody who may create ConfigMaps decides how large those without an owner are.
#[test]
fn of_an_object_that_is_not_stored_no_field_is_decoded() {
    let keep = || ["/data"].into_iter().collect();
    let data = format!(r#"{{"many":[{}]}}"#, vec!["{}"; 500_000].join(","));
    let object = |owners: &str, purpose: Purpose| {
        let metadata =
            format!(r#"{{"name":"a","namespace":"ns","uid":"x","resourceVersion":"7","ownerReferences":{owners}}}"#);
        super::object(&format!(r#"{{"metadata":{metadata},"data":{data}}}"#), &spec("ConfigMap", purpose)).unwrap()
    };
    let owned_by = |api_version: &str, kind: &str| {
        json!([{ "apiVersion": api_version, "kind": kind, "name": "hamlet", "uid": "u", "controller": true }])
            .to_string()
    };
    let (nobodys, replica_sets) = ("[]".to_owned(), owned_by("apps/v1", "ReplicaSet"));
    for (owners, purpose) in [
        (&nobodys, Purpose::Children(keep())),
        (&replica_sets, Purpose::Children(keep())),
        (&replica_sets, Purpose::Dependents(keep())),
        (&nobodys, Purpose::Pods(keep())),
    ] {
        assert_eq!(object(owners, purpose).unreadable, None, "to decode it would take too much memory");
    }
    assert!(object(&owned_by("example.com/v1", "Tale"), Purpose::Children(keep())).unreadable.is_some());
    assert!(object(&owned_by("v1", "Pod"), Purpose::Dependents(keep())).unreadable.is_some());
}

#[test]
fn a_pod_has_what_its_framework_keeps_of_it() {
    let mut metadata = metadata_of("w-0");
    metadata["annotations"] = json!({ "rank": "7" });
    let status = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
    let keep = ["/metadata/annotations", "/status/conditions", "/spec/nowhere"];
    let object =
        read(Purpose::Pods(keep.into_iter().collect()), "Pod", &json!({ "metadata": metadata, "status": status }));
    let Held::Pod(pod) = object.held else { panic!("a pod") };
    assert_eq!(pod.fields["/metadata/annotations"], json!({ "rank": "7" }));
    assert_eq!(pod.fields["/status/conditions"], status["conditions"]);
    assert_eq!((pod.fields.len(), pod.ready, object.unreadable.is_none()), (2, true, true));
}

#[test]
fn a_pod_whose_status_cannot_be_read_is_there_and_in_no_known_phase() {
    let status = json!({ "phase": "Succeeded", "containerStatuses": [{ "name": "main", "restartCount": -1 }] });
    let object =
        read(Purpose::Pods(Places::default()), "Pod", &json!({ "metadata": metadata_of("odd"), "status": status }));
    let Held::Pod(pod) = object.held else { panic!("a pod") };
    assert_eq!((pod.phase, pod.owner_uid.as_str()), (PodPhase::Unknown, "u"));
    let wrong = object.unreadable.unwrap();
    assert_eq!(wrong.path, "Pod odd: status");
    assert!(wrong.message.starts_with("invalid value: integer `-1`"), "{}", wrong.message);
}

#[test]
fn of_a_child_only_what_is_kept_is_decoded() {
    let keep = ["/data", "/spec/size", "/spec/none"];
    let object =
        json!({ "metadata": metadata_of("c"), "data": { "a": "b" }, "spec": { "size": 3 }, "odd": nested(120) });
    let object = read(Purpose::Children(keep.into_iter().collect()), "ConfigMap", &object);
    let Held::Child(child) = object.held else { panic!("a child") };
    let fields = [("/data", json!({ "a": "b" })), ("/spec/size", json!(3))];
    assert_eq!(child.fields, fields.map(|(pointer, value)| (pointer.to_owned(), value)).into());
    assert_eq!(object.unreadable, None);
}

// As values, half a megabyte of this text would take five.
#[test]
fn of_a_child_whose_fields_take_too_much_memory_none_is_kept_and_its_job_says_so() {
    let data: BTreeMap<String, String> = (0..50_000).map(|number| (format!("{number:x}"), String::new())).collect();
    let keep = ["/data", "/spec/size"];
    let object = json!({ "metadata": metadata_of("c"), "data": data, "spec": { "size": 3 } });
    let object = read(Purpose::Children(keep.into_iter().collect()), "ConfigMap", &object);
    let Held::Child(child) = object.held else { panic!("a child") };
    assert_eq!(child.fields, BTreeMap::from([("/spec/size".to_owned(), json!(3))]));
    let wrong = object.unreadable.unwrap();
    assert_eq!(wrong.path, "ConfigMap c: data");
    assert!(wrong.message.ends_with("take more than 2 MiB of memory"), "{}", wrong.message);
}

// The API server limits the annotations of an object, and its labels not.
#[test]
fn a_job_with_very_many_labels_is_read_without_them_and_says_so() {
    let labels = |number| -> BTreeMap<String, String> {
        (0..number).map(|label| (format!("l{label}"), String::new())).collect()
    };
    let of = |labels: &BTreeMap<String, String>| {
        let mut metadata = metadata_of("wide");
        metadata["labels"] = json!(labels);
        metadata["annotations"] = json!({ "large": "x".repeat(256 << 10) });
        let object = json!({ "metadata": metadata, "spec": { "a": 1 } });
        let object = read(Purpose::Jobs(GroupKind::new("example.com", "Tale")), "Tale", &object);
        let Held::Job(packed) = &object.held else { panic!("a job") };
        (packed.job().labels.len(), packed.job().annotations.len(), object.unreadable.map(|wrong| wrong.message))
    };
    assert_eq!(of(&labels(1000)), (1000, 1, None));
    assert_eq!(of(&labels(10_000)), (0, 0, Some("has more than 512 KiB of labels, annotations and finalizers".into())));
}

// What a framework does not keep of its launcher is no matter of its size: a user may have thousands of variables there.
#[test]
fn only_what_is_kept_of_a_child_is_weighed() {
    let env: Vec<_> = (0..8000).map(|number| json!({ "name": format!("V{number}"), "value": "v" })).collect();
    let template = json!({ "spec": { "containers": [{ "env": env }], "nodeSelector": { "zone": "a" } } });
    let object = json!({ "metadata": metadata_of("l"), "spec": { "suspend": false, "template": template } });
    let keep = ["/spec/suspend", "/spec/template/spec/nodeSelector"];
    let object = read(Purpose::Children(keep.into_iter().collect()), "Job", &object);
    let Held::Child(child) = &object.held else { panic!("a child") };
    assert_eq!((object.unreadable.as_ref(), child.fields.len()), (None, 2));
}

// A list and a watch decode such a job in the same way, and nothing that reads it later fails.
#[test]
fn a_job_with_a_name_that_json_readers_reserve_is_reported_and_the_rest_of_it_is_read() {
    let odd = json!({ "$serde_json::private::RawValue": 7, "z": 1 });
    for section in ["spec", "status"] {
        let mut object = json!({ "metadata": metadata_of("odd"), "spec": { "a": 1 }, "status": { "b": 2 } });
        object[section]["x"] = odd.clone();
        let purpose = || Purpose::Jobs(GroupKind::new("example.com", "Tale"));
        let listed = json!({ "metadata": { "resourceVersion": "9" }, "items": [object] }).to_string();
        let listed = page(&listed, &spec("Tale", purpose())).unwrap().items.remove(0);
        assert_eq!(listed, read(purpose(), "Tale", &object));
        let Held::Job(packed) = &listed.held else { panic!("a job") };
        let mut job = packed.unpacked();
        let both = [&mut job.spec, &mut job.status].map(|part| part["x"].take());
        assert!(both.contains(&json!({ "z": 1 })), "{both:?}");
        assert_eq!((&job.spec["a"], &job.status["b"]), (&json!(1), &json!(2)));
        assert_eq!(listed.unreadable.unwrap().path, format!("{section}.x"));
    }
}

#[test]
fn what_the_ledger_of_a_job_says_is_known_of_all_jobs_without_reading_their_statuses() {
    let digest = "a".repeat(64);
    let recorded = |ledger: Value| {
        let object = json!({ "metadata": metadata_of("hamlet"), "status": { "phase": "x", "troupe": ledger } });
        let object = read(Purpose::Jobs(GroupKind::new("example.com", "Tale")), "Tale", &object);
        let Held::Job(packed) = object.held else { panic!("a job") };
        let Recorded { digest, is_unplanned, is_unwritten, has_ended } = packed.recorded().clone();
        (digest.map(|digest| digest.to_string()), is_unplanned, is_unwritten, has_ended)
    };
    let nothing = (None, true, true, false);
    assert_eq!(recorded(json!(null)), nothing);
    assert_eq!(recorded(json!([7])), nothing);
    assert_eq!(recorded(json!({ "uid": "another", "digest": digest, "headline": "Running" })), nothing);
    assert_eq!(
        recorded(json!({ "uid": "x", "digest": digest, "headline": "Running" })),
        (Some(digest), false, false, false)
    );
    assert_eq!(recorded(json!({ "uid": "x", "digest": "none", "headline": "" })), (None, false, true, false));
    let finished = json!({ "at": "2026-01-01T00:00:00Z", "outcome": "succeeded", "clean": "keep" });
    assert_eq!(recorded(json!({ "uid": "x", "headline": "x", "finished": finished })), (None, true, false, true));
}

#[test]
fn an_object_that_has_no_name_is_an_error() {
    for text in ["7", "{}", r#"{"metadata":null}"#, r#"{"metadata":{"name":7}}"#, "{"] {
        assert!(super::object(text, &spec("Pod", Purpose::Pods(Places::default()))).is_err(), "{text}");
    }
}

// MarkPodsNotReady of the node lifecycle controller turns Ready to False, and leaves its reason and the containers alone.
#[test]
fn a_pod_is_on_a_lost_node_where_only_its_condition_says_that_it_is_not_ready() {
    let since = |reason: &str, container_is_ready: bool, of_pod: &str| {
        let ready = json!({
            "type": "Ready", "status": "False", "reason": reason, "lastTransitionTime": "2026-01-02T03:04:05Z",
        });
        let main = json!({ "name": "main", "ready": container_is_ready });
        let status =
            json!({ "phase": "Running", "reason": of_pod, "conditions": [ready], "containerStatuses": [main] });
        let object =
            read(Purpose::Pods(Places::default()), "Pod", &json!({ "metadata": metadata_of("w-0"), "status": status }));
        let Held::Pod(pod) = object.held else { panic!("a pod") };
        pod.node_lost.map(|at| at.to_string())
    };
    let then = Some("2026-01-02T03:04:05Z".to_owned());
    assert_eq!(since("", true, ""), then);
    assert_eq!(since("", false, "NodeLost"), then);
    for (reason, container_is_ready) in [("ContainersNotReady", false), ("ReadinessGatesNotReady", true), ("", false)] {
        assert_eq!(since(reason, container_is_ready, ""), None, "{reason}");
    }
}

#[test]
fn a_pod_with_scheduling_gates_is_seen_with_their_names() {
    let condition =
        json!({ "type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "gated" });
    let spec = json!({ "schedulingGates": [{ "name": "example.org/quota" }, { "name": "example.org/data" }] });
    let status = json!({ "phase": "Pending", "conditions": [condition] });
    let object = read(
        Purpose::Pods(Places::default()),
        "Pod",
        &json!({ "metadata": metadata_of("w"), "spec": spec, "status": status }),
    );
    let Held::Pod(pod) = object.held else { panic!("a pod") };
    assert_eq!(pod.unscheduled.as_ref().unwrap().message, "example.org/quota, example.org/data");
}

fn purposes() -> [Purpose; 3] {
    [
        Purpose::Jobs(GroupKind::new("example.com", "Tale")),
        Purpose::Pods(Places::default()),
        Purpose::Children(Places::default()),
    ]
}

/// Returns the object in a form that does not depend on how a job's text is written.
fn comparable(object: Object) -> (Object, Option<Job>) {
    let Held::Job(packed) = &object.held else { return (object, None) };
    let (job, nothing) = (packed.unpacked(), read_pod("{}").unwrap());
    (Object { held: Held::Pod(nothing.into()), ..object }, Some(job))
}

#[test]
fn a_page_is_decoded_in_one_scan_with_the_same_result_as_section_by_section() {
    let good = [
        json!({ "metadata": metadata_of("a"), "spec": { "b": [1, -2, 3.5, "x\n\u{1F600}"] }, "status": { "phase": "Running" } }),
        json!({ "metadata": metadata_of("b"), "spec": null, "apiVersion": "v1", "odd": nested(120) }),
        json!({ "metadata": metadata_of("c"), "spec": { "nodeName": "n" }, "status": null }),
    ];
    let odd = [
        json!({ "metadata": metadata_of("deep"), "spec": { "odd": nested(120) } }),
        json!({ "metadata": metadata_of("list"), "spec": [1], "status": "x" }),
        json!({ "metadata": { "name": "labels", "labels": { "a": 5 } } }),
        json!({ "metadata": metadata_of("pod"), "status": { "podIP": 7 } }),
        json!({ "metadata": { "uid": "nobody" } }),
    ];
    for purpose in purposes() {
        let spec = spec("Tale", purpose);
        let page = |items: &[Value]| json!({ "metadata": { "resourceVersion": "9" }, "items": items }).to_string();
        assert!(page_at_once(&page(&good), &spec).is_some(), "{spec:?}");
        let all: Vec<_> = good.iter().chain(&odd).cloned().collect();
        assert!(page_at_once(&page(&all), &spec).is_none(), "{spec:?}");
        for items in [&good[..], &all] {
            let alone = items.iter().filter_map(|item| by_section(&item.to_string(), &spec).ok());
            let alone: Vec<_> = alone.filter(Object::has_name).map(comparable).collect();
            let read = super::page(&page(items), &spec).unwrap();
            assert_eq!(read.items.into_iter().map(comparable).collect::<Vec<_>>(), alone);
            let each = items.iter().filter_map(|item| super::object(&item.to_string(), &spec).ok());
            assert_eq!(each.map(comparable).collect::<Vec<_>>(), alone);
        }
    }
}

// Such a text could not be decoded again when its job is decided.
#[test]
fn a_spec_that_is_no_json_is_not_kept_as_text() {
    let jobs = || spec("Tale", Purpose::Jobs(GroupKind::new("example.com", "Tale")));
    for part in [r#"{"a":"\ud800"}"#, r#"{"a":1e999}"#] {
        let text = format!(r#"{{"metadata":{{"name":"odd"}},"spec":{part}}}"#);
        let read = super::object(&text, &jobs()).unwrap();
        assert_eq!(read.unreadable.as_ref().unwrap().path, "spec", "{part}");
        let Held::Job(packed) = read.held else { panic!("a job") };
        assert_eq!(packed.unpacked().spec, json!({}));
    }
}
