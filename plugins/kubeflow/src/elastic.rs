//! What `elasticPolicy` may say, and what of it has no effect.

use crate::family::Family;
use crate::kind::Framework;
use crate::spec::{self, ElasticPolicy, given};
use troupe_plugin::Mistakes;

/// What torchrun knows as a rendezvous without a package of its own (torch 2.15.0).
const BACKENDS: [&str; 4] = ["c10d", "etcd", "etcd-v2", "static"];

/// Adds what is wrong with the policy.
#[inline(never)]
pub(crate) fn check(policy: &ElasticPolicy, mistakes: &mut Mistakes) {
    mistakes.number(&spec::MIN_REPLICAS, policy.min_replicas);
    mistakes.number(&spec::MOST_REPLICAS, policy.max_replicas);
    mistakes.number(&spec::MAX_RESTARTS, policy.max_restarts);
    mistakes.number(&spec::N_PROC_PER_NODE, policy.n_proc_per_node);
    mistakes.number(&spec::RDZV_PORT, policy.rdzv_port);
    if let (Some(least), Some(most)) = (policy.min_replicas, policy.max_replicas)
        && least > most
    {
        let message = format!("must not be greater than spec.elasticPolicy.maxReplicas, {most}");
        mistakes.add(spec::MIN_REPLICAS.path, message);
    }
    for (field, text) in [("rdzvBackend", &policy.rdzv_backend), ("rdzvHost", &policy.rdzv_host)] {
        if text.as_deref().unwrap_or_default().bytes().any(|byte| byte.is_ascii_whitespace()) {
            mistakes.add(format!("spec.elasticPolicy.{field}"), "must not have spaces");
        }
    }
    // torchrun takes them as one text, key=value,key=value, and refuses an empty key and an empty value.
    for (place, setting) in policy.rdzv_conf.iter().flatten().enumerate() {
        let at = |field: &str| format!("spec.elasticPolicy.rdzvConf[{place}].{field}");
        let is_apart = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'=' | b',');
        if setting.key.is_empty() || setting.key.bytes().any(is_apart) {
            mistakes.add(at("key"), "must be a word without '=' and ','");
        }
        if setting.value.trim_ascii().is_empty() || setting.value.bytes().any(|byte| byte == b',') {
            mistakes.add(at("value"), "must be a text without ','");
        }
    }
}

/// Returns what of the policy has no effect, or another than its user may think.
#[inline(never)]
pub(crate) fn warnings(family: &Family<'_>) -> Vec<(&'static str, String)> {
    let Some(policy) = &family.job.spec.elastic_policy else { return vec![] };
    if family.kind.framework == Framework::Paddle {
        let message = "spec.elasticPolicy has no effect: Paddle is not told of it, as in the original";
        return vec![("NoEffect", message.to_owned())];
    }
    let mut warnings = vec![];
    if let Some(backend) = given(policy.rdzv_backend.as_ref()).filter(|backend| !BACKENDS.contains(backend)) {
        let known = BACKENDS.join(", ");
        let message = [
            "spec.elasticPolicy.rdzvBackend: torchrun itself knows ",
            &known,
            "; ",
            backend,
            " has to be in the image",
        ];
        warnings.push(("UnknownValue", message.concat()));
    }
    let workers = family.replicas("Worker").map_or(0, |workers| i64::from(workers.count));
    let (least, most) = (policy.min_replicas.unwrap_or(0), policy.max_replicas.unwrap_or(i64::MAX));
    if !(least..=most).contains(&workers) {
        let message = format!(
            "spec.elasticPolicy: minReplicas and maxReplicas allow {least} to {most} workers, and there are {workers}"
        );
        warnings.push(("OutsideElasticPolicy", message));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use crate::fixtures::{errors, job, spec};
    use crate::plan::plan;
    use serde_json::{Value, json};

    fn elastic(kind: &str, policy: &Value) -> crate::TrainingJob {
        job(kind, &spec(kind, &[("Worker", 2)], &json!({ "elasticPolicy": policy })))
    }

    // AC-34
    #[test]
    fn what_torchrun_refuses_is_refused_with_its_field() {
        let paths = |policy: Value| {
            let errors = errors(&elastic("PyTorchJob", &policy));
            errors.into_iter().map(|(path, _)| path.replace("spec.elasticPolicy.", "")).collect::<Vec<_>>()
        };
        assert_eq!(paths(json!({ "minReplicas": 3, "maxReplicas": 1 })), ["minReplicas"]);
        assert_eq!(paths(json!({ "minReplicas": 0, "maxReplicas": 0 })), ["minReplicas", "maxReplicas"]);
        assert_eq!(paths(json!({ "maxRestarts": -1, "rdzvPort": 65_536 })), ["maxRestarts", "rdzvPort"]);
        assert_eq!(paths(json!({ "rdzvBackend": "c 10", "rdzvHost": " " })), ["rdzvBackend", "rdzvHost"]);
        let conf = json!([{ "key": "a", "value": "1" }, { "key": "", "value": "1" }, { "key": "a=b", "value": "1" },
            { "key": "a", "value": " " }, { "key": "a", "value": "1,b=2" }]);
        let expected = ["rdzvConf[1].key", "rdzvConf[2].key", "rdzvConf[3].value", "rdzvConf[4].value"];
        assert_eq!(paths(json!({ "rdzvConf": conf })), expected);
    }

    // AC-34
    #[test]
    fn what_has_no_effect_is_warned_of() {
        let warned = |kind: &str, policy: Value| {
            let warnings = plan(&elastic(kind, &policy)).unwrap().warnings;
            warnings.into_iter().map(|event| event.reason).collect::<Vec<_>>()
        };
        assert!(
            warned("PyTorchJob", json!({ "minReplicas": 1, "maxReplicas": 2, "rdzvBackend": "static" })).is_empty()
        );
        assert_eq!(warned("PyTorchJob", json!({ "maxReplicas": 1 })), ["OutsideElasticPolicy"]);
        assert_eq!(warned("PyTorchJob", json!({ "rdzvBackend": "zeus" })), ["UnknownValue"]);
        assert!(warned("PaddleJob", json!({ "maxReplicas": 1 })).contains(&"NoEffect".to_owned()));
    }
}
