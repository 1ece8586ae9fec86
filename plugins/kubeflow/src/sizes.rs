//! The sizes of the variables that containers get. They follow from the user's numbers, names and texts. So what is too
//! large is the user's error, and is refused here: the host would blame the plugin for the answer.

use crate::env::{Value, Variable};
use crate::family::Group;
use crate::rules;
use crate::valid::{Pods, Valid};
use troupe_plugin::invalid;
use troupe_plugin::types::{Piece, Refusal};

/// The most bytes of a variable, with its name, `=` and the NUL at its end: Linux' `MAX_ARG_STRLEN`, 32 pages, where a
/// page has 4 KiB. `execve` fails with a longer one.
const MAX_VARIABLE: usize = 128 << 10;

/// The most bytes that the variables of all containers take in the plan. A `TF_CONFIG` of [`MAX_VARIABLE`] in each of
/// the five roles that a TFJob has at most takes less. The host accepts an answer of 1 MiB: the rest is for labels and
/// for Services, which list the user's ports.
const MAX_PLANNED: usize = 768 << 10;

/// An upper bound of the bytes that a variable takes in the plan beside its name and its value.
const AROUND_VARIABLE: usize = 64;

/// An upper bound of the bytes that the variables of one container take beside the variables themselves.
const AROUND_CONTAINER: usize = 96;

/// Returns the variables of each group, in the order of the groups.
///
/// # Errors
/// A variable with which no program starts, or more than a plan can hold in all.
pub(crate) fn variables(valid: &Valid<'_>, groups: &[Group<'_>]) -> Result<Vec<Vec<Variable>>, Refusal> {
    let (mut all, mut planned) = (Vec::with_capacity(groups.len()), 0_usize);
    for group in groups {
        let variables = if group.replicas.is_some() { rules::variables(valid, group) } else { vec![] };
        for variable in &variables {
            let bytes = length(variable, group);
            // A template that no pod is made of is in the plan all the same.
            if bytes > MAX_VARIABLE && group.count > 0 {
                return Err(too_long(valid, variable.name, bytes));
            }
        }
        planned = planned.saturating_add(in_plan(valid, group, &variables));
        all.push(variables);
    }
    if planned > MAX_PLANNED {
        let message = format!(
            "must have fewer containers, fewer replicas or shorter texts: the variables of all its containers would be \
             {planned} bytes, more than {MAX_PLANNED}"
        );
        return Err(invalid(format!("spec.{}", valid.family.kind.field), message));
    }
    Ok(all)
}

fn too_long(valid: &Valid<'_>, name: &str, bytes: usize) -> Refusal {
    let (path, must, lists) = match name {
        "TF_CONFIG" | "WORKER_ADDRS" => (
            format!("spec.{}", valid.family.kind.field),
            "must have fewer replicas, or the job a shorter name",
            ", which lists them,",
        ),
        // The other variables have no more than a text of the user's.
        _ => ("spec".to_owned(), "must have shorter texts", ""),
    };
    let limit = format!("Linux with pages of 4 KiB starts no program with a variable of more than {MAX_VARIABLE}");
    invalid(path, format!("{must}: {name}{lists} would be {bytes} bytes; {limit}"))
}

/// Returns the bytes of a variable in the last replica of a group, whose index is the longest, as `execve` counts them.
fn length(variable: &Variable, group: &Group<'_>) -> usize {
    let last = i64::from(group.count.saturating_sub(1));
    let value = match &variable.value {
        Value::Fixed(text) => text.len(),
        Value::UnlessSet(text) => text.len(),
        Value::PerReplica(pieces) => pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.len(),
                Piece::Index(plus) => (last + i64::from(*plus)).to_string().len(),
                // No variable has others.
                _ => 0,
            })
            .sum(),
        // An address, which the kubelet fills in.
        Value::Field(_) => 0,
    };
    variable.name.len() + "=".len() + value + "\0".len()
}

/// Returns the bytes of a group's variables in the plan, at most: each container has an edit with all of them, and the
/// values per replica stand beside the template.
fn in_plan(valid: &Valid<'_>, group: &Group<'_>, variables: &[Variable]) -> usize {
    let containers = match valid.family.kind.all_containers {
        true => valid.pods(group.of).map_or(0, Pods::containers),
        false => 1,
    };
    let (mut in_each, mut beside) = (AROUND_CONTAINER, 0);
    for Variable { name, value } in variables {
        in_each += name.len() + AROUND_VARIABLE;
        match value {
            Value::Fixed(text) => in_each += in_json(text),
            Value::UnlessSet(text) => in_each += in_json(text),
            Value::Field(path) => in_each += path.len(),
            Value::PerReplica(pieces) => {
                let texts = pieces.iter().map(|piece| if let Piece::Text(text) = piece { text.len() } else { 0 });
                beside += texts.sum::<usize>() + AROUND_VARIABLE * pieces.len();
            }
        }
    }
    containers.saturating_mul(in_each).saturating_add(beside)
}

/// Returns the bytes of a text in a JSON string, at most.
fn in_json(text: &str) -> usize {
    let bytes = text.bytes().map(|byte| match byte {
        b'"' | b'\\' => r"\\".len(),
        0..=0x1f => r"\u0000".len(),
        _ => 1,
    });
    bytes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TrainingJob;
    use crate::fixtures::{errors, job, of_job, spec};
    use serde_json::{Value as Json, json};
    use troupe_plugin::json_text;

    fn xgboost(workers: u32) -> TrainingJob {
        job("XGBoostJob", &spec("XGBoostJob", &[("Master", 1), ("Worker", workers)], &json!({})))
    }

    /// Returns the bytes of the longest variable of a replica, with the NUL.
    fn longest(job: &TrainingJob, role: &str, index: u32) -> usize {
        of_job(job, role, index).iter().map(|variable| variable.len() + 1).max().unwrap()
    }

    #[test]
    fn a_list_of_workers_with_which_no_program_starts_is_refused() {
        assert!(errors(&xgboost(9_440)).is_empty());
        assert!(longest(&xgboost(9_440), "worker", 9_439) <= MAX_VARIABLE);
        let job = xgboost(9_441);
        assert_eq!(longest(&job, "worker", 9_440), 131_077);
        let message = "must have fewer replicas, or the job a shorter name: WORKER_ADDRS, which lists them, would be \
                       131077 bytes; Linux with pages of 4 KiB starts no program with a variable of more than 131072";
        assert_eq!(errors(&job), [("spec.xgbReplicaSpecs".to_owned(), message.to_owned())]);
    }

    #[test]
    fn a_cluster_of_tensorflow_with_which_no_program_starts_is_refused() {
        for (types, others) in [
            ([("PS", 5_000), ("Worker", 5_000)], json!({})),
            ([("PS", 6_000), ("Worker", 1)], json!({ "enableDynamicWorker": true })),
        ] {
            let job = job("TFJob", &spec("TFJob", &types, &others));
            // The first group that is too large is named.
            let role = if others == json!({}) { "ps" } else { "worker-0" };
            let bytes = longest(&job, role, if role == "ps" { 4_999 } else { 0 });
            let errors = errors(&job);
            assert_eq!((errors.len(), errors[0].0.as_str()), (1, "spec.tfReplicaSpecs"));
            let told = format!(": TF_CONFIG, which lists them, would be {bytes} bytes; ");
            assert!(errors[0].1.contains(&told), "{errors:?}");
        }
    }

    // Each role has the whole list.
    #[test]
    fn the_largest_cluster_of_tensorflow_fits_into_a_plan() {
        let types = [("Chief", 1), ("PS", 1), ("Worker", 4_700), ("Evaluator", 1)];
        let job = job("TFJob", &spec("TFJob", &types, &json!({})));
        assert!(longest(&job, "worker", 4_698) > MAX_VARIABLE - 1024);
        assert!(errors(&job).is_empty());
    }

    /// Returns the errors of a job with so many more containers in each pod of this type.
    fn with_containers(kind: &str, spec: &Json, of: &str, more: usize) -> Vec<(String, String)> {
        let mut spec = spec.clone();
        let containers = spec.pointer_mut(&format!("{of}/template/spec/containers")).unwrap();
        containers.as_array_mut().unwrap().extend(vec![json!({ "name": "side", "image": "i" }); more]);
        errors(&job(kind, &spec))
    }

    #[test]
    fn what_all_containers_get_has_to_fit_into_a_plan() {
        let large = spec("XGBoostJob", &[("Master", 1), ("Worker", 9_000)], &json!({}));
        assert!(with_containers("XGBoostJob", &large, "/xgbReplicaSpecs/Worker", 4).is_empty());
        let errors = with_containers("XGBoostJob", &large, "/xgbReplicaSpecs/Worker", 5);
        assert_eq!((errors.len(), errors[0].0.as_str()), (1, "spec.xgbReplicaSpecs"));
        assert!(errors[0].1.starts_with("must have fewer containers, fewer replicas or shorter texts: "), "{errors:?}");
        assert!(errors[0].1.ends_with(" bytes, more than 786432"), "{errors:?}");

        let conf = json!([{ "key": "k", "value": "\u{1}".repeat(20_000) }]);
        let elastic = spec("PyTorchJob", &[("Worker", 2)], &json!({ "elasticPolicy": { "rdzvConf": conf } }));
        assert!(with_containers("PyTorchJob", &elastic, "/pytorchReplicaSpecs/Worker", 1).is_empty());
        let errors = with_containers("PyTorchJob", &elastic, "/pytorchReplicaSpecs/Worker", 3);
        assert_eq!((errors.len(), errors[0].0.as_str()), (1, "spec.pytorchReplicaSpecs"));
    }

    #[test]
    fn a_text_with_which_no_program_starts_is_refused() {
        let conf = json!([{ "key": "k", "value": "x".repeat(MAX_VARIABLE) }]);
        let elastic = spec("PyTorchJob", &[("Worker", 2)], &json!({ "elasticPolicy": { "rdzvConf": conf } }));
        let errors = errors(&job("PyTorchJob", &elastic));
        assert_eq!((errors.len(), errors[0].0.as_str()), (1, "spec"));
        let told = "must have shorter texts: PET_RDZV_CONF would be 131089 bytes; ";
        assert!(errors[0].1.starts_with(told), "{errors:?}");
    }

    #[test]
    fn a_text_in_json_is_not_longer_than_counted() {
        for text in ["", "plain", "\"quoted\\\"", "\n\t\u{1}\u{1f}\u{7f}", "größe"] {
            assert!(in_json(text) >= json_text(&text).len() - "\"\"".len(), "{text:?}");
        }
    }
}
