//! Tests of get, list and discovery.

use kube::api::ListParams;

use super::*;

async fn three() -> Sim {
    let sim = sim();
    for (name, class) in [("c", "x"), ("a", "x"), ("b", "y")] {
        let mut tale = a_tale(name);
        tale.metadata.labels = Some([("class".to_owned(), class.to_owned())].into());
        tales(&sim).create(&post(), &tale).await.unwrap();
    }
    sim
}

async fn names(sim: &Sim, params: ListParams) -> Vec<String> {
    tales(sim).list(&params).await.unwrap().into_iter().filter_map(|tale| tale.metadata.name).collect()
}

#[tokio::test(start_paused = true)]
async fn a_list_is_ordered_by_name_and_selected_by_label_and_field() {
    let sim = three().await;
    assert_eq!(names(&sim, ListParams::default()).await, ["a", "b", "c"]);
    assert_eq!(names(&sim, ListParams::default().labels("class in (x, z)")).await, ["a", "c"]);
    assert_eq!(names(&sim, ListParams::default().labels("class!=x")).await, ["b"]);
    assert_eq!(names(&sim, ListParams::default().fields("metadata.name=b")).await, ["b"]);
}

#[tokio::test(start_paused = true)]
async fn pages_come_from_the_version_of_the_first_one() {
    let sim = three().await;
    let first = tales(&sim).list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(first.items.len(), 2);
    assert_eq!(first.metadata.remaining_item_count, Some(1));
    tales(&sim).create(&post(), &a_tale("d")).await.unwrap();
    let token = first.metadata.continue_.unwrap();
    let second = tales(&sim).list(&ListParams::default().limit(2).continue_token(&token)).await.unwrap();
    let names: Vec<&str> = second.items.iter().filter_map(|tale| tale.metadata.name.as_deref()).collect();
    assert_eq!(names, ["c"]);
    assert_eq!(second.metadata.resource_version, first.metadata.resource_version);
    sim.compact();
    tales(&sim).create(&post(), &a_tale("e")).await.unwrap();
    let status = refused(tales(&sim).list(&ListParams::default().limit(2).continue_token(&token)).await);
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_is_served_on_request() {
    let sim = three().await;
    let one = tales(&sim).get_metadata("a").await.unwrap();
    assert_eq!(one.metadata.name.as_deref(), Some("a"));
    let all = tales(&sim).list_metadata(&ListParams::default()).await.unwrap();
    assert_eq!(all.items.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn discovery_finds_the_custom_kind() {
    let sim = sim();
    let client = sim.client("me");
    let resources = client.list_api_group_resources("example.com/v1").await.unwrap();
    assert!(resources.resources.iter().any(|resource| resource.name == "tales/status"));
    assert!(client.list_api_groups().await.unwrap().groups.iter().any(|group| group.name == "batch"));
    let gvk = GroupVersionKind::gvk("example.com", "v1", "Tale");
    let (found, _) = kube::discovery::pinned_kind(&client, &gvk).await.unwrap();
    assert_eq!(found.plural, "tales");
}

#[tokio::test(start_paused = true)]
async fn requests_are_recorded_with_actor_verb_resource_and_code() {
    let sim = sim();
    tales(&sim).create(&post(), &a_tale("a")).await.unwrap();
    refused(tales(&sim).get("b").await);
    let reported: Vec<String> = sim
        .requests()
        .iter()
        .map(|request| format!("{} {} {} {}", request.actor, request.what(), request.name, request.code))
        .collect();
    assert_eq!(reported, ["me create tales a 201", "me get tales b 404"]);
}

#[tokio::test(start_paused = true)]
async fn hooks_see_every_write_with_the_state_after_it() {
    let sim = sim();
    let seen = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    let into = seen.clone();
    sim.on_write(move |write, view| {
        let there = view.get("example.com/v1", "Tale", "default", &write.name).is_some();
        into.lock().push((write.actor.clone(), write.created(), there));
    });
    tales(&sim).create(&post(), &a_tale("a")).await.unwrap();
    sim.delete("example.com/v1", "Tale", "default", "a").unwrap();
    assert_eq!(*seen.lock(), [("me".to_owned(), true, true), ("test".to_owned(), false, false)]);
}
