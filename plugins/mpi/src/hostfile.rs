//! The MPI hostfile and the host discovery script: the hosts of a job and their names.

use crate::MpiJob;
use crate::validate::{Implementation, validate};
use serde_json::json;
use std::collections::BTreeSet;
use troupe_plugin::types::{Observation, PodPhase, Refusal};
use troupe_plugin::{ObservationExt, json_text};

/// The ConfigMap's key in the plan.
pub(crate) const KEY: &str = "config";
pub(crate) const HOSTFILE: &str = "hostfile";
pub(crate) const DISCOVER_HOSTS: &str = "discover_hosts.sh";
/// The maximum size of the two files, in bytes: the size limit of a ConfigMap less the rest of the object.
const MAX_BYTES: usize = 1_000_000;

/// Returns the ConfigMap's name.
pub(crate) fn name(job: &MpiJob) -> String {
    format!("{}-config", job.name())
}

/// Returns the body of the ConfigMap: the hostfile with the wanted hosts, and the script with the running hosts.
pub(crate) fn config_map(job: &MpiJob, seen: &Observation) -> Result<String, Refusal> {
    let valid = validate(job)?;
    let data = json!({
        HOSTFILE: hostfile(job, valid.implementation),
        DISCOVER_HOSTS: discover_hosts(job, seen),
    });
    Ok(json_text(&json!({ "metadata": { "labels": { "app": job.name() } }, "data": data })))
}

/// Returns the size of the two files once all workers run, in bytes, if it exceeds [`MAX_BYTES`]; otherwise None.
pub(crate) fn too_large(job: &MpiJob) -> Option<usize> {
    let last = job.spec.workers().max(1) - 1;
    let longest_host = host(job, &format!("worker-{last}")).len();
    // Both files name every host with a few characters around the name. JSON doubles the line end.
    let line = 2 * longest_host + "echo ".len() + " slots=".len() + job.spec.slots().to_string().len() + 4;
    let bytes = line.saturating_mul(usize::try_from(job.spec.workers()).unwrap_or(usize::MAX));
    (bytes > MAX_BYTES).then_some(bytes)
}

/// Returns the hostfile: one line per wanted host, the launcher first if it is a host. The state of the pods does not
/// matter.
fn hostfile(job: &MpiJob, implementation: Implementation) -> String {
    let slots = job.spec.slots();
    let launcher = job.spec.launcher_is_a_host().then(|| "launcher".to_owned());
    let workers = (0..job.spec.workers()).map(|index| format!("worker-{index}"));
    let hosts = launcher.into_iter().chain(workers).map(|pod| match implementation {
        // Intel MPI knows itself by its host name, or by the name in /etc/hosts, which has the cluster's domain. By another
        // name it connects to itself by SSH and fails (seen with 2021.18.1). Workers resolve the host name by their search
        // domain.
        Implementation::Intel if pod == "launcher" && job.config.cluster_domain.is_empty() => {
            format!("{}-{pod}", job.name())
        }
        _ => host(job, &pod),
    });
    let line = |host: String| match implementation {
        Implementation::OpenMpi => format!("{host} slots={slots}\n"),
        Implementation::Intel | Implementation::Mpich => format!("{host}:{slots}\n"),
    };
    hosts.map(line).collect()
}

/// Returns a script, for Elastic Horovod, that prints the available hosts: the launcher if it is a host, then the
/// running workers in alphabetical order.
fn discover_hosts(job: &MpiJob, seen: &Observation) -> String {
    let mut script = "#!/bin/sh\n".to_owned();
    if job.spec.launcher_is_a_host() {
        script += &format!("echo {}\n", host(job, "launcher"));
    }
    let running = seen.pods_of("worker").filter(|pod| pod.phase == PodPhase::Running);
    let mut names = BTreeSet::new();
    names.extend(running.map(|pod| pod.name.as_str()));
    let suffix = host_suffix(job);
    script.extend(names.iter().map(|pod| format!("echo {pod}{suffix}\n")));
    script
}

/// Returns the host name of a pod of the job, which the job's headless Service resolves.
fn host(job: &MpiJob, pod: &str) -> String {
    format!("{}-{pod}{}", job.name(), host_suffix(job))
}

fn host_suffix(job: &MpiJob) -> String {
    let domain = &job.config.cluster_domain;
    let dot = if domain.is_empty() { "" } else { "." };
    format!(".{}.{}.svc{dot}{domain}", job.name(), job.namespace())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{foo, job, parsed, pi, with_domain, worker, workers};
    use serde_json::Value;
    use troupe_plugin::testkit::{PodFixture, seen};
    use troupe_plugin::types::PodRow;

    fn files(job: &MpiJob, pods: Vec<PodRow>) -> (String, String) {
        let map = parsed(&config_map(job, &seen(pods)).unwrap());
        assert_eq!(map["metadata"]["labels"], json!({ "app": job.name() }));
        let file = |key: &str| map["data"][key].as_str().unwrap().to_owned();
        (file(HOSTFILE), file(DISCOVER_HOSTS))
    }

    fn foo_in_bar(spec: &Value) -> MpiJob {
        let mut job = foo(spec);
        job.view.namespace = "bar".into();
        job
    }

    // M01
    #[test]
    fn all_wanted_workers_are_in_the_hostfile_before_any_of_them_runs() {
        let (hostfile, discover) = files(&job("pi", &pi()), vec![]);
        assert_eq!(hostfile, "pi-worker-0.pi.default.svc slots=1\npi-worker-1.pi.default.svc slots=1\n");
        assert_eq!(discover, "#!/bin/sh\n");
    }

    // M02
    #[test]
    fn the_hosts_are_named_by_job_and_namespace() {
        assert_eq!(files(&foo_in_bar(&json!({})), vec![]).0, "foo-worker-0.foo.bar.svc slots=1\n");
    }

    // M03; a terminating pod that still runs is listed, a pending pod is not
    #[test]
    fn only_running_workers_are_discovered() {
        let pi = job("pi", &pi());
        let (_, discover) = files(&pi, workers("pi", 2, PodFixture::running_unready));
        assert_eq!(discover, "#!/bin/sh\necho pi-worker-0.pi.default.svc\necho pi-worker-1.pi.default.svc\n");
        let (_, discover) = files(&pi, vec![worker("pi", 0), worker("pi", 1).running().going()]);
        assert_eq!(discover, "#!/bin/sh\necho pi-worker-1.pi.default.svc\n");
    }

    // M12
    #[test]
    fn a_launcher_that_is_a_host_is_always_the_first_host() {
        let mut job = foo_in_bar(&json!({ "runLauncherAsWorker": true }));
        let entry = job.spec.mpi_replica_specs.as_mut().unwrap();
        entry.get_mut("Worker").unwrap().as_mut().unwrap().replicas = Some(2);
        let (hostfile, discover) = files(&job, vec![]);
        let expected =
            "foo-launcher.foo.bar.svc slots=1\nfoo-worker-0.foo.bar.svc slots=1\nfoo-worker-1.foo.bar.svc slots=1\n";
        assert_eq!(hostfile, expected);
        assert_eq!(discover, "#!/bin/sh\necho foo-launcher.foo.bar.svc\n");
        job.spec.mpi_replica_specs.as_mut().unwrap().remove("Worker");
        assert_eq!(files(&job, vec![]).0, "foo-launcher.foo.bar.svc slots=1\n");
    }

    // M12: by its long name Intel MPI does not know itself
    #[test]
    fn an_intel_launcher_that_is_a_host_is_listed_by_the_name_that_it_knows() {
        let mut spec = pi();
        spec["mpiImplementation"] = json!("Intel");
        spec["runLauncherAsWorker"] = json!(true);
        let first = |job: &MpiJob| files(job, vec![]).0.lines().next().unwrap().to_owned();
        assert_eq!(first(&job("pi", &spec)), "pi-launcher:1");
        assert_eq!(first(&with_domain("cluster.local", &spec)), "pi-launcher.pi.default.svc.cluster.local:1");
        spec["mpiImplementation"] = json!("MPICH");
        assert_eq!(first(&job("pi", &spec)), "pi-launcher.pi.default.svc:1");
    }

    #[test]
    fn a_job_without_workers_has_no_hosts_unless_the_launcher_is_a_host() {
        let mut job = foo(&json!({}));
        job.spec.mpi_replica_specs.as_mut().unwrap().remove("Worker");
        assert_eq!(files(&job, vec![]), (String::new(), "#!/bin/sh\n".to_owned()));
    }

    // M13
    #[test]
    fn intel_and_mpich_write_the_slots_after_a_colon() {
        for implementation in ["Intel", "MPICH"] {
            let mut spec = pi();
            spec["mpiImplementation"] = json!(implementation);
            spec["slotsPerWorker"] = json!(5);
            let mut job = job("pi", &spec);
            job.view.namespace = "foo".into();
            assert_eq!(files(&job, vec![]).0, "pi-worker-0.pi.foo.svc:5\npi-worker-1.pi.foo.svc:5\n");
        }
    }

    // M14
    #[test]
    fn the_clusters_domain_ends_every_host_name() {
        let (hostfile, discover) = files(&with_domain("cluster.local", &pi()), workers("pi", 1, PodFixture::running));
        assert!(hostfile.starts_with("pi-worker-0.pi.default.svc.cluster.local slots=1\n"));
        assert_eq!(discover, "#!/bin/sh\necho pi-worker-0.pi.default.svc.cluster.local\n");
    }

    // M15: eleven workers are in alphabetical order; scaled to 2, the hostfile shrinks at once, and the other workers
    // are discovered until they are gone
    #[test]
    fn an_elastic_job_discovers_running_hosts_and_lists_wanted_hosts() {
        let mut spec = pi();
        spec["mpiReplicaSpecs"]["Worker"]["replicas"] = json!(11);
        let eleven = workers("pi", 11, PodFixture::running);
        let (hostfile, discover) = files(&job("pi", &spec), eleven.clone());
        let order: Vec<_> = discover.lines().skip(1).map(|line| line.split(['-', '.']).nth(2).unwrap()).collect();
        assert_eq!(order, ["0", "1", "10", "2", "3", "4", "5", "6", "7", "8", "9"]);
        assert!(hostfile.lines().nth(2).unwrap().starts_with("pi-worker-2."));
        let (hostfile, discover) = files(&job("pi", &pi()), eleven);
        assert_eq!((hostfile.lines().count(), discover.lines().count()), (2, 12));
    }

    #[test]
    fn files_within_the_size_limit_fit_into_a_config_map() {
        let mut spec = pi();
        spec["mpiReplicaSpecs"]["Worker"]["replicas"] = json!(10_000);
        let large = job("pi", &spec);
        let body = config_map(&large, &seen(workers("pi", 10_000, PodFixture::running))).unwrap();
        assert!(too_large(&large).is_none() && body.len() < 1 << 20, "{}", body.len());
        spec["mpiReplicaSpecs"]["Worker"]["replicas"] = json!(i32::MAX);
        assert!(too_large(&job("pi", &spec)).is_some());
    }
}
