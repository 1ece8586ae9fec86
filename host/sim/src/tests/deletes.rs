//! Tests of deletion.

use kube::api::{DeleteParams, Patch, PatchParams, Preconditions, PropagationPolicy};

use super::*;

#[tokio::test(start_paused = true)]
async fn deleting_with_the_wrong_uid_or_version_conflicts() {
    let sim = sim();
    pods(&sim).create(&post(), &a_pod("a")).await.unwrap();
    for preconditions in [
        Preconditions { uid: Some("other".into()), resource_version: None },
        Preconditions { uid: None, resource_version: Some("1".into()) },
    ] {
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        let status = refused(pods(&sim).delete("a", &params).await);
        assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
        assert!(status.message.starts_with("Operation cannot be fulfilled on Pod \"a\": the "), "{}", status.message);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_custom_object_is_gone_at_once_and_answers_with_a_status() {
    let sim = sim();
    tales(&sim).create(&post(), &a_tale("a")).await.unwrap();
    let status = tales(&sim).delete("a", &DeleteParams::default()).await.unwrap().right().unwrap();
    assert!(status.is_success());
    assert_eq!(status.details.unwrap().kind, "tales");
    assert_eq!(refused(tales(&sim).get("a").await).message, "tales.example.com \"a\" not found");
}

#[tokio::test(start_paused = true)]
async fn a_bound_pod_is_deleted_with_grace_and_an_unbound_one_at_once() {
    let sim = sim();
    let api = pods(&sim);
    api.create(&post(), &a_pod("bound")).await.unwrap();
    api.create(&post(), &a_pod("free")).await.unwrap();
    sim.set_running("default", "bound");
    let marked = json(&api.delete("bound", &DeleteParams::default()).await.unwrap().left().unwrap());
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2026-01-01T00:00:30Z");
    assert_eq!(marked["metadata"]["generation"], 2);
    api.delete("free", &DeleteParams::default()).await.unwrap();
    assert!(sim.get("v1", "Pod", "default", "free").is_none());
    assert!(sim.get("v1", "Pod", "default", "bound").is_some());
    api.delete("bound", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert!(sim.get("v1", "Pod", "default", "bound").is_none());
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_a_deleted_object_until_they_are_emptied() {
    let sim = sim();
    let api = tales(&sim);
    let mut tale = a_tale("a");
    tale.metadata.finalizers = Some(vec!["example.com/hold".into()]);
    api.create(&post(), &tale).await.unwrap();
    let marked = api.delete("a", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert_eq!(marked.metadata.deletion_grace_period_seconds, Some(0));
    assert_eq!(marked.metadata.generation, Some(2));
    let add = Patch::Merge(json!({ "metadata": { "finalizers": ["example.com/hold", "example.com/more"] } }));
    assert_eq!(refused(api.patch("a", &PatchParams::default(), &add).await).code, 422);
    let empty = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    api.patch("a", &PatchParams::default(), &empty).await.unwrap();
    assert_eq!(refused(api.get("a").await).code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_deleted_by_selector() {
    let sim = sim();
    let api = tales(&sim);
    for (name, class) in [("a", "x"), ("b", "x"), ("c", "y")] {
        let mut tale = a_tale(name);
        tale.metadata.labels = Some([("class".to_owned(), class.to_owned())].into());
        api.create(&post(), &tale).await.unwrap();
    }
    api.delete_collection(&DeleteParams::default(), &kube::api::ListParams::default().labels("class=x")).await.unwrap();
    let left: Vec<String> =
        api.list(&Default::default()).await.unwrap().into_iter().filter_map(|tale| tale.metadata.name).collect();
    assert_eq!(left, ["c"]);
}

#[tokio::test(start_paused = true)]
async fn a_foreground_deletion_marks_the_object_with_the_finalizer() {
    let sim = sim();
    tales(&sim).create(&post(), &a_tale("a")).await.unwrap();
    let params = DeleteParams { propagation_policy: Some(PropagationPolicy::Foreground), ..DeleteParams::default() };
    let marked = tales(&sim).delete("a", &params).await.unwrap().left().unwrap();
    assert_eq!(marked.metadata.finalizers.unwrap(), ["foregroundDeletion"]);
}
