//! The headless Service of each pod.

use troupe_plugin::{
    pod_name,
    types::{Body, Moment, Object, Upkeep},
};

/// How many ports a Service has; Paddle is told the same number.
pub(crate) const PORTS: u32 = 20;

/// A Service without its name and the name it selects. It is the same for every job: written down, not put together.
const SERVICE: &str = include_str!("service.json");

/// The Services of a role that the job does not have, or has no more: none is made, and those that are there go.
pub(crate) fn former_service(role: &str) -> Object {
    Object { body: Body::Fixed(("{}".into(), vec![])), ..service(role) }
}

/// One Service for each pod of a role, named like it.
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
        // Better: the original leaves the Service of a pod that was scaled away.
        remove_when: vec![Moment::Cleaned, Moment::ReplicaGone],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::PORT;
    use serde_json::{Value, json};

    #[test]
    fn a_service_has_every_port_that_paddle_is_told_of() {
        let service: Value = serde_json::from_str(SERVICE).unwrap();
        let port = |n| json!({ "name": format!("p-{n}"), "port": PORT + n, "targetPort": PORT + n, "protocol": "TCP" });
        assert_eq!(service["spec"]["ports"], (0..PORTS).map(port).collect::<Value>());
    }
}
