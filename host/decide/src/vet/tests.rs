//! Plans that reach beyond their job: each is refused, and allowed where the job's user or a grant allows it.

mod attempts;
mod series;
mod what_the_host_writes_into;

use super::{bodies, description, vet};
use crate::{
    grants::Grants,
    plan::{
        Algorithm, Backing, Body, ChildKind, Clean, Descriptor, JobKind, Moment, Object, OwnedBy, Piece, Plan, Policy,
        Queueing, Role, SecretRecipe, Text, Ttl, Upkeep,
    },
    rejection::Objection,
    snapshot::Job,
    testkit,
};
use attempts::{Attempt, attempts};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn text(fixed: &str) -> Text {
    Text(vec![Piece::Fixed(fixed.into())])
}

pub(super) fn named(suffix: &str) -> Text {
    Text(vec![Piece::JobName, Piece::Fixed(suffix.into())])
}

pub(super) fn job(spec: Value) -> Job {
    Job { spec, ..testkit::job("job", "uid-of-job") }
}

fn child(api_version: &str, kind: &str) -> ChildKind {
    let keep = vec!["/spec/suspend".into(), "/data".into(), "/metadata/ownerReferences".into()];
    ChildKind {
        api_version: api_version.into(),
        kind: kind.into(),
        plural: format!("{}s", kind.to_lowercase()),
        selector: None,
        keep,
        optional: false,
        owned_by: OwnedBy::Job,
    }
}

pub(super) fn descriptor() -> Descriptor {
    let kinds = [("v1", "Pod"), ("batch/v1", "Job"), ("v1", "Service"), ("v1", "ConfigMap"), ("apps/v1", "Deployment")];
    Descriptor {
        name: "echo".into(),
        version: "1.0.0".into(),
        kinds: vec![JobKind {
            group: "echo.example".into(),
            version: "v1".into(),
            kind: "EchoJob".into(),
            plural: "echojobs".into(),
            suspend: None,
            managed_by: None,
            own_manager: None,
            retired_finalizers: vec![],
            roles: vec![],
            event_source: "echo".into(),
            queueing: Queueing::Host,
        }],
        children: kinds.map(|(api_version, kind)| child(api_version, kind)).into(),
        config_schema: json!({}),
        reads: vec![],
        event_reasons: BTreeMap::new(),
        asks: Grants::default(),
    }
}

pub(super) fn role(template: Value) -> Role {
    testkit::role("worker", 2, testkit::text(&["JOB", "-w-", "INDEX"]), template)
}

pub(super) fn object(api_version: &str, kind: &str, body: Value) -> Object {
    Object {
        key: "it".into(),
        api_version: api_version.into(),
        kind: kind.into(),
        name: named("-it"),
        per_pod_of: None,
        body: Body::Fixed(body.into(), vec![]),
        upkeep: Upkeep::CreateOnly,
        after: vec![],
        remove_when: vec![],
    }
}

fn secret() -> SecretRecipe {
    SecretRecipe {
        key: "ssh".into(),
        name: named("-ssh"),
        secret_type: "kubernetes.io/ssh-auth".into(),
        labels: BTreeMap::new(),
        private_key: "a".into(),
        public_key: "b".into(),
        algorithm: Algorithm::EcdsaP521,
    }
}

pub(super) fn plan(roles: Vec<Role>, objects: Vec<Object>) -> Plan {
    let policy =
        Policy { clean_on_success: Clean::All, clean_on_failure: Clean::Keep, clean_on_suspend: Clean::All, ttl: None };
    Plan { objects, policy, ..testkit::plan(roles) }
}

/// Returns grants of the plugin's own kinds and of `more`.
pub(super) fn granted(more: &Value) -> Grants {
    descriptor().wanted_grants().with(&Grants::asked(more).unwrap())
}

/// Returns a pod template with these fields and an image of the user's.
fn template(pod: &Value, container: &Value, metadata: &Value) -> Value {
    let mut whole = json!({ "metadata": metadata, "spec": pod });
    whole["spec"]["containers"] = json!([{ "name": "c", "image": "users" }]);
    for (field, value) in container.as_object().unwrap() {
        whole["spec"]["containers"][0][field] = value.clone();
    }
    whole
}

/// Returns a job whose user asks for nothing but an image.
fn modest() -> Job {
    job(json!({ "template": template(&json!({}), &json!({}), &json!({})) }))
}

fn verdict(job: &Job, grants: &Grants, template: &Value) -> Result<(), Objection> {
    vet(&descriptor(), job, grants, &plan(vec![role(template.clone())], vec![]))
}

#[test]
fn a_use_without_permission_is_refused_with_its_pointer_and_the_missing_grant() {
    let attempts = attempts();
    assert!(attempts.len() >= 50, "{}", attempts.len());
    for Attempt { pod, container, metadata, at, grant } in attempts {
        let message =
            verdict(&modest(), &granted(&json!({})), &template(&pod, &container, &metadata)).unwrap_err().to_string();
        assert!(message.starts_with("role worker: /") && message.contains(at), "{at}: {message}");
        match grant {
            Some(grant) => {
                // A command is also allowed by a grant of its image.
                let is_named = |name: &&String| message.contains(&format!("spec.grants.{name}: "));
                let name = grant.as_object().unwrap().keys().find(is_named);
                assert!(name.is_some() || message.contains("spec.grants.commands: "), "{message}");
            }
            None => assert!(message.ends_with("no grant allows it"), "{message}"),
        }
    }
}

#[test]
fn a_granted_use_is_allowed() {
    for Attempt { pod, container, metadata, grant, .. } in attempts() {
        let Some(grant) = grant else { continue };
        let template = template(&pod, &container, &metadata);
        assert_eq!(verdict(&modest(), &granted(&grant), &template), Ok(()), "{template}");
    }
}

#[test]
fn a_use_of_the_users_own_job_is_allowed_wherever_it_stands() {
    for Attempt { pod, container, metadata, .. } in attempts() {
        let template = template(&pod, &container, &metadata);
        let job = job(json!({ "roles": [{ "deep": { "template": template } }] }));
        assert_eq!(verdict(&job, &granted(&json!({})), &template), Ok(()), "{template}");
    }
}

#[test]
fn a_users_value_allows_only_the_same_need() {
    let users = json!({ "image": "users", "configMapName": "m", "secretName": "s", "nodeSelector": { "zone": "a" },
        "args": ["admin"], "volumes": [{ "name": "d", "nfs": { "server": "s", "path": "/mine" } }] });
    let cases = [
        (json!({ "serviceAccountName": "admin" }), "/spec/serviceAccountName is admin"),
        (
            json!({ "volumes": [{ "name": "v", "secret": { "secretName": "m" } }] }),
            "/spec/volumes/0/secret/secretName is m",
        ),
        (json!({ "imagePullSecrets": [{ "name": "s" }] }), "/spec/imagePullSecrets/0/name is s"),
        (json!({ "nodeSelector": { "zone": "b" } }), "/spec/nodeSelector/zone"),
        (json!({ "volumes": [{ "name": "v", "nfs": { "server": "s", "path": "/" } }] }), "/spec/volumes/0/nfs"),
    ];
    for (pod, at) in cases {
        let template = template(&pod, &json!({}), &json!({}));
        let message = verdict(&job(users.clone()), &granted(&json!({})), &template).unwrap_err().to_string();
        assert!(message.contains(at), "{message}");
    }
}

// A value is the same value of JSON: neither the order of its fields nor what it looks like as a text counts.
#[test]
fn a_users_value_allows_the_same_value_alone() {
    let nfs = |server: Value| json!({ "volumes": [{ "name": "d", "nfs": server }] });
    let affinity = |field: Value| {
        let term = json!({ "matchFields": [field] });
        let required = json!({ "nodeSelectorTerms": [term] });
        json!({ "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": required } } })
    };
    let field = json!({ "key": "metadata.name", "operator": "In", "values": ["a"] });
    let allowed: [(Value, Value); 2] = [
        (
            nfs(json!({ "server": "s", "path": "/" })),
            nfs(serde_json::from_str(r#"{"path":"/","server":"s"}"#).unwrap()),
        ),
        (affinity(field.clone()), affinity(field.clone())),
    ];
    let refused = [
        (nfs(json!({ "server": 1 })), nfs(json!({ "server": 1.0 }))),
        (nfs(json!({ "server": "1" })), nfs(json!({ "server": 1 }))),
        (nfs(json!({ "server": "s" })), nfs(json!({ "server": "s", "readOnly": null }))),
        (json!({ "nodeName": format!("a {field}") }), affinity(field)),
        (
            json!({ "namespace": "any that the selector finds {}" }),
            json!({ "affinity": { "podAffinity": { "namespaceSelector": {} } } }),
        ),
    ];
    let of = |(users, plans): &(Value, Value)| {
        let user = template(users, &json!({}), &json!({}));
        verdict(&job(json!({ "template": user })), &granted(&json!({})), &template(plans, &json!({}), &json!({})))
    };
    for case in &allowed {
        assert_eq!(of(case), Ok(()), "{case:?}");
    }
    for case in &refused {
        assert!(matches!(of(case), Err(Objection::Plugin(_))), "{case:?}");
    }
}

#[test]
fn a_framework_may_have_its_own_fields_for_image_and_priority_class() {
    let users = json!({ "image": "users", "schedulingPolicy": { "priorityClass": "high" } });
    let template = template(&json!({ "priorityClassName": "high" }), &json!({}), &json!({}));
    assert_eq!(verdict(&job(users), &granted(&json!({})), &template), Ok(()));
}

#[test]
fn fields_that_remove_rights_need_no_permission() {
    let pod = json!({
        "hostNetwork": false, "hostPID": null, "automountServiceAccountToken": false, "hostUsers": false,
        "securityContext": { "runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": { "type": "RuntimeDefault" } },
        "volumes": [{ "name": "e", "emptyDir": {} }, { "name": "d", "downwardAPI": {} }],
        "dnsPolicy": "ClusterFirstWithHostNet",
    });
    let container = json!({
        "securityContext": { "privileged": false, "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] },
            "readOnlyRootFilesystem": true, "procMount": "Default" },
        "env": [{ "name": "X", "value": "secret" }, { "name": "Y", "valueFrom": { "fieldRef": { "fieldPath": "status.podIP" } } }],
        "resources": { "limits": { "namespace": 1 } },
        "livenessProbe": { "httpGet": { "port": 80 } },
    });
    let template =
        template(&pod, &container, &json!({ "labels": { "image": "x", "app": "y" }, "annotations": { "a/b": "c" } }));
    assert_eq!(verdict(&modest(), &granted(&json!({})), &template), Ok(()));
}

#[test]
fn a_plan_may_refer_to_its_own_objects_and_secrets() {
    let pod = json!({ "volumes": [
        { "name": "s", "secret": { "secretName": "job-ssh" } },
        { "name": "m", "configMap": { "name": "job-it" } },
    ] });
    let template = template(&pod, &json!({ "envFrom": [{ "configMapRef": { "name": "job-it" } }] }), &json!({}));
    let map = object("v1", "ConfigMap", json!({ "data": { "namespace": "kube-system", "secretName": "x" } }));
    let with_secret = Plan { secrets: vec![secret()], ..plan(vec![role(template.clone())], vec![map.clone()]) };
    let grants = granted(&json!({ "kinds": ["Secret"] }));
    assert_eq!(vet(&descriptor(), &modest(), &grants, &with_secret), Ok(()));
    let message = vet(&descriptor(), &modest(), &granted(&json!({})), &with_secret).unwrap_err().to_string();
    assert_eq!(message, "secret ssh: kind is Secret; `spec.grants.kinds: [Secret]` would allow it");
}

#[test]
fn a_text_that_differs_between_replicas_names_only_the_plans_own_objects() {
    let pod = json!({ "serviceAccountName": "", "volumes": [{ "name": "m", "configMap": { "name": "" } }] });
    let template = template(&pod, &json!({}), &json!({}));
    let indexed = || Text(vec![Piece::JobName, Piece::Fixed("-w-".into()), Piece::Index(0)]);
    let filled = |pointer: &str, text: Text| {
        let map = Object { name: indexed(), per_pod_of: Some("worker".into()), ..object("v1", "ConfigMap", json!({})) };
        plan(vec![Role { fill: vec![(pointer.into(), text)], ..role(template.clone()) }], vec![map])
    };
    let grants = granted(&json!({}));
    let users = job(json!({ "image": "users", "serviceAccountName": "job-w-0" }));
    let of = |plan: &Plan| vet(&descriptor(), &users, &grants, plan);
    assert_eq!(of(&filled("/spec/volumes/0/configMap/name", indexed())), Ok(()));
    let message = of(&filled("/spec/serviceAccountName", indexed())).unwrap_err().to_string();
    assert_eq!(
        message,
        "role worker: /spec/serviceAccountName differs between replicas, which only names of the plan's own objects may"
    );
    let message = of(&filled("/spec/serviceAccountName", text("admin"))).unwrap_err().to_string();
    assert!(message.contains("/spec/serviceAccountName is admin"), "{message}");
    assert_eq!(of(&filled("/spec/serviceAccountName", text("job-w-0"))), Ok(()));
    // In place of a use, and inside it.
    let toleration = json!({ "key": "gpu", "value": "", "effect": "NoSchedule" });
    let labels = json!({ "labels": { "app": "x" } });
    let tolerant = self::template(&json!({ "tolerations": [toleration] }), &json!({}), &labels);
    let users = job(json!({ "template": tolerant }));
    let filled = |pointer: &str| {
        let fill = vec![(pointer.to_owned(), indexed())];
        vet(&descriptor(), &users, &grants, &self::plan(vec![Role { fill, ..role(tolerant.clone()) }], vec![]))
    };
    assert_eq!(filled("/metadata/labels/app"), Ok(()));
    for pointer in ["/spec/tolerations", "/spec/tolerations/0", "/spec/tolerations/0/value"] {
        let message = filled(pointer).unwrap_err().to_string();
        assert!(message.contains("/spec/tolerations") && message.contains(" differs "), "{pointer}: {message}");
    }
}

fn with(object: Object) -> Plan {
    plan(vec![], vec![object])
}

#[test]
fn objects_reach_no_further_than_pods() {
    let service = |spec: Value| object("v1", "Service", json!({ "spec": spec }));
    let deployment = |spec: Value| object("apps/v1", "Deployment", json!({ "spec": spec }));
    let follow =
        |pointer: &str| Object { upkeep: Upkeep::Follow(vec![pointer.into()]), ..object("v1", "ConfigMap", json!({})) };
    let cases = [
        (service(json!({ "type": "LoadBalancer" })), "/spec/type is LoadBalancer", "serviceTypes: [LoadBalancer]"),
        (service(json!({ "externalIPs": ["10.0.0.1"] })), "/spec/externalIPs", "otherFields: [externalIPs]"),
        (service(json!({ "type": "ExternalName", "externalName": "x" })), "/spec/externalName", "externalName"),
        (service(json!({ "selector": { "app": "theirs" } })), "/spec/selector", "it must name the job"),
        (
            deployment(json!({ "template": { "spec": { "hostNetwork": true, "containers": [] } } })),
            "/spec/template/spec/hostNetwork",
            "hostNetwork: true",
        ),
        (
            deployment(json!({ "template": { "metadata": { "namespace": "theirs" } } })),
            "/spec/template/metadata/namespace",
            "no grant",
        ),
        (
            deployment(json!({ "template": { "metadata": { "finalizers": ["x"] } } })),
            "/spec/template/metadata/finalizers",
            "no grant",
        ),
        (deployment(json!({ "replicas": 20_000 })), "20000 replicas", "10000"),
        (
            object("v1", "ConfigMap", json!({ "metadata": { "labels": { "troupe.dev/x": "y" } } })),
            "/metadata/labels/troupe.dev~1x",
            "no grant",
        ),
        (object("v1", "ConfigMap", json!({ "status": {} })), "/status", "not a plugin's"),
        (
            object("networking.k8s.io/v1", "Ingress", json!({})),
            "networking.k8s.io/v1 Ingress",
            "describe does not name",
        ),
        (
            Object { remove_when: vec![Moment::Finished], ..object("v1", "ConfigMap", json!({})) },
            "remove-when is ConfigMap",
            "deletes: [ConfigMap]",
        ),
        (follow("/metadata/ownerReferences"), "/metadata/ownerReferences", "the host's"),
    ];
    for (object, at, words) in cases {
        let message = vet(&descriptor(), &modest(), &granted(&json!({})), &with(object)).unwrap_err().to_string();
        assert!(message.contains(at) && message.contains(words), "{message}");
    }
    let found = service(json!({ "clusterIP": "None", "selector": { "app": "job" }, "ports": [{ "port": 1 }] }));
    assert_eq!(vet(&descriptor(), &modest(), &granted(&json!({})), &with(found)), Ok(()));
    let outside = service(json!({ "type": "NodePort", "externalIPs": ["10.0.0.1"] }));
    let grants = granted(&json!({ "serviceTypes": ["NodePort"], "otherFields": ["externalIPs"] }));
    assert_eq!(vet(&descriptor(), &modest(), &grants, &with(outside)), Ok(()));
}

#[test]
fn a_place_is_followed_once() {
    let follow = |pointers: &[&str]| {
        let mut map = object("v1", "ConfigMap", json!({ "data": { "a": "b" } }));
        map.upkeep = Upkeep::Follow(pointers.iter().map(ToString::to_string).collect());
        let mut descriptor = descriptor();
        for child in &mut descriptor.children {
            child.keep.extend(pointers.iter().map(ToString::to_string));
        }
        vet(&descriptor, &modest(), &granted(&json!({})), &with(map))
    };
    assert_eq!(follow(&["/data", "/database"]), Ok(()));
    for pointers in [["/data", "/data/a"], ["/data/a/b", "/data/a"], ["/data", "/data"]] {
        let message = follow(&pointers).unwrap_err().to_string();
        assert!(message.contains("are the same place, or one is in the other"), "{message}");
    }
}

#[test]
fn a_kind_without_grant_is_refused_and_some_kinds_always() {
    let pods = plan(vec![role(template(&json!({}), &json!({}), &json!({})))], vec![]);
    let message = vet(&descriptor(), &modest(), &Grants::default(), &pods).unwrap_err().to_string();
    assert_eq!(message, "role worker: kind is Pod; `spec.grants.kinds: [Pod]` would allow it");
    let all = [
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("v1", "Namespace"),
        ("v1", "ServiceAccount"),
        ("v1", "Endpoints"),
        ("troupe.dev/v1alpha1", "Plugin"),
    ];
    for (api_version, kind) in all {
        let greedy = Descriptor { children: vec![child(api_version, kind)], ..descriptor() };
        assert!(description(&greedy).unwrap_err().to_string().contains(kind));
        let message = vet(&greedy, &modest(), &greedy.wanted_grants(), &with(object(api_version, kind, json!({}))))
            .unwrap_err()
            .to_string();
        assert!(message.contains("no plan may have a") && message.contains(kind), "{message}");
    }
    let reader = Descriptor { children: vec![child("v1", "Secret")], ..descriptor() };
    assert_eq!(description(&reader).unwrap_err().to_string(), "no job may have a Secret of v1 for a child");
    let mut server = descriptor();
    (server.kinds[0].group, server.kinds[0].kind) = (String::new(), "Secret".into());
    assert_eq!(description(&server).unwrap_err().to_string(), "Secret of \"\" is no kind of job of a framework");
    for group in ["kueue.x-k8s.io", "scheduling.volcano.sh", "scheduling.x-k8s.io", "scheduling.k8s.io"] {
        (server.kinds[0].group, server.kinds[0].kind) = (group.into(), "Workload".into());
        assert!(description(&server).unwrap_err().to_string().ends_with("is no kind of job of a framework"), "{group}");
    }
    assert_eq!(description(&descriptor()), Ok(()));
}

#[test]
fn a_description_has_no_more_kinds_and_places_than_a_framework_needs() {
    let refused = |change: fn(&mut Descriptor)| {
        let mut descriptor = descriptor();
        change(&mut descriptor);
        description(&descriptor).unwrap_err().to_string()
    };
    let kinds = refused(|it| it.kinds = vec![it.kinds[0].clone(); 33]);
    assert_eq!(kinds, "kinds: 33, at most 32");
    let children = refused(|it| it.children = vec![it.children[0].clone(); 65]);
    assert_eq!(children, "children: 65, at most 64");
    let keep = refused(|it| it.children[0].keep = vec!["/data".into(); 20_000]);
    assert_eq!(keep, "keep of Pod: 20000, at most 64");
    let deep = refused(|it| it.children[0].keep = vec!["/x".repeat(600_000)]);
    assert!(deep.ends_with("is no JSON pointer to a field of at most 1024 bytes") && deep.len() < 200, "{deep}");
}

// Every list and watch with it would be refused, and the host would never be ready.
#[test]
fn a_selector_that_the_api_server_refuses_is_none_of_a_plugin() {
    let mut descriptor = descriptor();
    descriptor.children[0].selector = Some("app in".into());
    assert_eq!(description(&descriptor).unwrap_err().to_string(), "Pod: \"app in\" is no label selector");
    descriptor.children[0].selector = Some("app in (a),!old".into());
    assert_eq!(description(&descriptor), Ok(()));
}

#[test]
fn only_finalizers_of_the_domain_of_the_kind_are_retired() {
    let mut descriptor = descriptor();
    descriptor.kinds[0].group = "batch.paddlepaddle.org".into();
    for (finalizer, is_its) in [
        ("finalizers.paddlepaddle.org", true),
        ("paddlepaddle.org/clean-up", true),
        ("kueue.x-k8s.io/resource-in-use", false),
        ("kubernetes.io/pvc-protection", false),
        ("foregroundDeletion", false),
        ("org", false),
    ] {
        descriptor.kinds[0].retired_finalizers = vec![finalizer.into()];
        assert_eq!(description(&descriptor).is_ok(), is_its, "{finalizer}");
    }
}

#[test]
fn a_job_behind_a_role_takes_over_no_pods_and_is_no_larger_than_a_role() {
    let backed = |body: Value| {
        let template = template(&json!({}), &json!({}), &json!({}));
        let role = Role { replicas: 1, backing: Backing::Job(body), pod_name: named("-w"), ..role(template) };
        vet(&descriptor(), &modest(), &granted(&json!({})), &plan(vec![role], vec![]))
    };
    assert_eq!(backed(json!({ "spec": { "parallelism": 3, "completions": 3, "backoffLimit": 0 } })), Ok(()));
    for (body, words) in [
        (json!({ "spec": { "manualSelector": true, "selector": {} } }), "/spec/manualSelector"),
        (json!({ "spec": { "managedBy": "x" } }), "/spec/managedBy"),
        (
            json!({ "spec": { "parallelism": 1_000_000_000 } }),
            "1000000000 replicas (1000000000 of worker) are more than 10000",
        ),
        (json!({ "spec": { "completions": -1 } }), "are more than 10000, the most for one job"),
        (json!({ "metadata": { "labels": { "controller-uid": "x" } } }), "/metadata/labels/controller-uid"),
    ] {
        let message = backed(body).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn limits_ports_and_deletions_are_granted() {
    let small =
        plan(vec![role(template(&json!({}), &json!({}), &json!({})))], vec![object("v1", "ConfigMap", json!({}))]);
    let ttl = Policy { ttl: Some(Ttl::AfterFinished(0)), ..small.policy };
    let of =
        |grants: Value, plan: &Plan| vet(&descriptor(), &modest(), &granted(&json!({})).with_limits(&grants), plan);
    let cases = [
        (
            json!({ "maxReplicas": 1 }),
            small.clone(),
            "2 replicas (2 of worker) are more than 1; `spec.grants.maxReplicas: 2`",
        ),
        (json!({ "maxObjects": 0 }), small.clone(), "1 objects (1 of it) are more than 0; `spec.grants.maxObjects: 1`"),
        (json!({}), Plan { host_ports: 20, ..small.clone() }, "`spec.grants.hostPorts: true` would allow it"),
        (
            json!({}),
            Plan { policy: ttl, ..small.clone() },
            "`spec.grants.deletes: [EchoJob.echo.example]` would allow it",
        ),
    ];
    for (grants, plan, words) in cases {
        let message = of(grants, &plan).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(of(json!({ "maxReplicas": 2, "maxObjects": 1, "namespaces": ["ns"] }), &small), Ok(()));
    let all = Plan { host_ports: 20, policy: ttl, ..small };
    assert_eq!(of(json!({ "hostPorts": true, "deletes": ["EchoJob.echo.example"] }), &all), Ok(()));
}

impl Grants {
    fn with_limits(self, asked: &Value) -> Self {
        let asked = Grants::asked(asked).unwrap();
        let limits = Self {
            namespaces: asked.namespaces.clone(),
            max_replicas: asked.max_replicas,
            max_objects: asked.max_objects,
            ..self
        };
        limits.with(&asked)
    }
}

#[test]
fn a_bound_body_is_checked_as_a_fixed_one() {
    let bound = |api_version, kind| with(Object { body: Body::Bound, ..object(api_version, kind, json!({})) });
    let of = |plan: &Plan, body: Value| {
        bodies(&modest(), &granted(&json!({})), plan, &BTreeMap::from([("it".to_owned(), body)]))
    };
    let map = bound("v1", "ConfigMap");
    assert_eq!(of(&map, json!({ "data": { "secretName": "x" } })), Ok(()));
    let message = of(&map, json!({ "metadata": { "annotations": { "troupe.dev/plugin-digest": "x" } } }))
        .unwrap_err()
        .to_string();
    assert!(message.contains("/metadata/annotations/troupe.dev~1plugin-digest"), "{message}");
    let message = of(&bound("v1", "Service"), json!({ "spec": { "type": "NodePort" } })).unwrap_err().to_string();
    assert!(message.contains("/spec/type is NodePort"), "{message}");
    let pod = json!({ "spec": { "template": { "spec": { "hostPID": true, "containers": [] } } } });
    assert!(of(&bound("apps/v1", "Deployment"), pod).unwrap_err().to_string().contains("/spec/template/spec/hostPID"));
}

#[test]
fn not_even_the_user_may_set_the_hosts_annotation() {
    let template = template(&json!({}), &json!({}), &json!({ "annotations": { "troupe.dev/plugin-digest": "x" } }));
    let message =
        verdict(&job(json!({ "template": template })), &granted(&json!({})), &template).unwrap_err().to_string();
    let field = "spec.template.metadata.annotations[troupe.dev/plugin-digest]";
    assert_eq!(message, format!("{field}: is the host's to write: remove it"));
}

#[test]
fn a_refusal_is_one_line_of_bounded_length() {
    let pod = json!({ "serviceAccountName": format!("a\u{1b}[31m\n{}", "x".repeat(100_000)) });
    let mut role = role(template(&pod, &json!({}), &json!({})));
    role.name = "r".repeat(5000);
    let message =
        vet(&descriptor(), &modest(), &granted(&json!({})), &plan(vec![role], vec![])).unwrap_err().to_string();
    assert!(message.len() <= 1000 && !message.contains(char::is_control), "{message}");
}

#[test]
fn a_plan_may_have_only_the_roles_of_its_kind() {
    let with = |roles: &[&str]| {
        let mut descriptor = descriptor();
        descriptor.kinds[0].roles = roles.iter().map(ToString::to_string).collect();
        let template = template(&json!({}), &json!({}), &json!({}));
        vet(&descriptor, &modest(), &granted(&json!({})), &plan(vec![role(template)], vec![]))
    };
    assert_eq!((with(&[]), with(&["master", "worker"])), (Ok(()), Ok(())));
    let refused = with(&["master", "ps"]).unwrap_err().to_string();
    assert_eq!(refused, "role worker: describe does not name it; its roles are master, ps");
}
