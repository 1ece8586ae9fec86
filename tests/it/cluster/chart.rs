//! The chart on a real control plane: installed, upgraded, uninstalled and installed again while jobs run.

use super::{
    deploy::{HOST, documented},
    jobs::{mpi, paddle},
    objects::{BATCH_JOBS, DEPLOYMENTS, Kind, MPI_JOBS, Namespace, PADDLE_JOBS, PODS, SECRETS, SOON, at, text},
};
use crate::operator::Operator;
use harness::{CommandLine, ControlPlane, Options, Tool, until};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client, ResourceExt};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const CHART: &str = "deploy/chart";
const TROUPE: [&str; 4] = ["troupe", "--namespace", "troupe-system", "--create-namespace"];
const ROLE_BINDINGS: Kind = Kind::new("apis/rbac.authorization.k8s.io/v1", "rolebindings");

/// The chart as an earlier version would have been, whose Plugins had no columns.
fn earlier(folder: &Path) -> PathBuf {
    let chart = folder.join("earlier");
    let from = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/chart");
    assert!(Command::new("cp").args(["--recursive", from]).arg(&chart).status().unwrap().success());
    let file = chart.join("files/crds/plugins.troupe.dev.yaml");
    let mut crd: Value = serde_norway::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert!(crd["spec"]["versions"][0].as_object_mut().unwrap().remove("additionalPrinterColumns").is_some());
    fs::write(file, serde_norway::to_string(&crd).unwrap()).unwrap();
    chart
}

/// The columns of Plugins in the cluster.
async fn columns(client: &Client) -> usize {
    let crd = Api::<CustomResourceDefinition>::all(client.clone()).get("plugins.troupe.dev").await.unwrap();
    crd.spec.versions[0].additional_printer_columns.as_ref().map_or(0, Vec::len)
}

/// Name, uid and deletion of everything that must not change.
async fn kept(client: &Client, jobs: &Namespace) -> Vec<String> {
    let crds =
        Api::<CustomResourceDefinition>::all(client.clone()).list(&kube::api::ListParams::default()).await.unwrap();
    let crds = crds.iter().map(|crd| (crd.name_any(), crd.uid().unwrap(), crd.metadata.deletion_timestamp.is_some()));
    let mut kept: Vec<_> = crds.map(|crd| format!("{crd:?}")).collect();
    for kind in [&PADDLE_JOBS, &MPI_JOBS, &BATCH_JOBS, &PODS] {
        for object in jobs.list(kind).await.unwrap() {
            let metadata = &object["metadata"];
            kept.push(format!("{} {} {}", metadata["name"], metadata["uid"], metadata["deletionTimestamp"]));
        }
    }
    kept
}

async fn is_running(jobs: &Namespace) {
    jobs.is(&PADDLE_JOBS, "wide", "Running", |job| text(job, "/status/phase") == "Running").await;
    let running = |job: &Value| {
        let conditions = at(job, "/status/conditions").as_array();
        conditions.is_some_and(|all| all.iter().any(|one| one["type"] == "Running" && one["status"] == "True"))
    };
    jobs.is(&MPI_JOBS, "pi", "Running", running).await;
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn jobs_outlive_an_upgrade_of_the_chart_and_its_uninstallation() {
    let plane = ControlPlane::start(Options::default().fake_nodes(2).actor(HOST).limited(HOST)).await.unwrap();
    let admin = plane.client("admin").await.unwrap();
    let kubeconfig = plane.kubeconfig("admin").unwrap();
    let helm = tokio::task::spawn_blocking(move || CommandLine::of(Tool::Helm, &kubeconfig)).await.unwrap().unwrap();
    let run = |command: &[&str], more: &[&str]| helm.run(&[command, &TROUPE, more].concat());
    let chart = earlier(plane.dir());
    let notes = run(&["install"], &[chart.to_str().unwrap(), "--wait", "--timeout", "120s"]).unwrap();
    assert!(notes.contains("localhost/troupe:") && !notes.contains("WARNING"), "{notes}");
    assert_eq!(columns(&admin).await, 0);
    let own = Namespace { client: admin.clone(), name: "troupe-system".to_owned() };
    let ready = |deployment: &Value| at(deployment, "/status/readyReplicas") == 2;
    own.is(&DEPLOYMENTS, "troupe", "ready", ready).await;

    // Its pods are played; the host is a process that is nobody but its service account.
    let jobs = Namespace::create_in(plane.client("user").await.unwrap(), "jobs").await;
    let folder = plane.dir().join("host");
    fs::create_dir(&folder).unwrap();
    let (certificate, key) = harness::certificate(&folder).unwrap();
    let operator = Operator::start_reviewed(&plane, HOST, &certificate, &key).await;
    jobs.create(&PADDLE_JOBS, &paddle("wide").ps(1).worker(2).policy("Never").runs("1h").manifest).await;
    jobs.create(&MPI_JOBS, &mpi("pi").runs("1h").manifest).await;
    is_running(&jobs).await;
    let before = kept(&admin, &jobs).await;
    assert!(before.len() > 12, "{before:?}");
    // The fence lets the host ask who reads its admin port.
    until(SOON, "the metrics", || async {
        Ok((operator.read("/metrics", Some("admin")).await?.0 == 200).then_some(()))
    })
    .await
    .unwrap();

    run(&["upgrade", "--wait"], &[CHART, "--set", "replicas=3"]).unwrap();
    // Helm keeps the chart and all that it makes in a Secret, which may have 1 MiB.
    let release = own.get(&SECRETS, "sh.helm.release.v1.troupe.v2").await.unwrap();
    let bytes = text(&release, "/data/release").len() * 3 / 4;
    assert!((100_000..600_000).contains(&bytes), "the release has {bytes} bytes");
    assert!(columns(&admin).await > 0, "an upgrade brings the new definitions");
    own.is(&DEPLOYMENTS, "troupe", "upgraded", |it| at(it, "/status/readyReplicas") == 3).await;
    assert_eq!(kept(&admin, &jobs).await, before);

    let other = ["install", "other", CHART, "--namespace", "elsewhere", "--create-namespace"];
    let refused = helm.run(&other).unwrap_err().to_string();
    assert!(refused.contains("serves this cluster already, as release troupe in namespace troupe-system"), "{refused}");

    helm.run(&["uninstall", "troupe", "--namespace", "troupe-system", "--wait"]).unwrap();
    operator.stop().await;
    own.is_gone(&DEPLOYMENTS, "troupe").await;
    assert_eq!(own.list(&ROLE_BINDINGS).await.unwrap(), Vec::<Value>::new());
    assert_eq!(kept(&admin, &jobs).await, before);

    // The definitions that stayed are another release's.
    let mut again = vec!["install", "again", CHART, "--namespace", "troupe-system", "--wait"];
    let refused = helm.run(&again).unwrap_err().to_string();
    assert!(refused.contains("invalid ownership metadata"), "{refused}");
    again.push("--take-ownership");
    helm.run(&again).unwrap();
    let operator = Operator::start_as(&plane, HOST, &["--leader-elect", "--lease-namespace", "troupe-system"]).await;
    let lost = jobs.get(&PODS, "wide-worker-0").await.unwrap()["metadata"]["uid"].clone();
    jobs.delete(&PODS, "wide-worker-0").await;
    jobs.is(&PODS, "wide-worker-0", "another pod", |pod| pod["metadata"]["uid"] != lost).await;
    let but_the_lost = |mut all: Vec<String>| {
        all.retain(|one| !one.contains("wide-worker-0"));
        all
    };
    assert_eq!(but_the_lost(kept(&admin, &jobs).await), but_the_lost(before));
    operator.stop().await;
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn the_manifests_bring_what_the_chart_does_and_their_pods_pass_pod_security() {
    let plane = ControlPlane::start(Options::default().fake_nodes(2)).await.unwrap();
    let kubeconfig = plane.kubeconfig("admin").unwrap();
    let kubectl =
        tokio::task::spawn_blocking(move || CommandLine::of(Tool::Kubectl, &kubeconfig)).await.unwrap().unwrap();
    let readme = include_str!("../../../README.md");
    let command = "kubectl apply -f deploy/operator.yaml";
    assert!(readme.contains(command));
    // Fields that the API server does not know are errors; the second time nothing is left to change.
    let first = kubectl.run_line(command, &["--validate=strict"]).unwrap();
    assert!(first.contains("deployment.apps/troupe created") && !first.contains("unchanged"), "{first}");
    let second = kubectl.run_line(command, &["--validate=strict"]).unwrap();
    assert!(second.lines().all(|line| line.ends_with(" unchanged") || line.ends_with(" configured")), "{second}");
    let own = Namespace { client: plane.client("admin").await.unwrap(), name: "troupe-system".to_owned() };
    let status = documented("kubectl --namespace troupe-system rollout status");
    let said = kubectl.run_line(status, &["--timeout=60s"]).unwrap();
    assert!(said.contains("successfully rolled out"), "{said}");
    own.is(&DEPLOYMENTS, "troupe", "ready", |it| at(it, "/status/readyReplicas") == 2).await;
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_host_of_one_namespace_serves_it_by_roles_alone() {
    let options = Options::default().fake_nodes(2).actor(HOST).limited(HOST).crds(install::crds::all());
    let plane = ControlPlane::start(options).await.unwrap();
    let kubeconfig = plane.kubeconfig("admin").unwrap();
    let helm = tokio::task::spawn_blocking(move || CommandLine::of(Tool::Helm, &kubeconfig)).await.unwrap().unwrap();
    let team = Namespace::create_in(plane.client("user").await.unwrap(), "team").await;
    helm.run_line(documented("helm install troupe"), &["--set=watchNamespace=team"]).unwrap();
    let flags = ["--namespace", "team", "--leader-elect", "--lease-namespace", "troupe-system"];
    let flags = [&flags[..], &["--plugin-namespace", "troupe-system"]].concat();
    let operator = Operator::start_as(&plane, HOST, &flags).await;
    team.create(&PADDLE_JOBS, &paddle("wide").ps(1).worker(2).policy("Always").runs("1s").manifest).await;
    team.create(&MPI_JOBS, &mpi("pi").cleaned().runs("1s").manifest).await;
    team.is(&PADDLE_JOBS, "wide", "Completed", |job| text(job, "/status/phase") == "Completed").await;
    team.is(&MPI_JOBS, "pi", "Succeeded", |job| !at(job, "/status/completionTime").is_null()).await;
    team.is_gone(&PODS, "pi-worker-0").await;
    operator.stop().await;
    let refused = plane.audit().unwrap().into_iter().filter(|record| record.user == HOST && record.code == 403);
    let refused: BTreeSet<_> = refused.map(|record| record.target()).collect();
    // What only cluster-wide rights show, and the host does without.
    let of_cluster =
        ["plugins", "priorityclasses", "resourceflavors", "validatingadmissionpolicies", "workloadpriorityclasses"];
    assert!(refused.iter().all(|target| of_cluster.contains(&target.as_str())), "{refused:?}");
    let host = plane.client(HOST).await.unwrap();
    for path in ["/api/v1/pods", "/api/v1/namespaces/default/pods", "/apis/kubeflow.org/v2beta1/mpijobs"] {
        let request = http::Request::get(path).body(vec![]).unwrap();
        let Err(kube::Error::Api(status)) = host.request::<Value>(request).await else { panic!("{path} is readable") };
        assert_eq!(status.code, 403, "{status:?}");
    }
}
