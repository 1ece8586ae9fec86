//! Tests of which digest plans a job, and of which watches there are.

use super::*;
use crate::plugin_resource::Canary;
use decide::{
    ledger::Finished,
    plan::{Clean, Outcome, OwnedBy, Queueing},
    testkit::digest,
};
use jiff::Timestamp;
use serde_json::json;
use std::collections::BTreeSet;

fn descriptor(version: &str, keep: &str) -> Arc<Descriptor> {
    let kind = JobKind {
        group: "example.com".into(),
        version: "v1".into(),
        kind: "Play".into(),
        plural: "plays".into(),
        suspend: None,
        managed_by: None,
        own_manager: None,
        retired_finalizers: vec![],
        roles: vec![],
        event_source: "plays".into(),
        queueing: Queueing::Kueue,
    };
    let child = ChildKind {
        api_version: "v1".into(),
        kind: "Service".into(),
        plural: "services".into(),
        selector: None,
        keep: vec![keep.into()],
        optional: false,
        owned_by: OwnedBy::Job,
    };
    Arc::new(Descriptor {
        name: "plays".into(),
        version: version.into(),
        kinds: vec![kind],
        children: vec![child],
        config_schema: json!({}),
        reads: vec![],
        event_reasons: BTreeMap::new(),
        asks: decide::grants::Grants::default(),
    })
}

/// Returns the same descriptor with another name of the framework.
fn named(name: &str) -> Arc<Descriptor> {
    Arc::new(Descriptor { name: name.into(), ..(*descriptor("1.0.0", "/a")).clone() })
}

#[test]
fn a_kind_moves_to_another_framework_once_nobody_serves_it_and_its_plugin_is_gone() {
    let mut layout = layout();
    let (operas, both) = (named("operas"), BTreeSet::from(["plays".to_owned(), "operas".to_owned()]));
    let alone = BTreeSet::from(["operas".to_owned()]);
    assert!(layout.conflict(&operas, &both).unwrap().contains("served by plugin plays"));
    layout.add(&operas, &two());
    layout.route("operas", &Route::to(&two()));
    assert_eq!(layout.kinds()[&play()].framework.name, "plays", "it is not taken from who serves it");

    layout.route("plays", &Route::default());
    assert!(layout.conflict(&operas, &both).is_some(), "its Plugin is there, and may serve again");
    assert_eq!(layout.conflict(&operas, &alone), None);
    layout.route("operas", &Route::to(&two()));
    assert_eq!(layout.kinds()[&play()].framework.name, "operas");
    assert!(layout.conflict(&descriptor("1.0.0", "/a"), &both).unwrap().contains("served by plugin operas"));
}

fn one() -> Digest {
    digest("one")
}

fn two() -> Digest {
    digest("two")
}

fn layout() -> Layout {
    let mut layout = Layout::default();
    layout.keep_bytes();
    layout.add(&descriptor("1.0.0", "/a"), &one());
    layout.route("plays", &Route::to(&one()));
    layout
}

fn play() -> GroupKind {
    GroupKind::new("example.com", "Play")
}

fn job(uid: &str, labels: &[(&str, &str)]) -> Job {
    let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Job { labels, ..decide::testkit::job("hamlet", uid) }
}

fn planner(layout: &Layout, ledger: &Ledger, of_children: Option<Digest>) -> Planner {
    layout.planner(&play(), &job("u", &[]), ledger, || of_children)
}

#[test]
fn a_job_stays_with_the_digest_in_its_ledger() {
    let mut layout = layout();
    layout.add(&descriptor("2.0.0", "/a"), &two());
    layout.route("plays", &Route::to(&two()));
    assert_eq!(planner(&layout, &pinned(&one()), None), Planner::Digest(one()));
    assert_eq!(planner(&layout, &Ledger::default(), None), Planner::Digest(two()));
    // Its status has not been written yet, but its children exist.
    assert_eq!(planner(&layout, &Ledger::default(), Some(one())), Planner::Digest(one()));
    // The job was released: its status was written and names no digest.
    let released = Ledger { headline: "Suspended".into(), ..Ledger::default() };
    assert_eq!(planner(&layout, &released, Some(one())), Planner::Digest(two()));
}

/// Returns a digest that is not loaded.
fn gone() -> Digest {
    digest("gone")
}

fn pinned(digest: &Digest) -> Ledger {
    Ledger { digest: RecordedDigest::Digest(digest.clone()), ..Ledger::default() }
}

/// Makes this digest the only one in the archive, accepted for this kind.
fn keep(layout: &mut Layout, digest: &Digest, kind: &str) {
    let kinds = BTreeSet::from([kind.to_owned()]);
    layout.accepted().unwrap().keep(BTreeMap::from([(digest.clone(), kinds)]));
}

#[test]
fn a_digest_that_is_not_loaded_is_loaded_where_bytes_are_kept() {
    let mut layout = layout();
    assert_eq!(planner(&layout, &pinned(&gone()), None), Planner::Loading(gone()), "nobody knows yet");
    keep(&mut layout, &gone(), "Play.example.com");
    assert_eq!(planner(&layout, &pinned(&gone()), None), Planner::Loading(gone()));
    layout.record_lost(&gone(), "nobody has it");
    let fault = Fault::Missing { digest: Some(gone()), why: "nobody has it".into() };
    assert_eq!(planner(&layout, &pinned(&gone()), None), Planner::Held(Some(gone()), fault));
    layout.accepted = None;
    assert_eq!(planner(&layout, &pinned(&gone()), None), Planner::Digest(one()));
}

#[test]
fn a_digest_that_was_never_accepted_for_the_kind_holds_the_job_that_names_it() {
    let mut layout = layout();
    keep(&mut layout, &gone(), "Opera.example.com");
    let held = Planner::Held(Some(gone()), Fault::NotAccepted { digest: gone() });
    assert_eq!(planner(&layout, &pinned(&gone()), None), held);
    assert!(!layout.may_have_planned(&play(), &gone()));
    // Loading a digest as a candidate does not accept it.
    layout.add_candidate(&descriptor("2.0.0", "/a"), &gone());
    assert_eq!(planner(&layout, &pinned(&gone()), None), held);
    layout.add(&descriptor("2.0.0", "/a"), &gone());
    layout.add_candidate(&descriptor("2.0.0", "/a"), &gone());
    assert_eq!(planner(&layout, &pinned(&gone()), None), Planner::Digest(gone()));
}

/// Returns a plugin that serves another kind than the layout's.
fn operas() -> Arc<Descriptor> {
    let mut opera = Descriptor::clone(&descriptor("1.0.0", "/a"));
    opera.name = "operas".into();
    opera.kinds[0].kind = "Opera".into();
    Arc::new(opera)
}

#[test]
fn a_digest_that_serves_other_kinds_or_is_none_counts_as_nothing() {
    let mut layout = layout();
    layout.add(&operas(), &gone());
    let nonsense = Ledger { digest: RecordedDigest::Invalid("nonsense".into()), ..Ledger::default() };
    for ledger in [pinned(&gone()), nonsense] {
        assert_eq!(planner(&layout, &ledger, None), Planner::Digest(one()), "{ledger:?}");
    }
    assert!(!layout.may_have_planned(&play(), &gone()));
}

fn finished() -> Finished {
    Finished {
        at: Timestamp::UNIX_EPOCH,
        generation: None,
        outcome: Outcome::Succeeded,
        clean: Clean::Keep,
        clean_is_final: false,
        counting: false,
        clean_kinds: BTreeSet::new(),
        delete_at: None,
    }
}

#[test]
fn a_job_that_has_ended_stays_with_what_its_ledger_names_whatever_that_is() {
    let ended = |ledger| Ledger { finished: Some(finished()), ..ledger };
    let nonsense = Ledger { digest: RecordedDigest::Invalid("nonsense".into()), ..Ledger::default() };
    assert_eq!(planner(&layout(), &ended(pinned(&gone())), None), Planner::Digest(gone()));
    assert_eq!(planner(&layout(), &ended(nonsense), None), Planner::Nobody);
    // A plugin is asked about it once it was edited: not one that serves other kinds, nor a candidate.
    let mut layout = layout();
    keep(&mut layout, &one(), "Play.example.com");
    layout.add(&operas(), &gone());
    layout.add_candidate(&descriptor("2.0.0", "/a"), &two());
    for foreign in [gone(), two()] {
        assert_eq!(planner(&layout, &ended(pinned(&foreign)), None), Planner::Nobody);
    }
    assert_eq!(planner(&layout, &ended(pinned(&one())), None), Planner::Digest(one()));
}

// Seed 63233 of the campaign: the time to live that a user wrote after the end never counted, once the digest was unloaded.
#[test]
fn a_job_that_was_edited_after_its_end_has_its_digest_loaded_or_is_planned_by_another() {
    let mut layout = layout();
    layout.add(&operas(), &two());
    keep(&mut layout, &gone(), "Play.example.com");
    let generation = job("u", &[]).generation;
    let edited = Finished { generation: Some(generation - 1), ..finished() };
    let counted = Finished { counting: true, ..finished() };
    let planned = |layout: &Layout, finished: &Finished, digest: &Digest| {
        planner(layout, &Ledger { finished: Some(finished.clone()), ..pinned(digest) }, None)
    };
    for finished in [&edited, &counted] {
        assert_eq!(planned(&layout, finished, &gone()), Planner::Loading(gone()));
        assert_eq!(planned(&layout, finished, &one()), Planner::Digest(one()));
        assert_eq!(planned(&layout, finished, &two()), Planner::Nobody, "it serves another kind");
        // Its bytes were released a day after the last job that needed them.
        assert_eq!(planned(&layout, finished, &digest("released")), Planner::Digest(one()));
    }
    let unedited = Finished { generation: Some(generation), ..finished() };
    assert_eq!(planned(&layout, &unedited, &gone()), Planner::Digest(gone()), "nobody asks it");
    let deleting = Job { deleting: true, ..job("u", &[]) };
    let ledger = Ledger { finished: Some(edited.clone()), ..pinned(&gone()) };
    assert_eq!(layout.planner(&play(), &deleting, &ledger, || None), Planner::Digest(gone()), "nor here");

    layout.record_lost(&gone(), "its bytes are not there");
    assert_eq!(planned(&layout, &edited, &gone()), Planner::Digest(one()));
}

#[test]
fn new_jobs_wait_until_the_bytes_are_kept_and_jobs_that_run_do_not() {
    let mut layout = layout();
    layout.hold_new_jobs(&one(), None);
    assert_eq!(planner(&layout, &Ledger::default(), None), Planner::Loading(one()));
    assert_eq!(planner(&layout, &pinned(&one()), None), Planner::Digest(one()));
    layout.hold_new_jobs(&one(), Some("no namespace"));
    let fault = Fault::NotKept { plugin: "plays".into(), why: "no namespace".into() };
    assert_eq!(planner(&layout, &Ledger::default(), None), Planner::Held(Some(one()), fault));
    layout.admit_new_jobs(&one());
    assert_eq!(planner(&layout, &Ledger::default(), None), Planner::Digest(one()));
}

#[test]
fn a_framework_that_nobody_serves_has_no_planner_for_new_jobs() {
    let mut layout = layout();
    layout.route("plays", &Route::default());
    assert_eq!(planner(&layout, &pinned(&one()), None), Planner::Digest(one()));
    let nobody = Planner::Held(None, Fault::Missing { digest: None, why: String::new() });
    assert_eq!(planner(&layout, &Ledger::default(), None), nobody);
}

// A host comes with a kind that the component which serves does not have yet. A job that waited for it to be loaded would be
// looked at again and again, since it is loaded.
#[test]
fn a_new_job_of_a_kind_that_the_active_digest_lacks_says_so() {
    let mut layout = layout();
    let mut newer = Descriptor::clone(&descriptor("2.0.0", "/a"));
    newer.kinds.push(JobKind { kind: "Opera".into(), plural: "operas".into(), ..newer.kinds[0].clone() });
    layout.add(&Arc::new(newer), &two());
    layout.route("plays", &Route::to(&one()));
    let opera = |layout: &Layout| layout.planner_of_new(&GroupKind::new("example.com", "Opera"), &job("u", &[]));
    let why = "the component that serves new jobs of its plugin does not have this kind";
    assert_eq!(opera(&layout), Planner::lost(None, why));
    layout.route("plays", &Route::to(&two()));
    assert_eq!(opera(&layout), Planner::Digest(two()));
}

#[test]
fn a_digest_that_keeps_other_fields_has_watches_of_its_own() {
    let mut layout = layout();
    let before = layout.tables_of(&play(), Some(&one()));
    layout.add(&descriptor("2.0.0", "/b"), &two());
    assert_eq!(layout.tables_of(&play(), Some(&one())), before);
    assert_eq!(
        (before, layout.tables_of(&play(), Some(&two()))),
        (vec![WatchId(0), WatchId(1)], vec![WatchId(0), WatchId(2)])
    );
    assert_eq!(layout.kinds().len(), 1);
}

#[test]
fn a_canary_serves_its_share_of_the_jobs_that_it_selects() {
    let canary = Canary { percent: 30, match_labels: BTreeMap::from([("team".into(), "a".into())]) };
    let route = Route { canary: Some((two(), canary)), ..Route::to(&one()) };
    let uids: Vec<String> = (0..1000).map(|number| format!("uid-{number}")).collect();
    let by_two =
        |labels: &[(&str, &str)]| uids.iter().filter(|uid| route.of(&job(uid, labels)).unwrap() == &two()).count();
    assert_eq!(by_two(&[("team", "b")]), 0);
    assert!((250..350).contains(&by_two(&[("team", "a")])), "{}", by_two(&[("team", "a")]));
}

#[test]
fn a_kind_without_a_plugin_or_an_open_job_is_watched_no_longer() {
    let mut layout = layout();
    layout.add(&descriptor("2.0.0", "/b"), &two());
    layout.route("plays", &Route::to(&two()));
    layout.remove(&one());
    layout.prune(&BTreeSet::new());
    assert_eq!(layout.tables_of(&play(), Some(&two())), [WatchId(0), WatchId(2)], "nobody keeps /a any more");
    assert_eq!(layout.watches().len(), 2);

    layout.route("plays", &Route::default());
    layout.remove(&two());
    layout.prune(&BTreeSet::from([play()]));
    assert_eq!(layout.watches().len(), 2, "a job of the kind has not ended");
    layout.prune(&BTreeSet::new());
    assert!(layout.kinds().is_empty() && layout.watches().is_empty());

    layout.add(&descriptor("2.0.0", "/b"), &two());
    assert_eq!(layout.tables_of(&play(), Some(&two())), [WatchId(3), WatchId(4)], "it is listed again");
}

#[test]
fn a_refused_plugin_has_its_jobs_watched_and_nothing_else() {
    let mut layout = Layout::default();
    let retires = |descriptor: Arc<Descriptor>| {
        let mut descriptor = Arc::unwrap_or_clone(descriptor);
        descriptor.kinds[0].retired_finalizers.push("example.com/original".into());
        Arc::new(descriptor)
    };
    let plays = retires(descriptor("1.0.0", "/a"));
    assert!(layout.refuse(&plays, "GrantMissing") && !layout.refuse(&plays, "GrantMissing"), "it is new once");
    assert_eq!(layout.tables_of(&play(), None), [WatchId(0)]);
    assert!(layout.watches().len() == 1 && layout.is_of_unserved(WatchId(0)));
    assert!(layout.kind_by(&play(), None).unwrap().retired_finalizers.is_empty());
    let refused = |why: &str| Planner::Held(None, Fault::Refused { plugin: "plays".into(), why: why.to_owned() });
    assert_eq!(planner(&layout, &Ledger::default(), None), refused("GrantMissing"));
    assert!(layout.refuse(&plays, "InvalidConfig"));
    assert_eq!(planner(&layout, &Ledger::default(), None), refused("InvalidConfig"));
    assert!(!layout.refuse(&named("operas"), "GrantMissing"), "the first has it");
    layout.prune(&BTreeSet::new());
    assert_eq!(layout.kinds().len(), 1);

    // A job that another controller serves is left alone.
    let of_another = Job { status: json!({ "phase": "Running" }), ..job("uid", &[]) };
    assert_eq!(layout.planner(&play(), &of_another, &Ledger::default(), || None), Planner::Another);

    // Whoever may serve the kind has it.
    let (operas, both) = (named("operas"), BTreeSet::from(["plays".to_owned(), "operas".to_owned()]));
    assert_eq!(layout.conflict(&operas, &both), None);
    layout.add(&operas, &two());
    layout.route("operas", &Route::to(&two()));
    assert_eq!(planner(&layout, &Ledger::default(), None), Planner::Digest(two()));
    assert!(!layout.refuse(&plays, "GrantMissing"), "what is served is not refused");
    assert!(!layout.watches().contains_key(&WatchId(0)), "the jobs are listed again");
}

#[test]
fn a_refusal_is_forgotten_with_its_plugin() {
    let mut layout = Layout::default();
    layout.refuse(&descriptor("1.0.0", "/a"), "GrantMissing");
    layout.forget_refusal("plays");
    let nobody = Planner::Held(None, Fault::Missing { digest: None, why: String::new() });
    assert_eq!(planner(&layout, &Ledger::default(), None), nobody);
    assert!(layout.is_of_unserved(WatchId(0)), "a host without the right to it is ready");
    assert!(layout.clone().refuse(&named("operas"), "GrantMissing"), "it is another's turn");
    layout.prune(&BTreeSet::from([play()]));
    assert_eq!(layout.kinds().len(), 1, "a job of the kind has not ended");
    layout.prune(&BTreeSet::new());
    assert!(layout.kinds().is_empty() && layout.watches().is_empty());
}

#[test]
fn a_refused_version_with_other_kinds_takes_the_place_of_the_one_before() {
    let mut layout = Layout::default();
    let both = {
        let mut both = Arc::unwrap_or_clone(descriptor("1.0.0", "/a"));
        both.kinds.push(JobKind { kind: "Opera".into(), plural: "operas".into(), ..both.kinds[0].clone() });
        Arc::new(both)
    };
    assert!(layout.refuse(&both, "GrantMissing"));
    assert_eq!((layout.kinds().len(), layout.watches().len()), (2, 2));
    assert!(layout.refuse(&descriptor("1.0.1", "/a"), "GrantMissing"));
    assert_eq!((layout.kinds().len(), layout.watches().len()), (1, 1));
    layout.refuse(&both, "GrantMissing");
    layout.add(&descriptor("1.0.2", "/a"), &one());
    assert_eq!(layout.kinds().keys().collect::<Vec<_>>(), [&play()], "what serves counts");
}
