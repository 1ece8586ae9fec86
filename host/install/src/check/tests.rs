use super::*;
use crate::preflight::{Finding, ReadError, Right, Weight};
use serde::Deserialize;
use serde_json::json;

const PLACE: (&str, &str) = ("troupe-system", "troupe");

/// The documents of a file in `deploy/` with this kind.
fn documents(text: &str, kind: &str) -> Vec<Value> {
    let all = serde_norway::Deserializer::from_str(text).map(|it| Value::deserialize(it).unwrap());
    all.filter(|object| object["kind"] == kind).collect()
}

fn kind(group: &str, plural: &str) -> JobKind {
    JobKind {
        group: group.into(),
        version: "v1".into(),
        kind: "Tale".into(),
        plural: plural.into(),
        ..decide::testkit::kind()
    }
}

fn host(name: &str, arguments: &[&str], ready: &str) -> Value {
    json!({
        "metadata": { "name": name, "namespace": PLACE.0 },
        "spec": { "containers": [{ "command": ["troupe", "operator"], "args": arguments }] },
        "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": ready }] },
    })
}

/// A cluster in which all is as `deploy/` says, with two hosts of which one serves.
fn healthy() -> Facts {
    let files = [
        include_str!("../../../../deploy/fence.yaml"),
        include_str!("../../../../deploy/authors.yaml"),
        include_str!("../../../../deploy/ledger.yaml"),
    ];
    let of_kind = |kind: &str| files.iter().flat_map(|file| documents(file, kind)).collect::<Vec<_>>();
    let role = include_str!("../../../../deploy/rbac.yaml");
    let parameters = documents(role, "ConfigMap").into_iter().find(|it| it["metadata"]["name"] == "troupe-fence");
    let kinds: Vec<_> = parameters.iter().flat_map(|it| it["data"]["jobResources"].as_str().unwrap().lines()).collect();
    let definition = |name: &str| {
        let schema = json!({ "openAPIV3Schema": { "properties": { "spec": { "type": "object" } } } });
        let version = json!({ "name": "v1", "served": true, "schema": schema, "subresources": { "status": {} } });
        json!({ "metadata": { "name": name }, "spec": { "versions": [version] } })
    };
    let crd = definition("tales.example.com");
    let lease = json!({ "spec": {
        "holderIdentity": "troupe-a_00", "renewTime": "2026-01-01T00:00:50.000000Z", "leaseDurationSeconds": 15 } });
    Facts {
        now: "2026-01-01T00:01:00Z".parse().unwrap(),
        place: Place { namespace: PLACE.0.into(), service_account: PLACE.1.into() },
        namespace: Ok(Some(json!({ "status": { "phase": "Active" } }))),
        hosts: Ok(["troupe-a", "troupe-b"].map(|name| host(name, &["--leader-elect"], "True")).to_vec()),
        lease: Ok(Some(lease)),
        originals: Originals {
            known: builtin::originals(),
            leases: Ok(vec![]),
            deployments: Ok(vec![]),
            webhooks: Ok(vec![]),
        },
        definitions: vec![Definition { wanted: crd.clone(), version: "v1".into(), there: Ok(Some(crd)) }],
        rights: vec![right(true)],
        policies: Ok(of_kind("ValidatingAdmissionPolicy")),
        bindings: Ok(of_kind("ValidatingAdmissionPolicyBinding")),
        kinds: kinds
            .iter()
            .map(|name| name.split_once('.').unwrap())
            .map(|(plural, group)| kind(group, plural))
            .collect(),
        parameters: Ok(parameters),
        plugins: Ok(vec![plugin("True")]),
    }
}

fn right(given: bool) -> Answered {
    let right = Right {
        group: String::new(),
        resource: "pods".into(),
        subresource: String::new(),
        verb: "create".into(),
        namespace: None,
        optional: false,
    };
    Answered { right, given: Ok(given) }
}

fn plugin(serving: &str) -> Value {
    let condition =
        json!({ "type": "Serving", "status": serving, "reason": "Refused", "message": "no such ConfigMap" });
    json!({ "metadata": { "name": "saga" }, "status": { "conditions": [condition] } })
}

fn without(all: &Read<Vec<Value>>, name: &str) -> Read<Vec<Value>> {
    let kept = all.as_ref().unwrap().iter().filter(|it| it["metadata"]["name"] != name);
    Ok(kept.cloned().collect())
}

/// What is in the way after this fault was seeded, each with what to do.
fn stops(fault: impl FnOnce(&mut Facts)) -> Vec<(String, String)> {
    let mut facts = healthy();
    fault(&mut facts);
    let findings = report(&facts).sections.into_iter().flat_map(|section| section.findings);
    let stops = findings.filter(|finding| finding.weight == Weight::InTheWay);
    stops.map(|Finding { what, to_do, .. }| (what, to_do.expect("it says what to do"))).collect()
}

/// Seeds one fault, which has to be the only finding, and returns it.
fn stop(fault: impl FnOnce(&mut Facts)) -> (String, String) {
    let mut stops = stops(fault);
    assert_eq!(stops.len(), 1, "{stops:#?}");
    stops.remove(0)
}

#[test]
fn nothing_is_wrong_with_what_deploy_installs() {
    assert_eq!(stops(|_| {}), []);
}

#[test]
fn a_definition_that_is_missing_or_too_old() {
    let (what, to_do) = stop(|facts| facts.definitions[0].there = Ok(None));
    assert_eq!((what.as_str(), to_do.as_str()), ("tales.example.com is missing", "troupe crds | kubectl apply -f -"));
    let (what, _) = stop(|facts| {
        let there = facts.definitions[0].there.as_mut().unwrap().as_mut().unwrap();
        there["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = json!({ "status": {} });
    });
    assert_eq!(what, "tales.example.com v1 is too old, it drops spec");
}

#[test]
fn a_right_that_the_service_account_lacks() {
    let (what, to_do) = stop(|facts| facts.rights = vec![right(false)]);
    assert_eq!(what, "service account troupe-system/troupe may not create pods");
    assert!(to_do.contains("deploy/rbac.yaml"), "{to_do}");
}

#[test]
fn a_policy_that_is_missing_not_bound_only_audits_or_leaves_out_a_kind() {
    for name in ["fence", "authors", "ledger"] {
        let policy = format!("troupe-{name}");
        let apply = format!("kubectl apply -f deploy/{name}.yaml");
        let (what, to_do) = stop(|facts| facts.policies = without(&facts.policies, &policy));
        assert!(what.starts_with(&format!("{policy} is missing: ")) && to_do == apply, "{what}: {to_do}");
        let (what, to_do) = stop(|facts| facts.bindings = without(&facts.bindings, &policy));
        assert!(
            what.starts_with(&format!("{policy} has no binding that denies: ")) && to_do == apply,
            "{what}: {to_do}"
        );
    }
    let (what, _) = stop(|facts| {
        facts.bindings.as_mut().unwrap()[0]["spec"]["validationActions"] = json!(["Audit"]);
    });
    assert!(what.contains("has no binding that denies"), "{what}");
    let stops = stops(|facts| facts.kinds.push(kind("example.com", "sagas")));
    let reported: Vec<_> = stops.iter().map(|(what, _)| what.split(':').next().unwrap()).collect();
    let uncovered = ["troupe-authors", "troupe-ledger"].map(|name| format!("{name} does not cover sagas.example.com"));
    assert_eq!(reported, [&*uncovered[0], &*uncovered[1], "the ConfigMap troupe-fence lacks sagas.example.com"]);
}

#[test]
fn the_parameters_of_the_fence_that_are_missing() {
    let (what, _) = stop(|facts| facts.parameters = Ok(None));
    assert_eq!(what, "the ConfigMap troupe-fence is missing: without it the fence holds nobody");
}

#[test]
fn a_namespace_that_is_missing_or_being_deleted() {
    let (what, _) = stop(|facts| facts.namespace = Ok(None));
    assert_eq!(what, "namespace troupe-system is missing: the host keeps the bytes of plugins there");
    let (what, _) = stop(|facts| facts.namespace = Ok(Some(json!({ "status": { "phase": "Terminating" } }))));
    assert!(what.contains("is being deleted"), "{what}");
}

#[test]
fn a_host_that_does_not_run_or_is_not_ready() {
    let stops = stops(|facts| facts.hosts = Ok(vec![]));
    assert_eq!(stops[0].0, "no pod of service account troupe-system/troupe runs");
    let (what, to_do) = stop(|facts| facts.hosts.as_mut().unwrap()[1] = host("troupe-b", &["--leader-elect"], "False"));
    assert_eq!(what, "host troupe-system/troupe-b is not ready");
    assert!(to_do.starts_with("kubectl --namespace troupe-system logs troupe-b"), "{to_do}");
    let ended = |facts: &mut Facts| {
        let mut pod = host("troupe-old", &[], "False");
        pod["status"]["phase"] = "Failed".into();
        facts.hosts.as_mut().unwrap().push(pod);
    };
    assert_eq!(self::stops(ended), []);
}

#[test]
fn two_hosts_of_which_one_elects_no_leader() {
    let (what, to_do) = stop(|facts| facts.hosts.as_mut().unwrap()[1] = host("troupe-b", &[], "True"));
    assert_eq!(what, "2 hosts run, and troupe-b without --leader-elect: they undo each other's work");
    assert!(to_do.contains("--leader-elect"), "{to_do}");
    let alone = |facts: &mut Facts| {
        facts.hosts = Ok(vec![host("troupe-a", &[], "True")]);
        facts.lease = Ok(None);
    };
    assert_eq!(stops(alone), [], "one host needs no lease");
}

#[test]
fn a_lease_that_is_missing_free_or_held_by_a_host_that_is_gone() {
    let (what, _) = stop(|facts| facts.lease = Ok(None));
    assert_eq!(what, "lease troupe-system/troupe is missing, though hosts elect a leader");
    let spec = |facts: &mut Facts, field: &str, value: &str| {
        facts.lease.as_mut().unwrap().as_mut().unwrap()["spec"][field] = value.into();
    };
    let (what, _) = stop(|facts| spec(facts, "holderIdentity", ""));
    assert_eq!(what, "lease troupe-system/troupe is held by nobody: no job is served");
    let (what, _) = stop(|facts| spec(facts, "renewTime", "2026-01-01T00:00:29Z"));
    let gone = "lease troupe-system/troupe is held by troupe-a_00, which has not renewed it for 30 s: no job is served";
    assert_eq!(what, gone);
}

#[test]
fn a_plugin_that_does_not_serve() {
    let (what, to_do) = stop(|facts| facts.plugins = Ok(vec![plugin("False")]));
    assert_eq!(what, "plugin saga does not serve: Refused: no such ConfigMap");
    assert!(to_do.starts_with("kubectl describe plugin saga"), "{to_do}");
    let (what, _) = stop(|facts| facts.plugins = Ok(vec![json!({ "metadata": { "name": "saga" } })]));
    assert_eq!(what, "plugin saga does not serve: no host has looked at it");
}

#[test]
fn an_original_operator_that_still_runs() {
    let original = builtin::originals().remove(0);
    let deployment =
        json!({ "metadata": { "namespace": "x", "name": original.deployments[0] }, "spec": { "replicas": 1 } });
    let (what, to_do) = stop(|facts| facts.originals.deployments = Ok(vec![deployment]));
    assert!(what.starts_with(original.name) && to_do.contains("--replicas 0"), "{what}: {to_do}");
}

#[test]
fn what_cannot_be_read_is_reported_with_who_may() {
    let refused = || Err(ReadError::new(&std::fmt::Error));
    type Fault = fn(&mut Facts, Read<Vec<Value>>);
    let faults: [Fault; 4] = [
        |facts, refused| facts.hosts = refused,
        |facts, refused| facts.policies = refused,
        |facts, refused| facts.bindings = refused,
        |facts, refused| facts.plugins = refused,
    ];
    for fault in faults {
        let (what, to_do) = stop(|facts| fault(facts, refused()));
        assert!(what.contains("cannot be read") && to_do.contains("run this as somebody who may"), "{what}: {to_do}");
    }
}
