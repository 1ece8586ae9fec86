//! The environment of the first container: which variables each MPI implementation reads, in which order.

use crate::MpiJob;
use crate::validate::Implementation;
use troupe_plugin::Container;

const HOSTFILE: &str = "/etc/mpi/hostfile";
/// The workers' sshd may answer later than mpirun calls.
const SSH_ARGS: &str = "-o ConnectionAttempts=10";

/// Adds the launcher's variables after the user's. Those of the original win over a user's of the same name, as they
/// always did; the ones that came later, and the blanks for NVIDIA, give way to the user's.
pub(crate) fn launcher(container: &mut Container<'_, '_>, job: &MpiJob, implementation: Implementation) {
    container.env("K_MPI_JOB_ROLE", "launcher");
    let slots = job.spec.slots().to_string();
    match implementation {
        Implementation::OpenMpi => open_mpi(container, &slots, job.spec.launcher_is_a_host()),
        Implementation::Intel => {
            container.env("I_MPI_HYDRA_HOST_FILE", HOSTFILE);
            container.env("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", SSH_ARGS);
            container.env("I_MPI_PERHOST", &slots);
        }
        Implementation::Mpich => {
            container.env("HYDRA_HOST_FILE", HOSTFILE);
            container.env("HYDRA_LAUNCH_EXTRA_ARGS", SSH_ARGS);
        }
    }
    if !job.spec.launcher_is_a_host() {
        // A launcher that computes nothing must not be given the node's GPUs by the container runtime.
        yielding(container, "NVIDIA_VISIBLE_DEVICES", "");
        yielding(container, "NVIDIA_DRIVER_CAPABILITIES", "");
    }
}

/// Adds a worker's variable after the user's.
pub(crate) fn worker(container: &mut Container<'_, '_>) {
    container.env("K_MPI_JOB_ROLE", "worker");
}

fn open_mpi(container: &mut Container<'_, '_>, slots: &str, launcher_is_a_host: bool) {
    container.env("OMPI_MCA_orte_keep_fqdn_hostnames", "true");
    container.env("OMPI_MCA_orte_default_hostfile", HOSTFILE);
    container.env("OMPI_MCA_plm_rsh_args", SSH_ARGS);
    container.env("OMPI_MCA_orte_set_default_slots", slots);
    // Open MPI 5 replaced ORTE by PRTE and reads none of the above: without these every rank runs in the launcher.
    yielding(container, "PRTE_MCA_prte_default_hostfile", HOSTFILE);
    yielding(container, "PRTE_MCA_prte_set_default_slots", slots);
    yielding(container, "PRTE_MCA_plm_ssh_args", SSH_ARGS);
    // PRTE knows its own host by its short name only: with long names it would reach the launcher's own entry by SSH.
    yielding(container, "PRTE_MCA_prte_keep_fqdn_hostnames", if launcher_is_a_host { "false" } else { "true" });
}

fn yielding(container: &mut Container<'_, '_>, name: &str, value: &str) {
    if !container.has_env(name) {
        container.env(name, value);
    }
}
