use super::*;
use crate::{
    Snapshot, build,
    decide::decide,
    decision::Part,
    plan::{Answer, Bindings, Outcome, Plan, Verdict},
    testkit,
};

fn role(name: &str, replicas: u32, template: Value) -> Role {
    testkit::role(name, replicas, testkit::text(&["JOB", "-", name, "-", "INDEX"]), template)
}

fn pods(cpu: &str, memory: &str) -> Value {
    let requests = json!({ "requests": { "cpu": cpu, "memory": memory } });
    json!({ "spec": { "containers": [{ "name": "c", "image": "i", "resources": requests }] } })
}

fn gang(scheduler: &str) -> Gang {
    Gang {
        scheduler: scheduler.into(),
        members: vec!["launcher".into(), "worker".into()],
        min_member: None,
        min_resources: None,
        queue: Some("q".into()),
        priority_class: Some("high".into()),
        schedule_timeout: Some(0),
    }
}

/// Returns the spec of the PodGroup, and the roles that refer to it: workers first, as a plan may have them.
fn gathered(gang: &Gang) -> (Object, Vec<Role>) {
    let mut roles = vec![role("worker", 100, pods("20", "64Gi")), role("launcher", 1, pods("2", "4Gi"))];
    let object = gang.gather("pi", &mut roles).unwrap();
    (object, roles)
}

fn spec(object: &Object) -> Value {
    let Body::Fixed(body, _) = &object.body else { panic!("a PodGroup does not depend on what is seen") };
    body["spec"].clone()
}

// A14, M20 (a)
#[test]
fn volcano_admits_the_group_before_any_pod_is_made() {
    let (object, roles) = gathered(&gang("volcano"));
    let least = json!({ "cpu": "2002", "memory": "6404Gi" });
    let expected = json!({ "minMember": 101, "minResources": least, "queue": "q", "priorityClassName": "high" });
    assert_eq!((object.api_version.as_str(), spec(&object)), ("scheduling.volcano.sh/v1beta1", expected));
    for role in &roles {
        let annotations = json!({ "scheduling.k8s.io/group-name": "pi", "volcano.sh/task-spec": role.name });
        assert_eq!(role.template["metadata"]["annotations"], annotations);
        assert_eq!(role.template["spec"]["schedulerName"], "volcano");
        assert!(matches!(&*role.after, [Gate::Field { key, .. }] if key == KEY));
    }
}

// M20 (b)
#[test]
fn another_scheduler_reads_the_pod_group_of_the_scheduler_plugins() {
    let (object, roles) = gathered(&gang("mine"));
    assert_eq!(object.api_version, "scheduling.x-k8s.io/v1alpha1");
    assert_eq!(spec(&object)["scheduleTimeoutSeconds"], 0);
    assert_eq!(spec(&object)["queue"], Value::Null);
    assert_eq!(roles[0].template["metadata"]["labels"], json!({ "scheduling.x-k8s.io/pod-group": "pi" }));
    assert_eq!((&roles[0].template["spec"]["schedulerName"], roles[0].after.len()), (&json!("mine"), 0));
}

// KEP-4671: the API server of Kubernetes 1.37 lets the count of such a PodGroup change, and nothing else.
#[test]
fn the_clusters_own_scheduler_has_a_pod_group_whose_count_is_followed() {
    let (object, roles) = gathered(&Gang { min_member: Some(3), ..gang("kubernetes") });
    assert_eq!(object.api_version, "scheduling.k8s.io/v1beta1");
    let policy = json!({ "gang": { "minCount": 3 } });
    assert_eq!(spec(&object), json!({ "schedulingPolicy": policy, "priorityClassName": "high" }));
    assert_eq!(object.upkeep, Upkeep::Follow(vec!["/spec/schedulingPolicy/gang/minCount".into()]));
    assert_eq!(roles[0].template["spec"]["schedulingGroup"], json!({ "podGroupName": "pi" }));
    assert_eq!((&roles[0].template["spec"]["schedulerName"], roles[0].after.len()), (&Value::Null, 0));
}

// Kubernetes 1.37 starts no pod of a gang whose pods have priorities or schedulers that differ.
#[test]
fn all_pods_of_a_gang_of_kubernetes_have_one_priority_class_and_one_scheduler() {
    let (_, roles) = gathered(&gang("kubernetes"));
    assert!(roles.iter().all(|role| role.template["spec"]["priorityClassName"] == "high"));
    let with = |field: &str, launcher: &str, worker: &str| {
        let of = |value: &str| json!({ "spec": { field: value } });
        let mut roles = vec![role("worker", 2, of(worker)), role("launcher", 1, of(launcher))];
        roles[1].template_at = Some("/launcher/template".into());
        Gang { priority_class: None, ..gang("kubernetes") }.gather("pi", &mut roles).map(|object| spec(&object))
    };
    let refused = with("priorityClassName", "high", "low").unwrap_err().to_string();
    let expected = "spec.launcher.template.spec.priorityClassName: must be that of role worker, \"low\", and is \"high\": Kubernetes starts a \
                    gang only if all its pods have the same";
    assert_eq!(refused, expected);
    assert!(matches!(with("priorityClassName", "high", ""), Err(Objection::Job(_))));
    assert_eq!(with("priorityClassName", "low", "low").unwrap()["priorityClassName"], "low");
    assert!(matches!(with("schedulerName", "mine", ""), Err(Objection::Job(_))));
    assert_eq!(with("schedulerName", "default-scheduler", "").unwrap()["priorityClassName"], Value::Null);
}

#[test]
fn other_objects_stay_as_they_are_whatever_version_is_served() {
    for version in ["v1", "scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha2"] {
        let mut body = json!({ "data": { "a": "1" } });
        fit(version, &mut body);
        assert_eq!(body, json!({ "data": { "a": "1" } }), "{version}: a ConfigMap has no spec");
    }
}

// Kubernetes 1.36 has v1alpha2 alone, which has no priority and cannot be changed; 1.37 has v1beta1 alone.
#[test]
fn a_pod_group_is_made_and_followed_in_the_version_that_the_api_server_serves() {
    let (object, roles) = gathered(&gang("kubernetes"));
    let plan = Plan { objects: vec![object], ..testkit::plan(roles) };
    let verdict = Verdict::new(json!({ "phase": "x" }), "x", Outcome::Open);
    let answer = Answer::Judged { plan: plan.into(), bindings: Bindings::default(), verdict };
    let mut snapshot = testkit::snapshot(testkit::job("pi", "u1"));
    let writes = |snapshot: &Snapshot| {
        let actions = decide(snapshot, &answer).actions;
        let of_group = actions.into_iter().find(|action| action.kind == KIND)?;
        let body = build::body(snapshot, &answer, Part::Object { object: 0, index: 0 }).unwrap();
        let spec = if of_group.creates() { body["spec"].clone() } else { Value::Null };
        assert_eq!((&body["apiVersion"], &body["kind"]), (&json!(of_group.api_version), &json!(KIND)));
        Some((of_group.to_string(), spec))
    };
    let policy = json!({ "gang": { "minCount": 101 } });
    let (_, made) = writes(&snapshot).unwrap();
    assert_eq!(made, json!({ "schedulingPolicy": policy, "priorityClassName": "high" }));
    let version = |name: &str| format!("scheduling.k8s.io/{name}");
    let of = |name: &str| {
        let mut child = Child::clone(&testkit::child(KIND, "pi", &[(MIN_COUNT, json!(3))]));
        child.api_version = version(name);
        vec![child.into()]
    };
    let scaled = Snapshot { children: of("v1beta1"), ..snapshot.clone() };
    assert!(writes(&scaled).unwrap().0.starts_with("patch podgroup/pi"), "{:?}", writes(&scaled));
    snapshot.served_as = [(version("v1beta1"), version("v1alpha2"))].into();
    assert_eq!(writes(&snapshot).unwrap().1, json!({ "schedulingPolicy": policy }));
    assert_eq!(writes(&Snapshot { children: of("v1alpha2"), ..snapshot }), None);
}

// M20 (f), and (g), Better: the members count in the order in which the plugin names them.
#[test]
fn a_gang_smaller_than_the_job_asks_for_its_first_members() {
    let (object, _) = gathered(&Gang { min_member: Some(2), ..gang("volcano") });
    assert_eq!(spec(&object)["minMember"], 2);
    assert_eq!(spec(&object)["minResources"], json!({ "cpu": "22", "memory": "68Gi" }));
}

// M20 (c), A16
#[test]
fn resources_that_are_given_are_not_summed() {
    let (object, _) = gathered(&Gang { min_resources: Some(json!({ "cpu": 3 })), ..gang("volcano") });
    assert_eq!(spec(&object)["minResources"], json!({ "cpu": 3 }));
}

// M20 (d), AC-20: the scale of a job may change, and the gang with it.
#[test]
fn each_field_of_the_group_is_followed() {
    let (object, _) = gathered(&gang("volcano"));
    let fields = ["/spec/minMember", "/spec/minResources", "/spec/priorityClassName", "/spec/queue"];
    let Upkeep::Follow(mut followed) = object.upkeep else { panic!("it is not followed") };
    followed.sort();
    assert_eq!(followed, fields);
    let mut children = vec![];
    describe(&mut children, &mut Grants::default());
    assert!(fields.iter().all(|field| children[0].keep.iter().any(|kept| kept == field)));
}

// AC-20
#[test]
fn what_a_template_says_for_itself_stays() {
    let mut mine = pods("1", "1Gi");
    mine["spec"]["schedulerName"] = json!("mine");
    mine["metadata"]["annotations"]["volcano.sh/task-spec"] = json!("task");
    let mut roles = vec![role("launcher", 1, mine), role("worker", 1, json!({}))];
    gang("volcano").gather("pi", &mut roles).unwrap();
    assert_eq!(roles[0].template["spec"]["schedulerName"], "mine");
    assert_eq!(roles[0].template["metadata"]["annotations"]["volcano.sh/task-spec"], "task");
    assert_eq!(roles[0].template["metadata"]["annotations"]["scheduling.k8s.io/group-name"], "pi");
}

#[test]
fn a_member_that_is_no_role_is_refused() {
    let mut roles = vec![role("worker", 1, json!({}))];
    let error = gang("volcano").gather("pi", &mut roles).unwrap_err();
    assert_eq!(error.to_string(), "there is no role launcher to be a member");
}

#[test]
fn a_gang_of_none_has_a_count_that_the_api_server_accepts() {
    let mut roles = vec![role("worker", 0, json!({})), role("launcher", 0, json!({}))];
    let object = gang("kubernetes").gather("pi", &mut roles).unwrap();
    assert_eq!(spec(&object)["schedulingPolicy"]["gang"]["minCount"], 1);
}
