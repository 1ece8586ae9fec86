//! Lists and watches that need no kind in particular.

use serde_json::{Value, json};

use super::step::*;

pub(super) fn sequences() -> Vec<Sequence> {
    let labelled =
        |name: &str, labels: Value| post(CONFIG_MAPS, with(config_map(name), json!({"metadata": {"labels": labels}})));
    let three = || {
        [labelled("a", json!({"x": "1", "y": "1"})), labelled("b", json!({"x": "2"})), labelled("c", json!({"y": ""}))]
    };
    let select = |selector: &str| list(CONFIG_MAPS, &format!("labelSelector={selector}")).metadata();
    let selectors = [
        "x=1",
        "x==1",
        "x!=1",
        "x in (1,2)",
        "x in (2)",
        "x notin (1)",
        "x",
        "!x",
        "x,y",
        "x=1,y=1",
        "x,!y",
        "y=",
        "y in ()",
        "x in (1, 2),y notin (2)",
        "x in(1)",
        " x = 1 ",
        "x notin (1,2),y",
    ];
    let bad = ["x y", "x=1=2", "=1", "x in 1", "x in (1", "x>", "!", "a/b/c=1", "x=not valid", "x,", ",x", "x=-"];
    let fields = [
        "metadata.name=a",
        "metadata.name==a",
        "metadata.name!=a",
        "metadata.namespace=nowhere",
        "metadata.name=a,metadata.namespace={{namespace}}",
        "data.a=1",
        "metadata.name",
        "metadata.labels=x",
    ];
    vec![
        sequence("label selectors", three().into_iter().chain(selectors.map(select))),
        sequence("bad label selectors", bad.map(|selector| list(CONFIG_MAPS, &format!("labelSelector={selector}")))),
        sequence(
            "bad label selectors of a custom kind",
            bad.map(|selector| list(PADDLE_JOBS, &format!("labelSelector={selector}"))),
        ),
        sequence(
            "field selectors",
            three().into_iter().chain(fields.map(|field| list(CONFIG_MAPS, &format!("fieldSelector={field}")))),
        ),
        sequence(
            "field selectors of a custom kind",
            fields.map(|field| list(PADDLE_JOBS, &format!("fieldSelector={field}"))),
        ),
        sequence(
            "field selectors of pods",
            [
                post(PODS, pod("a")),
                post(PODS, bound_pod("b")),
                list(PODS, "fieldSelector=spec.nodeName=nowhere").metadata(),
                list(PODS, "fieldSelector=spec.nodeName=").metadata(),
                list(PODS, "fieldSelector=status.phase=Pending,metadata.name!=a").metadata(),
                list(PODS, "fieldSelector=spec.restartPolicy=Always").metadata(),
                list(PODS, "fieldSelector=spec.color=red"),
            ],
        ),
        sequence(
            "all namespaces",
            [
                labelled("a", json!({"conformance": "all-namespaces"})),
                labelled("b", json!({"conformance": "all-namespaces"})),
                list(CONFIG_MAPS, "labelSelector=conformance=all-namespaces").within(""),
                list(CONFIG_MAPS, "labelSelector=conformance=all-namespaces&limit=1").within("").metadata(),
                watch(CONFIG_MAPS, "labelSelector=conformance=all-namespaces&resourceVersion={{0.version}}").within(""),
            ],
        ),
        sequence(
            "pages of a list that goes on",
            [
                post(CONFIG_MAPS, config_map("a")),
                post(CONFIG_MAPS, config_map("b")),
                post(CONFIG_MAPS, config_map("d")),
                list(CONFIG_MAPS, "limit=1"),
                post(CONFIG_MAPS, config_map("c")),
                delete(CONFIG_MAPS, "b", Value::Null),
                list(CONFIG_MAPS, "limit=1&continue={{3.continue}}"),
                list(CONFIG_MAPS, "limit=10&continue={{6.continue}}"),
                list(CONFIG_MAPS, "limit=10"),
            ],
        ),
        sequence(
            "pages of custom resources",
            [
                post(PADDLE_JOBS, paddle_job("a")),
                post(PADDLE_JOBS, paddle_job("b")),
                list(PADDLE_JOBS, "limit=1"),
                list(PADDLE_JOBS, "limit=1&continue={{2.continue}}"),
                list(PADDLE_JOBS, "limit=1").metadata(),
                list(PADDLE_JOBS, "resourceVersion=0").metadata(),
            ],
        ),
        sequence(
            "versions that are no numbers",
            [
                list(CONFIG_MAPS, "resourceVersion=seven"),
                watch(CONFIG_MAPS, "resourceVersion=seven"),
                get(CONFIG_MAPS, "a").query("resourceVersion=seven"),
                list(PADDLE_JOBS, "resourceVersion=seven"),
                watch(PADDLE_JOBS, "resourceVersion=seven"),
            ],
        ),
        sequence(
            "a watch that begins with what there is",
            [
                post(CONFIG_MAPS, config_map("b")),
                post(CONFIG_MAPS, config_map("a")),
                watch(CONFIG_MAPS, ""),
                watch(CONFIG_MAPS, "resourceVersion=0"),
                watch(CONFIG_MAPS, "fieldSelector=metadata.name=b"),
                watch(CONFIG_MAPS, "").metadata(),
                post(PADDLE_JOBS, paddle_job("a")),
                watch(PADDLE_JOBS, ""),
                watch(PADDLE_JOBS, "").metadata(),
            ],
        ),
        sequence(
            "a watch that tells the end of its initial events",
            [
                post(CONFIG_MAPS, config_map("a")),
                post(PADDLE_JOBS, paddle_job("a")),
                watch(CONFIG_MAPS, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"),
                watch(PADDLE_JOBS, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
                    .metadata(),
            ],
        ),
        sequence(
            "bad watches",
            [
                watch(CONFIG_MAPS, "labelSelector=x y"),
                watch(PADDLE_JOBS, "fieldSelector=spec.color=red"),
                watch(Kind { plural: "things", ..PADDLE_JOBS }, ""),
            ],
        ),
        sequence(
            "a watch of statuses and generations",
            [
                post(MPI_JOBS, mpi_job("a")),
                merge(MPI_JOBS, "a", json!({"status": {"startTime": "2020-02-02T02:02:02Z"}})).status(),
                merge(MPI_JOBS, "a", json!({"spec": {"slotsPerWorker": 2}})),
                merge(MPI_JOBS, "a", json!({"metadata": {"labels": {"a": "x"}}})),
                delete(MPI_JOBS, "a", Value::Null),
                watch(MPI_JOBS, "resourceVersion={{0.version}}"),
                watch(MPI_JOBS, "resourceVersion={{0.version}}").metadata(),
                watch(MPI_JOBS, "resourceVersion={{2.version}}&labelSelector=a=x"),
            ],
        ),
    ]
}
