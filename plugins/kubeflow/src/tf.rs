//! TFJob: `TF_CONFIG`, and which workers decide.

use crate::env::{Value, Variable, piece};
use crate::family::{Family, Group, Replicas};
use crate::fate::{Fate, RestartPolicy};
use crate::kind::{Quorum, ReplicaType};
use crate::spec::given;
use crate::valid::Valid;
use troupe_plugin::text;
use troupe_plugin::types::Piece;

/// The success policy that is not the default.
const ALL_WORKERS: &str = "AllWorkers";

pub(crate) fn quorum(family: &Family<'_>) -> Quorum {
    match family.job.spec.success_policy.as_deref() {
        Some(ALL_WORKERS) => Quorum::All,
        _ => Quorum::First,
    }
}

/// Workers that come and go may fail.
pub(crate) fn fate(family: &Family<'_>, of: &ReplicaType, policy: RestartPolicy, exit_code: Option<i32>) -> Fate {
    let is_dynamic = family.job.spec.enable_dynamic_worker == Some(true) && of.name == "Worker";
    match policy.fate(exit_code) {
        Fate::Fail if is_dynamic => Fate::Keep,
        fate => fate,
    }
}

/// Returns `TF_CONFIG`; a job of one pod has none.
pub(crate) fn variables(valid: &Valid<'_>, group: &Group<'_>) -> Vec<Variable> {
    if valid.family.total() == 1 {
        return vec![];
    }
    let is_sparse = valid.family.job.spec.enable_dynamic_worker == Some(true) && !group.of.leads;
    let value = if is_sparse { sparse(valid, group) } else { whole(valid, group) };
    vec![Variable { name: "TF_CONFIG", value: Value::PerReplica(value) }]
}

/// Returns the configuration with the addresses of all replicas but evaluators, which are not part of the cluster.
/// Types are in the order of the alphabet, as those of the kind are.
fn whole(valid: &Valid<'_>, group: &Group<'_>) -> Vec<Piece> {
    let mut begin = String::from("{\"cluster\":");
    let mut before = '{';
    for replicas in valid.family.replicas.iter().filter(|replicas| replicas.of.name != "Evaluator") {
        begin.extend([before, '"']);
        begin.push_str(replicas.of.lower);
        begin.push_str("\":");
        push_endpoints(&mut begin, valid, replicas);
        before = ',';
    }
    begin.push_str("},");
    pieces(begin, vec![], "", group, ",\"environment\":\"cloud\"}")
}

/// Returns the configuration of a job whose workers come and go: a worker knows itself and all parameter servers, a
/// parameter server itself, and one that leads knows all.
///
/// Better: the original gives a parameter server a list of itself alone, in which TensorFlow finds no task 1, and none that
/// leads is in its own cluster; without parameter servers it writes null, which is a `TypeError` (seen with TensorFlow 2.21.0).
fn sparse(valid: &Valid<'_>, group: &Group<'_>) -> Vec<Piece> {
    let end = address_end(valid, group.of.name);
    let own = format!("\"{}-{}-", valid.family.job.name(), group.of.lower);
    match group.of.name {
        "Worker" => {
            let mut servers = format!("{end}\"}},\"ps\":");
            match valid.family.replicas("PS") {
                Some(replicas) => push_endpoints(&mut servers, valid, replicas),
                None => servers.push_str("[]"),
            }
            servers.push_str("},");
            let own = vec![piece(group, 0), text(["\":", &own].concat()), piece(group, 0)];
            pieces("{\"cluster\":{\"worker\":{\"".to_owned(), own, &servers, group, "}")
        }
        "PS" => {
            let own = vec![piece(group, 0), text(["\":", &own].concat()), piece(group, 0)];
            pieces("{\"cluster\":{\"worker\":{},\"ps\":{\"".to_owned(), own, &(end + "\"}},"), group, "}")
        }
        _ => pieces("{\"cluster\":{\"worker\":{},\"ps\":[]},".to_owned(), vec![], "", group, "}"),
    }
}

/// Returns the cluster, which begins, has pieces of its own and ends, the task of a group's replicas, and the last
/// text.
fn pieces(begin: String, own: Vec<Piece>, end: &str, group: &Group<'_>, last: &str) -> Vec<Piece> {
    let mut pieces = vec![text(begin)];
    pieces.extend(own);
    pieces.push(text([end, "\"task\":{\"type\":\"", group.of.lower, "\",\"index\":"].concat()));
    pieces.push(piece(group, 0));
    pieces.push(text(["}", last].concat()));
    pieces
}

/// Adds the addresses of all replicas of a type, as a list of JSON.
fn push_endpoints(out: &mut String, valid: &Valid<'_>, replicas: &Replicas<'_>) {
    let end = address_end(valid, replicas.of.name);
    out.push('[');
    for index in 0..replicas.count {
        out.push_str(if index == 0 { "\"" } else { ",\"" });
        out.push_str(&valid.family.host(replicas.of.lower, index));
        out.push_str(&end);
        out.push('"');
    }
    out.push(']');
}

/// Returns what follows the name of a pod in its address.
fn address_end(valid: &Valid<'_>, name: &str) -> String {
    let job = valid.family.job;
    let domain = match job.config.cluster_domain.as_str() {
        "" => String::new(),
        domain => format!(".{domain}"),
    };
    format!(".{}.svc{domain}:{}", job.namespace(), valid.port(name))
}

/// Returns the types that TensorFlow refuses, and a success policy that is none.
pub(crate) fn warnings(family: &Family<'_>) -> Vec<(&'static str, String)> {
    let message =
        "the strategies of TensorFlow 2 refuse the type master in every task (`Disallowed task type`); use Chief";
    let mut warnings = vec![];
    if family.replicas("Master").is_some() {
        warnings.push(("TypeNotSupported", message.to_owned()));
    }
    if let Some(policy) = given(family.job.spec.success_policy.as_ref()).filter(|policy| *policy != ALL_WORKERS) {
        let message = ["spec.successPolicy: ", policy, " is not ", ALL_WORKERS, " and counts as absent"];
        warnings.push(("UnknownValue", message.concat()));
    }
    warnings
}

/// Better: the original also takes a Chief of two, of which TensorFlow refuses the second, and one of none, which never ends.
pub(crate) fn errors(family: &Family<'_>) -> Vec<(String, String)> {
    let both = family.replicas("Chief").is_some() && family.replicas("Master").is_some();
    let mut errors = vec![];
    if both {
        errors.push((family.kind.field.to_owned(), "must not have both Chief and Master".to_owned()));
    }
    if let Some(leader) = family.leader().filter(|leader| leader.spec.replicas.is_some_and(|count| count != 1)) {
        errors.push((leader.path_of_count(family), "must be 1".to_owned()));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{errors, job, of_job, spec, variables};
    use serde_json::{Value as Json, json};

    /// Returns `TF_CONFIG` of a replica as JSON.
    fn config(spec: &Json, role: &str, index: u32) -> Json {
        let variables = variables("TFJob", spec, role, index);
        assert_eq!(variables.len(), 1, "{variables:?}");
        serde_json::from_str(variables[0].strip_prefix("TF_CONFIG=").unwrap()).unwrap()
    }

    // AC-01
    #[test]
    fn every_replica_but_evaluators_is_in_the_cluster() {
        let types = [("Worker", 2), ("PS", 1), ("Chief", 1), ("Evaluator", 1)];
        let spec = spec("TFJob", &types, &json!({}));
        let cluster = json!({
            "chief": ["j-chief-0.ns.svc:2222"],
            "ps": ["j-ps-0.ns.svc:2222"],
            "worker": ["j-worker-0.ns.svc:2222", "j-worker-1.ns.svc:2222"],
        });
        for (role, name, index) in [("worker-0", "worker", 0), ("worker", "worker", 1), ("evaluator", "evaluator", 0)] {
            let task = json!({ "type": name, "index": index });
            let expected = json!({ "cluster": cluster, "task": task, "environment": "cloud" });
            assert_eq!(config(&spec, role, 0), expected);
        }
    }

    // AC-02
    #[test]
    fn a_job_of_one_pod_has_no_cluster_and_addresses_end_with_the_domain() {
        assert!(variables("TFJob", &spec("TFJob", &[("Worker", 1)], &json!({})), "worker-0", 0).is_empty());
        let mut job = job("TFJob", &spec("TFJob", &[("Worker", 2)], &json!({})));
        job.config.cluster_domain = "cluster.local".into();
        assert!(of_job(&job, "worker", 0)[0].contains("\"j-worker-1.ns.svc.cluster.local:2222\""));
    }

    // AC-03
    #[test]
    fn dynamic_workers_know_themselves_and_the_parameter_servers() {
        let dynamic = json!({ "enableDynamicWorker": true });
        let both = spec("TFJob", &[("PS", 2), ("Worker", 3)], &dynamic);
        let servers = ["j-ps-0.ns.svc:2222", "j-ps-1.ns.svc:2222"];
        let expected = json!({
            "cluster": { "worker": { "2": "j-worker-2.ns.svc:2222" }, "ps": servers },
            "task": { "type": "worker", "index": 2 },
        });
        assert_eq!(config(&both, "worker", 1), expected);
        let own = json!({ "1": servers[1] });
        let expected = json!({ "cluster": { "worker": {}, "ps": own }, "task": { "type": "ps", "index": 1 } });
        assert_eq!(config(&both, "ps", 1), expected);
        let workers = spec("TFJob", &[("Worker", 2)], &dynamic);
        assert_eq!(config(&workers, "worker-0", 0)["cluster"]["ps"], json!([]));
        let led = spec("TFJob", &[("Chief", 1), ("PS", 2), ("Worker", 1)], &dynamic);
        let cluster =
            json!({ "chief": ["j-chief-0.ns.svc:2222"], "ps": servers, "worker": ["j-worker-0.ns.svc:2222"] });
        let expected = json!({ "cluster": cluster, "task": { "type": "chief", "index": 0 }, "environment": "cloud" });
        assert_eq!(config(&led, "chief", 0), expected);
    }

    // AC-03: only their failures are theirs alone.
    #[test]
    fn dynamic_workers_may_fail() {
        let fate_of = |dynamic: bool, name: &str, policy, code| {
            let spec = spec("TFJob", &[("PS", 1), ("Worker", 2)], &json!({ "enableDynamicWorker": dynamic }));
            let job = job("TFJob", &spec);
            let family = Family::of(&job).unwrap();
            fate(&family, family.replicas(name).unwrap().of, policy, code)
        };
        assert_eq!(fate_of(true, "Worker", RestartPolicy::Never, Some(1)), Fate::Keep);
        assert_eq!(fate_of(true, "PS", RestartPolicy::Never, Some(1)), Fate::Fail);
        assert_eq!(fate_of(false, "Worker", RestartPolicy::Never, Some(1)), Fate::Fail);
        assert_eq!(fate_of(true, "Worker", RestartPolicy::ExitCode, Some(1)), Fate::FailForGood);
    }

    // AC-29
    #[test]
    fn a_type_that_tensorflow_refuses_is_warned_of() {
        let warned = |leader| {
            let job = job("TFJob", &spec("TFJob", &[(leader, 1), ("Worker", 1)], &json!({})));
            warnings(&Family::of(&job).unwrap()).len()
        };
        assert_eq!((warned("Master"), warned("Chief")), (1, 0));
    }

    // AC-19
    #[test]
    fn chief_and_master_exclude_each_other() {
        let both = job("TFJob", &spec("TFJob", &[("Chief", 1), ("Master", 1)], &json!({})));
        assert_eq!(errors(&both), [("spec.tfReplicaSpecs".into(), "must not have both Chief and Master".into())]);
    }
}
