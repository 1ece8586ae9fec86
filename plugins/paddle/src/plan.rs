//! The plan of a PaddleJob, and the check of its fields.

use crate::{
    Job, env, gang, objects, rendezvous,
    spec::{self, Intranet, ROLES, Role},
    warnings,
};
use serde_json::Value;
use troupe_plugin::{
    Mistakes, PodTemplate, index, job_name, pod_name, pods_are, text,
    types::{Clean, EnvEntry, Gang, Gate, JobPlan, Policy, Reached, Refusal, Role as PlannedRole, Template},
};

pub(crate) fn plan(job: &Job) -> Result<JobPlan, Refusal> {
    let wrong = errors(job);
    if !wrong.is_empty() {
        return Err(wrong.refusal());
    }
    let gang = gang::gang(job);
    let (mut roles, mut launches) = (Vec::with_capacity(ROLES.len()), false);
    for role in job.spec.roles() {
        let (role, starts_launch) = planned(job, gang.as_ref(), &role)?;
        roles.push(role);
        launches |= starts_launch;
    }
    // Better: a role that was removed from the spec is planned with 0 replicas, so that its pods and Services are
    // deleted.
    roles.extend(job.spec.other_roles().map(removed));
    let mut objects = Vec::with_capacity(roles.len() + 2);
    if !job.config.is_lean(job.spec.intranet()) {
        objects.extend(job.spec.roles().map(|role| objects::service(role.name)));
        objects.extend(job.spec.other_roles().map(objects::former_service));
    }
    objects.push(rendezvous::object(addresses(job)));
    let host_ports = if job.spec.intranet() == Intranet::Host { objects::PORTS } else { 0 };
    Ok(JobPlan {
        roles,
        objects,
        secrets: vec![],
        series: vec![],
        gang,
        success_criteria: vec![],
        host_ports,
        policy: policy(job),
        warnings: warnings::warnings(job, launches),
    })
}

/// Returns the role, and whether it is that of servers which `paddle.distributed.launch` starts.
fn planned(job: &Job, gang: Option<&Gang>, of: &Role<'_>) -> Result<(PlannedRole, bool), Refusal> {
    let mut template = PodTemplate::from_user(of.spec.template.as_ref(), &format!("/{}/template", of.name))?;
    template.label("paddle-res-type", of.name);
    template.annotation("paddle-resource", of.name);
    env::edit(job, of, &mut template);
    // Only of servers it matters.
    let launches = of.name == "ps" && template.first_container().runs("paddle.distributed.launch");
    gang::mark(job, gang, &mut template);
    let mut planned = role(of.name, of.replicas());
    planned.template = template.into_template();
    let entry = |(name, value)| EnvEntry { container: String::new(), name, value };
    planned.env = env::per_replica(job).into_iter().map(entry).collect();
    Ok((planned, launches))
}

/// Returns a role with an empty template.
fn role(name: &str, replicas: u32) -> PlannedRole {
    PlannedRole {
        hostname: Some(vec![pod_name()]),
        subdomain: Some(vec![pod_name()]),
        labels: vec![("paddle-res-name".into(), vec![pod_name()])],
        replicas,
        ..removed(name)
    }
}

/// Returns a role without replicas: its pods are known by their names alone.
fn removed(name: &str) -> PlannedRole {
    PlannedRole::new(name, 0, vec![job_name(), text(format!("-{name}-")), index()], Template::Whole("{}".into()))
}

/// Returns the gates that open when every pod of the job has an address.
fn addresses(job: &Job) -> Vec<Gate> {
    let roles = job.spec.roles().filter(|role| role.replicas() > 0);
    roles.map(|role| pods_are(role.name, Reached::Ip)).collect()
}

/// Returns the clean-pod policy. A text other than the four values means Never.
fn policy(job: &Job) -> Policy {
    let (on_success, on_failure) = match job.spec.clean_pod_policy.as_deref() {
        None | Some("" | "OnCompletion") => (Clean::All, Clean::Keep),
        Some("Always") => (Clean::All, Clean::All),
        Some("OnFailure") => (Clean::Keep, Clean::All),
        Some(_) => (Clean::Keep, Clean::Keep),
    };
    let on_success = match on_success {
        Clean::Keep if job.config.complete_without_servers => Clean::Active,
        other => other,
    };
    Policy { clean_on_success: on_success, clean_on_failure: on_failure, clean_on_suspend: Clean::Keep, ttl: None }
}

fn errors(job: &Job) -> Mistakes {
    let mut wrong = Mistakes::default();
    if job.spec.roles().next().is_none() {
        wrong.add("spec", "needs at least one of ps, worker and heter");
    }
    for role in job.spec.roles() {
        wrong.number_at(&["spec.", role.name, ".replicas"], &spec::REPLICAS, Some(role.spec.replicas));
        if role.spec.replicas > spec::REPLICAS.most {
            continue;
        }
        let last = format!("{}-{}-{}", job.name(), role.name, role.replicas().saturating_sub(1));
        if last.len() > 63 || job.name().contains('.') {
            let message = format!(
                "its pods would be called {last}, which must be at most 63 characters of a-z, 0-9 and '-': choose a name of at most {} characters without dots",
                63 - (last.len() - job.name().len())
            );
            wrong.add("metadata.name", message);
        }
    }
    if job.spec.elastic.is_some() && job.spec.worker.is_none() {
        wrong.add("spec.worker", "is required by spec.elastic");
    }
    if let Some(policy) = &job.spec.scheduling_policy {
        wrong.number(&spec::MIN_AVAILABLE, policy.min_available.map(i64::from));
        wrong.name(&spec::QUEUE, policy.queue.as_deref());
        wrong.name(&spec::PRIORITY_CLASS, policy.priority_class.as_deref());
        let amounts = policy.min_resources.clone().map(|amounts| amounts.into_iter().collect());
        wrong.amounts("spec.schedulingPolicy.minResources", amounts.map(Value::Object).as_ref());
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Paddle;
    use serde_json::json;
    use troupe_plugin::{Framework, testkit};

    fn role(replicas: i64) -> Value {
        json!({ "replicas": replicas, "template": { "spec": { "containers": [{ "name": "paddle", "image": "x" }] } } })
    }

    fn plan_of(spec: &Value) -> Result<JobPlan, Refusal> {
        Paddle::plan(&Job::parse(testkit::job("PaddleJob", "wide", spec))?)
    }

    /// Returns the templates of the first two roles after the edits, as the host applies them.
    fn templates(plan: &JobPlan, spec: &Value) -> [Value; 2] {
        [0, 1].map(|role| testkit::template(&plan.roles[role].template, spec))
    }

    fn paths(refused: Result<JobPlan, Refusal>) -> Vec<String> {
        match refused {
            Err(Refusal::Invalid(errors)) => errors.into_iter().map(|error| error.path).collect(),
            other => panic!("not refused: {other:?}"),
        }
    }

    // A1: objects, labels, env order, restart policy.
    #[test]
    fn a_parameter_server_job_becomes_pods_with_paddles_environment() {
        let spec = json!({ "withGloo": 1, "cleanPodPolicy": "Never", "ps": role(2), "worker": role(2) });
        let plan = plan_of(&spec).unwrap();
        let [ps, _] = templates(&plan, &spec);
        assert_eq!((plan.roles[0].replicas, plan.roles[1].replicas), (2, 2));
        assert_eq!(ps["metadata"]["labels"]["paddle-res-type"], "ps");
        assert_eq!(ps["metadata"]["annotations"]["paddle-resource"], "ps");
        assert_eq!(ps["spec"]["restartPolicy"], "Never");
        assert_eq!(ps["spec"]["initContainers"][0]["name"], "coord-paddle");
        let container = &ps["spec"]["containers"][0];
        let names: Vec<_> = container["env"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["POD_IP", "PADDLE_TRAINER_ID", "TRAINING_ROLE", "PADDLE_TRAINING_ROLE"]);
        assert_eq!(container["env"][0]["valueFrom"]["fieldRef"]["fieldPath"], "status.podIP");
        assert_eq!(container["env"][2]["value"], "PSERVER");
        assert_eq!(container["envFrom"], json!([{ "configMapRef": { "name": "wide" } }]));
        assert_eq!(plan.policy.clean_on_success, Clean::Keep);
        let keys: Vec<_> = plan.objects.iter().map(|object| object.key.as_str()).collect();
        assert_eq!(keys, ["service-ps", "service-worker", "service-heter", "rendezvous"]);
    }

    // A6: the clean-pod matrix.
    #[test]
    fn the_clean_pod_policy_is_the_originals_matrix() {
        use Clean::{All, Keep};
        let rows = [
            (json!(null), (All, Keep)),
            (json!(""), (All, Keep)),
            (json!("Always"), (All, All)),
            (json!("OnCompletion"), (All, Keep)),
            (json!("OnFailure"), (Keep, All)),
            (json!("Never"), (Keep, Keep)),
            (json!("OnFailed"), (Keep, Keep)),
        ];
        for (text, expected) in rows {
            let plan = plan_of(&json!({ "cleanPodPolicy": text, "worker": role(1) })).unwrap();
            assert_eq!((plan.policy.clean_on_success, plan.policy.clean_on_failure), expected, "{text}");
        }
    }

    // A10: restart policy and precedence.
    #[test]
    fn the_users_template_is_kept() {
        let spec = json!({ "intranet": "Service", "worker": { "replicas": 1, "template": {
            "metadata": { "labels": { "team": "x" }, "annotations": { "k": "v" } },
            "spec": { "restartPolicy": "Always", "initContainers": [{ "name": "a" }], "containers": [
                { "name": "paddle", "env": [{ "name": "POD_IP", "value": "x" }] }, { "name": "side" }] } } } });
        let [pod, _] = templates(&plan_of(&spec).unwrap(), &spec);
        assert_eq!(pod["spec"]["restartPolicy"], "Always");
        let inits: Vec<_> = pod["spec"]["initContainers"].as_array().unwrap().iter().map(|c| &c["name"]).collect();
        assert_eq!(inits, ["a", "coord-paddle"]);
        assert_eq!(
            (&pod["metadata"]["labels"]["team"], &pod["metadata"]["annotations"]["k"]),
            (&json!("x"), &json!("v"))
        );
        let env = &pod["spec"]["containers"][0]["env"];
        assert_eq!((&env[0]["value"], &env[1]["value"]), (&json!("x"), &json!("")), "the host fills the second in");
        assert_eq!(pod["spec"]["containers"][0]["ports"], json!([{ "containerPort": 36000 }]));
        assert_eq!(pod["spec"]["containers"][1], json!({ "name": "side" }));
    }

    // A27
    #[test]
    fn the_init_container_asks_for_what_the_first_container_asks_for() {
        let containers = json!([
            { "name": "paddle", "resources": { "requests": { "cpu": "2", "nvidia.com/gpu": 1 }, "limits": { "memory": "4Gi" } } },
            { "name": "side", "resources": { "requests": { "cpu": "3" } } },
        ]);
        let spec = json!({ "worker": { "replicas": 1, "template": { "spec": { "containers": containers } } } });
        let resources = |config: Value| {
            let mut view = testkit::job("PaddleJob", "wide", &spec);
            view.config = config.to_string();
            let plan = Paddle::plan(&Job::parse(view).unwrap()).unwrap();
            testkit::template(&plan.roles[0].template, &spec)["spec"]["initContainers"][0]["resources"].clone()
        };
        assert_eq!(resources(json!({})), json!({ "requests": { "cpu": "2" }, "limits": { "memory": "4Gi" } }));
        let given = json!({ "requests": { "cpu": "10m" } });
        assert_eq!(resources(json!({ "initResources": given })), given);
        let nothing = json!({ "worker": role(1) });
        let plan = plan_of(&nothing).unwrap();
        let init = &testkit::template(&plan.roles[0].template, &nothing)["spec"]["initContainers"][0];
        assert_eq!((&init["name"], init.get("resources")), (&json!("coord-paddle"), None));
    }

    // A9: Service mode restarts workers, not servers.
    #[test]
    fn service_mode_restarts_workers_by_default() {
        let spec = json!({ "intranet": "Service", "ps": role(1), "worker": role(1) });
        let [ps, worker] = templates(&plan_of(&spec).unwrap(), &spec);
        assert_eq!(
            (&ps["spec"]["restartPolicy"], &worker["spec"]["restartPolicy"]),
            (&json!("Never"), &json!("OnFailure"))
        );
    }

    // A13: elastic variables instead of the ConfigMap.
    #[test]
    fn an_elastic_job_gets_its_variables_and_no_config_map() {
        let mut worker = role(3);
        (worker["requests"], worker["limits"]) = (json!(2), json!(4));
        let spec = json!({ "elastic": 0, "worker": worker });
        let [pod, _] = templates(&plan_of(&spec).unwrap(), &spec);
        let container = &pod["spec"]["containers"][0];
        let last: Vec<_> =
            container["env"].as_array().unwrap()[4..].iter().map(|e| (&e["name"], &e["value"])).collect();
        let expected =
            [("PADDLE_ELASTIC_JOB_ID", "ns-wide"), ("PADDLE_ELASTIC_NP", "2:4"), ("PADDLE_ELASTIC_TIMEOUT", "60")];
        assert_eq!(last.len(), expected.len());
        for ((name, value), (want_name, want_value)) in last.into_iter().zip(expected) {
            assert_eq!((name.as_str(), value.as_str()), (Some(want_name), Some(want_value)));
        }
        assert_eq!((&container["envFrom"], &pod["spec"]["restartPolicy"]), (&Value::Null, &json!("OnFailure")));
    }

    // A28: plain Python of a collective job ends without its own endpoint.
    #[test]
    fn a_collective_job_has_its_own_endpoint_unless_the_user_says_it() {
        let last = |env: Value| {
            let mut worker = role(2);
            worker["template"]["spec"]["containers"][0]["env"] = env;
            let spec = json!({ "worker": worker });
            let template = testkit::template(&plan_of(&spec).unwrap().roles[0].template, &spec);
            template["spec"]["containers"][0]["env"].as_array().unwrap().last().unwrap().clone()
        };
        let ours = json!({ "name": "PADDLE_CURRENT_ENDPOINT", "value": "$(POD_IP):$(PADDLE_PORT)" });
        assert_eq!(last(json!([])), ours);
        assert_eq!(last(json!([{ "name": "PADDLE_CURRENT_ENDPOINT", "value": "x" }]))["name"], "PADDLE_TRAINING_ROLE");
    }

    // A28
    #[test]
    fn what_paddle_will_not_do_is_told() {
        let reasons = |spec: Value| {
            let warnings = plan_of(&spec).unwrap().warnings;
            warnings.into_iter().map(|event| event.reason).collect::<Vec<_>>()
        };
        let mut launched = role(1);
        launched["template"]["spec"]["containers"][0]["command"] =
            json!(["python", "-m", "paddle.distributed.launch", "train.py"]);
        assert_eq!(reasons(json!({ "elastic": 1, "worker": role(2) })), ["TrainsAlone"]);
        assert_eq!(reasons(json!({ "ps": launched, "worker": role(1) })), ["ServersDoNotStart"]);
        assert!(
            reasons(json!({ "worker": launched })).is_empty()
                && reasons(json!({ "ps": role(1), "worker": role(1) })).is_empty()
        );
        // A29: one worker is told, too, since its field has no effect.
        assert_eq!(reasons(json!({ "elastic": 1, "worker": role(1) })), ["TrainsAlone"]);
    }

    // A19: a job that crashed or hung the original is refused with the field's path.
    #[test]
    fn a_job_that_cannot_work_is_refused_by_its_field() {
        assert_eq!(paths(plan_of(&json!({}))), ["spec"]);
        assert_eq!(paths(plan_of(&json!({ "worker": { "replicas": 1 } }))), ["spec.worker.template"]);
        let empty = json!({ "worker": { "replicas": 1, "template": { "spec": { "containers": [] } } } });
        assert_eq!(paths(plan_of(&empty)), ["spec.worker.template.spec.containers"]);
        assert_eq!(paths(plan_of(&json!({ "worker": role(-1) }))), ["spec.worker.replicas"]);
        for many in [10_001, i64::from(u32::MAX) + 1, i64::MAX] {
            assert_eq!(paths(plan_of(&json!({ "ps": role(many), "worker": role(many) }))).len(), 2);
            let Err(Refusal::Invalid(errors)) = plan_of(&json!({ "worker": role(many) })) else { panic!("{many}") };
            let refused = (errors[0].path.as_str(), errors[0].message.clone());
            assert_eq!(refused, ("spec.worker.replicas", format!("must be at most 10000, not {many}")));
        }
        assert_eq!(paths(plan_of(&json!({ "elastic": 1, "ps": role(1) }))), ["spec.worker"]);
        assert_eq!(paths(plan_of(&json!({ "worker": { "replicas": "two" } }))), ["spec.worker.replicas"]);
        let long = Paddle::plan(
            &Job::parse(testkit::job("PaddleJob", &"a".repeat(55), &json!({ "worker": role(1) }))).unwrap(),
        );
        assert_eq!(paths(long), ["metadata.name"]);
    }
}
