//! The workers' pods: each a proxy that calls mpirun and runs one process for it.

use crate::launcher;
use crate::validate::{Data, Memory, Valid};
use serde_json::{Value, json};
use troupe_plugin::text;
use troupe_plugin::types::Piece;

/// The workers' role, and what the name of their Job ends with.
pub(crate) const ROLE: &str = "workers";
/// Their container.
pub(crate) const CONTAINER: &str = "rhino-mpi-worker";
/// Where the call stands in the template.
pub(crate) const CALL: &str = "/spec/containers/0/args/1";

/// What their Job has beside its template. Better: a worker that failed is not tried again, since mpirun takes no
/// process back; the original tries in vain.
pub(crate) fn job_spec(valid: &Valid<'_>) -> Value {
    json!({
        "completionMode": "Indexed",
        "completions": valid.parallelism,
        "parallelism": valid.parallelism,
        "backoffLimit": 0,
    })
}

/// The spec of a worker's pod, but for what stands at [`CALL`].
pub(crate) fn pod_spec(valid: &Valid<'_>) -> Value {
    let mut container = json!({
        "name": CONTAINER,
        "image": valid.image,
        // Better: the original's `ash` is not in every image.
        "command": ["/bin/sh"],
        "args": ["-c", ""],
    });
    let mut spec = json!({ "restartPolicy": "Never" });
    if let Data::Nfs { server, path } = valid.data {
        container["volumeMounts"] = json!([{ "name": "data", "mountPath": "/data" }]);
        spec["volumes"] = json!([{ "name": "data", "nfs": { "server": server, "path": path } }]);
    }
    spec["containers"] = json!([container]);
    spec
}

/// The call of the launcher. Its port is the first that the image allows MPICH.
pub(crate) fn call() -> Vec<Piece> {
    vec![
        text("hydra_pmi_proxy --control-port "),
        Piece::PeerHost((launcher::ROLE.to_owned(), 0)),
        text(":20000 --debug --rmk user --launcher manual --demux poll --pgid 0 --retries 10 --usize -2"),
        text(" --proxy-id $JOB_COMPLETION_INDEX"),
    ]
}

/// The size of a worker in the words of Alibaba's elastic containers: one core, and memory.
pub(crate) fn eci_specs(valid: &Valid<'_>) -> String {
    match valid.memory {
        Memory::PerCore(size) => format!("1-{size}Gi"),
        Memory::Total(size) => format!("1-{}.0Gi", size.div_ceil(valid.parallelism)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{grape, job, sample};
    use crate::validate::validate;

    fn worker(spec: &Value) -> Value {
        pod_spec(&validate(&job("sample", spec)).unwrap())
    }

    fn size(fields: &[(&str, Value)]) -> String {
        let mut spec = sample();
        for (field, value) in fields {
            spec[*field] = value.clone();
        }
        eci_specs(&validate(&job("sample", &spec)).unwrap())
    }

    // R02
    #[test]
    fn a_worker_runs_once_in_a_shell_that_every_image_has() {
        let container = json!({
            "name": "rhino-mpi-worker",
            "image": "openrhino/mpi-func:v1",
            "command": ["/bin/sh"],
            "args": ["-c", ""],
        });
        assert_eq!(worker(&sample()), json!({ "restartPolicy": "Never", "containers": [container] }));
    }

    // R02
    #[test]
    fn its_job_has_an_index_for_each_process() {
        let job = job("sample", &sample());
        let expected = json!({ "completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimit": 0 });
        assert_eq!(job_spec(&validate(&job).unwrap()), expected);
    }

    // R02
    #[test]
    fn it_calls_the_launcher_at_its_address_and_says_which_process_it_is() {
        let said: String = call()
            .into_iter()
            .map(|piece| match piece {
                Piece::Text(text) => text,
                Piece::PeerHost((role, 0)) if role == "launcher" => "10.1.2.3".to_owned(),
                other => panic!("{other:?}"),
            })
            .collect();
        let expected = "hydra_pmi_proxy --control-port 10.1.2.3:20000 --debug --rmk user --launcher manual \
            --demux poll --pgid 0 --retries 10 --usize -2 --proxy-id $JOB_COMPLETION_INDEX";
        assert_eq!(said, expected);
        assert_eq!(json!({ "spec": worker(&sample()) }).pointer(CALL), Some(&json!("")));
    }

    // R02, R03
    #[test]
    fn memory_is_each_workers_own_or_its_share_rounded_up() {
        assert_eq!(size(&[]), "1-2Gi");
        assert_eq!(size(&[("memoryAllocationSize", json!(7))]), "1-7Gi");
        let total = ("memoryAllocationMode", json!("FixedTotalMemory"));
        assert_eq!(size(&[total.clone(), ("memoryAllocationSize", json!(5))]), "1-3.0Gi");
        assert_eq!(size(&[total, ("memoryAllocationSize", json!(1)), ("parallelism", json!(4))]), "1-1.0Gi");
    }

    // R03: a v1alpha1 object
    #[test]
    fn workers_share_the_users_directory() {
        let worker = worker(&grape());
        let volume = json!({ "name": "data", "nfs": { "server": "10.0.0.7", "path": "/kfnmck56" } });
        assert_eq!(worker["volumes"], json!([volume]));
        let mounts = &worker["containers"][0]["volumeMounts"];
        assert_eq!(mounts, &json!([{ "name": "data", "mountPath": "/data" }]));
        assert_eq!(eci_specs(&validate(&job("grape", &grape())).unwrap()), "1-2Gi");
    }

    // R03
    #[test]
    fn a_path_without_a_server_is_no_volume() {
        let mut spec = sample();
        spec["dataPath"] = json!("/kfnmck56");
        assert_eq!(worker(&spec), worker(&sample()));
    }
}
