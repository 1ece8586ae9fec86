//! PyTorchJob: the variables of `torch.distributed` and `torchrun`, and elastic workers.

use crate::env::{Variable, fixed, index, number};
use crate::family::{Family, Group};
use crate::kind::Quorum;
use crate::spec::{ElasticPolicy, given};
use crate::valid::{Valid, exactly_one};
use troupe_plugin::{InitContainer, PodTemplate, Resources};

/// Any worker of an elastic job may end it: the others follow.
pub(crate) fn quorum(family: &Family<'_>) -> Quorum {
    if family.job.spec.elastic_policy.is_some() { Quorum::Any } else { Quorum::All }
}

pub(crate) fn variables(valid: &Valid<'_>, group: &Group<'_>) -> Vec<Variable> {
    let family = valid.family;
    let spec = &family.job.spec;
    let mut variables = vec![fixed("PYTHONUNBUFFERED", "1")];
    if family.replicas("Master").is_some() {
        let (port, host) = (valid.port("Master"), family.host("master", 0));
        let ranks_before = u32::from(group.of.name == "Worker");
        variables.extend([
            number("MASTER_PORT", port),
            number("PET_MASTER_PORT", port),
            fixed("MASTER_ADDR", &host),
            fixed("PET_MASTER_ADDR", &host),
            number("WORLD_SIZE", i64::from(family.total()).saturating_mul(processes(spec.nproc_per_node.as_ref()))),
            index("RANK", group, ranks_before),
            index("PET_NODE_RANK", group, ranks_before),
        ]);
    }
    let in_elastic = spec.elastic_policy.as_ref().and_then(|elastic| elastic.n_proc_per_node);
    match given(spec.nproc_per_node.as_ref()) {
        Some(processes) => variables.push(fixed("PET_NPROC_PER_NODE", processes)),
        None if in_elastic.is_none() => variables.push(fixed("PET_NPROC_PER_NODE", "auto")),
        None => {}
    }
    match &spec.elastic_policy {
        Some(elastic) => variables.extend(rendezvous(valid, elastic)),
        None => variables.push(number("PET_NNODES", family.total())),
    }
    variables
}

/// Returns how many processes there are in each pod, as far as `WORLD_SIZE` knows: `auto` counts as one.
fn processes(given: Option<&String>) -> i64 {
    given.and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn rendezvous(valid: &Valid<'_>, elastic: &ElasticPolicy) -> Vec<Variable> {
    let host = given(elastic.rdzv_host.as_ref()).map_or_else(|| valid.family.host("worker", 0), str::to_owned);
    let port = elastic.rdzv_port.unwrap_or_else(|| valid.port("Worker").into());
    let backend = given(elastic.rdzv_backend.as_ref()).unwrap_or("c10d");
    let (least, most) = limits(valid.family).unwrap_or_default();
    let conf = elastic.rdzv_conf.as_deref().unwrap_or_default().iter();
    let conf: Vec<_> = conf.map(|conf| format!("{}={}", conf.key, conf.value)).collect();
    let optional = [
        elastic.max_restarts.map(|restarts| number("PET_MAX_RESTARTS", restarts)),
        elastic.n_proc_per_node.map(|processes| number("PET_NPROC_PER_NODE", processes)),
        elastic.rdzv_id.as_ref().map(|id| fixed("PET_RDZV_ID", id)),
        (!conf.is_empty()).then(|| fixed("PET_RDZV_CONF", conf.join(","))),
        // Its presence means yes. Better: the original sets it for `standalone: false` too.
        (elastic.standalone == Some(true)).then(|| fixed("PET_STANDALONE", "")),
    ];
    [
        fixed("PET_RDZV_ENDPOINT", format!("{host}:{port}")),
        fixed("PET_RDZV_BACKEND", backend),
        fixed("PET_NNODES", format!("{least}:{most}")),
    ]
    .into_iter()
    .chain(optional.into_iter().flatten())
    .collect()
}

/// Returns the least and the most workers of an elastic job; one that is absent is the other, or the number of workers.
pub(crate) fn limits(family: &Family<'_>) -> Option<(i64, i64)> {
    let elastic = family.job.spec.elastic_policy.as_ref()?;
    let workers = family.replicas("Worker").map_or(0, |workers| i64::from(workers.count));
    let least = elastic.min_replicas.or(elastic.max_replicas).unwrap_or(workers);
    let most = elastic.max_replicas.or(elastic.min_replicas).unwrap_or(workers);
    Some((least, most))
}

/// Adds the init container of workers beside a master: they start when its name resolves.
pub(crate) fn add_init_container(family: &Family<'_>, group: &Group<'_>, template: &mut PodTemplate<'_>) {
    let config = &family.job.config;
    if config.pytorch_init_container_image.is_empty() || !waits_for_master(family, group) {
        return;
    }
    let (host, tries) = (family.host("master", 0), config.pytorch_init_container_max_tries);
    let wait = format!(
        "try=0; until nslookup {host}; do try=$((try+1)); \
         if [ $try -ge {tries} ]; then echo '{host} does not resolve'; exit 1; fi; sleep 2; done"
    );
    let given = config.pytorch_init_container_resources.as_ref();
    let resources = Resources::beside(template.container(family.kind.container).as_ref(), given);
    let image = &config.pytorch_init_container_image;
    template.add_init_container(&InitContainer::shell("init-pytorch", image, &wait, resources));
}

fn waits_for_master(family: &Family<'_>, group: &Group<'_>) -> bool {
    group.of.name == "Worker" && family.replicas("Master").is_some()
}

pub(crate) fn errors(family: &Family<'_>) -> Vec<(String, String)> {
    let field = family.kind.field;
    let mut errors: Vec<_> = exactly_one(family, "Master").into_iter().collect();
    if let Some(workers) = family.replicas("Worker")
        && workers.spec.replicas == Some(0)
    {
        errors.push((format!("{field}[{}].replicas", workers.key), "must be at least 1".to_owned()));
    }
    if let Some(elastic) = &family.job.spec.elastic_policy {
        if family.replicas("Worker").is_none() {
            errors.push((format!("{field}[Worker]"), "is required by spec.elasticPolicy".to_owned()));
        }
        if elastic.n_proc_per_node.is_some() && family.job.spec.nproc_per_node.is_some() {
            let message = "must not be set together with spec.nprocPerNode, which replaces it";
            errors.push(("elasticPolicy.nProcPerNode".to_owned(), message.to_owned()));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TrainingJob;
    use crate::fixtures::{errors, job, of_job, spec, variables};
    use crate::plan::plan;
    use serde_json::json;
    use troupe_plugin::testkit;
    use troupe_plugin::types::Template;

    const BOTH: [(&str, u32); 2] = [("Master", 1), ("Worker", 2)];

    // AC-05
    #[test]
    fn ranks_count_from_the_master() {
        let three = spec("PyTorchJob", &BOTH, &json!({}));
        let expected = [
            "PYTHONUNBUFFERED=1",
            "MASTER_PORT=23456",
            "PET_MASTER_PORT=23456",
            "MASTER_ADDR=j-master-0",
            "PET_MASTER_ADDR=j-master-0",
            "WORLD_SIZE=3",
            "RANK=2",
            "PET_NODE_RANK=2",
            "PET_NPROC_PER_NODE=auto",
            "PET_NNODES=3",
        ];
        assert_eq!(variables("PyTorchJob", &three, "worker", 0), expected);
        assert_eq!(variables("PyTorchJob", &three, "worker-0", 0)[6..8], ["RANK=1", "PET_NODE_RANK=1"]);
        assert_eq!(variables("PyTorchJob", &three, "master", 0)[6..8], ["RANK=0", "PET_NODE_RANK=0"]);
    }

    // AC-05
    #[test]
    fn a_number_of_processes_multiplies_the_world() {
        for (processes, world) in [("4", "WORLD_SIZE=12"), ("gpu", "WORLD_SIZE=3"), ("", "WORLD_SIZE=3")] {
            let spec = spec("PyTorchJob", &BOTH, &json!({ "nprocPerNode": processes }));
            let variables = variables("PyTorchJob", &spec, "master", 0);
            assert_eq!(variables[5], world);
            let given = if processes.is_empty() { "auto" } else { processes };
            assert_eq!(variables[8], format!("PET_NPROC_PER_NODE={given}"));
        }
    }

    #[test]
    fn workers_alone_have_no_rank() {
        let alone = variables("PyTorchJob", &spec("PyTorchJob", &[("Worker", 2)], &json!({})), "worker", 0);
        assert_eq!(alone, ["PYTHONUNBUFFERED=1", "PET_NPROC_PER_NODE=auto", "PET_NNODES=2"]);
    }

    // AC-06
    #[test]
    fn elastic_workers_meet_at_worker_0_unless_they_are_reported_where() {
        let elastic = |policy: &serde_json::Value| {
            let spec = spec("PyTorchJob", &[("Worker", 2)], &json!({ "elasticPolicy": policy }));
            variables("PyTorchJob", &spec, "worker", 0)[1..].join(" ")
        };
        let policy = json!({ "minReplicas": 1, "maxReplicas": 3, "maxRestarts": 100 });
        let expected = "PET_NPROC_PER_NODE=auto PET_RDZV_ENDPOINT=j-worker-0:23456 PET_RDZV_BACKEND=c10d \
                        PET_NNODES=1:3 PET_MAX_RESTARTS=100";
        assert_eq!(elastic(&policy), expected);
        let policy = json!({ "rdzvHost": "h", "rdzvPort": 1, "rdzvBackend": "etcd", "rdzvId": "i", "rdzvConf": [],
            "standalone": false, "nProcPerNode": 2 });
        let expected = "PET_RDZV_ENDPOINT=h:1 PET_RDZV_BACKEND=etcd PET_NNODES=2:2 PET_NPROC_PER_NODE=2 PET_RDZV_ID=i";
        assert_eq!(elastic(&policy), expected);
        let policy =
            json!({ "rdzvConf": [{ "key": "a", "value": "b" }, { "key": "c", "value": "d" }], "standalone": true });
        assert!(elastic(&policy).ends_with("PET_RDZV_CONF=a=b,c=d PET_STANDALONE="));
    }

    // Section 1.16
    #[test]
    fn one_limit_stands_for_the_other() {
        for (policy, expected) in [
            (json!({}), (2, 2)),
            (json!({ "minReplicas": 1 }), (1, 1)),
            (json!({ "maxReplicas": 4 }), (4, 4)),
            (json!({ "minReplicas": 1, "maxReplicas": 4 }), (1, 4)),
        ] {
            let job = job("PyTorchJob", &spec("PyTorchJob", &[("Worker", 2)], &json!({ "elasticPolicy": policy })));
            assert_eq!(limits(&Family::of(&job).unwrap()), Some(expected));
        }
    }

    // AC-05
    #[test]
    fn only_workers_beside_a_master_wait_for_its_name() {
        let waiting = |types: &[(&str, u32)], image: &str| {
            let spec = spec("PyTorchJob", types, &json!({}));
            let mut job = job("PyTorchJob", &spec);
            job.config.pytorch_init_container_image = image.into();
            let roles = plan(&job).unwrap().roles.into_iter();
            let waits = |template: &Template| testkit::template(template, &spec)["spec"]["initContainers"].is_array();
            roles.filter(|role| waits(&role.template)).map(|role| role.name).collect::<Vec<_>>()
        };
        assert_eq!(waiting(&BOTH, "alpine:3.10"), ["worker-0", "worker"]);
        assert!(waiting(&BOTH, "").is_empty());
        assert!(waiting(&[("Worker", 2)], "alpine:3.10").is_empty());
    }

    // AC-28
    #[test]
    fn the_container_in_which_a_worker_waits_asks_for_what_the_one_of_pytorch_asks_for() {
        let mut spec = spec("PyTorchJob", &BOTH, &json!({}));
        let containers = json!([
            { "name": "side", "image": "i", "resources": { "requests": { "cpu": "3" } } },
            { "name": "pytorch", "image": "i", "resources": { "limits": { "cpu": "1", "nvidia.com/gpu": 1 } } },
        ]);
        spec["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"] = containers;
        let mut job = job("PyTorchJob", &spec);
        let resources = |job: &TrainingJob| {
            let roles = plan(job).unwrap().roles;
            let worker = roles.iter().find(|role| role.name == "worker").unwrap();
            testkit::template(&worker.template, &spec)["spec"]["initContainers"][0]["resources"].clone()
        };
        assert_eq!(resources(&job), json!({ "limits": { "cpu": "1" } }));
        let given = json!({ "requests": { "cpu": "5m" } });
        job.config.pytorch_init_container_resources = Some(serde_json::from_value(given.clone()).unwrap());
        assert_eq!(resources(&job), given);
    }

    // AC-19
    #[test]
    fn what_cannot_work_is_refused_by_its_field() {
        for (types, others, path) in [
            (&[("Master", 2)][..], json!({}), "spec.pytorchReplicaSpecs[Master].replicas"),
            (&[("Master", 1), ("Worker", 0)], json!({}), "spec.pytorchReplicaSpecs[Worker].replicas"),
            (&[("Master", 1)], json!({ "elasticPolicy": {} }), "spec.pytorchReplicaSpecs[Worker]"),
            (
                &BOTH,
                json!({ "nprocPerNode": "2", "elasticPolicy": { "nProcPerNode": 2 } }),
                "spec.elasticPolicy.nProcPerNode",
            ),
        ] {
            let errors = errors(&job("PyTorchJob", &spec("PyTorchJob", types, &others)));
            assert_eq!(errors.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), [path]);
        }
        assert!(!of_job(&job("PyTorchJob", &spec("PyTorchJob", &BOTH, &json!({}))), "master", 0).is_empty());
    }
}
