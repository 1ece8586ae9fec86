//! What the host writes into must be an object.

use crate::{
    difference::tests::{idle, plan},
    grants::Grants,
    plan::{Backing, ChildKind, Descriptor, OwnedBy, Plan},
    testkit,
    vet::vet,
};
use serde_json::json;
use std::collections::BTreeSet;

fn refused(change: impl FnOnce(&mut Plan)) -> Option<String> {
    let child = |kind: &str, keep: &str| ChildKind {
        api_version: if kind == "Job" { "batch/v1".into() } else { "v1".into() },
        kind: kind.into(),
        plural: kind.to_lowercase() + "s",
        selector: None,
        keep: vec![keep.into()],
        optional: false,
        owned_by: OwnedBy::Job,
    };
    let descriptor = Descriptor {
        name: "tales".into(),
        version: "1.0.0".into(),
        kinds: vec![testkit::kind()],
        children: vec![child("Pod", "/x"), child("Job", "/spec/suspend"), child("ConfigMap", "/data/hosts")],
        config_schema: json!({}),
        reads: vec![],
        event_reasons: std::collections::BTreeMap::new(),
        asks: Grants::default(),
    };
    let mut plan = plan();
    change(&mut plan);
    let grants = Grants { images: BTreeSet::from(["*".to_owned()]), ..descriptor.wanted_grants() };
    vet(&descriptor, &idle().job, &grants, &plan).err().map(|objection| objection.to_string())
}

#[test]
fn what_the_host_writes_into_must_be_an_object() {
    assert_eq!(refused(|_| {}), None);
    let labels = refused(|plan| plan.roles[0].template["metadata"] = json!({ "labels": "x" }));
    assert_eq!(labels.unwrap(), "role worker: what is at /metadata/labels of the template is not an object");
    let spec = refused(|plan| plan.roles[1].backing = Backing::Job(json!({ "spec": 1 })));
    assert_eq!(spec.unwrap(), "role launcher: the spec of its Job is no object");
}
