//! Tests of optional kinds: what becomes of their objects, and of writes to them, once they are not served.

use super::*;

/// Returns stores that have listed all kinds but props, which are optional.
fn with_props() -> Shown {
    let shown = Shown::nothing();
    let mut tales = Descriptor::clone(shown.0.layout().descriptor(&digest()).unwrap());
    let props = ChildKind { kind: "Prop".into(), plural: "props".into(), optional: true, ..tales.children[1].clone() };
    tales.children.push(props);
    shown.0.change(|layout| layout.describe(&Arc::new(tales), &digest()));
    shown
}

// The host deletes an object, and the answer is 404, since its kind is gone.
#[test]
fn the_objects_of_an_optional_kind_that_is_not_served_any_more_are_gone_and_no_write_to_them_is_awaited() {
    let shown = with_props();
    shown.lists("Prop", &[], 1);
    shown.has("Tale", &tale("u", 2));
    shown.has("Prop", &of_job("hamlet", 3, "u"));
    assert_eq!(shown.snapshot().children.len(), 1);
    shown.expects("Prop", Expected::Going { name: "hamlet".into(), uid: "uid-of-hamlet".into() });
    assert!(shown.is_stale());
    shown.expects("Prop", Expected::Version(9));
    shown.expects("Prop", Expected::InDoubt { name: "hamlet-1".into() });
    let watch = shown.watch("Prop");
    assert_eq!(shown.0.no_such_kind(watch), keys(&["hamlet"]));
    assert!(shown.snapshot().children.is_empty());
    assert_eq!(shown.0.no_such_kind(watch), keys(&[]), "it is known");
    assert_eq!(shown.lists("Prop", &[of_job("hamlet", 10, "u")], 10), keys(&["hamlet"]), "it is served again");
    assert_eq!(shown.snapshot().children.len(), 1);
}

#[test]
fn writes_to_other_kinds_are_still_awaited_once_an_optional_kind_is_not_served_any_more() {
    let shown = with_props();
    shown.lists("Prop", &[], 1);
    shown.has("Tale", &tale("u", 2));
    shown.expects("Pod", Expected::Version(5));
    shown.expects("Prop", Expected::Version(6));
    shown.0.no_such_kind(shown.watch("Prop"));
    assert!(shown.is_stale());
    shown.0.bookmark(shown.watch("Pod"), 5);
    shown.snapshot();
}

#[test]
fn an_optional_kind_that_was_never_listed_is_awaited_until_it_is_known_not_to_be_served() {
    let shown = with_props();
    shown.has("Tale", &tale("u", 2));
    assert!(shown.is_stale());
    assert_eq!(shown.0.no_such_kind(shown.watch("Prop")), keys(&["hamlet"]));
    shown.snapshot();
}

// Kubernetes 1.36 and 1.37 serve PodGroups in one version each, and not in the same.
#[test]
fn a_snapshot_says_which_version_of_an_optional_kind_is_served_where_it_is_not_the_first() {
    let shown = Shown::nothing();
    let mut tales = Descriptor::clone(shown.0.layout().descriptor(&digest()).unwrap());
    let props = |version: &str| ChildKind {
        api_version: format!("stage.io/{version}"),
        kind: "Prop".into(),
        plural: "props".into(),
        optional: true,
        ..tales.children[1].clone()
    };
    let both = ["v2", "v1"].map(props);
    tales.children.extend(both);
    shown.0.change(|layout| layout.describe(&Arc::new(tales), &digest()));
    let watches = shown.0.layout().watches().clone();
    let [newer, older] = ["v2", "v1"].map(|version| {
        *watches.iter().find(|(_, watch)| watch.resource.kind == "Prop" && watch.resource.version == version).unwrap().0
    });
    shown.has("Tale", &tale("u", 2));
    shown.0.no_such_kind(newer);
    assert!(shown.is_stale(), "the other version may be served");
    shown.0.replace(older, vec![], 1);
    let served = |from: &str, to: &str| [(format!("stage.io/{from}"), format!("stage.io/{to}"))].into();
    assert_eq!(shown.snapshot().served_as, served("v2", "v1"));
    shown.0.replace(newer, vec![], 2);
    assert!(shown.snapshot().served_as.is_empty(), "both are served");
    shown.0.no_such_kind(older);
    assert_eq!(shown.snapshot().served_as, served("v1", "v2"));
    shown.0.no_such_kind(newer);
    assert!(shown.snapshot().served_as.is_empty(), "none is served");
}
