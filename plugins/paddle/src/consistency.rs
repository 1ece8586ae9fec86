//! Property tests of the rules that Paddle's sources impose on the environment (I1 to I6 of the behaviour spec), for
//! jobs of every mode.

use crate::{Job, Paddle, rendezvous};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use troupe_plugin::{
    Framework,
    testkit::{self, PodFixture, pod},
    types::{JobPlan, Observation, Piece},
};

/// The roles, and the address prefix of their pods.
const ROLES: [(&str, &str); 3] = [("ps", "10.1.0"), ("worker", "10.2.0"), ("heter", "10.3.0")];
/// The first of the host ports that the host reserves.
const PORTS: u32 = 35_040;

/// A job, its pods with their addresses, and the environment of its containers.
#[derive(Debug)]
struct Case {
    spec: Value,
    replicas: BTreeMap<&'static str, u32>,
    seen: Observation,
    plan: JobPlan,
    data: BTreeMap<String, String>,
}

fn spec() -> impl Strategy<Value = Value> {
    let role = || prop::option::weighted(0.7, 0..5_u32);
    let intranet = prop::sample::select(vec![None, Some("PodIP"), Some("Service"), Some("Host"), Some("Foo")]);
    (intranet, role(), role(), role(), prop::option::of(0..3_i64)).prop_map(|(intranet, ps, worker, heter, gloo)| {
        let mut spec = json!({ "intranet": intranet, "withGloo": gloo });
        for (name, replicas) in [("ps", ps), ("worker", worker), ("heter", heter)] {
            if let Some(replicas) = replicas {
                let template = json!({ "spec": { "containers": [{ "name": "paddle" }] } });
                spec[name] = json!({ "replicas": replicas, "template": template });
            }
        }
        spec
    })
}

/// Returns the job once every pod has an address; None for a job without pods.
fn case(spec: Value) -> Option<Case> {
    let replicas: BTreeMap<_, _> = ROLES
        .into_iter()
        .map(|(role, _)| (role, u32::try_from(spec[role]["replicas"].as_u64().unwrap_or(0)).unwrap()))
        .collect();
    if replicas.values().sum::<u32>() == 0 {
        return None;
    }
    let mut view = testkit::job("PaddleJob", "wide", &spec);
    view.host_ports = Some(PORTS);
    let job = Job::parse(view).unwrap();
    let pods = ROLES.into_iter().flat_map(|(role, net)| {
        (0..replicas[role]).map(move |index| {
            pod(role, index, &format!("wide-{role}-{index}")).with_ip(&format!("{net}.{}", index + 10))
        })
    });
    let seen = testkit::seen(pods.collect());
    let bound = Paddle::bind(&job, &seen, &[rendezvous::KEY.to_owned()]).unwrap();
    let body: Value = serde_json::from_str(&bound.bodies[0].1).unwrap();
    let data = serde_json::from_value(body["data"].clone()).unwrap();
    let plan = Paddle::plan(&job).unwrap();
    Some(Case { spec, replicas, seen, plan, data })
}

impl Case {
    fn is(&self, intranet: &str) -> bool {
        self.spec["intranet"] == intranet
    }

    /// Returns the value of `POD_IP` in the pod's container.
    fn pod_ip(&self, role: &str, index: u32) -> String {
        let pod = self.seen.pods.iter().find(|pod| pod.role == role && pod.index == Some(index)).unwrap();
        let role = self.plan.roles.iter().find(|planned| planned.name == role).unwrap();
        match role.env.iter().find(|entry| entry.name == "POD_IP") {
            Some(entry) => entry.value.iter().map(|piece| filled(piece, &pod.name)).collect(),
            None => pod.ips[0].clone(),
        }
    }

    fn list(&self, key: &str) -> Vec<&str> {
        self.data.get(key).map(|text| text.split(',').collect()).unwrap_or_default()
    }

    fn endpoints(&self) -> Vec<&str> {
        let keys = ["PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_TRAINER_ENDPOINTS", "PADDLE_HETER_TRAINER_IP_PORT_LIST"];
        keys.into_iter().flat_map(|key| self.list(key)).collect()
    }
}

fn filled(piece: &Piece, pod: &str) -> String {
    match piece {
        Piece::PodName => pod.to_owned(),
        Piece::Text(text) => text.clone(),
        other => panic!("no address has {other:?}"),
    }
}

fn host(endpoint: &str) -> &str {
    endpoint.rsplit_once(':').unwrap().0
}

proptest! {
    // I1
    #[test]
    fn a_server_finds_itself_in_the_list(spec in spec()) {
        let Some(case) = case(spec) else { return Ok(()) };
        for (index, endpoint) in (0..).zip(case.list("PADDLE_PSERVERS_IP_PORT_LIST")) {
            prop_assert_eq!(endpoint, format!("{}:{}", case.pod_ip("ps", index), case.data["PADDLE_PORT"]));
        }
    }

    // I2
    #[test]
    fn a_trainer_is_where_the_lists_say(spec in spec()) {
        let Some(case) = case(spec) else { return Ok(()) };
        let (endpoints, hosts) = (case.list("PADDLE_TRAINER_ENDPOINTS"), case.list("PADDLE_TRAINERS"));
        for (index, endpoint) in (0..).zip(&endpoints) {
            let own = case.pod_ip("worker", index);
            prop_assert_eq!((host(endpoint), hosts[index as usize]), (own.as_str(), own.as_str()));
        }
    }

    // I3
    #[test]
    fn lists_are_as_long_as_the_roles(spec in spec()) {
        let Some(case) = case(spec) else { return Ok(()) };
        let length = |key| u32::try_from(case.list(key).len()).unwrap();
        prop_assert_eq!(length("PADDLE_PSERVERS_IP_PORT_LIST"), case.replicas["ps"]);
        prop_assert_eq!(length("PADDLE_TRAINER_ENDPOINTS"), case.replicas["worker"]);
        prop_assert_eq!(length("PADDLE_TRAINERS"), case.replicas["worker"]);
        prop_assert_eq!(length("PADDLE_HETER_ENDPOINTS"), case.replicas["heter"]);
        let trainers = case.data.get("PADDLE_TRAINERS_NUM").map_or(0, |number| number.parse().unwrap());
        prop_assert_eq!(trainers, case.replicas["worker"]);
    }

    // I4
    #[test]
    fn the_gloo_rendezvous_is_on_the_first_server_and_on_a_port_of_its_own(spec in spec()) {
        let Some(case) = case(spec) else { return Ok(()) };
        let wanted = case.spec["withGloo"].as_i64().is_some_and(|gloo| gloo > 0) && case.replicas["ps"] > 0;
        prop_assert_eq!(case.data.contains_key("PADDLE_GLOO_HTTP_ENDPOINT"), wanted);
        if let Some(gloo) = case.data.get("PADDLE_GLOO_HTTP_ENDPOINT") {
            prop_assert_eq!(host(gloo), case.pod_ip("ps", 0));
            prop_assert!(!case.endpoints().contains(&gloo.as_str()));
        }
    }

    // I5
    #[test]
    fn no_two_pods_share_an_endpoint(spec in spec()) {
        let Some(case) = case(spec) else { return Ok(()) };
        let endpoints = case.endpoints();
        prop_assert_eq!(endpoints.iter().collect::<BTreeSet<_>>().len(), endpoints.len());
    }

    // I6: the scheduler puts pods that declare the same host port on different nodes
    #[test]
    fn each_trainer_has_a_host_of_its_own(spec in spec()) {
        let Some(case) = case(spec) else { return Ok(()) };
        let hosts: BTreeSet<_> = case.list("PADDLE_TRAINERS").into_iter().collect();
        prop_assert_eq!(u32::try_from(hosts.len()).unwrap(), case.replicas["worker"]);
        prop_assert_eq!(case.plan.host_ports > 0, case.is("Host"));
        for role in case.plan.roles.iter().filter(|role| case.is("Host") && role.replicas > 0) {
            let template = testkit::template(&role.template, &case.spec);
            let port = json!({ "containerPort": PORTS, "hostPort": PORTS });
            prop_assert_eq!(&template["spec"]["containers"][0]["ports"], &json!([port]));
            prop_assert_eq!(&case.data["PADDLE_PORT"], &PORTS.to_string());
        }
    }
}
