//! Whose error a refusal is: the user's where the user's numbers, names and templates cause it, whatever the plugin
//! does.

use super::{
    job, shape,
    tests::{descriptor, granted, job as job_of, named, object, plan, role},
    vet,
};
use crate::{
    grants::Grants,
    plan::{Backing, EnvEntry, Object, Piece, Plan, Role, Text},
    rejection::{Objection, Rejection},
    snapshot::Job,
    template::{Edit, edited},
};
use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};

/// Returns a job with this template at `/worker/template` of its spec, and a plan that refers to it.
fn users(template: &Value) -> (Job, Plan) {
    let job = job_of(json!({ "worker": { "template": template } }));
    let role = Role { template_at: Some("/worker/template".into()), ..role(template.clone()) };
    (job, plan(vec![role], vec![]))
}

fn plain() -> Value {
    json!({ "spec": { "containers": [{ "name": "c", "image": "i" }] } })
}

fn rejection(vetted: Result<(), Objection>) -> Rejection {
    match vetted {
        Err(Objection::Job(rejection)) => rejection,
        other => panic!("it is not the user's: {other:?}"),
    }
}

fn rejection_message(vetted: Result<(), Objection>) -> String {
    rejection(vetted).to_string()
}

#[test]
fn a_namespace_that_is_not_granted_is_refused_before_the_plugin_is_asked() {
    let elsewhere = Grants { namespaces: Some(["other".to_owned()].into()), ..granted(&json!({})) };
    let (users, _) = users(&plain());
    let refused = job(&users, &elsewhere).unwrap_err();
    assert_eq!(refused.reason().as_str(), "NamespaceNotServed");
    assert_eq!(refused.to_string(), "jobs in namespace ns are not served; `spec.grants.namespaces` lacks it");
    assert_eq!(job(&users, &granted(&json!({}))), Ok(()));
}

#[test]
fn a_spec_that_is_nested_too_deeply_is_refused_before_the_plugin_is_asked() {
    let nested = |levels| (1..levels).fold(json!({}), |inner, _| json!([inner]));
    let of = |levels| job(&job_of(nested(levels)), &granted(&json!({})));
    assert_eq!(of(64), Ok(()));
    assert_eq!(of(65).unwrap_err().to_string(), "spec: it has more than 64 levels of objects and lists");
}

#[test]
fn too_many_replicas_and_objects_are_the_users_error_and_name_the_limit() {
    let with = |replicas| {
        let (job, mut plan) = users(&plain());
        plan.roles[0].replicas = replicas;
        vet(&descriptor(), &job, &granted(&json!({})), &plan)
    };
    assert_eq!(with(10_000), Ok(()));
    let refused = rejection(with(10_001));
    assert_eq!(refused.reason().as_str(), "LimitExceeded");
    assert_eq!(refused.to_string(), "10001 replicas (10001 of worker) are more than 10000, the most for one job");
    let (job, small) = users(&plain());
    let many = Plan { objects: vec![object("v1", "ConfigMap", json!({})); 30_001], ..small };
    assert!(rejection_message(vet(&descriptor(), &job, &granted(&json!({})), &many)).starts_with("30001 objects"));
}

#[test]
fn a_name_that_a_shorter_job_name_would_fix_is_the_users_error() {
    let with = |name: &str| {
        let (job, plan) = users(&plain());
        vet(&descriptor(), &Job { name: name.into(), ..job }, &granted(&json!({})), &plan)
    };
    assert_eq!(with(&"a".repeat(59)), Ok(()));
    let long = rejection_message(with(&"a".repeat(60)));
    assert!(long.starts_with("metadata.name: must be at most 59 characters of a-z, 0-9 and '-'"), "{long}");
    assert!(long.contains("role worker would be called aaa"), "{long}");
    assert!(rejection_message(with("a.b")).starts_with("metadata.name: "));
    let (job, mut own) = users(&plain());
    own.roles[0].pod_name = Text(vec![Piece::JobName, Piece::Fixed("-W-".into()), Piece::Index(0)]);
    let refused = vet(&descriptor(), &job, &granted(&json!({})), &own);
    assert!(matches!(refused, Err(Objection::Plugin(error)) if error.to_string().contains("no DNS label")));
}

#[test]
fn the_name_of_the_last_object_must_be_valid_too() {
    let (job, mut plan) = users(&plain());
    plan.roles[0].replicas = 1000;
    let name = Text(vec![Piece::PodName, Piece::Fixed("-x".into())]);
    plan.objects = vec![Object { name, per_pod_of: Some("worker".into()), ..object("v1", "ConfigMap", json!({})) }];
    let vetted = |name| vet(&descriptor(), &Job { name, ..job.clone() }, &granted(&json!({})), &plan);
    assert_eq!(vetted("a".repeat(55)), Ok(()));
    assert!(rejection_message(vetted("a".repeat(56))).contains("at most 55 characters"));
}

#[test]
fn a_users_template_that_cannot_hold_the_hosts_fields_is_the_users_error() {
    let container = |field: &str, value: Value| json!({ "spec": { "containers": [{ (field): value }] } });
    let cases = [
        (json!({ "spec": { "containers": [] } }), "spec.containers: must have at least one container"),
        (json!({ "spec": {} }), "spec.containers: must have at least one container"),
        (json!({ "spec": "x" }), "spec: must be an object"),
        (json!({ "spec": { "containers": { "a": 1 } } }), "spec.containers: must be a list"),
        (json!({ "spec": { "containers": [3] } }), "spec.containers[0]: must be an object"),
        (container("env", json!("x")), "spec.containers[0].env: must be a list"),
        (json!({ "metadata": [], "spec": plain()["spec"] }), "metadata: must be an object"),
        (json!({ "metadata": { "labels": "x" }, "spec": plain()["spec"] }), "metadata.labels: must be an object"),
        (
            json!({ "metadata": { "annotations": ["x"] }, "spec": plain()["spec"] }),
            "metadata.annotations: must be an object",
        ),
        (json!({ "spec": { "hostname": 3, "containers": [{ "image": "i" }] } }), "spec.hostname: must be a string"),
    ];
    for (template, words) in cases {
        let (job, mut plan) = users(&template);
        let text = || Text(vec![Piece::JobName]);
        plan.roles[0].hostname = Some(text());
        plan.roles[0].env = vec![EnvEntry { container: "*".into(), name: "RANK".into(), value: text() }];
        let message = rejection_message(vet(&descriptor(), &job, &granted(&json!({})), &plan));
        assert_eq!(message, format!("spec.worker.template.{words}"));
        plan.roles[0].template_at = None;
        let refused = vet(&descriptor(), &job, &granted(&json!({})), &plan);
        assert!(matches!(refused, Err(Objection::Plugin(_))), "{refused:?}");
    }
}

#[test]
fn fields_that_a_role_does_not_need_are_not_checked() {
    let role = Role { replicas: 0, ..role(json!({ "metadata": null, "spec": { "hostname": 3 } })) };
    assert_eq!(shape::vet(&json!({}), &role), Ok(()));
}

#[test]
fn a_users_template_counts_below_fields_with_names_of_a_pods_fields() {
    let template = json!({ "spec": { "hostNetwork": true, "containers": [{ "name": "c", "image": "i" }] } });
    let job = job_of(json!({ "roles": { "labels": { "template": template } } }));
    let role = Role { template_at: Some("/roles/labels/template".into()), ..role(template) };
    assert_eq!(vet(&descriptor(), &job, &granted(&json!({})), &plan(vec![role], vec![])), Ok(()));
}

#[test]
fn the_limit_of_replicas_applies_to_the_job_behind_a_role() {
    let (job, mut plan) = users(&plain());
    plan.roles[0] = Role {
        replicas: 1,
        pod_name: named("-w"),
        backing: Backing::Job(json!({ "spec": { "parallelism": 10_001 } })),
        ..plan.roles[0].clone()
    };
    assert!(rejection_message(vet(&descriptor(), &job, &granted(&json!({})), &plan)).starts_with("10001 replicas"));
}

/// JSON with field names that readers of a template interpret.
fn odd() -> impl Strategy<Value = Value> {
    let names = [
        "metadata",
        "labels",
        "annotations",
        "spec",
        "containers",
        "initContainers",
        "ephemeralContainers",
        "volumes",
        "env",
        "envFrom",
        "valueFrom",
        "secretKeyRef",
        "configMap",
        "secret",
        "name",
        "image",
        "hostNetwork",
        "hostPath",
        "path",
        "securityContext",
        "privileged",
        "capabilities",
        "add",
        "tolerations",
        "key",
        "nodeSelector",
        "affinity",
        "nodeAffinity",
        "matchExpressions",
        "matchFields",
        "values",
        "serviceAccountName",
        "namespace",
        "ownerReferences",
        "finalizers",
        "hostPort",
        "ports",
        "httpGet",
        "host",
        "projected",
        "sources",
        "hostname",
        "template",
        "troupe.dev/plugin-digest",
        "job-name",
        "priority",
        "fieldOfTomorrow",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        select(vec!["", "x", "job", "ns", "/", "Unconfined", "*"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(select(names.to_vec()), inner, 0..5)
                .prop_map(|fields| fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    // A plan that only refers to the user's template, with edits as every framework makes them: any user can cause it.
    #[test]
    fn no_users_template_causes_an_error_of_the_plugin(
        metadata in odd(), spec in odd(), container in odd(), whole in odd(), which in 0..3,
    ) {
        let template = match which {
            0 => whole,
            1 => json!({ "metadata": metadata, "spec": spec }),
            _ => json!({ "metadata": metadata, "spec": { "containers": [container], "restartPolicy": spec } }),
        };
        let edits = vec![
            Edit::Set("/metadata/labels/role".into(), json!("worker")),
            Edit::Set("/spec/restartPolicy".into(), json!("Never")),
            Edit::Append("/spec/initContainers".into(), vec![json!({ "name": "wait" })]),
        ];
        let (job, mut plan) = users(&template);
        match edited(&job.spec, "/worker/template", edits) {
            Err(Objection::Plugin(error)) => prop_assert!(template.is_null(), "{}", error),
            Err(Objection::Job(_)) => {}
            Ok(made) => {
                plan.roles[0].template = made;
                let vetted = vet(&descriptor(), &job, &granted(&json!({})), &plan);
                prop_assert!(!matches!(vetted, Err(Objection::Plugin(_))), "{:?}", vetted);
            }
        }
    }
}
