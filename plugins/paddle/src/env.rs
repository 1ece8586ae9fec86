//! The environment of a Paddle container, and the other edits of a role's template.

use crate::{
    Job,
    spec::{Intranet, Role},
};
use serde_json::json;
use troupe_plugin::{Container, InitContainer, PodTemplate, Resources, index, pod_name, text, types::Piece};

/// The first port on which Paddle's processes listen, and the first of the 20 ports of each Service.
pub(crate) const PORT: u32 = 36_000;

/// Adds the edits that all replicas of the role share.
pub(crate) fn edit(job: &Job, role: &Role<'_>, template: &mut PodTemplate<'_>) {
    let policy = restart_policy(job, role, template);
    template.set("restartPolicy", policy);
    if !job.config.init_image.is_empty() && !job.config.is_lean(job.spec.intranet()) {
        let resources = Resources::beside(Some(&template.first_container()), job.config.init_resources.as_ref());
        let script = wait_for_names(job, role);
        let coordinator = InitContainer::shell("coord-paddle", &job.config.init_image, &script, resources);
        template.add_init_container(&coordinator);
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
        // Better: plain Python of a collective job ends without it (seen with Paddle 3.3.1). The port is that of the ConfigMap, of
        // which the kubelet expands variables too.
        if job.spec.ps.is_none() {
            container.env_unless_set("PADDLE_CURRENT_ENDPOINT", "$(POD_IP):$(PADDLE_PORT)");
        }
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
        // Better: `paddle.distributed.launch` takes what has no dot for no address, and then no pod is the master.
        env.push(("POD_IP".to_owned(), vec![pod_name(), text([".", job.namespace()].concat())]));
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

/// Returns the restart policy of a role's pods.
pub(crate) fn restart_policy(job: &Job, role: &Role<'_>, template: &PodTemplate<'_>) -> String {
    let users = template.get("restartPolicy").filter(|policy: &String| !policy.is_empty());
    match users {
        _ if job.spec.elastic.is_some() => "OnFailure".into(),
        Some(policy) => policy,
        None if role.name == "worker" && job.spec.intranet() == Intranet::Service => "OnFailure".into(),
        None => "Never".into(),
    }
}

/// Returns a script that waits until the names of all pods of the role resolve. It counts the names up, so that the
/// template does not grow with the replicas.
fn wait_for_names(job: &Job, role: &Role<'_>) -> String {
    let (replicas, pod) = (role.replicas().to_string(), [job.name(), "-", role.name, "-$i"].concat());
    [
        "i=0; while [ $i -lt ",
        &replicas,
        " ]; do n=0; until nslookup ",
        &pod,
        " >/dev/null 2>&1; do n=$((n+1)); if [ $n -ge 1000 ]; then echo ",
        &pod,
        " does not resolve; exit 1; fi; sleep 1; done; i=$((i+1)); done; sleep 2",
    ]
    .concat()
}
