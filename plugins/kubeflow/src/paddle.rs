//! PaddleJob: the variables of `paddle.distributed.launch`, with parameter servers or without.

use crate::env::{Value, Variable, fixed, number};
use crate::family::Group;
use crate::valid::Valid;

pub(crate) fn variables(valid: &Valid<'_>, group: &Group<'_>) -> Vec<Variable> {
    let family = valid.family;
    let mut variables = vec![
        fixed("PYTHONUNBUFFERED", "1"),
        fixed("PADDLE_JOB_ID", family.job.name()),
        number("PADDLE_NNODES", family.total()),
    ];
    let has_servers = family.replicas("Master").is_some();
    let (rendezvous, lower) = if has_servers { ("Master", "master") } else { ("Worker", "worker") };
    let port = valid.port(rendezvous);
    if group.of.name == rendezvous && group.is_first() {
        // Its own name may not resolve yet when it starts.
        variables.push(Variable { name: "POD_IP_DUMMY", value: Value::Field("status.podIP") });
        variables.push(fixed("PADDLE_MASTER", format!("$(POD_IP_DUMMY):{port}")));
    } else {
        variables.push(fixed("PADDLE_MASTER", format!("{}:{port}", family.host(lower, 0))));
    }
    if has_servers {
        let role = if group.of.name == "Master" { "PADDLE_SERVER_NUM" } else { "PADDLE_TRAINER_NUM" };
        variables.push(fixed(role, "1"));
    }
    variables
}

#[cfg(test)]
mod tests {
    use crate::fixtures::{spec, variables};
    use serde_json::json;

    // AC-08
    #[test]
    fn worker_0_is_the_rendezvous_of_a_collective_job() {
        let two = spec("PaddleJob", &[("Worker", 2)], &json!({}));
        let expected = ["PYTHONUNBUFFERED=1", "PADDLE_JOB_ID=j", "PADDLE_NNODES=2"];
        let worker_0 = ["POD_IP_DUMMY from status.podIP", "PADDLE_MASTER=$(POD_IP_DUMMY):36543"];
        assert_eq!(variables("PaddleJob", &two, "worker-0", 0), [&expected[..], &worker_0].concat());
        let others = ["PADDLE_MASTER=j-worker-0:36543"];
        assert_eq!(variables("PaddleJob", &two, "worker", 0), [&expected[..], &others].concat());
    }

    // AC-08
    #[test]
    fn master_0_is_the_rendezvous_beside_parameter_servers() {
        let servers = spec("PaddleJob", &[("Master", 2), ("Worker", 1)], &json!({}));
        let last = |role: &str| variables("PaddleJob", &servers, role, 0)[3..].to_vec();
        let master_0 = ["POD_IP_DUMMY from status.podIP", "PADDLE_MASTER=$(POD_IP_DUMMY):36543", "PADDLE_SERVER_NUM=1"];
        assert_eq!(last("master-0"), master_0);
        assert_eq!(last("master"), ["PADDLE_MASTER=j-master-0:36543", "PADDLE_SERVER_NUM=1"]);
        assert_eq!(last("worker-0"), ["PADDLE_MASTER=j-master-0:36543", "PADDLE_TRAINER_NUM=1"]);
    }
}
