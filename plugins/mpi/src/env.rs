//! The environment of the first container: the variables of each MPI implementation, in order.

use crate::MpiJob;
use crate::validate::Implementation;
use troupe_plugin::Container;

const HOSTFILE: &str = "/etc/mpi/hostfile";
/// The SSH arguments: `mpirun` may connect before the workers' sshd accepts connections.
const SSH_ARGS: &str = "-o ConnectionAttempts=10";

/// Adds the launcher's variables after the user's. The original's variables override a user's variable of the same
/// name; the `PRTE_MCA_*` variables and the blank NVIDIA variables do not.
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
        // The container runtime must not give the node's GPUs to a launcher that computes nothing.
        env_unless_set(container, "NVIDIA_VISIBLE_DEVICES", "");
        env_unless_set(container, "NVIDIA_DRIVER_CAPABILITIES", "");
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
    // Open MPI 5 replaced ORTE by PRTE and reads only the variables below. Without them every rank runs in the
    // launcher.
    env_unless_set(container, "PRTE_MCA_prte_default_hostfile", HOSTFILE);
    env_unless_set(container, "PRTE_MCA_prte_set_default_slots", slots);
    env_unless_set(container, "PRTE_MCA_plm_ssh_args", SSH_ARGS);
    // PRTE knows its own host only by its short name: with long names it would connect to the launcher's entry by SSH.
    env_unless_set(container, "PRTE_MCA_prte_keep_fqdn_hostnames", if launcher_is_a_host { "false" } else { "true" });
}

fn env_unless_set(container: &mut Container<'_, '_>, name: &str, value: &str) {
    if !container.has_env(name) {
        container.env(name, value);
    }
}
