//! The host with the least rights that `deploy/` gives it, and the walls of the API server around it and its users.

use super::{
    deploy::{self, HOST},
    jobs::{mpi, paddle},
    objects::{BATCH_JOBS, CONFIG_MAPS, Kind, MPI_JOBS, Namespace, PADDLE_JOBS, PODS, SOON, at, owner, text},
};
use crate::operator::Operator;
use harness::{ControlPlane, Options, until};
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};

const SERVICE_ACCOUNTS: Kind = Kind::new("api/v1", "serviceaccounts");
const ROLES: Kind = Kind::new("apis/rbac.authorization.k8s.io/v1", "roles");
const BINDINGS: Kind = Kind::new("apis/rbac.authorization.k8s.io/v1", "rolebindings");

/// The answer's code, and the words of a refusal.
async fn ask(client: &Client, method: Method, path: &str, body: &Value) -> (u16, String) {
    let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let body = if body.is_null() { vec![] } else { serde_json::to_vec(body).unwrap() };
    let request = Request::builder().method(method).uri(path).header("content-type", kind).body(body).unwrap();
    match client.request::<Value>(request).await {
        Ok(_) => (200, String::new()),
        Err(kube::Error::Api(status)) => (status.code, status.message),
        Err(error) => panic!("{path}: {error}"),
    }
}

/// Requests that the host has no right to make.
fn forbidden() -> Vec<(Method, String, Value)> {
    use Method as M;
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let binding = |kind: &str| {
        json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": { "name": "more" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" } })
    };
    let all = [json!({ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] })];
    vec![
        (M::GET, "/api/v1/secrets".into(), json!(null)),
        (M::GET, "/api/v1/namespaces/jobs/secrets".into(), json!(null)),
        (M::GET, "/api/v1/namespaces/troupe-system/secrets".into(), json!(null)),
        (M::PATCH, "/api/v1/namespaces/jobs/secrets/pi-ssh".into(), json!({ "data": {} })),
        (M::DELETE, "/api/v1/namespaces/jobs/secrets/pi-ssh".into(), json!(null)),
        (M::GET, "/api/v1/namespaces/jobs/pods/pi-worker-0/exec?command=id&stdout=true".into(), json!(null)),
        (M::GET, "/api/v1/namespaces/jobs/pods/pi-worker-0/log".into(), json!(null)),
        (M::POST, "/api/v1/namespaces/jobs/pods/pi-worker-0/eviction".into(), json!({})),
        (
            M::PATCH,
            "/api/v1/namespaces/jobs/pods/pi-worker-0".into(),
            json!({ "metadata": { "labels": { "a": "b" } } }),
        ),
        (M::PATCH, "/api/v1/namespaces/jobs/pods/pi-worker-0/ephemeralcontainers".into(), json!({})),
        (M::GET, "/api/v1/nodes".into(), json!(null)),
        (M::PATCH, "/api/v1/nodes/n".into(), json!({})),
        (M::GET, "/api/v1/namespaces".into(), json!(null)),
        (M::POST, "/api/v1/namespaces".into(), json!({ "metadata": { "name": "mine" } })),
        (M::POST, "/api/v1/namespaces/jobs/serviceaccounts".into(), json!({ "metadata": { "name": "mine" } })),
        (M::POST, "/api/v1/namespaces/troupe-system/serviceaccounts/troupe/token".into(), json!({ "spec": {} })),
        (M::POST, format!("{rbac}/clusterrolebindings"), binding("ClusterRoleBinding")),
        (M::POST, format!("{rbac}/namespaces/jobs/rolebindings"), binding("RoleBinding")),
        (M::PATCH, format!("{rbac}/clusterroles/troupe-host"), json!({ "rules": all })),
        (M::GET, "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations".into(), json!(null)),
        (
            M::DELETE,
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/troupe-fence".into(),
            json!(null),
        ),
        (M::DELETE, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/mpijobs.kubeflow.org".into(), json!(null)),
        (M::DELETE, "/api/v1/namespaces/jobs/configmaps/theirs".into(), json!(null)),
        (M::POST, "/apis/apps/v1/namespaces/jobs/deployments".into(), json!({ "metadata": { "name": "mine" } })),
        (M::POST, "/apis/batch.tutorial.kubebuilder.io/v1/namespaces/jobs/cronjobs".into(), json!({})),
        (M::DELETE, "/apis/batch.tutorial.kubebuilder.io/v1/namespaces/jobs/cronjobs/nightly".into(), json!(null)),
        (M::PATCH, "/apis/kubeflow.org/v2beta1/namespaces/jobs/mpijobs/pi".into(), json!({ "spec": {} })),
        (M::PATCH, "/apis/troupe.dev/v1alpha1/plugins/p".into(), json!({ "spec": {} })),
    ]
}

/// A pod with this merged into its spec and its container, that has the job for its controller.
fn pod(job: &Value, name: &str, spec: &Value, container: &Value) -> Value {
    let mut whole = json!({ "name": "c", "image": "i" });
    for (field, value) in container.as_object().unwrap() {
        whole[field] = value.clone();
    }
    let mut pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "ownerReferences": owner(job) },
        "spec": { "containers": [whole] } });
    for (field, value) in spec.as_object().unwrap() {
        pod["spec"][field] = value.clone();
    }
    pod
}

/// A kind of somebody else's.
fn definition() -> Value {
    let schema = json!({ "openAPIV3Schema": { "type": "object" } });
    json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.example.org" },
        "spec": { "group": "example.org", "scope": "Namespaced",
            "names": { "kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }] } })
}

/// Waits until the policies are in force, which takes the API server a moment.
async fn fenced(client: &Client) {
    let stray = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "stray" },
        "spec": { "containers": [{ "name": "c", "image": "i" }] } });
    until(SOON, "the fence to be in force", || async {
        let (code, why) = ask(client, Method::POST, "/api/v1/namespaces/jobs/pods?dryRun=All", &stray).await;
        Ok((code != 200 && why.contains("has a job for its controller")).then_some(()))
    })
    .await
    .unwrap();
}

/// The host has the rights for all of this; the fence denies it, by its own words.
async fn the_fence_holds(host: &Client, jobs: &Namespace, job: &Value) {
    let pods = "/api/v1/namespaces/jobs/pods?dryRun=All";
    let security = |value: Value| json!({ "securityContext": value });
    let volume = json!({ "volumes": [{ "name": "v", "hostPath": { "path": "/etc" } }] });
    let sysctls = json!([{ "name": "net.ipv4.ip_local_port_range", "value": "1 2" }]);
    let mut stranger = pod(job, "x", &json!({}), &json!({}));
    stranger["metadata"]["ownerReferences"][0]["kind"] = json!("ReplicaSet");
    let denied = [
        (pod(job, "x", &json!({ "hostPID": true }), &json!({})), "hostPID"),
        (pod(job, "x", &json!({ "hostIPC": true }), &json!({})), "hostIPC"),
        (pod(job, "x", &volume, &json!({})), "hostPath"),
        (
            pod(
                job,
                "x",
                &json!({ "initContainers": [{ "name": "i", "image": "i",
            "securityContext": { "privileged": true } }] }),
                &json!({}),
            ),
            "privileged",
        ),
        (pod(job, "x", &json!({}), &security(json!({ "privileged": true }))), "privileged"),
        (pod(job, "x", &json!({}), &security(json!({ "capabilities": { "add": ["SYS_ADMIN"] } }))), "capability"),
        (pod(job, "x", &json!({ "hostUsers": false }), &security(json!({ "procMount": "Unmasked" }))), "procMount"),
        (pod(job, "x", &json!({ "securityContext": { "sysctls": sysctls } }), &json!({})), "sysctl"),
        (pod(job, "x", &json!({}), &security(json!({ "seccompProfile": { "type": "Unconfined" } }))), "seccomp"),
        (pod(job, "x", &json!({}), &security(json!({ "appArmorProfile": { "type": "Unconfined" } }))), "AppArmor"),
        (stranger, "has a job for its controller"),
    ];
    // It makes the runs of CronJobs, and no other jobs.
    let jobs_of_mpi = "/apis/kubeflow.org/v2beta1/namespaces/jobs/mpijobs?dryRun=All";
    let (code, why) = ask(host, Method::POST, jobs_of_mpi, &mpi("mine").manifest).await;
    assert!(code == 422 && why.contains("has a job for its controller"), "{code} {why}");
    for (pod, words) in denied {
        let (code, why) = ask(host, Method::POST, pods, &pod).await;
        assert!(code == 422 && why.contains("troupe-fence") && why.contains(words), "{code} {why}: {pod}");
    }
    let template = json!({ "metadata": {}, "spec": { "restartPolicy": "Never", "hostPID": true,
        "containers": [{ "name": "c", "image": "i" }] } });
    let batch = json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "x", "ownerReferences": owner(job) },
        "spec": { "template": template } });
    let map = |name: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } });
    let elsewhere = [
        (Method::POST, "/apis/batch/v1/namespaces/jobs/jobs?dryRun=All", batch, "hostPID"),
        (Method::POST, "/api/v1/namespaces/jobs/configmaps", map("mine"), "has a job for its controller"),
        (Method::POST, "/api/v1/namespaces/troupe-system/configmaps", map("mine"), "has a job for its controller"),
        (
            Method::PATCH,
            "/api/v1/namespaces/troupe-system/configmaps/troupe-fence",
            json!({ "data": { "privileged": "true" } }),
            "the host changes jobs",
        ),
        (
            Method::PATCH,
            "/api/v1/namespaces/jobs/configmaps/theirs",
            json!({ "data": { "a": "b" } }),
            "the host changes jobs",
        ),
        (Method::DELETE, "/api/v1/namespaces/jobs/pods/theirs", json!(null), "the host deletes jobs"),
        (
            Method::PATCH,
            "/apis/batch.paddlepaddle.org/v1/namespaces/jobs/paddlejobs/wide",
            json!({ "spec": { "cleanPodPolicy": "Never" } }),
            "the spec of a job is its user's",
        ),
        (
            Method::POST,
            "/api/v1/namespaces/kube-system/pods",
            pod(job, "x", &json!({}), &json!({})),
            "nothing in kube-system",
        ),
        (
            Method::POST,
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            definition(),
            "has a job for its controller",
        ),
        (
            Method::POST,
            "/api/v1/namespaces/jobs/services?dryRun=All",
            service(job, &json!({ "type": "NodePort" })),
            "this type of Service",
        ),
        (
            Method::POST,
            "/api/v1/namespaces/jobs/services?dryRun=All",
            service(job, &json!({ "type": "ExternalName", "externalName": "example.org" })),
            "this type of Service",
        ),
        (
            Method::POST,
            "/api/v1/namespaces/jobs/services?dryRun=All",
            service(job, &json!({ "externalIPs": ["192.0.2.1"] })),
            "externalIPs of a Service",
        ),
    ];
    for (method, path, body, words) in elsewhere {
        let (code, why) = ask(host, method, path, &body).await;
        assert!([403, 422].contains(&code) && why.contains(words), "{path}: {code} {why}");
    }
    assert_eq!(jobs.names(&CONFIG_MAPS).await.unwrap(), ["theirs"]);
}

/// A Service with this merged into its spec, that has the job for its controller.
fn service(job: &Value, spec: &Value) -> Value {
    let mut whole = json!({ "ports": [{ "port": 1 }] });
    for (field, value) in spec.as_object().unwrap() {
        whole[field] = value.clone();
    }
    json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "x", "ownerReferences": owner(job) }, "spec": whole })
}

/// What users can give their own pods goes through, until the parameters say which accounts, Secrets, nodes, tolerations and
/// priorities it may be.
async fn the_fence_can_be_narrowed(host: &Client, admin: &Client, jobs: &Namespace, job: &Value) {
    for name in ["builder", "trainer"] {
        jobs.create(&SERVICE_ACCOUNTS, &json!({ "metadata": { "name": name } })).await;
    }
    let pods = "/api/v1/namespaces/jobs/pods?dryRun=All";
    let pod = |spec: Value, container: Value| pod(job, "x", &spec, &container);
    let volume = |volume: Value| {
        let mut volume = volume;
        volume["name"] = json!("v");
        pod(json!({ "volumes": [volume] }), json!({}))
    };
    let projected = |source: Value| volume(json!({ "projected": { "sources": [source] } }));
    let variable = |secret: &str| {
        let from = json!({ "secretKeyRef": { "name": secret, "key": "k" } });
        pod(json!({}), json!({ "env": [{ "name": "A", "valueFrom": from }] }))
    };
    let fields = json!([{ "key": "metadata.name", "operator": "In", "values": ["n2"] }]);
    let terms = json!({ "nodeSelectorTerms": [{ "matchFields": fields }] });
    let affinity = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": terms } });
    let cases = [
        (pod(json!({ "serviceAccountName": "builder" }), json!({})), "this service account"),
        (volume(json!({ "secret": { "secretName": "theirs" } })), "a volume of this Secret"),
        (projected(json!({ "secret": { "name": "theirs" } })), "a volume of this Secret"),
        (variable("theirs"), "a variable of this Secret"),
        (pod(json!({}), json!({ "envFrom": [{ "secretRef": { "name": "theirs" } }] })), "a variable of this Secret"),
        (pod(json!({ "nodeName": "n2" }), json!({})), "the name of this node"),
        (pod(json!({ "affinity": affinity }), json!({})), "an affinity to the name of this node"),
        (pod(json!({ "tolerations": [{ "operator": "Exists" }] }), json!({})), "this toleration"),
        (pod(json!({ "tolerations": [{ "key": "other", "operator": "Exists" }] }), json!({})), "this toleration"),
        (pod(json!({ "priorityClassName": "system-cluster-critical" }), json!({})), "this priority class"),
    ];
    for (pod, words) in &cases {
        assert_eq!(ask(host, Method::POST, pods, pod).await, (200, String::new()), "by default, {words}: {pod}");
    }
    let says = async |data: Value| {
        let parameters = "/api/v1/namespaces/troupe-system/configmaps/troupe-fence";
        assert_eq!(ask(admin, Method::PATCH, parameters, &json!({ "data": data })).await.0, 200);
    };
    let denied = async |pod: &Value, words: &str| {
        until(SOON, &format!("{words} to be denied"), || async {
            let (code, why) = ask(host, Method::POST, pods, pod).await;
            assert!(code == 200 || (code == 422 && why.contains(words)), "{words}: {code} {why}: {pod}");
            Ok((code == 422).then_some(()))
        })
        .await
        .unwrap();
    };
    says(json!({ "serviceAccounts": "trainer", "secrets": "", "nodeNames": "n1", "tolerations": "gpu", "priorityClasses": "" }))
        .await;
    for (pod, words) in &cases {
        denied(pod, words).await;
    }
    let plain = pod(json!({}), json!({}));
    for pod in [
        plain.clone(),
        pod(json!({ "serviceAccountName": "trainer" }), json!({})),
        volume(json!({ "secret": { "secretName": "pi-ssh" } })),
        variable("pi-token"),
        pod(json!({ "nodeName": "n1" }), json!({})),
        pod(json!({ "tolerations": [{ "key": "gpu", "operator": "Exists" }] }), json!({})),
    ] {
        assert_eq!(ask(host, Method::POST, pods, &pod).await, (200, String::new()), "{pod}");
    }
    says(json!({ "serviceAccountToken": "false" })).await;
    denied(&plain, "a token of a service account").await;
    let without = json!({ "automountServiceAccountToken": false });
    assert_eq!(ask(host, Method::POST, pods, &pod(without.clone(), json!({}))).await, (200, String::new()));
    let mut with = projected(json!({ "serviceAccountToken": { "path": "token" } }));
    with["spec"]["automountServiceAccountToken"] = json!(false);
    with["spec"]["serviceAccountName"] = json!("trainer");
    denied(&with, "a token of a service account").await;
}

/// What it is there for it may do, and more once the parameters say so.
async fn the_fence_lets_through(host: &Client, admin: &Client, job: &Value) {
    let pods = "/api/v1/namespaces/jobs/pods?dryRun=All";
    let own = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "troupe-plugin-0" } });
    let networked =
        pod(job, "x", &json!({ "hostNetwork": true }), &json!({ "ports": [{ "containerPort": 1, "hostPort": 1 }] }));
    for (path, body) in [
        (pods, pod(job, "x", &json!({}), &json!({}))),
        (pods, networked),
        ("/api/v1/namespaces/troupe-system/configmaps", own),
    ] {
        assert_eq!(ask(host, Method::POST, path, &body).await, (200, String::new()), "{path}: {body}");
    }
    let gone =
        ask(host, Method::DELETE, "/api/v1/namespaces/troupe-system/configmaps/troupe-plugin-0", &json!(null)).await;
    assert_eq!(gone.0, 200);
    let locked = json!({ "securityContext": { "capabilities": { "add": ["IPC_LOCK"] } } });
    let locked = pod(job, "x", &json!({}), &locked);
    assert_eq!(ask(host, Method::POST, pods, &locked).await.0, 422);
    let parameters = "/api/v1/namespaces/troupe-system/configmaps/troupe-fence";
    let more = json!({ "data": { "capabilities": "IPC_LOCK\nSYS_PTRACE" } });
    assert_eq!(ask(admin, Method::PATCH, parameters, &more).await.0, 200);
    until(SOON, "a capability to be allowed", || async {
        Ok((ask(host, Method::POST, pods, &locked).await.0 == 200).then_some(()))
    })
    .await
    .unwrap();
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn the_host_serves_jobs_with_its_least_rights_behind_its_fence_and_can_do_no_more() {
    let options = Options::default().fake_nodes(2).actor(HOST).limited(HOST).crds(install::crds::all());
    let plane = ControlPlane::start(options).await.unwrap();
    let admin = plane.client("admin").await.unwrap();
    deploy::give_rights(&admin).await;
    deploy::apply(&admin, "fence.yaml").await;
    deploy::apply(&admin, "authors.yaml").await;
    let jobs = Namespace::create_in(plane.client("user").await.unwrap(), "jobs").await;
    let theirs = json!({ "apiVersion": "v1", "metadata": { "name": "theirs" } });
    jobs.create(&CONFIG_MAPS, &theirs).await;
    let host = plane.client(HOST).await.unwrap();
    fenced(&host).await;

    let operator = Operator::start_as(&plane, HOST, &["--leader-elect", "--lease-namespace", "troupe-system"]).await;
    let wide = paddle("wide").ps(1).worker(2).gloo().policy("Always").runs("1s").manifest;
    jobs.create(&PADDLE_JOBS, &wide).await;
    jobs.create(&MPI_JOBS, &mpi("pi").cleaned().runs("1s").manifest).await;
    jobs.is(&PADDLE_JOBS, "wide", "Completed", |job| text(job, "/status/phase") == "Completed").await;
    let pi = jobs.is(&MPI_JOBS, "pi", "Succeeded", |job| !at(job, "/status/completionTime").is_null()).await;
    jobs.is(&BATCH_JOBS, "pi-launcher", "there", |_| true).await;
    jobs.is_gone(&PODS, "pi-worker-0").await;
    operator.stop().await;
    let refused = plane.audit().unwrap().into_iter().filter(|record| record.user == HOST && record.code == 403);
    let refused: Vec<_> = refused.collect();
    assert!(refused.is_empty(), "{refused:?}");

    let forbidden = forbidden();
    assert!(forbidden.len() >= 20);
    for (method, path, body) in forbidden {
        let (code, why) = ask(&host, method.clone(), &path, &body).await;
        assert!(code == 403 && why.contains("cannot"), "{method} {path}: {code} {why}");
    }
    let request =
        Request::get("/api/v1/namespaces/jobs/pods").header("impersonate-user", "admin").body(vec![]).unwrap();
    let Err(kube::Error::Api(status)) = host.request::<Value>(request).await else { panic!("it was somebody else") };
    assert!(status.code == 403 && status.message.contains("cannot impersonate"), "{status:?}");

    let plain = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "theirs" },
        "spec": { "schedulerName": "nobody", "containers": [{ "name": "c", "image": "i" }] } });
    jobs.create(&PODS, &plain).await;
    jobs.delete(&CONFIG_MAPS, "pi-config").await;
    jobs.delete(&CONFIG_MAPS, "wide").await;
    the_fence_holds(&host, &jobs, &pi).await;
    the_fence_lets_through(&host, &admin, &pi).await;
    the_fence_can_be_narrowed(&host, &admin, &jobs, &pi).await;
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn who_may_not_create_pods_in_a_namespace_may_not_make_jobs_there() {
    let options = Options::default().actor("intern").limited("intern").crds(install::crds::all());
    let plane = ControlPlane::start(options).await.unwrap();
    let admin = plane.client("admin").await.unwrap();
    deploy::apply(&admin, "authors.yaml").await;
    let jobs = Namespace::create_in(plane.client("user").await.unwrap(), "jobs").await;
    let rule = |groups: &[&str], resources: &[&str]| json!({ "apiGroups": groups, "resources": resources, "verbs": ["create", "patch", "get"] });
    let makes_jobs =
        rule(&["batch.paddlepaddle.org", "kubeflow.org", "openrhino.org"], &["paddlejobs", "mpijobs", "rhinojobs"]);
    let metadata = json!({ "name": "intern" });
    jobs.create(&ROLES, &json!({ "metadata": metadata, "rules": [makes_jobs] })).await;
    let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "intern" });
    jobs.create(
        &BINDINGS,
        &json!({ "metadata": metadata, "roleRef": role,
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "intern" }] }),
    )
    .await;
    let intern = plane.client("intern").await.unwrap();
    let place = "/apis/batch.paddlepaddle.org/v1/namespaces/jobs/paddlejobs";
    let wide = |name: &str| paddle(name).worker(1).manifest;
    until(SOON, "the policy to be in force", || async {
        let (code, why) = ask(&intern, Method::POST, &format!("{place}?dryRun=All"), &wide("w")).await;
        Ok((code == 403 && why.contains("must be allowed to create pods in namespace jobs")).then_some(()))
    })
    .await
    .unwrap();
    let pi =
        ask(&intern, Method::POST, "/apis/kubeflow.org/v2beta1/namespaces/jobs/mpijobs", &mpi("pi").manifest).await;
    assert!(pi.0 == 403 && pi.1.contains("MPIJob") && pi.1.contains("intern is not"), "{pi:?}");

    jobs.create(&PADDLE_JOBS, &wide("others")).await;
    let others = format!("{place}/others");
    let spec = json!({ "spec": { "worker": { "replicas": 5 } } });
    assert_eq!(ask(&intern, Method::PATCH, &others, &spec).await.0, 403, "a job of somebody else is none of his");
    let label = json!({ "metadata": { "labels": { "a": "b" } } });
    assert_eq!(ask(&intern, Method::PATCH, &others, &label).await.0, 200, "a label makes no pods");

    let more = json!({ "rules": [makes_jobs, rule(&[""], &["pods"])] });
    jobs.patch(&ROLES, "intern", &more).await;
    until(SOON, "the intern's jobs to be let through", || async {
        Ok((ask(&intern, Method::POST, place, &wide("mine")).await.0 == 200).then_some(()))
    })
    .await
    .unwrap();
    assert_eq!(ask(&intern, Method::PATCH, &others, &spec).await.0, 200);
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn nobody_but_the_host_writes_what_it_remembers_of_a_job() {
    let options = Options::default().actor(HOST).limited(HOST).crds(install::crds::all());
    let plane = ControlPlane::start(options).await.unwrap();
    let admin = plane.client("admin").await.unwrap();
    deploy::give_rights(&admin).await;
    deploy::apply(&admin, "ledger.yaml").await;
    let jobs = Namespace::create_in(plane.client("user").await.unwrap(), "jobs").await;
    let (tenant, host) = (plane.client("user").await.unwrap(), plane.client(HOST).await.unwrap());
    jobs.create(&PADDLE_JOBS, &paddle("wide").worker(1).manifest).await;
    jobs.create(&MPI_JOBS, &mpi("pi").manifest).await;
    let statuses = [
        "/apis/batch.paddlepaddle.org/v1/namespaces/jobs/paddlejobs/wide/status",
        "/apis/kubeflow.org/v2beta1/namespaces/jobs/mpijobs/pi/status",
    ];
    let says = |digest: &str| json!({ "status": { "troupe": { "uid": "u", "digest": digest } } });
    for status in statuses {
        until(SOON, "the policy to be in force", || async {
            let (code, why) = ask(&tenant, Method::PATCH, &format!("{status}?dryRun=All"), &says("theirs")).await;
            Ok((code == 403 && why.contains("status.troupe is written by the host alone")).then_some(()))
        })
        .await
        .unwrap();
        assert_eq!(ask(&host, Method::PATCH, status, &says("ours")).await, (200, String::new()));
        assert_eq!(ask(&tenant, Method::PATCH, status, &says("theirs")).await.0, 403, "{status}");
        let beside = json!({ "status": { "startTime": "2026-01-01T00:00:00Z" } });
        assert_eq!(ask(&tenant, Method::PATCH, status, &beside).await, (200, String::new()), "{status}");
        let removed = json!({ "status": { "troupe": null } });
        assert_eq!(ask(&tenant, Method::PATCH, status, &removed).await, (200, String::new()), "{status}");
    }
}
