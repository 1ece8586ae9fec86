//! The environment of a Paddle container, and the other edits of a role's template.

use crate::{
    Job,
    spec::{Intranet, Role},
};
use serde::Serialize;
use serde_json::json;
use troupe_plugin::{Container, PodTemplate, index, pod_name, types::Piece};

/// The first port on which Paddle's processes listen, and the first of the 20 ports of each Service.
pub(crate) const PORT: u32 = 36_000;

/// Adds the edits that all replicas of the role share.
pub(crate) fn edit(job: &Job, role: &Role<'_>, template: &mut PodTemplate<'_>) {
    let policy = restart_policy(job, role, template);
    template.set("restartPolicy", policy);
    if !job.config.init_image.is_empty() && !job.config.is_lean(job.spec.intranet()) {
        let coordinator = InitContainer {
            name: "coord-paddle",
            image: &job.config.init_image,
            image_pull_policy: "IfNotPresent",
            command: ["sh", "-c", &wait_for_names(job, role)],
            resources: Resources { requests: Requests { cpu: "10m", memory: "10Mi" } },
        };
        template.push("initContainers", coordinator);
    }
    let mut container = template.first_container();
    // Empty values are placeholders, which keep the original's order; `per_replica` has the values.
    match job.spec.intranet() {
        Intranet::Service => container.env("POD_IP", ""),
        Intranet::PodIp | Intranet::Host => container.env_from_field("POD_IP", "status.podIP"),
    }
    container.env("PADDLE_TRAINER_ID", "");
    container.env("TRAINING_ROLE", role.training_role);
    container.env("PADDLE_TRAINING_ROLE", role.training_role);
    if job.spec.elastic.is_some() {
        elastic(job, &mut container);
    } else {
        container.push("envFrom", json!({ "configMapRef": { "name": job.name() } }));
    }
    match (job.spec.intranet(), job.view.host_ports) {
        (Intranet::Service, _) => container.push("ports", json!({ "containerPort": PORT })),
        // Better: the declared host port keeps the scheduler from putting two pods of the job on one node.
        (Intranet::Host, Some(port)) => container.push("ports", json!({ "containerPort": port, "hostPort": port })),
        (Intranet::PodIp | Intranet::Host, _) => {}
    }
    if job.spec.intranet() == Intranet::Host {
        template.set("hostNetwork", true);
        // Better: without this policy a pod on the host network cannot resolve cluster names.
        template.set("dnsPolicy", "ClusterFirstWithHostNet");
    }
}

/// Returns the variables whose value differs between replicas.
pub(crate) fn per_replica(job: &Job) -> Vec<(String, Vec<Piece>)> {
    let mut env = vec![("PADDLE_TRAINER_ID".to_owned(), vec![index()])];
    if job.spec.intranet() == Intranet::Service {
        env.push(("POD_IP".to_owned(), vec![pod_name()]));
    }
    env
}

fn elastic(job: &Job, container: &mut Container<'_, '_>) {
    let Some(worker) = &job.spec.worker else { return };
    // Better: the original never writes a range, although Paddle reads one.
    let np = match (worker.requests, worker.limits) {
        (Some(least), Some(most)) => format!("{least}:{most}"),
        _ => worker.replicas.to_string(),
    };
    container.env("PADDLE_ELASTIC_JOB_ID", &format!("{}-{}", job.namespace(), job.name()));
    container.env("PADDLE_ELASTIC_NP", &np);
    container.env("PADDLE_ELASTIC_TIMEOUT", "60");
}

fn restart_policy(job: &Job, role: &Role<'_>, template: &PodTemplate<'_>) -> String {
    let users = template.get("restartPolicy").filter(|policy: &String| !policy.is_empty());
    match users {
        _ if job.spec.elastic.is_some() => "OnFailure".into(),
        Some(policy) => policy,
        None if role.name == "worker" && job.spec.intranet() == Intranet::Service => "OnFailure".into(),
        None => "Never".into(),
    }
}

/// The fields of an init container that the plugin sets.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InitContainer<'a> {
    name: &'static str,
    image: &'a str,
    image_pull_policy: &'static str,
    command: [&'a str; 3],
    resources: Resources,
}

#[derive(Serialize)]
struct Resources {
    requests: Requests,
}

#[derive(Serialize)]
struct Requests {
    cpu: &'static str,
    memory: &'static str,
}

/// Returns a script that waits until the names of all pods of the role resolve. It counts the names up, so that the
/// template does not grow with the replicas.
fn wait_for_names(job: &Job, role: &Role<'_>) -> String {
    format!(
        "i=0; while [ $i -lt {replicas} ]; do n=0; until nslookup {job}-{role}-$i >/dev/null 2>&1; do n=$((n+1)); \
         if [ $n -ge 1000 ]; then echo {job}-{role}-$i does not resolve; exit 1; fi; sleep 1; done; i=$((i+1)); done; sleep 2",
        replicas = role.replicas(),
        job = job.name(),
        role = role.name,
    )
}
