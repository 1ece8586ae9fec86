//! JAXJob: the variables of `jax.distributed`.

use crate::env::{Variable, fixed, index, number};
use crate::family::Group;
use crate::valid::Valid;

pub(crate) fn variables(valid: &Valid<'_>, group: &Group<'_>) -> Vec<Variable> {
    let family = valid.family;
    let (port, host) = (valid.port("Worker"), family.host("worker", 0));
    vec![
        fixed("PYTHONUNBUFFERED", "1"),
        number("COORDINATOR_PORT", port),
        fixed("COORDINATOR_ADDRESS", &host),
        number("NUM_PROCESSES", family.total()),
        index("PROCESS_ID", group, 0),
        // Better: JAX itself reads this name, with the port, and none of those above (seen with 0.10.2).
        fixed("JAX_COORDINATOR_ADDRESS", format!("{host}:{port}")),
    ]
}

#[cfg(test)]
mod tests {
    use crate::fixtures::{replicas, spec, variables};
    use serde_json::json;

    // AC-08
    #[test]
    fn every_process_knows_the_coordinator_and_its_own_number() {
        let two = spec("JAXJob", &[("Worker", 2)], &json!({}));
        let expected = [
            "PYTHONUNBUFFERED=1",
            "COORDINATOR_PORT=6666",
            "COORDINATOR_ADDRESS=j-worker-0",
            "NUM_PROCESSES=2",
            "PROCESS_ID=1",
            "JAX_COORDINATOR_ADDRESS=j-worker-0:6666",
        ];
        assert_eq!(variables("JAXJob", &two, "worker", 0), expected);
        assert_eq!(variables("JAXJob", &two, "worker-0", 0)[4], "PROCESS_ID=0");
    }

    #[test]
    fn the_port_is_the_users_where_it_has_the_kinds_name() {
        let ports = json!([{ "containerPort": 1 }, { "name": "jaxjob-port", "containerPort": 7 }]);
        let own = json!({ "jaxReplicaSpecs": { "Worker": replicas("JAXJob", 1, &ports) } });
        assert_eq!(variables("JAXJob", &own, "worker-0", 0)[1], "COORDINATOR_PORT=7");
    }
}
