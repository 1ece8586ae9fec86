use super::*;
use crate::{own_conditions::waits_for_nothing, plan::Reached, snapshot::Hold, testkit, time::rfc3339};
use serde_json::json;
use std::sync::Arc;

#[test]
fn a_merge_patch_turns_one_value_into_the_other() {
    let from = json!({ "a": 1, "b": { "c": 2, "d": 3 }, "gone": true });
    let to = json!({ "a": 1, "b": { "c": 4, "d": 3 }, "new": [1] });
    assert_eq!(merge_patch(&from, &to), json!({ "b": { "c": 4 }, "gone": null, "new": [1] }));
}

#[test]
fn the_frameworks_status_excludes_the_hosts_additions() {
    let status = json!({ "phase": "Running", "troupe": { "conditions": [{ "type": "Waiting" }] }, "conditions": [] });
    assert_eq!(of_framework(&status), json!({ "phase": "Running", "conditions": [] }));
    let waiting = json!({ "type": "Waiting", "status": "False", "reason": "Proceeding" });
    let earlier = json!({ "phase": "Running", "troupe": {}, "conditions": [waiting] });
    assert_eq!(of_framework(&earlier), json!({ "phase": "Running" }));
}

/// A job whose status is written as the host decides.
struct World {
    snapshot: Snapshot,
    before: Option<Published>,
}

impl World {
    fn new() -> Self {
        Self { snapshot: testkit::snapshot(testkit::job("hamlet", "uid")), before: None }
    }

    /// Decides what to write for a job that waits so, so many seconds later, and writes it.
    fn pass(&mut self, seconds: i64, waiting: Vec<Waiting>) -> Publication {
        self.snapshot.now += SignedDuration::from_secs(seconds);
        let status = of_framework(&self.snapshot.job.status);
        self.judged(status, "Starting", waiting, FOLD)
    }

    /// Decides what to write of this verdict while changes of counts are folded for so long, and writes it.
    fn judged(&mut self, status: Value, headline: &str, waiting: Vec<Waiting>, fold: SignedDuration) -> Publication {
        let ledger = Ledger { headline: headline.into(), ..self.snapshot.ledger.clone() };
        let report =
            Report::Verdict { status, headline: ledger.headline.clone(), ledger: Box::new(ledger), events: vec![] };
        let decision = Decision { report, waiting, ..Decision::without_report(vec![], Wake::OnChange) };
        let before = (self.before.as_ref(), fold);
        let made = publication(&self.snapshot, &decision, &Applied::default(), before, &BTreeMap::new());
        if let Publication::Now { wanted, overwritten, .. } = &made {
            let mut job = (*self.snapshot.job).clone();
            job.status = wanted.clone();
            self.snapshot.job = job.into();
            self.snapshot.ledger.headline = headline.into();
            let (wanted, overwritten) = (wanted.clone(), *overwritten);
            self.before = Some(Published::new(self.snapshot.now, &wanted, &wanted, overwritten));
        }
        made
    }

    /// The time of Waiting.
    fn since(&self) -> Value {
        current(&self.snapshot.job.status, Condition::Waiting).unwrap()["lastTransitionTime"].clone()
    }

    /// Status, reason and message of Waiting.
    fn waits(&self) -> [&str; 3] {
        let waiting = current(&self.snapshot.job.status, Condition::Waiting).unwrap();
        ["status", "reason", "message"].map(|field| waiting[field].as_str().unwrap())
    }
}

fn addresses(have: u32) -> Vec<Waiting> {
    vec![Waiting::Pods { reached: Reached::Ip, have, want: 4 }]
}

#[test]
fn waiting_is_false_as_soon_as_the_job_waits_for_nothing() {
    let mut world = World::new();
    world.pass(0, addresses(0));
    assert_eq!(world.waits(), ["True", "PodAddresses", "pod addresses (0 of 4)"]);
    world.pass(10, vec![]);
    assert_eq!(world.waits(), ["False", "Proceeding", ""]);
    assert_eq!(world.since(), json!(rfc3339(world.snapshot.now)));
    assert_eq!(world.pass(10, vec![]), Publication::Nothing(Wake::OnChange));
}

#[test]
fn conditions_that_an_earlier_build_left_among_the_frameworks_move_with_their_time() {
    let mut world = World::new();
    world.pass(0, addresses(0));
    let since = world.since();
    let mut job = (*world.snapshot.job).clone();
    job.status["conditions"] = job.status["troupe"].as_object_mut().unwrap().remove("conditions").unwrap();
    world.snapshot.job = job.into();
    world.before = None;
    let Publication::Now { patch, .. } = world.pass(10, addresses(0)) else { panic!("they stay") };
    assert_eq!((&patch["status"]["conditions"], world.waits()[0]), (&Value::Null, "True"));
    assert_eq!(world.since(), since);
}

#[test]
fn waiting_says_why_a_job_waits_for_nothing() {
    let reason = |suspended: bool, ended: bool, verdict: Option<Condition>| {
        let mut snapshot = testkit::snapshot(testkit::job("hamlet", "uid"));
        Arc::make_mut(&mut snapshot.kind).suspend = Some("/suspend".into());
        Arc::make_mut(&mut snapshot.job).spec = json!({ "suspend": suspended });
        let finished = json!({ "at": snapshot.now, "outcome": "failed", "clean": "keep" });
        let ledger = Ledger { finished: ended.then(|| serde_json::from_value(finished).unwrap()), ..Ledger::default() };
        let verdict = verdict.map(|kind| HostCondition { kind, reason: Reason::Trapped, message: String::new() });
        let waiting = waits_for_nothing(&snapshot, idle(&snapshot, &ledger, verdict.as_ref()));
        ["status", "reason"].map(|field| waiting[field].as_str().unwrap().to_owned())
    };
    assert_eq!(reason(false, false, None), ["False", "Proceeding"]);
    assert_eq!(reason(true, false, None), ["False", "Suspended"]);
    assert_eq!(reason(true, true, None), ["False", "Ended"]);
    assert_eq!(reason(false, false, Some(Condition::Rejected)), ["False", "Rejected"]);
    assert_eq!(reason(false, false, Some(Condition::PluginFaulted)), ["Unknown", "NoVerdict"]);
}

#[test]
fn numbers_of_what_is_waited_for_are_written_at_a_slower_pace() {
    let mut world = World::new();
    world.pass(0, addresses(0));
    let at = world.snapshot.now + REWORDED;
    assert_eq!(world.pass(2, addresses(3)), Publication::Later(at));
    assert!(matches!(world.pass(3, addresses(3)), Publication::Now { .. }));
    assert_eq!(world.waits()[2], "pod addresses (3 of 4)");
}

#[test]
fn words_of_a_queue_are_written_at_a_slower_pace_too() {
    let held = |why: &str| {
        let hold = Hold::NotAdmitted { why: why.into() };
        vec![Waiting::Queue { workload: "tale-hamlet".into(), hold }]
    };
    let mut world = World::new();
    world.pass(0, held("2 more needed"));
    let (at, since) = (world.snapshot.now + REWORDED, world.since());
    assert_eq!(world.pass(2, held("1 more needed")), Publication::Later(at));
    assert!(matches!(world.pass(3, held("1 more needed")), Publication::Now { .. }));
    let message = "workload/tale-hamlet to be admitted by its queue: 1 more needed";
    assert_eq!(world.waits(), ["True", "NotAdmitted", message]);
    assert_eq!(world.since(), since, "it waits for the same reason");
}

#[test]
fn another_message_of_the_api_server_alone_is_not_written() {
    let mut world = World::new();
    let refused = |why: &str| vec![Waiting::Refused { attempt: "create pod/x".into(), why: why.into() }];
    world.pass(0, refused("quota: used 3"));
    assert_eq!(world.pass(60, refused("quota: used 4")), Publication::Nothing(Wake::OnChange));
}

#[test]
fn counts_are_folded_for_longer_the_more_jobs_there_are_to_look_at() {
    let seconds = [0, 19, 20, 60, 100, 10_000, usize::MAX].map(|busy| fold(busy).as_secs());
    assert_eq!(seconds, [1, 1, 2, 4, 5, 5, 5]);
}

// Section 4: with many jobs at once, a headline is still written at once.
#[test]
fn a_new_headline_is_written_at_once_however_long_counts_are_folded() {
    let longest = fold(200);
    assert_eq!(longest, MOST_FOLD);
    let mut world = World::new();
    let mut says = |headline: &str, running: u32| {
        world.judged(json!({ "phase": headline, "running": running }), headline, vec![], longest)
    };
    assert!(matches!(says("Starting", 1), Publication::Now { .. }));
    assert!(matches!(says("Starting", 2), Publication::Later(at) if at == Timestamp::UNIX_EPOCH + longest));
    assert!(matches!(says("Running", 2), Publication::Now { .. }));
    assert!(matches!(says("Running", 3), Publication::Later(_)));
}

// Finding 18: the original's column shows the last condition whatever its status, which is wrong in five of these.
#[test]
fn the_state_of_a_job_with_conditions_is_the_last_that_is_true() {
    let states: [(&[(&str, &str)], &str); 11] = [
        (&[("Created", "True")], "Created"),
        (&[("Created", "True"), ("Running", "True")], "Running"),
        (&[("Created", "True"), ("Running", "False"), ("Restarting", "True")], "Restarting"),
        (&[("Created", "True"), ("Suspended", "True")], "Suspended"),
        (&[("Created", "True"), ("Suspended", "True"), ("Running", "False")], "Suspended"),
        (&[("Created", "True"), ("Suspended", "False")], "Created"),
        (&[("Created", "True"), ("Running", "True"), ("Suspended", "False")], "Running"),
        (&[("Created", "True"), ("Running", "False"), ("Succeeded", "True")], "Succeeded"),
        (&[("Created", "True"), ("Succeeded", "True"), ("Running", "False")], "Succeeded"),
        (&[("Created", "True"), ("Running", "False"), ("Failed", "True")], "Failed"),
        (&[("Created", "True"), ("Failed", "True"), ("Running", "False")], "Failed"),
    ];
    let own = [json!({ "type": "Waiting", "status": "True" })];
    for (conditions, state) in states {
        let all: Vec<_> = conditions.iter().map(|(kind, is)| json!({ "type": kind, "status": is })).collect();
        let status = json!({ "conditions": all });
        assert_eq!(step_of_column("launcher: 1 of 2", &status, &own), state, "{conditions:?}");
    }
}

// A job of batch/v1 has no condition while it runs.
#[test]
fn the_state_of_a_job_without_conditions_is_its_headline_or_that_it_is_rejected() {
    let of = |kind: &str| json!({ "type": kind, "status": "True" });
    assert_eq!(step_of_column("Running", &json!({}), &[]), "Running");
    assert_eq!(step_of_column("Running", &json!({}), &[of("Waiting")]), "Running");
    let met = json!({ "conditions": [of("SuccessCriteriaMet")] });
    assert_eq!(step_of_column("Complete", &met, &[]), "Complete");
    assert_eq!(step_of_column("", &json!({}), &[of("Rejected")]), "Rejected");
    assert_eq!(step_of_column("Running", &json!({ "phase": "Running" }), &[]), "");
}
