//! The modes of jobs that differ in what a framework makes of them.

use serde_json::Value;

/// Fields of a spec that choose a mode, with the one that an empty text chooses.
const CHOICES: [(&str, &str); 3] =
    [("intranet", "PodIP"), ("mpiImplementation", "OpenMPI"), ("launcherCreationPolicy", "AtStartup")];

/// Roles that serve a role `worker`, which is a collective without them.
const SERVERS: [&str; 2] = ["ps", "heter"];

/// Returns each mode of a job with its kind before it; the kind alone if it has no modes.
pub(super) fn of(job: &Value) -> Vec<String> {
    let (kind, spec) = (job["kind"].as_str().unwrap_or_default(), &job["spec"]);
    let chosen = CHOICES.iter().filter_map(|(field, default)| {
        let said = spec[*field].as_str()?;
        Some(if said.is_empty() { *default } else { said })
    });
    let servers: Vec<&str> = SERVERS.into_iter().filter(|role| !spec[*role].is_null()).collect();
    let is_collective = servers.is_empty() && !spec["worker"].is_null();
    let modes: Vec<&str> = chosen.chain(servers).chain(is_collective.then_some("collective")).collect();
    if modes.is_empty() {
        return vec![kind.to_owned()];
    }
    modes.into_iter().map(|mode| format!("{kind} {mode}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_job_has_each_mode_that_its_spec_chooses() {
        let modes = |kind: &str, spec: Value| of(&json!({ "kind": kind, "spec": spec }));
        let serving = json!({ "intranet": "Host", "worker": {}, "ps": {}, "heter": {} });
        assert_eq!(modes("PaddleJob", serving), ["PaddleJob Host", "PaddleJob ps", "PaddleJob heter"]);
        let collective = json!({ "intranet": "", "worker": {} });
        assert_eq!(modes("PaddleJob", collective), ["PaddleJob PodIP", "PaddleJob collective"]);
        let intel = json!({ "mpiImplementation": "Intel", "launcherCreationPolicy": "" });
        assert_eq!(modes("MPIJob", intel), ["MPIJob Intel", "MPIJob AtStartup"]);
        assert_eq!(modes("TFJob", json!({ "tfReplicaSpecs": {} })), ["TFJob"]);
    }
}
