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
            // Better: MPICH reads this name alone (seen with 5.0.2; 3.4.3 to 5.0.2 have no other).
            container.env_unless_set("HYDRA_LAUNCHER_EXTRA_ARGS", SSH_ARGS);
        }
    }
    if !job.spec.launcher_is_a_host() {
        // The container runtime must not give the node's GPUs to a launcher that computes nothing.
        container.env_unless_set("NVIDIA_VISIBLE_DEVICES", "");
        container.env_unless_set("NVIDIA_DRIVER_CAPABILITIES", "");
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
    container.env_unless_set("PRTE_MCA_prte_default_hostfile", HOSTFILE);
    container.env_unless_set("PRTE_MCA_prte_set_default_slots", slots);
    container.env_unless_set("PRTE_MCA_plm_ssh_args", SSH_ARGS);
    // PRTE hands the arguments to its daemons cut at the `=`. As a tree the first daemon starts number 65, with half an
    // option: exit code 255 without a word (seen with Open MPI 5.0.11). Without a tree the launcher starts them all.
    container.env_unless_set("PRTE_MCA_plm_ssh_no_tree_spawn", "1");
    // PRTE knows its own host only by its short name: with long names it would connect to the launcher's entry by SSH.
    container.env_unless_set("PRTE_MCA_prte_keep_fqdn_hostnames", if launcher_is_a_host { "false" } else { "true" });
}

/// Returns the user's variables that Open MPI 4 reads and Open MPI 5 ignores without a word (seen with 5.0.11), each with what
/// Open MPI 5 reads, unless the container has that too. Those that the plugin sets are none of them.
pub(crate) fn ignored_by_open_mpi_5(container: &Container<'_, '_>) -> Vec<(String, String)> {
    let ours = ["orte_keep_fqdn_hostnames", "orte_default_hostfile", "plm_rsh_args", "orte_set_default_slots"];
    let read = |name: &str| {
        let name = name.strip_prefix("OMPI_MCA_").filter(|name| !ours.contains(name))?;
        let of_5 = |prefix, new| name.strip_prefix(prefix).map(|rest| ["PRTE_MCA_", new, rest].concat());
        of_5("orte_", "prte_").or_else(|| of_5("plm_rsh_", "plm_ssh_")).filter(|read| !container.has_env(read))
    };
    container.env_names().iter().filter_map(|name| Some((name.to_string(), read(name)?))).collect()
}
