//! `troupe job top`: what jobs and their pods use, of what they request.

use super::{
    cluster::{Cluster, Found, Identity},
    list::table,
};
use crate::args::job::JobName;
use anyhow::Context;
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::api::resource::Quantity};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams},
};
use kube_quantity::ParsedQuantity;
use serde_json::Value;
use std::{collections::BTreeMap, process::ExitCode};
use troupe::out;

/// Processors and memory, in cores and bytes; None where nobody says.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Amount {
    cpu: Option<f64>,
    memory: Option<f64>,
}

impl Amount {
    fn plus(self, other: Self) -> Self {
        let sum = |a: Option<f64>, b: Option<f64>| a.map_or(b, |a| Some(a + b.unwrap_or_default()));
        Self { cpu: sum(self.cpu, other.cpu), memory: sum(self.memory, other.memory) }
    }

    fn of(quantities: &BTreeMap<String, Quantity>) -> Self {
        let read = |name: &str| ParsedQuantity::try_from(quantities.get(name)?).ok()?.to_bytes_f64();
        Self { cpu: read("cpu"), memory: read("memory") }
    }
}

/// What pods use, by namespace and name. A pod that has just started is not there.
type Uses = BTreeMap<(String, String), Amount>;

pub(super) async fn top(cluster: &Cluster, job: Option<&JobName>, all_namespaces: bool) -> anyhow::Result<ExitCode> {
    let namespace = (!all_namespaces).then_some(cluster.namespace.as_str());
    let rows = match job {
        Some(name) => {
            let found = cluster.job(name).await?;
            of_pods(&cluster.pods(&found).await?, &uses(cluster, namespace).await?)
        }
        None => {
            let jobs = cluster.jobs(all_namespaces).await?;
            of_jobs(&jobs, &cluster.pods_by_job(namespace).await?, &uses(cluster, namespace).await?, all_namespaces)
        }
    };
    if rows.len() < 2 {
        out::diagnostic(format_args!("no pods of {}", job.map_or("jobs".to_owned(), ToString::to_string)));
        return Ok(ExitCode::SUCCESS);
    }
    out::text(table(&rows));
    Ok(ExitCode::SUCCESS)
}

/// Returns a row for each pod, below a head.
fn of_pods(pods: &[Pod], uses: &Uses) -> Vec<Vec<String>> {
    let rows = pods.iter().map(|pod| {
        let name = pod.metadata.name.clone().unwrap_or_default();
        let used = uses.get(&place(pod)).copied();
        [vec![name], cells(used.unwrap_or_default(), requests(pod))].concat()
    });
    std::iter::once(head(&["POD"])).chain(rows).collect()
}

/// Returns a row for each job that has pods, below a head.
fn of_jobs(jobs: &[Found], pods: &BTreeMap<Identity, Vec<Pod>>, uses: &Uses, with_namespace: bool) -> Vec<Vec<String>> {
    let rows = jobs.iter().filter_map(|found| {
        let pods = pods.get(&found.identity())?;
        let measured: Vec<_> = pods.iter().filter_map(|pod| Some((pod, *uses.get(&place(pod))?))).collect();
        let used = measured.iter().fold(Amount::default(), |sum, (_, used)| sum.plus(*used));
        let requested = measured.iter().fold(Amount::default(), |sum, (pod, _)| sum.plus(requests(pod)));
        let namespace = with_namespace.then(|| found.job.metadata.namespace.clone().unwrap_or_default());
        let count = format!("{} of {}", measured.len(), pods.len());
        let row = namespace.into_iter().chain([found.title(), count]).chain(cells(used, requested));
        Some(row.collect::<Vec<_>>())
    });
    let names: &[&str] = if with_namespace { &["NAMESPACE", "JOB", "PODS"] } else { &["JOB", "PODS"] };
    std::iter::once(head(names)).chain(rows).collect()
}

/// Returns the head of a table: these columns, then those of [`cells`], named as `kubectl top` names them.
fn head(columns: &[&str]) -> Vec<String> {
    [columns, &["CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"]].concat().into_iter().map(str::to_owned).collect()
}

/// Returns what is used, each with its share of what is requested.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a share and an amount of a pod's resources are far below the limit"
)]
fn cells(used: Amount, requested: Amount) -> Vec<String> {
    let none = || "-".to_owned();
    let share = |used: Option<f64>, requested: Option<f64>| match (used, requested) {
        (Some(used), Some(requested)) if requested > 0.0 => format!("{}%", (used / requested * 100.0).round() as i64),
        _ => none(),
    };
    vec![
        used.cpu.map_or_else(none, |it| format!("{}m", (it * 1000.0).ceil() as i64)),
        share(used.cpu, requested.cpu),
        used.memory.map_or_else(none, |it| format!("{}Mi", (it / 1_048_576.0).floor() as i64)),
        share(used.memory, requested.memory),
    ]
}

/// Returns what the pod requests: for itself, else the sum over its containers and those beside them.
fn requests(pod: &Pod) -> Amount {
    let Some(spec) = &pod.spec else { return Amount::default() };
    let sidecars = spec.init_containers.iter().flatten().filter(|it| it.restart_policy.as_deref() == Some("Always"));
    let containers = spec.containers.iter().chain(sidecars).filter_map(|it| it.resources.as_ref()?.requests.as_ref());
    let sum = containers.fold(Amount::default(), |sum, it| sum.plus(Amount::of(it)));
    let own = spec.resources.as_ref().and_then(|it| it.requests.as_ref()).map(Amount::of).unwrap_or_default();
    Amount { cpu: own.cpu.or(sum.cpu), memory: own.memory.or(sum.memory) }
}

fn place(pod: &Pod) -> (String, String) {
    (pod.metadata.namespace.clone().unwrap_or_default(), pod.metadata.name.clone().unwrap_or_default())
}

/// Reads what pods use from the metrics API, which is another server's: most often metrics-server's.
async fn uses(cluster: &Cluster, namespace: Option<&str>) -> anyhow::Result<Uses> {
    let kind = ApiResource {
        group: "metrics.k8s.io".into(),
        version: "v1beta1".into(),
        api_version: "metrics.k8s.io/v1beta1".into(),
        kind: "PodMetrics".into(),
        plural: "pods".into(),
    };
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(cluster.client.clone(), namespace, &kind),
        None => Api::all_with(cluster.client.clone(), &kind),
    };
    let listed = match api.list(&ListParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => {
            anyhow::bail!(
                "nobody measures pods here: the cluster has no metrics API (metrics.k8s.io), such as metrics-server's"
            )
        }
        listed => listed.context("what pods use cannot be read")?,
    };
    Ok(listed.items.iter().map(measured).collect())
}

fn measured(metrics: &DynamicObject) -> ((String, String), Amount) {
    let containers = metrics.data["containers"].as_array().into_iter().flatten();
    let used = containers.map(|it| {
        let usage = it["usage"].as_object().into_iter().flatten();
        let text = |(name, value): (&String, &Value)| Some((name.clone(), Quantity(value.as_str()?.to_owned())));
        Amount::of(&usage.filter_map(text).collect())
    });
    let metadata = &metrics.metadata;
    let place = (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default());
    (place, used.fold(Amount::default(), Amount::plus))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::{echo_jobs, read};
    use serde_json::json;

    fn pod(name: &str, more: &Value) -> Pod {
        let request = json!({ "requests": { "cpu": "2", "memory": "1Gi" } });
        let mut spec = json!({ "containers": [{ "name": "main", "resources": request }, { "name": "beside" }] });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        read(json!({ "metadata": { "namespace": "lab", "name": name, "uid": name }, "spec": spec }))
    }

    fn uses(names: &[&str]) -> Uses {
        let measure = |name: &&str| {
            measured(&read(json!({
                "metadata": { "namespace": "lab", "name": name },
                "containers": [
                    { "name": "main", "usage": { "cpu": "1500000001n", "memory": "262144Ki" } },
                    { "name": "beside", "usage": { "cpu": "250u", "memory": "1024Ki" } },
                ],
            })))
        };
        names.iter().map(measure).collect()
    }

    #[test]
    fn a_pod_uses_the_sum_of_its_containers_of_what_it_requests() {
        let pods = [pod("hamlet-0", &json!({})), pod("hamlet-1", &json!({}))];
        let expected = "POD       CPU(cores)  CPU(%)  MEMORY(bytes)  MEMORY(%)
hamlet-0  1501m       75%     257Mi          25%
hamlet-1  -           -       -              -
";
        assert_eq!(table(&of_pods(&pods, &uses(&["hamlet-0"]))), expected);
    }

    #[test]
    fn requests_are_those_of_the_pod_then_those_of_all_that_runs_beside() {
        let sidecar =
            json!({ "name": "proxy", "restartPolicy": "Always", "resources": { "requests": { "cpu": "500m" } } });
        let first = json!({ "name": "first", "resources": { "requests": { "cpu": "7" } } });
        let gib = Some(1_073_741_824.0);
        let with = requests(&pod("hamlet-0", &json!({ "initContainers": [first, sidecar] })));
        assert_eq!(with, Amount { cpu: Some(2.5), memory: gib });
        let own = requests(&pod("hamlet-0", &json!({ "resources": { "requests": { "cpu": "4" } } })));
        assert_eq!(own, Amount { cpu: Some(4.0), memory: gib });
    }

    #[test]
    fn a_job_uses_what_its_measured_pods_use() {
        let resource = echo_jobs();
        let named = |name: &str| Found {
            resource: resource.clone(),
            job: read(json!({ "metadata": { "namespace": "lab", "name": name, "uid": name } })),
        };
        let pods = ["hamlet-0", "hamlet-1", "hamlet-2"].map(|name| pod(name, &json!({})));
        let elsewhere = pod("hamlet-3", &json!({}));
        let [here, there] = ["lab", "other"].map(|namespace| (namespace.to_owned(), "hamlet".to_owned()));
        let pods = BTreeMap::from([(here, pods.to_vec()), (there, vec![elsewhere])]);
        let rows = of_jobs(&[named("hamlet"), named("idle")], &pods, &uses(&["hamlet-0", "hamlet-2"]), true);
        let expected = "NAMESPACE  JOB             PODS    CPU(cores)  CPU(%)  MEMORY(bytes)  MEMORY(%)
lab        echojob/hamlet  2 of 3  3001m       75%     514Mi          25%
";
        assert_eq!(table(&rows), expected);
    }
}
