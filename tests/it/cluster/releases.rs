//! Older releases of Kubernetes: the oldest that the chart installs on, and the last with the alpha of gangs.

use super::{
    every_kind::every_kind,
    gang::kubernetes,
    objects::{CRON_JOBS, Kind, Namespace, PADDLE_JOBS, PODS, SOON, at, text},
    preflight::{has, lines, preflight},
    together::is_true,
};
use crate::operator::Operator;
use harness::{ControlPlane, Options, RUN_FOR, Release, until};
use serde_json::{Value, json};

/// A control plane of this release with all CRDs, and a namespace in it.
async fn plane(options: Options, release: Release) -> (ControlPlane, Namespace) {
    let options = options.release(release).fake_nodes(2).crds(install::crds::all());
    let plane = ControlPlane::start(options).await.unwrap();
    let namespace = Namespace::create_in(plane.client("user").await.unwrap(), "own").await;
    (plane, namespace)
}

/// The job has succeeded, in the words of its kind.
fn has_succeeded(job: &Value) -> bool {
    let words = ["Complete", "Succeeded"];
    words.into_iter().any(|word| is_true(job, word))
        || at(job, "/status/phase") == "Completed"
        || at(job, "/status/jobStatus") == "Completed"
}

/// Lets the pods end that no annotation of a template can reach, which a RhinoJob has.
async fn end_pods_without_a_time(namespace: &Namespace) -> anyhow::Result<()> {
    for pod in namespace.list(&PODS).await? {
        if at(&pod, "/metadata/annotations").get(RUN_FOR).is_none() && at(&pod, "/status/phase") == "Running" {
            let now = json!({ "metadata": { "annotations": { RUN_FOR: "0s" } } });
            namespace.patch(&PODS, text(&pod, "/metadata/name"), &now).await;
        }
    }
    Ok(())
}

// The version that `kubeVersion` of the chart admits.
#[tokio::test]
#[cfg_attr(lacks_releases, ignore = "builds another Kubernetes: TROUPE_REQUIRE=releases")]
async fn the_oldest_kubernetes_runs_a_job_of_each_kind_to_its_end() {
    let (plane, namespace) = plane(Options::default(), Release::Oldest).await;
    let operator = Operator::start(&plane, &["--namespace", &namespace.name]).await;
    let mut jobs = every_kind();
    for (kind, job) in &mut jobs {
        if kind.resource() == CRON_JOBS.resource() {
            job["spec"]["schedule"] = json!("@every 1s");
        }
        namespace.create(kind, job).await;
    }
    for (kind, job) in &jobs {
        let name = text(job, "/metadata/name");
        let succeeded = until(SOON, format!("{}/{name} to succeed", kind.plural()), || async {
            end_pods_without_a_time(&namespace).await?;
            let object = namespace.get(kind, name).await?;
            let mut runs = namespace.list(&PADDLE_JOBS).await?;
            runs.retain(|run| at(run, "/metadata/ownerReferences/0/uid") == at(&object, "/metadata/uid"));
            Ok((has_succeeded(&object) || runs.iter().any(has_succeeded)).then_some(()))
        });
        succeeded.await.unwrap();
    }
    operator.stop().await;
}

const OF_THE_ALPHA: Kind = Kind::new("apis/scheduling.k8s.io/v1alpha2", "podgroups");

// KEP-4671 in Kubernetes 1.36, whose API version 1.37 does not have: all pods of a gang are bound, or none.
#[tokio::test]
#[cfg_attr(lacks_releases, ignore = "builds another Kubernetes: TROUPE_REQUIRE=releases")]
async fn the_alpha_of_gangs_starts_all_pods_of_a_job_or_none() {
    let (plane, namespace) = plane(Options::default().gangs(), Release::Previous).await;
    let scheduler = kubernetes(OF_THE_ALPHA);
    let operator = scheduler.host(&plane, &namespace).await;
    scheduler.starts_all_pods_or_none(&namespace).await;
    operator.stop().await;

    // What an upgrade to 1.37 cannot keep.
    has(&lines(&preflight(&plane, &[]).await), &["ok    there are no objects of scheduling.k8s.io/v1alpha2"]);
    let group = json!({ "apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": { "name": "left" },
        "spec": { "schedulingPolicy": { "gang": { "minCount": 2 } } } });
    namespace.create(&OF_THE_ALPHA, &group).await;
    let expected = "note  there is 1 object of scheduling.k8s.io/v1alpha2, which Kubernetes 1.37 does not serve: podgroup/own/left";
    has(&lines(&preflight(&plane, &[]).await), &[expected]);
}
