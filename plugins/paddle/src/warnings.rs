//! What of a PaddleJob has no effect, or another than its user may think. The original says nothing of it.

use crate::Job;
use crate::spec::{CLEAN_POD_POLICIES, INTRANETS, MIN_AVAILABLE, Role};
use troupe_plugin::types::Event;
use troupe_plugin::warn_of_gang;

/// Returns the warnings about a valid job. `launches_servers`: `paddle.distributed.launch` starts them.
pub(crate) fn warnings(job: &Job, launches_servers: bool) -> Vec<Event> {
    let mut warnings = vec![];
    let mut warn =
        |reason: &str, message: String| warnings.push(Event { warning: true, reason: reason.into(), message });
    // Seen with paddlepaddle 2.6.2 and 3.3.1.
    if job.spec.elastic.is_some() {
        let message = "spec.elastic: paddle.distributed.launch reads no PADDLE_ELASTIC_* variable: each pod trains alone, and the \
                       job succeeds all the same, unless its command says --master and --nnodes";
        warn("TrainsAlone", message.into());
    }
    if launches_servers {
        let message = "paddle.distributed.launch takes the lists of a job with parameter servers for those of a collective job: \
                       server 0 becomes trainer 0, and the job never starts; start its programs without it";
        warn("ServersDoNotStart", message.into());
    }
    let words = [
        ("cleanPodPolicy", &job.spec.clean_pod_policy, &CLEAN_POD_POLICIES[..], "Never"),
        ("intranet", &job.spec.intranet, &INTRANETS[..], "PodIP"),
    ];
    for (field, value, known, default) in words {
        if let Some(value) = value.as_deref().filter(|value| !value.is_empty() && !known.contains(value)) {
            let known = known.join(", ");
            warn("UnknownValue", format!("spec.{field}: {value:?} counts as {default}; known values: {known}"));
        }
    }
    for role in job.spec.roles() {
        if let Some(message) = outside_its_range(&role) {
            warn("OutsideRange", message);
        }
    }
    let pods = |name: &str| job.spec.roles().filter(|role| role.name == name).map(|role| role.replicas()).sum::<u32>();
    let (servers, all) = (pods("ps"), job.spec.roles().map(|role| role.replicas()).sum::<u32>());
    if all == 0 {
        warn("NoPods", "no role of the spec has a pod: the job does not end before one has".into());
    } else if servers == all {
        let message =
            "spec.ps: parameter servers do not end by themselves, and there is no worker: the job does not end";
        warn("ServersAlone", message.into());
    }
    let least = job.spec.scheduling_policy.as_ref().and_then(|policy| policy.min_available);
    warnings.extend(warn_of_gang(MIN_AVAILABLE.path, least.map(i64::from), all));
    warnings
}

/// Returns what is strange about `requests` and `limits` of a role, which have no effect but through `elastic`.
fn outside_its_range(role: &Role<'_>) -> Option<String> {
    let (name, replicas) = (role.name, role.spec.replicas);
    let (least, most) = (role.spec.requests.unwrap_or(0), role.spec.limits.unwrap_or(i64::MAX));
    let is_within = least >= 0 && (least..=most).contains(&replicas);
    (!is_within).then(|| {
        let shown = |number: Option<i64>| number.map_or_else(|| "absent".to_owned(), |number| number.to_string());
        let (least, most) = (shown(role.spec.requests), shown(role.spec.limits));
        format!("spec.{name}: requests ({least}) and limits ({most}) do not allow its {replicas} replicas, which run all the same")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Paddle;
    use serde_json::{Value, json};
    use troupe_plugin::{Framework, testkit};

    fn reasons(spec: &Value) -> Vec<String> {
        let plan = Paddle::plan(&Job::parse(testkit::job("PaddleJob", "wide", spec)).unwrap()).unwrap();
        plan.warnings.into_iter().map(|event| event.reason).collect()
    }

    fn role(replicas: i64) -> Value {
        json!({ "replicas": replicas, "template": { "spec": { "containers": [{ "name": "paddle" }] } } })
    }

    // A29
    #[test]
    fn a_word_that_counts_as_a_default_is_warned_of() {
        let with = |field: &str, value: &str| reasons(&json!({ "worker": role(1), field: value }));
        for field in ["cleanPodPolicy", "intranet"] {
            assert_eq!(with(field, "Foo"), ["UnknownValue"], "{field}");
            assert!(with(field, "").is_empty(), "{field}");
        }
        assert!(with("cleanPodPolicy", "OnFailure").is_empty() && with("intranet", "Host").is_empty());
    }

    // A29
    #[test]
    fn numbers_that_do_not_fit_together_are_warned_of() {
        let of = |requests: Value, limits: Value| {
            let mut worker = role(2);
            (worker["requests"], worker["limits"]) = (requests, limits);
            reasons(&json!({ "worker": worker }))
        };
        for (requests, limits) in
            [(json!(3), json!(1)), (json!(3), json!(null)), (json!(null), json!(1)), (json!(-1), json!(2))]
        {
            assert_eq!(of(requests, limits), ["OutsideRange"]);
        }
        assert!(of(json!(1), json!(2)).is_empty() && of(json!(null), json!(null)).is_empty());
        assert_eq!(
            reasons(&json!({ "worker": role(2), "schedulingPolicy": { "minAvailable": 9 } })),
            ["GangLargerThanJob"]
        );
    }

    // A29
    #[test]
    fn a_job_that_cannot_end_is_warned_of() {
        assert_eq!(reasons(&json!({ "ps": role(1) })), ["ServersAlone"]);
        assert_eq!(reasons(&json!({ "ps": role(1), "worker": role(0) })), ["ServersAlone"]);
        assert_eq!(reasons(&json!({ "worker": role(0) })), ["NoPods"]);
        assert_eq!(reasons(&json!({ "worker": role(1), "elastic": 5 })), ["TrainsAlone"]);
        assert!(reasons(&json!({ "ps": role(1), "worker": role(1) })).is_empty());
    }
}
