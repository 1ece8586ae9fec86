//! What somebody puts into his namespace costs nobody else: what names a job as its owner, and what is named like its children.

use super::*;

// A namespace may have very many objects whose names begin with that of a job.
#[test]
fn what_another_jobs_children_are_named_is_not_read() {
    let shown = Shown::nothing();
    shown.has("Tale", &tale("u", 2));
    shown.has("Pod", &owned("hamlet-2-0", 3, ("example.com/v1", "Tale", "hamlet-2"), "another"));
    shown.has("Service", &owned("hamlet", 4, ("example.com/v1", "Tale", "hamlet-2"), "another"));
    assert!(shown.snapshot().taken.is_empty(), "{:?}", shown.snapshot().taken);
    shown.has("Service", &owned("hamlet-1", 5, ("example.com/v1", "Tale", "hamlet"), "of-an-earlier-one"));
    assert_eq!(shown.snapshot().taken, BTreeSet::from([("Service".to_owned(), "hamlet-1".to_owned())]));
}

// The name of a Job's owner is looked for among the jobs from each of its dashes on.
#[test]
fn an_owner_that_cannot_exist_is_none() {
    let shown = Shown::nothing();
    let names = ["-".repeat(400_000), "hamlet".into()];
    for (name, uid) in [(&names[0], "u"), (&names[1], &*"u".repeat(400_000))] {
        let object = owned("odd", 3, ("batch/v1", "Job", name), uid);
        assert_eq!(shown.decoded("Service", &object).owner, None);
        shown.has("Service", &object);
    }
    assert_eq!(shown.0.progress().iter().map(|watch| watch.objects).sum::<usize>(), 0);
}

#[test]
fn the_fields_of_jobs_that_somebody_adds_have_a_limit_of_their_own() {
    let shown = Shown::nothing();
    shown.has("Tale", &tale("u", 2));
    let large = json!({ "x": "y".repeat(3 << 19) });
    for number in 0..44 {
        shown.has("Job", &with(of_job(&format!("hamlet-{number:02}"), 3, "u"), "status", large.clone()));
    }
    shown.has("Service", &with(of_job("hamlet", 3, "u"), "spec", large));
    let snapshot = shown.snapshot();
    let whole = snapshot.children.iter().filter(|child| !child.fields.is_empty());
    assert_eq!((snapshot.children.len(), whole.count()), (45, 43));
    let wrong = snapshot.unreadable.as_ref().unwrap();
    assert_eq!(wrong.path, "Job hamlet-42");
    assert!(wrong.message.starts_with("the objects of the job have more than 64 MiB"), "{}", wrong.message);
}
