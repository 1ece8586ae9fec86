//! The ConfigMap through which pods learn each other's addresses: when it is created, and its data.

use crate::{
    Job,
    env::PORT,
    objects::PORTS,
    spec::{Intranet, Role},
};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use troupe_plugin::{
    ChildExt, ObservationExt, PodExt, job_name, json_text,
    types::{Body, Gate, Object, Observation, Refusal, Upkeep},
    unsupported,
};

/// The key of the ConfigMap in the plan.
pub(crate) const KEY: &str = "rendezvous";

/// The offset of the gloo rendezvous port from the job's port. No endpoint uses this port.
const GLOO_OFFSET: u32 = 18;

/// The value of `PADDLE_GLOO_RENDEZVOUS` for gloo over HTTP.
const GLOO_HTTP: &str = "3";

/// Returns the ConfigMap of the plan. `bind` returns its body once every pod has an address.
pub(crate) fn object(addresses: Vec<Gate>) -> Object {
    Object {
        key: KEY.into(),
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        name: vec![job_name()],
        per_pod_of: None,
        body: Body::Bound,
        upkeep: Upkeep::Follow(vec!["/data".into()]),
        after: addresses,
        remove_when: vec![],
    }
}

/// The data of the ConfigMap.
type Data = BTreeMap<&'static str, String>;

#[derive(Serialize)]
struct ConfigMap<'a> {
    metadata: Metadata<'a>,
    data: Data,
}

#[derive(Serialize)]
struct Metadata<'a> {
    labels: Labels<'a>,
}

#[derive(Serialize)]
struct Labels<'a> {
    #[serde(rename = "paddle-res-name")]
    name: &'a str,
}

/// Returns the body of the ConfigMap. Returns None, so that the host does not change the ConfigMap, if an address is
/// unknown or if the existing ConfigMap has the same endpoints. A ConfigMap of the original thus stays byte for byte.
pub(crate) fn body(job: &Job, seen: &Observation) -> Option<String> {
    let existing = seen.child(KEY).and_then(|child| child.field("/data"));
    let port = port(job, existing.as_ref());
    let data = data(job, seen, port, existing.as_ref())?;
    let unchanged =
        |key: &str| existing.as_ref().map(|existing| existing[key].as_str()) == Some(data.get(key).map(String::as_str));
    let endpoints =
        ["PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_TRAINER_ENDPOINTS", "PADDLE_TRAINERS_NUM", "PADDLE_HETER_ENDPOINTS"];
    // The existing port stays, unless the job no longer has a port.
    let port_stays = port.is_some() || unchanged("PADDLE_PORT");
    if existing.is_some() && port_stays && endpoints.into_iter().all(unchanged) {
        return None;
    }
    Some(json_text(&ConfigMap { metadata: Metadata { labels: Labels { name: job.name() } }, data }))
}

/// Refuses a pod whose address Paddle cannot read: Paddle splits endpoints at their colons. Better: the original waits
/// for ever.
pub(crate) fn readable(job: &Job, seen: &Observation) -> Result<(), Refusal> {
    if job.spec.intranet() == Intranet::Service {
        return Ok(());
    }
    let addressed = seen.pods.iter().filter(|pod| !pod.terminating).filter_map(|pod| Some((pod, pod.ip()?)));
    match addressed.into_iter().find(|(_, ip)| ip.contains(':')) {
        Some((pod, ip)) => Err(unsupported(format!(
            "pod {} has the address {ip}, but Paddle's lists take IPv4 addresses only; `intranet: Service` lists names",
            pod.name
        ))),
        None => Ok(()),
    }
}

/// Returns the port of all pods of the job: the port in the existing ConfigMap, which running pods have read, else the
/// first host port of the job or [`PORT`]. Service mode always uses [`PORT`]. Returns None in Host mode if the job has
/// no host ports: without replicas, another job may have its former ports.
///
/// Better: the original draws the port from 36000 to 55999, which overlaps the ephemeral range, and in Service mode the
/// port contradicts its endpoint lists.
fn port(job: &Job, existing: Option<&Value>) -> Option<u32> {
    let kept = existing.and_then(|data| data["PADDLE_PORT"].as_str()).and_then(|port| port.parse().ok());
    match job.spec.intranet() {
        Intranet::Service => Some(PORT),
        Intranet::PodIp => kept.or(Some(PORT)),
        Intranet::Host => job.view.host_ports.and(kept).or(job.view.host_ports),
    }
}

/// Returns the port of the gloo rendezvous: the port in the existing ConfigMap, which running pods have read, else the
/// job's port plus [`GLOO_OFFSET`].
fn gloo_port(port: u32, existing: Option<&Value>) -> u32 {
    let kept = existing.and_then(|data| data["PADDLE_GLOO_HTTP_ENDPOINT"].as_str()?.rsplit_once(':')?.1.parse().ok());
    kept.unwrap_or(port + GLOO_OFFSET)
}

fn data(job: &Job, seen: &Observation, port: Option<u32>, existing: Option<&Value>) -> Option<Data> {
    let mut data = Data::new();
    data.insert("TRAINER_PORTS_NUM", PORTS.to_string());
    data.extend(port.map(|port| ("PADDLE_PORT", port.to_string())));
    for role in job.spec.roles().filter(|role| role.replicas() > 0) {
        let (hosts, port) = (hosts(job, seen, &role, existing)?, port?);
        let suffix = format!(":{port}");
        // Concatenates, because `format!` costs ten times as much, and a job may have thousands of pods.
        let endpoints = hosts.iter().map(|host| [host, &*suffix].concat()).collect::<Vec<_>>().join(",");
        match role.name {
            "ps" => {
                data.insert("PADDLE_PSERVERS_IP_PORT_LIST", endpoints);
                if let (Some(gloo @ 1..), Some(first)) = (job.spec.with_gloo, hosts.first()) {
                    data.insert("PADDLE_WITH_GLOO", gloo.to_string());
                    data.insert("PADDLE_GLOO_RENDEZVOUS", GLOO_HTTP.to_owned());
                    data.insert("PADDLE_GLOO_HTTP_ENDPOINT", format!("{first}:{}", gloo_port(port, existing)));
                }
            }
            "worker" => {
                data.insert("PADDLE_TRAINER_ENDPOINTS", endpoints);
                data.insert("PADDLE_TRAINERS", hosts.join(","));
                data.insert("PADDLE_TRAINERS_NUM", hosts.len().to_string());
            }
            _ => {
                // Better: Paddle reads the first name; the original writes only the second.
                data.insert("PADDLE_HETER_TRAINER_IP_PORT_LIST", endpoints.clone());
                data.insert("PADDLE_HETER_ENDPOINTS", endpoints);
            }
        }
    }
    Some(data)
}

/// Returns the host of each replica of the role: its pod's name and namespace in Service mode, else its address. Returns
/// None while a replica has no address.
///
/// A replica that has succeeded and whose pod is gone gets no other pod: it keeps the host under which `existing`, the
/// existing list, has it, else it is listed by its pod's name. So no pod that is still to start waits for the ConfigMap.
fn hosts(job: &Job, seen: &Observation, role: &Role<'_>, existing: Option<&Value>) -> Option<Vec<String>> {
    let indices = 0..role.replicas();
    let name = |index| format!("{}-{}-{index}", job.name(), role.name);
    if job.spec.intranet() == Intranet::Service {
        // Pods of the original, which have read its ConfigMap, know themselves by their names alone.
        let bare = listed(existing, role, 0).is_some_and(|host| host == name(0));
        let end = if bare { String::new() } else { [".", job.namespace()].concat() };
        return Some(indices.map(|index| name(index) + &end).collect());
    }
    // Pods are in order of index, so one iteration finds all of them.
    let mut pods = seen.live(role.name).peekable();
    let address = |index| {
        while pods.next_if(|pod| pod.index < Some(index)).is_some() {}
        match pods.next_if(|pod| pod.index == Some(index)) {
            Some(pod) => pod.ip().map(str::to_owned),
            None => is_over(seen, role, index).then(|| listed(existing, role, index).unwrap_or_else(|| name(index))),
        }
    };
    indices.map(address).collect()
}

/// The replica has succeeded, and its pod is gone.
fn is_over(seen: &Observation, role: &Role<'_>, index: u32) -> bool {
    let of_role = seen.roles.iter().filter(|facts| facts.role == role.name).flat_map(|facts| &facts.succeeded);
    of_role.into_iter().any(|(first, last)| (*first..=*last).contains(&index))
}

/// The host that the ConfigMap lists a replica with.
fn listed(existing: Option<&Value>, role: &Role<'_>, index: u32) -> Option<String> {
    let key = match role.name {
        "ps" => "PADDLE_PSERVERS_IP_PORT_LIST",
        "worker" => "PADDLE_TRAINER_ENDPOINTS",
        _ => "PADDLE_HETER_ENDPOINTS",
    };
    let endpoint = existing?[key].as_str()?.split(',').nth(usize::try_from(index).ok()?)?;
    Some(endpoint.rsplit_once(':')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use troupe_plugin::{
        testkit::{self, PodFixture, pod},
        types::RoleFacts,
    };

    fn role(replicas: u32) -> Value {
        json!({ "replicas": replicas, "template": { "spec": { "containers": [{ "name": "paddle" }] } } })
    }

    fn job(spec: &Value) -> Job {
        Job::parse(testkit::job("PaddleJob", "wide", spec)).unwrap()
    }

    fn body(job: &Job, seen: &Observation) -> Option<Value> {
        super::body(job, seen).map(|body| serde_json::from_str(&body).unwrap())
    }

    fn four_pods() -> Observation {
        testkit::seen(vec![
            pod("ps", 0, "wide-ps-0").with_ip("10.0.0.10"),
            pod("ps", 1, "wide-ps-1").with_ip("10.0.0.11"),
            pod("worker", 0, "wide-worker-0").with_ip("10.0.0.20"),
            pod("worker", 1, "wide-worker-1").with_ip("10.0.0.21"),
        ])
    }

    // A2: exact keys and values; the gloo port is free (X).
    #[test]
    fn the_config_map_lists_every_endpoint_by_index() {
        let job = job(&json!({ "withGloo": 1, "ps": role(2), "worker": role(2) }));
        let body = body(&job, &four_pods()).unwrap();
        assert_eq!(body["metadata"]["labels"], json!({ "paddle-res-name": "wide" }));
        assert_eq!(
            body["data"],
            json!({
                "TRAINER_PORTS_NUM": "20", "PADDLE_PORT": "36000",
                "PADDLE_PSERVERS_IP_PORT_LIST": "10.0.0.10:36000,10.0.0.11:36000",
                "PADDLE_TRAINER_ENDPOINTS": "10.0.0.20:36000,10.0.0.21:36000",
                "PADDLE_TRAINERS": "10.0.0.20,10.0.0.21", "PADDLE_TRAINERS_NUM": "2",
                "PADDLE_WITH_GLOO": "1", "PADDLE_GLOO_RENDEZVOUS": "3", "PADDLE_GLOO_HTTP_ENDPOINT": "10.0.0.10:36018",
            })
        );
    }

    // Section 5.2, item 8, Better: the pod is refused instead of waited for
    #[test]
    fn an_address_that_paddle_cannot_read_is_refused_with_the_pods_name() {
        let seen = testkit::seen(vec![pod("worker", 0, "wide-worker-0").with_ip("fd00::20")]);
        let Err(Refusal::Unsupported(why)) = readable(&job(&json!({ "worker": role(1) })), &seen) else {
            panic!("it was accepted");
        };
        assert!(why.contains("wide-worker-0") && why.contains("fd00::20") && why.contains("Service"), "{why}");
        assert!(readable(&job(&json!({ "intranet": "Service", "worker": role(1) })), &seen).is_ok());
    }

    // A2: there is no ConfigMap before every pod has an address.
    #[test]
    fn there_is_no_config_map_before_every_pod_has_an_address() {
        let job = job(&json!({ "ps": role(2), "worker": role(2) }));
        let mut seen = four_pods();
        seen.pods[3].ips.clear();
        assert_eq!(body(&job, &seen), None);
    }

    // Better: the original makes the pod again.
    #[test]
    fn who_has_succeeded_and_lost_its_pod_keeps_a_place_in_the_lists() {
        let job = job(&json!({ "worker": role(2) }));
        let mut seen = testkit::seen(four_pods().pods.split_off(3));
        assert_eq!(body(&job, &seen), None, "it is made again");
        seen.roles = vec![RoleFacts {
            role: "worker".into(),
            succeeded: vec![(0, 0)],
            lost: false,
            failures: 0,
            given_up: vec![],
            attempt: 0,
        }];
        assert_eq!(body(&job, &seen).unwrap()["data"]["PADDLE_TRAINERS"], "wide-worker-0,10.0.0.21");
        let there = json!({ "PADDLE_PORT": "36000", "PADDLE_TRAINER_ENDPOINTS": "10.0.0.20:36000,10.0.0.99:36000" });
        seen.children = vec![testkit::child(KEY, "ConfigMap", "wide", &[("/data", there)])];
        let data = &body(&job, &seen).unwrap()["data"];
        assert_eq!(data["PADDLE_TRAINER_ENDPOINTS"], "10.0.0.20:36000,10.0.0.21:36000");
    }

    // A8: modes and their keys.
    #[test]
    fn a_job_without_servers_has_neither_server_nor_gloo_keys() {
        let seen = testkit::seen(vec![pod("worker", 0, "wide-worker-0").with_ip("10.0.0.20")]);
        let body = body(&job(&json!({ "withGloo": 1, "worker": role(1) })), &seen).unwrap();
        let keys: Vec<_> = body["data"].as_object().unwrap().keys().collect();
        assert_eq!(
            keys,
            ["PADDLE_PORT", "PADDLE_TRAINERS", "PADDLE_TRAINERS_NUM", "PADDLE_TRAINER_ENDPOINTS", "TRAINER_PORTS_NUM"]
        );
    }

    // A9: names instead of addresses, and a port that unchanged with the lists (X).
    #[test]
    fn service_mode_lists_names() {
        let job = job(&json!({ "intranet": "Service", "withGloo": 2, "ps": role(2), "worker": role(2) }));
        let data = &body(&job, &four_pods()).unwrap()["data"];
        assert_eq!(data["PADDLE_PSERVERS_IP_PORT_LIST"], "wide-ps-0.ns:36000,wide-ps-1.ns:36000");
        assert_eq!(data["PADDLE_TRAINERS"], "wide-worker-0.ns,wide-worker-1.ns");
        assert_eq!(
            (&data["PADDLE_PORT"], &data["PADDLE_GLOO_HTTP_ENDPOINT"]),
            (&json!("36000"), &json!("wide-ps-0.ns:36018"))
        );
        // Pods of the original have read names alone, and so know themselves.
        let mut seen = four_pods();
        let originals = json!({
            "PADDLE_PORT": "36000",
            "PADDLE_PSERVERS_IP_PORT_LIST": "wide-ps-0:36000,wide-ps-1:36000",
            "PADDLE_TRAINER_ENDPOINTS": "wide-worker-0:36000,wide-worker-1:36000",
            "PADDLE_TRAINERS_NUM": "2",
        });
        seen.children = vec![testkit::child(KEY, "ConfigMap", "wide", &[("/data", originals)])];
        assert_eq!(body(&job, &seen), None);
    }

    // A11: without replicas a job has no host ports, and lists none, since another job may have them.
    #[test]
    fn host_mode_lists_the_ports_that_the_job_has() {
        let mut scaled = job(&json!({ "intranet": "Host", "worker": role(2) }));
        let mut seen = testkit::seen(four_pods().pods.split_off(2));
        assert_eq!(body(&scaled, &seen), None, "it is given ports first");
        scaled.view.host_ports = Some(35_040);
        let existing = body(&scaled, &seen).unwrap();
        assert_eq!(existing["data"]["PADDLE_TRAINER_ENDPOINTS"], "10.0.0.20:35040,10.0.0.21:35040");
        let idle = job(&json!({ "intranet": "Host", "worker": role(0) }));
        seen = testkit::seen(vec![]);
        seen.children = vec![testkit::child(KEY, "ConfigMap", "wide", &[("/data", existing["data"].clone())])];
        let emptied = body(&idle, &seen).unwrap();
        assert_eq!(emptied["data"], json!({ "TRAINER_PORTS_NUM": "20" }));
        let with_old_port = json!({ "PADDLE_PORT": "35040", "TRAINER_PORTS_NUM": "20" });
        seen.children = vec![testkit::child(KEY, "ConfigMap", "wide", &[("/data", with_old_port)])];
        assert_eq!(body(&idle, &seen), Some(emptied));
    }

    // A12: heterogeneous workers are listed under both names (X).
    #[test]
    fn heterogeneous_workers_are_listed_under_the_name_paddle_reads() {
        let seen = testkit::seen(vec![
            pod("heter", 0, "wide-heter-0").with_ip("10.0.0.30"),
            pod("heter", 1, "wide-heter-1").with_ip("10.0.0.31"),
        ]);
        let data = &body(&job(&json!({ "heter": role(2) })), &seen).unwrap()["data"];
        assert_eq!(data["PADDLE_HETER_ENDPOINTS"], "10.0.0.30:36000,10.0.0.31:36000");
        assert_eq!(data["PADDLE_HETER_TRAINER_IP_PORT_LIST"], data["PADDLE_HETER_ENDPOINTS"]);
    }

    // A23: the original's ConfigMap stays byte for byte, and keeps its port when a pod is recreated.
    #[test]
    fn the_originals_config_map_stays_until_a_pod_moves() {
        let job = job(&json!({ "worker": role(2) }));
        let theirs = json!({ "PADDLE_PORT": "54081", "TRAINER_PORTS_NUM": "20", "PADDLE_TRAINERS": "10.0.0.20,10.0.0.21",
            "PADDLE_TRAINERS_NUM": "2", "PADDLE_TRAINER_ENDPOINTS": "10.0.0.20:54081,10.0.0.21:54081" });
        let mut seen = testkit::seen(four_pods().pods.split_off(2));
        seen.children = vec![testkit::child(KEY, "ConfigMap", "wide", &[("/data", theirs)])];
        assert_eq!(body(&job, &seen), None);
        seen.pods[1].ips = vec!["10.0.0.99".into()];
        assert_eq!(body(&job, &seen).unwrap()["data"]["PADDLE_TRAINER_ENDPOINTS"], "10.0.0.20:54081,10.0.0.99:54081");
    }

    // A23: running pods have read the original's gloo endpoint, which is the endpoint of ps 0.
    #[test]
    fn the_originals_gloo_endpoint_stays_when_a_pod_moves() {
        let job = job(&json!({ "withGloo": 1, "ps": role(2), "worker": role(2) }));
        let theirs = json!({ "PADDLE_PORT": "54081", "PADDLE_WITH_GLOO": "1", "PADDLE_GLOO_RENDEZVOUS": "3",
            "PADDLE_GLOO_HTTP_ENDPOINT": "10.0.0.10:54081" });
        let mut seen = four_pods();
        seen.children = vec![testkit::child(KEY, "ConfigMap", "wide", &[("/data", theirs)])];
        let data = &body(&job, &seen).unwrap()["data"];
        assert_eq!(data["PADDLE_GLOO_HTTP_ENDPOINT"], "10.0.0.10:54081");
    }
}
