//! The admin port on an address that others reach: by HTTPS alone, and each reads what the API server lets him read.

use super::{
    deploy::{self, HOST},
    jobs::paddle,
    objects::{Kind, Namespace, PADDLE_JOBS, SOON},
};
use crate::{operator::Operator, recording::documented};
use harness::{ControlPlane, Options, certificate, until};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

const ROLES: Kind = Kind::new("apis/rbac.authorization.k8s.io/v1", "roles");
const BINDINGS: Kind = Kind::new("apis/rbac.authorization.k8s.io/v1", "rolebindings");
const CLUSTER_ROLES: Kind = Kind::new("apis/rbac.authorization.k8s.io/v1", "clusterroles");
const CLUSTER_BINDINGS: Kind = Kind::new("apis/rbac.authorization.k8s.io/v1", "clusterrolebindings");

fn binding(user: &str, kind: &str) -> Value {
    let group = "rbac.authorization.k8s.io";
    json!({ "metadata": { "name": user }, "roleRef": { "apiGroup": group, "kind": kind, "name": user },
        "subjects": [{ "apiGroup": group, "kind": "User", "name": user }] })
}

/// `reader` may read the PaddleJobs of this namespace, `scraper` what Prometheus reads.
async fn give_rights(jobs: &Namespace) {
    let reads =
        json!({ "apiGroups": ["batch.paddlepaddle.org"], "resources": ["paddlejobs"], "verbs": ["get", "list"] });
    jobs.create(&ROLES, &json!({ "metadata": { "name": "reader" }, "rules": [reads] })).await;
    jobs.create(&BINDINGS, &binding("reader", "Role")).await;
    let scrapes = json!({ "nonResourceURLs": ["/metrics"], "verbs": ["get"] });
    jobs.create_in_cluster(&CLUSTER_ROLES, &json!({ "metadata": { "name": "scraper" }, "rules": [scrapes] })).await;
    jobs.create_in_cluster(&CLUSTER_BINDINGS, &binding("scraper", "ClusterRole")).await;
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn the_admin_port_shows_each_what_the_api_server_lets_him_read() {
    let options = Options::default().fake_nodes(1).actor(HOST).limited(HOST).crds(install::crds::all());
    let options = options.actor("reader").limited("reader").actor("scraper").limited("scraper");
    let plane = ControlPlane::start(options).await.unwrap();
    deploy::give_rights(&plane.client("admin").await.unwrap()).await;
    deploy::apply(&plane.client("admin").await.unwrap(), "fence.yaml").await;
    let jobs = Namespace::create_in(plane.client("user").await.unwrap(), "jobs").await;
    give_rights(&jobs).await;
    let mut wide = paddle("wide").worker(1).manifest;
    wide["spec"]["worker"]["template"]["spec"]["containers"][0]["env"] =
        json!([{ "name": "PASSWORD", "value": "hunter2" }]);
    jobs.create(&PADDLE_JOBS, &wide).await;
    let folder = plane.dir().join("admin");
    std::fs::create_dir_all(&folder).unwrap();
    let (certificate, key) = certificate(&folder).unwrap();
    let operator = Operator::start_reviewed(&plane, HOST, &certificate, &key).await;
    let path = "/jobs/paddlejobs/jobs/wide";
    until(SOON, "a pass over the job", || async {
        Ok((operator.read(path, Some("admin")).await?.0 == 200).then_some(()))
    })
    .await
    .unwrap();

    for (reader, path, code) in [
        (None, "/healthz", 200),
        (None, "/readyz", 200),
        (None, "/metrics", 401),
        (None, "/jobs", 401),
        (None, path, 401),
        (None, "/jobs/paddlejobs/jobs/nobodys", 401),
        (None, "/jobs/pods/jobs/wide", 401),
        (None, "/recording", 401),
        (Some("made-up"), path, 401),
        (Some("reader"), path, 200),
        (Some("reader"), "/jobs/paddlejobs/jobs/nobodys", 404),
        (Some("reader"), "/jobs/paddlejobs/default/wide", 403),
        (Some("reader"), "/jobs/mpijobs/jobs/wide", 403),
        (Some("reader"), "/jobs", 403),
        (Some("reader"), "/jobs?namespace=jobs", 200),
        (Some("reader"), "/recording", 403),
        (Some("reader"), "/metrics", 403),
        (Some("scraper"), "/metrics", 200),
        (Some("scraper"), path, 403),
        (Some("admin"), "/jobs", 200),
        (Some("admin"), "/recording", 200),
    ] {
        let (answered, text) = operator.read(path, reader).await.unwrap();
        assert_eq!(answered, code, "{reader:?} {path}: {text}");
    }
    let (_, refusal) = operator.read("/recording", Some("reader")).await.unwrap();
    assert_eq!(refusal, "reader may not get the path /recording (nonResourceURLs of a ClusterRole)");

    let (_, pass) = operator.read(path, Some("reader")).await.unwrap();
    let (_, recording) = operator.read("/recording", Some("admin")).await.unwrap();
    for shown in [&pass, &recording] {
        assert!(shown.contains("PASSWORD") && shown.contains("REDACTED") && !shown.contains("hunter2"), "{shown}");
    }
    let (_, whole) = operator.read(&format!("{path}?env=true"), Some("reader")).await.unwrap();
    assert!(whole.contains("hunter2") && !whole.contains("REDACTED"), "{whole}");
    let (_, listed) = operator.read("/jobs?namespace=jobs", Some("reader")).await.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&listed).unwrap(), json!({ "jobs": [path] }));

    if !cfg!(lacks_curl) {
        let documented = documented::command("curl --insecure").replace("READER", "admin").replace("HOST", "localhost");
        let at = ("localhost:8443", operator.admin_address());
        let fetched = spawn_blocking(move || documented::run(&documented, "cluster", at).1).await.unwrap();
        assert!(fetched.contains("PASSWORD") && fetched.contains("REDACTED"), "{fetched}");
    }

    for _ in 0..50 {
        assert_eq!(operator.read(path, Some("reader")).await.unwrap().0, 200);
    }
    assert!(operator.admin("/healthz").await.is_err(), "plain HTTP is not answered");
    operator.stop().await;
    let reviews = plane.audit().unwrap().into_iter().filter(|record| record.resource == "tokenreviews");
    // Above there are about forty rights of four readers.
    let count = reviews.count();
    assert!(count < 70, "a verdict is remembered for a while: {count} reviews");
}
