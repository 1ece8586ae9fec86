//! What is done with objects of every kind.

use serde_json::{Value, json};

use super::step::*;

const WRONG_UID: &str = "00000000-0000-0000-0000-00000000000a";

pub(super) fn sequences() -> Vec<Sequence> {
    KINDS.into_iter().flat_map(|(kind, object)| of(kind, object)).collect()
}

fn of(kind: Kind, object: Make) -> Vec<Sequence> {
    let name = |what: &str| format!("{}: {what}", kind.kind);
    let labelled = |name: &str, value: &str| with(object(name), json!({"metadata": {"labels": {"set": value}}}));
    let label = |value: &str| json!({"metadata": {"labels": {"set": value}}});
    vec![
        sequence(
            name("created, read, listed, read as metadata"),
            [
                post(kind, object("a")),
                get(kind, "a"),
                list(kind, ""),
                get(kind, "a").metadata(),
                list(kind, "").metadata(),
                get(kind, "a").query("resourceVersion=0"),
            ],
        ),
        sequence(
            name("a taken name, no name, a bad name"),
            [
                post(kind, object("a")),
                post(kind, object("a")),
                post(kind, object("Not_Valid")),
                post(kind, with(object("a"), json!({"metadata": {"name": null}}))),
                post(kind, object(&"long".repeat(70))),
            ],
        ),
        sequence(
            name("nothing there"),
            [
                get(kind, "a"),
                list(kind, ""),
                list(kind, "").metadata(),
                merge(kind, "a", label("x")),
                json_patch(kind, "a", json!([])),
                delete(kind, "a", Value::Null),
                delete_all(kind, ""),
                get(kind, "a").metadata(),
            ],
        ),
        sequence(
            name("merge patches of metadata, with right and wrong versions"),
            [
                post(kind, object("a")),
                merge(kind, "a", label("x")),
                merge(kind, "a", label("x")),
                merge(kind, "a", with(label("y"), json!({"metadata": {"resourceVersion": "{{0.version}}"}}))),
                merge(kind, "a", with(label("y"), json!({"metadata": {"resourceVersion": "{{1.version}}"}}))),
                merge(kind, "a", json!({"metadata": {"labels": {"set": null}}})),
                merge(
                    kind,
                    "a",
                    json!({"metadata": {"annotations": {"troupe.dev/x": "1"}, "finalizers": ["troupe.dev/hold"]}}),
                ),
                merge(kind, "a", json!({"metadata": {"annotations": null, "finalizers": null}})),
                get(kind, "a"),
            ],
        ),
        sequence(
            name("merge patches of identity"),
            [
                post(kind, object("a")),
                merge(kind, "a", json!({"metadata": {"uid": WRONG_UID}})),
                merge(kind, "a", json!({"metadata": {"uid": "{{0.uid}}"}})),
                merge(kind, "a", json!({"metadata": {"name": "b"}})),
                merge(kind, "a", json!({"metadata": {"namespace": "elsewhere"}})),
                merge(kind, "a", json!({"metadata": {"creationTimestamp": "2020-02-02T02:02:02Z", "generation": 7}})),
                get(kind, "a"),
            ],
        ),
        sequence(
            name("JSON patches of metadata"),
            [
                post(kind, labelled("a", "x")),
                json_patch(
                    kind,
                    "a",
                    json!([
                        {"op": "test", "path": "/metadata/resourceVersion", "value": "{{0.version}}"},
                        {"op": "replace", "path": "/metadata/labels/set", "value": "y"},
                        {"op": "add", "path": "/metadata/annotations", "value": {"troupe.dev/x": "1"}},
                    ]),
                ),
                json_patch(kind, "a", json!([{"op": "remove", "path": "/metadata/annotations/troupe.dev~1x"}])),
                json_patch(kind, "a", json!([{"op": "test", "path": "/metadata/labels/set", "value": "x"}])),
                json_patch(kind, "a", json!([{"op": "remove", "path": "/metadata/annotations/none"}])),
                json_patch(kind, "a", json!([{"op": "replace", "path": "/metadata/labels/none", "value": "x"}])),
                get(kind, "a"),
            ],
        ),
        sequence(
            name("replaced, with and without versions"),
            [
                post(kind, object("a")),
                put(kind, "a", label("x")).onto(0),
                put(kind, "a", label("y")).onto(0),
                put(kind, "a", json!({"metadata": {"resourceVersion": null}})).onto(1),
                put(kind, "a", json!({"metadata": {"resourceVersion": "seven"}})).onto(1),
                get(kind, "a"),
                put(kind, "a", json!({})).onto(5),
                put(kind, "a", json!({"metadata": {"uid": WRONG_UID}})).onto(6),
                put(kind, "a", json!({"metadata": {"uid": null, "labels": {"set": "z"}}})).onto(6),
                put(kind, "b", json!({})).onto(6),
            ],
        ),
        sequence(
            name("deleted under preconditions"),
            [
                post(kind, object("a")),
                merge(kind, "a", label("x")),
                delete(kind, "a", json!({"preconditions": {"uid": WRONG_UID}})),
                delete(kind, "a", json!({"preconditions": {"resourceVersion": "{{0.version}}"}})),
                delete(
                    kind,
                    "a",
                    json!({"preconditions": {"uid": "{{0.uid}}", "resourceVersion": "{{1.version}}"},
                "propagationPolicy": "Background"}),
                ),
                get(kind, "a"),
                delete(kind, "a", json!({"preconditions": {"uid": "{{0.uid}}"}})),
                post(kind, object("a")),
                delete(kind, "a", json!({"preconditions": {"uid": "{{0.uid}}"}})),
            ],
        ),
        sequence(
            name("a deletion held by a finalizer, then released"),
            [
                post(
                    kind,
                    with(object("a"), json!({"metadata": {"finalizers": ["troupe.dev/one", "troupe.dev/two"]}})),
                ),
                delete(kind, "a", json!({"propagationPolicy": "Background"})),
                get(kind, "a"),
                delete(kind, "a", json!({"propagationPolicy": "Background"})),
                post(kind, object("a")),
                merge(kind, "a", label("x")),
                merge(kind, "a", json!({"metadata": {"finalizers": ["troupe.dev/two", "troupe.dev/three"]}})),
                merge(kind, "a", json!({"metadata": {"finalizers": ["troupe.dev/two"]}})),
                merge(kind, "a", json!({"metadata": {"deletionTimestamp": null}})),
                merge(kind, "a", json!({"metadata": {"finalizers": null}})),
                get(kind, "a"),
                post(kind, object("a")),
            ],
        ),
        sequence(
            name("watched while it is created, changed, released and deleted"),
            [
                post(kind, object("z")),
                post(kind, object("a")),
                merge(kind, "a", label("x")),
                merge(kind, "a", label("x")),
                merge(kind, "a", json!({"metadata": {"finalizers": ["troupe.dev/hold"]}})),
                delete(kind, "a", json!({"propagationPolicy": "Background"})),
                json_patch(kind, "a", json!([{"op": "remove", "path": "/metadata/finalizers"}])),
                post(kind, object("a")),
                delete(kind, "a", json!({"propagationPolicy": "Background"})),
                watch(kind, "resourceVersion={{0.version}}"),
                watch(kind, "resourceVersion={{3.version}}&allowWatchBookmarks=true").metadata(),
                watch(kind, "resourceVersion={{0.version}}&fieldSelector=metadata.name=a").metadata(),
            ],
        ),
        sequence(
            name("watched through a label selector that it enters and leaves"),
            [
                post(kind, object("z")),
                post(kind, labelled("a", "x")),
                merge(kind, "a", label("y")),
                merge(kind, "a", json!({"metadata": {"annotations": {"troupe.dev/x": "1"}}})),
                merge(kind, "a", label("x")),
                merge(kind, "a", json!({"metadata": {"annotations": {"troupe.dev/x": "2"}}})),
                post(kind, labelled("b", "y")),
                delete(kind, "a", json!({"propagationPolicy": "Background"})),
                watch(kind, "resourceVersion={{0.version}}&labelSelector=set=x"),
                watch(kind, "resourceVersion={{0.version}}&labelSelector=set=x&allowWatchBookmarks=true").metadata(),
                watch(kind, "resourceVersion={{0.version}}&labelSelector=set in (x,y)"),
            ],
        ),
        sequence(
            name("selected and read in pages"),
            [
                post(kind, labelled("a", "x")),
                post(kind, labelled("b", "y")),
                post(kind, labelled("c", "x")),
                post(kind, object("d")),
                list(kind, "labelSelector=set=x"),
                list(kind, "labelSelector=set!=x"),
                list(kind, "fieldSelector=metadata.name=b"),
                list(kind, "fieldSelector=metadata.name!=b&labelSelector=set"),
                list(kind, "limit=3"),
                list(kind, "limit=3&continue={{8.continue}}"),
                list(kind, "limit=1&labelSelector=set=x").metadata(),
                list(kind, "limit=1&labelSelector=set=x&continue={{10.continue}}").metadata(),
                list(kind, "limit=2").metadata(),
                delete_all(kind, "labelSelector=set=x&propagationPolicy=Background"),
                list(kind, "").metadata(),
            ],
        ),
    ]
}
