//! PaddleJob: the variables of `paddle.distributed.launch`, with parameter servers or without.

use crate::env::{Value, Variable, fixed, number};
use crate::family::{Family, Group};
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

/// Better: the original takes a Master of no pods, whose end would be the job's.
pub(crate) fn errors(family: &Family<'_>) -> Vec<(String, String)> {
    let none = family.leader().filter(|leader| leader.spec.replicas == Some(0));
    none.map(|leader| (leader.path_of_count(family), "must be at least 1".to_owned())).into_iter().collect()
}

/// Returns what the commands of the job will not do: only `paddle.distributed.launch` reads the variables.
pub(crate) fn warnings(family: &Family<'_>) -> Vec<(&'static str, String)> {
    let mut warnings = vec![];
    for replicas in &family.replicas {
        let mentions = |text: &str| replicas.template.is_some_and(|template| template.mentions(text));
        let launches = mentions("paddle.distributed.launch") || mentions("fleetrun");
        let of = replicas.of.name;
        if !launches && family.total() > 1 && mentions("\"command\":[\"python") {
            let what = " is Python without paddle.distributed.launch, the only reader of the job's variables: each pod trains \
                        alone, and the job succeeds all the same";
            warnings.push(("TrainsAlone", ["the command of ", of, what].concat()));
        }
        if launches && of == "Master" {
            let what = "paddle.distributed.launch runs a server and a trainer in every pod of a job with a Master, since it takes \
                        a number that is not said for 1; start the programs without it, or leave the Master out";
            warnings.push(("ServersInEveryPod", what.to_owned()));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use crate::fixtures::{job, spec, variables};
    use crate::plan::plan;
    use serde_json::json;

    // AC-29
    #[test]
    fn pods_that_would_train_alone_and_servers_in_every_pod_are_warned_of() {
        let warned = |types: &[(&str, u32)], command: &[&str]| {
            let mut spec = spec("PaddleJob", types, &json!({}));
            for (name, _) in types {
                let template = &mut spec["paddleReplicaSpecs"][name]["template"];
                template["spec"]["containers"][0]["command"] = json!(command[..1]);
                template["spec"]["containers"][0]["args"] = json!(command[1..]);
            }
            let warnings = plan(&job("PaddleJob", &spec)).unwrap().warnings;
            warnings.into_iter().map(|event| event.reason).collect::<Vec<_>>()
        };
        let launch = ["python", "-m", "paddle.distributed.launch", "train.py"];
        let (workers, servers) = ([("Worker", 2)], [("Master", 1), ("Worker", 2)]);
        assert_eq!(warned(&workers, &["python3", "train.py"]), ["TrainsAlone"]);
        assert_eq!(warned(&servers, &launch), ["ServersInEveryPod"]);
        assert!(warned(&workers, &launch).is_empty());
        assert!(warned(&workers, &["sh", "train.sh"]).is_empty(), "nobody knows what it runs");
        assert!(warned(&[("Worker", 1)], &["python", "train.py"]).is_empty());
    }

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
