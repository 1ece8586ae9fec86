//! The headless Service of each pod.

use troupe_plugin::{
    pod_name,
    types::{Body, Moment, Object, Upkeep},
};

/// The number of ports of a Service, and of host ports of a job; also Paddle's `TRAINER_PORTS_NUM`.
pub(crate) const PORTS: u32 = 20;

/// The body of a Service, without its name and the name in its selector. It is the same for every job.
const SERVICE: &str = include_str!("service.json");

/// Returns the Service object of a role that the job does not have. The host creates no Service and deletes existing
/// ones.
pub(crate) fn former_service(role: &str) -> Object {
    Object { body: Body::Fixed(("{}".into(), vec![])), ..service(role) }
}

/// Returns the Service object of a role: one Service per pod, with the pod's name.
pub(crate) fn service(role: &str) -> Object {
    Object {
        key: format!("service-{role}"),
        api_version: "v1".into(),
        kind: "Service".into(),
        name: vec![pod_name()],
        per_pod_of: Some(role.into()),
        body: Body::Fixed((SERVICE.into(), vec![("/spec/selector/paddle-res-name".into(), vec![pod_name()])])),
        upkeep: Upkeep::CreateOnly,
        after: vec![],
        // Better: the original keeps the Service of a pod that was scaled down.
        remove_when: vec![Moment::Cleaned, Moment::ReplicaGone],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::PORT;
    use serde_json::{Value, json};

    #[test]
    fn a_service_has_every_port_that_paddle_may_use() {
        let service: Value = serde_json::from_str(SERVICE).unwrap();
        let port = |n| json!({ "name": format!("p-{n}"), "port": PORT + n, "targetPort": PORT + n, "protocol": "TCP" });
        assert_eq!(service["spec"]["ports"], (0..PORTS).map(port).collect::<Value>());
    }
}
