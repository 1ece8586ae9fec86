//! Tests of create, update and patch.

use kube::api::{Api, Patch, PatchParams};

use super::*;

#[tokio::test(start_paused = true)]
async fn a_created_object_gets_uid_version_time_and_generation() {
    let sim = sim();
    let made = json(&tales(&sim).create(&post(), &a_tale("a")).await.unwrap());
    assert_eq!(made["metadata"]["uid"].as_str().unwrap().len(), 36);
    assert_eq!(made["metadata"]["creationTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(made["metadata"]["namespace"], "default");
    let next = json(&tales(&sim).create(&post(), &a_tale("b")).await.unwrap());
    let version = |object: &Value| object["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
    assert_eq!(version(&next), version(&made) + 1);
}

#[tokio::test(start_paused = true)]
async fn creating_a_name_twice_is_already_exists() {
    let sim = sim();
    pods(&sim).create(&post(), &a_pod("a")).await.unwrap();
    let status = refused(pods(&sim).create(&post(), &a_pod("a")).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "AlreadyExists"));
    assert_eq!(status.message, "pods \"a\" already exists");
    let details = status.details.unwrap();
    assert_eq!((details.name.as_str(), details.kind.as_str()), ("a", "pods"));
}

#[tokio::test(start_paused = true)]
async fn a_generated_name_ends_in_five_characters_of_the_alphabet() {
    let sim = sim();
    let mut tale = a_tale("x");
    tale.metadata.name = None;
    tale.metadata.generate_name = Some("saga-".into());
    let made = tales(&sim).create(&post(), &tale).await.unwrap();
    let name = made.metadata.name.unwrap();
    let suffix = name.strip_prefix("saga-").unwrap();
    assert_eq!(suffix.len(), 5);
    assert!(suffix.chars().all(|char| "bcdfghjklmnpqrstvwxz2456789".contains(char)), "{suffix}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_starts_pending_with_generation_one_and_no_status_of_its_own() {
    let sim = sim();
    let mut pod = pod_json("a");
    pod["status"] = json!({ "phase": "Running" });
    let made = json(&pods(&sim).create(&post(), &from(pod)).await.unwrap());
    assert_eq!(made["status"], json!({ "phase": "Pending", "qosClass": "BestEffort" }));
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(made["spec"]["terminationGracePeriodSeconds"], 30);
}

#[tokio::test(start_paused = true)]
async fn a_pod_without_containers_is_invalid_with_its_cause() {
    let sim = sim();
    let mut pod = pod_json("a");
    pod["spec"]["containers"] = json!([]);
    let status = refused(pods(&sim).create(&post(), &from(pod)).await);
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    assert_eq!(status.message, "Pod \"a\" is invalid: spec.containers: Required value");
    assert_eq!(status.details.unwrap().causes[0].field, "spec.containers");
}

#[tokio::test(start_paused = true)]
async fn a_label_value_that_is_too_long_is_invalid() {
    let sim = sim();
    let mut pod = pod_json("a");
    pod["metadata"]["labels"]["app"] = json!("x".repeat(64));
    let status = refused(pods(&sim).create(&post(), &from(pod)).await);
    assert!(status.message.ends_with("must be no more than 63 bytes"), "{}", status.message);
}

#[tokio::test(start_paused = true)]
async fn a_service_with_cluster_ip_none_keeps_it_and_another_gets_an_address() {
    let sim = sim();
    let service = |name: &str, ip: Option<&str>| {
        let mut service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name },
            "spec": { "selector": { "a": "b" }, "ports": [{ "port": 80 }] } });
        if let Some(ip) = ip {
            service["spec"]["clusterIP"] = json!(ip);
        }
        sim.create(service)
    };
    assert_eq!(service("a", Some("None"))["spec"]["clusterIPs"], json!(["None"]));
    assert!(service("b", None)["spec"]["clusterIP"].as_str().unwrap().starts_with("10.96."));
}

#[tokio::test(start_paused = true)]
async fn content_for_a_missing_namespace_is_refused() {
    let sim = sim();
    let api: Api<Pod> = Api::namespaced(sim.client("me"), "nowhere");
    let status = refused(api.create(&post(), &a_pod("a")).await);
    assert_eq!((status.code, status.message.as_str()), (404, "namespaces \"nowhere\" not found"));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_kind_is_404() {
    let sim = sim();
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Poem"));
    let api: Api<DynamicObject> = Api::namespaced_with(sim.client("me"), "default", &resource);
    assert_eq!(refused(api.get("a").await).code, 404);
}

#[tokio::test(start_paused = true)]
async fn only_a_change_of_the_spec_counts_a_generation() {
    let sim = sim();
    let api = tales(&sim);
    api.create(&post(), &a_tale("a")).await.unwrap();
    let merge = |patch: Value| Patch::Merge(patch);
    let params = PatchParams::default();
    let labelled = api.patch("a", &params, &merge(json!({ "metadata": { "labels": { "x": "y" } } }))).await.unwrap();
    assert_eq!(labelled.metadata.generation, Some(1));
    let stated = api.patch_status("a", &params, &merge(json!({ "status": { "phase": "Running" } }))).await.unwrap();
    assert_eq!(stated.metadata.generation, Some(1));
    let changed = api.patch("a", &params, &merge(json!({ "spec": { "n": 2 } }))).await.unwrap();
    assert_eq!(changed.metadata.generation, Some(2));
}

#[tokio::test(start_paused = true)]
async fn the_status_endpoint_touches_only_status_and_the_main_one_never_does() {
    let sim = sim();
    let api = tales(&sim);
    api.create(&post(), &a_tale("a")).await.unwrap();
    let patch =
        Patch::Merge(json!({ "spec": { "n": 9 }, "metadata": { "labels": { "x": "y" } }, "status": { "ok": true } }));
    let stated = api.patch_status("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(stated.data["spec"]["n"], 1);
    assert_eq!(stated.data["status"]["ok"], true);
    assert_eq!(stated.metadata.labels, None);
    let main =
        api.patch("a", &PatchParams::default(), &Patch::Merge(json!({ "status": { "ok": false } }))).await.unwrap();
    assert_eq!(main.data["status"]["ok"], true);
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_changes_nothing_keeps_the_version() {
    let sim = sim();
    let api = tales(&sim);
    let made = api.create(&post(), &a_tale("a")).await.unwrap();
    let same = api.patch("a", &PatchParams::default(), &Patch::Merge(json!({ "spec": { "n": 1 } }))).await.unwrap();
    assert_eq!(same.metadata.resource_version, made.metadata.resource_version);
}

#[tokio::test(start_paused = true)]
async fn a_patch_with_an_old_version_conflicts() {
    let sim = sim();
    let api = tales(&sim);
    let made = api.create(&post(), &a_tale("a")).await.unwrap();
    let patch = |n: u64| {
        Patch::Merge(json!({ "metadata": { "resourceVersion": made.metadata.resource_version }, "status": { "n": n } }))
    };
    api.patch_status("a", &PatchParams::default(), &patch(1)).await.unwrap();
    let status = refused(api.patch_status("a", &PatchParams::default(), &patch(2)).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert!(
        status
            .message
            .starts_with("Operation cannot be fulfilled on tales.example.com \"a\": the object has been modified")
    );
}

#[tokio::test(start_paused = true)]
async fn a_replacement_needs_the_version_and_the_uid() {
    let sim = sim();
    let api = tales(&sim);
    let made = api.create(&post(), &a_tale("a")).await.unwrap();
    let mut next = made.clone();
    next.metadata.resource_version = None;
    let status = refused(api.replace("a", &post(), &next).await);
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    next = made.clone();
    next.metadata.uid = Some("other".into());
    let status = refused(api.replace("a", &post(), &next).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    next = made;
    next.data["spec"]["n"] = json!(5);
    assert_eq!(api.replace("a", &post(), &next).await.unwrap().metadata.generation, Some(2));
    assert_eq!(refused(api.replace("a", &post(), &next).await).code, 409);
}

#[tokio::test(start_paused = true)]
async fn a_config_map_may_be_replaced_without_a_version() {
    let sim = sim();
    let map = |value: &str| from(json!({ "metadata": { "name": "a" }, "data": { "k": value } }));
    maps(&sim).create(&post(), &map("1")).await.unwrap();
    let replaced: ConfigMap = maps(&sim).replace("a", &post(), &map("2")).await.unwrap();
    assert_eq!(replaced.data.unwrap()["k"], "2");
}

#[tokio::test(start_paused = true)]
async fn a_json_patch_whose_test_holds_is_applied() {
    let sim = sim();
    maps(&sim).create(&post(), &from(json!({ "metadata": { "name": "a" }, "data": { "k": "1" } }))).await.unwrap();
    let request = http::Request::patch("/api/v1/namespaces/default/configmaps/a")
        .header("content-type", "application/json-patch+json")
        .body(br#"[{"op":"test","path":"/data/k","value":"1"},{"op":"replace","path":"/data/k","value":"2"}]"#.to_vec())
        .unwrap();
    let map: ConfigMap = sim.client("me").request(request).await.unwrap();
    assert_eq!(map.data.unwrap()["k"], "2");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_stores_nothing() {
    let sim = sim();
    let params = kube::api::PostParams { dry_run: true, ..post() };
    tales(&sim).create(&params, &a_tale("a")).await.unwrap();
    assert!(sim.list("example.com/v1", "Tale", "").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_created_by_a_put_and_needs_its_version_afterwards() {
    let sim = sim();
    let api: Api<k8s_openapi::api::coordination::v1::Lease> = Api::namespaced(sim.client("me"), "default");
    let lease = from(json!({ "metadata": { "name": "a" }, "spec": { "holderIdentity": "me" } }));
    api.replace("a", &post(), &lease).await.unwrap();
    let lease = from(json!({ "metadata": { "name": "a" }, "spec": { "holderIdentity": "you" } }));
    assert_eq!(refused(api.replace("a", &post(), &lease).await).code, 422);
}

#[tokio::test(start_paused = true)]
async fn a_custom_resource_definition_brings_its_kind_and_takes_it_away() {
    let sim = sim();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "poems.example.com" },
        "spec": { "group": "example.com", "scope": "Namespaced", "names": { "kind": "Poem", "plural": "poems" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "subresources": { "status": {} } }] },
    });
    let definition = sim.create(definition);
    assert_eq!(definition["status"]["conditions"][1]["type"], "Established");
    let poem = sim.create(json!({ "apiVersion": "example.com/v1", "kind": "Poem", "metadata": { "name": "a" } }));
    assert_eq!(poem["metadata"]["generation"], 1);
    sim.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "poems.example.com").unwrap();
    assert!(sim.get("example.com/v1", "Poem", "default", "a").is_none());
}
