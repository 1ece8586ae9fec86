//! A control plane does what the tests on it rely on.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind};
use serde_json::json;

use super::*;

/// Less than the 30 s in which the garbage collector looks for new kinds.
const SOON: Duration = Duration::from_secs(20);

fn widgets() -> CustomResourceDefinition {
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    serde_json::from_value(json!({
        "metadata": {"name": "widgets.troupe.test"},
        "spec": {
            "group": "troupe.test",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    }))
    .unwrap()
}

fn widget(name: &str) -> (ApiResource, DynamicObject) {
    let kind = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("troupe.test", "v1", "Widget"), "widgets");
    let object = DynamicObject::new(name, &kind);
    (kind, object)
}

fn config_map(name: &str, owner: Option<&DynamicObject>) -> ConfigMap {
    let reference = |owner: &DynamicObject| json!([{"apiVersion": "troupe.test/v1", "kind": "Widget", "name": owner.name_any(), "uid": owner.uid()}]);
    serde_json::from_value(json!({"metadata": {"name": name, "ownerReferences": owner.map(reference)}})).unwrap()
}

fn pod(name: &str, annotations: &[(&str, &str)]) -> Pod {
    let annotations: BTreeMap<_, _> = annotations.iter().copied().collect();
    serde_json::from_value(json!({
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]},
    }))
    .unwrap()
}

async fn phase(pods: &Api<Pod>, name: &str, wanted: &str) -> Pod {
    until(SOON, format!("pod/{name} to be {wanted}"), || async {
        let pod = pods.get(name).await?;
        let phase = pod.status.as_ref().and_then(|status| status.phase.clone());
        Ok((phase.as_deref() == Some(wanted)).then_some(pod))
    })
    .await
    .unwrap()
}

fn exit_code(pod: &Pod) -> Option<i32> {
    let status = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
    Some(status.state.as_ref()?.terminated.as_ref()?.exit_code)
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn what_a_deleted_object_owned_is_collected_and_every_request_is_in_the_audit_log() {
    let options = Options::default().limited("user").crds([widgets()]);
    let control_plane = ControlPlane::start(options).await.unwrap();
    let client = control_plane.client("troupe").await.unwrap();
    let (kind, owner) = widget("owner");
    let owners = Api::<DynamicObject>::default_namespaced_with(client.clone(), &kind);
    let owner = owners.create(&PostParams::default(), &owner).await.unwrap();
    let children = Api::<ConfigMap>::default_namespaced(client);
    children.create(&PostParams::default(), &config_map("child", Some(&owner))).await.unwrap();
    owners.delete("owner", &DeleteParams::default()).await.unwrap();
    let gone = || async { Ok(children.get_opt("child").await?.is_none().then_some(())) };
    until(SOON, "configmap/child to be collected", gone).await.unwrap();

    let counts = audit::count(&control_plane.audit().unwrap(), "troupe", Timestamp::MIN, Timestamp::MAX);
    let counted = |verb: &str, target: &str| counts.get(&(verb.to_owned(), target.to_owned())).copied();
    let all = [
        counted("create", "widgets"),
        counted("create", "configmaps"),
        counted("delete", "widgets"),
        counted("delete", "configmaps"),
    ];
    assert_eq!(all, [Some(1), Some(1), Some(1), None], "{counts:?}");

    let limited = Api::<ConfigMap>::default_namespaced(control_plane.client("user").await.unwrap());
    let refused = limited.create(&PostParams::default(), &config_map("mine", None)).await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 403), "{refused}");
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn pods_on_fake_nodes_end_as_their_annotations_say() {
    let control_plane = ControlPlane::start(Options::default().fake_nodes(2)).await.unwrap();
    let pods = Api::<Pod>::default_namespaced(control_plane.client("user").await.unwrap());
    let made = [
        pod("good", &[(kwok::RUN_FOR, "1s")]),
        pod("bad", &[(kwok::RUN_FOR, "1s"), (kwok::EXIT_CODE, "3")]),
        pod("endless", &[]),
    ];
    for pod in &made {
        pods.create(&PostParams::default(), pod).await.unwrap();
    }
    assert_eq!(exit_code(&phase(&pods, "good", "Succeeded").await), Some(0));
    assert_eq!(exit_code(&phase(&pods, "bad", "Failed").await), Some(3));
    let endless = phase(&pods, "endless", "Running").await.status.unwrap();
    assert!(endless.pod_ip.is_some_and(|ip| ip.starts_with("10.64.")));
    assert!(
        endless.conditions.is_some_and(|all| { all.iter().any(|one| one.type_ == "Ready" && one.status == "True") })
    );
    pods.delete("endless", &DeleteParams::default()).await.unwrap();
    until(SOON, "pod/endless to be gone", || async { Ok(pods.get_opt("endless").await?.is_none().then_some(())) })
        .await
        .unwrap();
}
