//! Tests of the garbage collector.

use super::*;

fn owned(name: &str, owner: &Value, blocks: bool) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "ownerReferences": [{
            "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": blocks }] },
    })
}

fn there(sim: &Sim, name: &str) -> bool {
    sim.get("v1", "ConfigMap", "default", name).is_some()
}

fn running() -> (Sim, crate::Running, Value) {
    let sim = sim();
    let guard = sim.start();
    let owner = sim.create(json!({ "apiVersion": "example.com/v1", "kind": "Tale", "metadata": { "name": "owner" } }));
    (sim, guard, owner)
}

#[tokio::test(start_paused = true)]
async fn children_of_a_deleted_owner_are_collected_a_little_later() {
    let (sim, _running, owner) = running();
    sim.create(owned("child", &owner, true));
    sim.create(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "free" } }));
    sim.delete("example.com/v1", "Tale", "default", "owner").unwrap();
    assert!(there(&sim, "child"));
    after(1000).await;
    assert!(!there(&sim, "child"));
    assert!(there(&sim, "free"));
}

#[tokio::test(start_paused = true)]
async fn a_child_created_for_a_dead_uid_is_collected() {
    let (sim, _running, owner) = running();
    sim.delete("example.com/v1", "Tale", "default", "owner").unwrap();
    after(1000).await;
    sim.create(owned("late", &owner, true));
    after(1000).await;
    assert!(!there(&sim, "late"));
}

#[tokio::test(start_paused = true)]
async fn a_new_owner_of_the_same_name_does_not_inherit() {
    let (sim, _running, owner) = running();
    sim.create(owned("child", &owner, true));
    sim.delete("example.com/v1", "Tale", "default", "owner").unwrap();
    sim.create(json!({ "apiVersion": "example.com/v1", "kind": "Tale", "metadata": { "name": "owner" } }));
    after(1000).await;
    assert!(!there(&sim, "child"));
}

#[tokio::test(start_paused = true)]
async fn a_foreground_deletion_waits_for_the_children_that_block() {
    let (sim, _running, owner) = running();
    let mut child = owned("child", &owner, true);
    child["metadata"]["finalizers"] = json!(["example.com/hold"]);
    sim.create(child);
    let options = json!({ "propagationPolicy": "Foreground" });
    sim.delete_with("example.com/v1", "Tale", "default", "owner", &options).unwrap();
    after(5000).await;
    let alive = || sim.get("example.com/v1", "Tale", "default", "owner").is_some();
    assert!(alive() && there(&sim, "child"));
    sim.patch("v1", "ConfigMap", "default", "child", json!({ "metadata": { "finalizers": null } })).unwrap();
    after(1000).await;
    assert!(!alive() && !there(&sim, "child"));
}

#[tokio::test(start_paused = true)]
async fn an_orphaning_deletion_frees_the_children() {
    let (sim, _running, owner) = running();
    sim.create(owned("child", &owner, true));
    let options = json!({ "propagationPolicy": "Orphan" });
    sim.delete_with("example.com/v1", "Tale", "default", "owner", &options).unwrap();
    after(5000).await;
    assert!(sim.get("example.com/v1", "Tale", "default", "owner").is_none());
    let child = sim.get("v1", "ConfigMap", "default", "child").unwrap();
    assert!(child["metadata"]["ownerReferences"].is_null());
}

#[tokio::test(start_paused = true)]
async fn a_child_of_two_owners_loses_the_reference_to_the_dead_one() {
    let (sim, _running, owner) = running();
    let other = sim.create(json!({ "apiVersion": "example.com/v1", "kind": "Tale", "metadata": { "name": "other" } }));
    let mut child = owned("child", &owner, true);
    let mut second = owned("child", &other, false)["metadata"]["ownerReferences"][0].clone();
    second["controller"] = json!(false);
    child["metadata"]["ownerReferences"].as_array_mut().unwrap().push(second);
    sim.create(child);
    sim.delete("example.com/v1", "Tale", "default", "owner").unwrap();
    after(1000).await;
    let child = sim.get("v1", "ConfigMap", "default", "child").unwrap();
    assert_eq!(child["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
    assert_eq!(child["metadata"]["ownerReferences"][0]["name"], "other");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_namespace_takes_everything_in_it_along_and_refuses_more() {
    let (sim, _running, _) = running();
    let mut map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": "team" } });
    map["metadata"]["finalizers"] = json!(["example.com/hold"]);
    sim.create(map);
    sim.delete("v1", "Namespace", "", "team").unwrap();
    after(1000).await;
    let more = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "b", "namespace": "team" } });
    let error = sim.try_create(more).unwrap_err();
    assert_eq!(error.code, 403);
    assert!(error.message.contains("because it is being terminated"), "{error}");
    sim.patch("v1", "ConfigMap", "team", "a", json!({ "metadata": { "finalizers": null } })).unwrap();
    after(1000).await;
    assert!(sim.get("v1", "Namespace", "", "team").is_none());
}
