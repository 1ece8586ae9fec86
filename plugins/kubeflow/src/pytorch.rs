//! PyTorchJob: the variables of `torch.distributed` and `torchrun`, and elastic workers.

use crate::env::{Variable, fixed, index, number, unless_set};
use crate::family::{Family, Group};
use crate::kind::Quorum;
use crate::spec::{ElasticPolicy, given};
use crate::valid::{Valid, exactly_one};

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
        // Better: torchrun reads a number (seen with torch 2.15.0), and the original writes an empty text, for
        // `standalone: false` too.
        (elastic.standalone == Some(true)).then(|| fixed("PET_STANDALONE", "1")),
        // Better: with the shared store an agent that joins later, one that replaces another among them, waits for an address
        // that nobody publishes, and after 60 s all agents end with 1 (torch 2.15.0; pytorch issues 135712, 147064).
        (backend == "c10d").then(|| unless_set("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")),
    ];
    // Better: a Master is a node of the rendezvous too; the original counts the workers alone (trainer issue 2277).
    let masters = valid.family.replicas("Master").map_or(0, |masters| i64::from(masters.count));
    let (least, most) = (least.saturating_add(masters), most.saturating_add(masters));
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

/// What a command says that gives a rendezvous by itself: torchrun's options, and the variable of plain Python.
const RENDEZVOUS: [&str; 4] = ["rdzv-endpoint", "rdzv_endpoint", "MASTER_ADDR", "--master"];

/// Returns why the pods of the job cannot find each other.
pub(crate) fn warnings(family: &Family<'_>) -> Vec<(&'static str, String)> {
    let alone = family.replicas("Master").is_none() && family.job.spec.elastic_policy.is_none();
    let message = "without a Master and without an elasticPolicy the workers have no rendezvous: with torchrun each waits for \
                   the others at its own localhost, and plain Python has neither RANK nor MASTER_ADDR; add one of them, or say it in the command";
    let mut templates = family.replicas.iter().filter_map(|replicas| replicas.template);
    let is_told = templates.any(|template| RENDEZVOUS.iter().any(|word| template.mentions(word)));
    let mut warnings = vec![];
    if alone && family.total() > 1 && !is_told {
        warnings.push(("NoRendezvous", message.to_owned()));
    }
    if let Some(device) = given(family.job.spec.nproc_per_node.as_ref())
        && !device.as_bytes()[0].is_ascii_digit()
        && !DEVICES.contains(&device)
    {
        let known = DEVICES.join(", ");
        let message = [
            "spec.nprocPerNode: torchrun itself knows numbers and ",
            &known,
            "; ",
            device,
            " has to be a device of the image's torch",
        ];
        warnings.push(("UnknownValue", message.concat()));
    }
    warnings
}

/// What torchrun counts by itself (torch 2.15.0), beside the device that a package of the image registers.
const DEVICES: [&str; 4] = ["auto", "cpu", "gpu", "xpu"];

/// Returns whether torchrun may take it: a number of processes, or the name of a device.
fn is_nproc(text: &str) -> bool {
    let mut bytes = text.bytes();
    match bytes.next() {
        Some(b'1'..=b'9') => text.len() <= 4 && bytes.all(|byte| byte.is_ascii_digit()),
        Some(b'a'..=b'z') => bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'),
        _ => text.is_empty(),
    }
}

pub(crate) fn errors(family: &Family<'_>) -> Vec<(String, String)> {
    let field = family.kind.field;
    let mut errors: Vec<_> = exactly_one(family, "Master").into_iter().collect();
    if let Some(workers) = family.replicas("Worker")
        && workers.spec.replicas == Some(0)
    {
        errors.push((workers.path_of_count(family), "must be at least 1".to_owned()));
    }
    if family.job.spec.nproc_per_node.as_ref().is_some_and(|text| !is_nproc(text)) {
        let message = format!("must be one of {}, the name of another device, or a number from 1", DEVICES.join(", "));
        errors.push(("nprocPerNode".to_owned(), message));
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
    use crate::fixtures::{errors, job, of_job, spec, variables};
    use serde_json::json;

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
                        PET_NNODES=1:3 PET_MAX_RESTARTS=100 TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 unless set";
        assert_eq!(elastic(&policy), expected);
        let policy = json!({ "rdzvHost": "h", "rdzvPort": 1, "rdzvBackend": "etcd", "rdzvId": "i", "rdzvConf": [],
            "standalone": false, "nProcPerNode": 2 });
        let expected = "PET_RDZV_ENDPOINT=h:1 PET_RDZV_BACKEND=etcd PET_NNODES=2:2 PET_NPROC_PER_NODE=2 PET_RDZV_ID=i";
        assert_eq!(elastic(&policy), expected);
        let policy =
            json!({ "rdzvConf": [{ "key": "a", "value": "b" }, { "key": "c", "value": "d" }], "standalone": true });
        assert!(elastic(&policy).contains(" PET_RDZV_CONF=a=b,c=d PET_STANDALONE=1 "));
        let led = spec("PyTorchJob", &BOTH, &json!({ "elasticPolicy": { "minReplicas": 1, "maxReplicas": 3 } }));
        assert!(
            variables("PyTorchJob", &led, "worker", 0).contains(&"PET_NNODES=2:4".to_owned()),
            "the master is a node"
        );
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

    // AC-29
    #[test]
    fn workers_without_a_rendezvous_are_warned_of() {
        let warned = |types: &[(&str, u32)], others: &serde_json::Value| {
            let job = job("PyTorchJob", &spec("PyTorchJob", types, others));
            let warnings = warnings(&Family::of(&job).unwrap());
            warnings.into_iter().map(|(reason, _)| reason).collect::<Vec<_>>()
        };
        assert_eq!(warned(&[("Worker", 2)], &json!({})), ["NoRendezvous"]);
        assert!(warned(&[("Worker", 1)], &json!({})).is_empty() && warned(&BOTH, &json!({})).is_empty());
        assert!(warned(&[("Worker", 2)], &json!({ "elasticPolicy": {} })).is_empty());
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
