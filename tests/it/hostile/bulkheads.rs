//! What keeps one plugin's trouble from others, and one job's from the jobs of its plugin: the breaker, permits, fresh
//! instances that remember nothing.

use super::{
    calls_of, fault, guest, handmade::Handmade, hostile_alone, job_of, judge, paddle_still_answers, plan, plugins,
};
use decide::{
    Snapshot, Triage, Wake, decide,
    plan::{Answer, Fault, Scope},
    ports::NoPorts,
    triage,
};
use futures::executor::block_on;
use jiff::SignedDuration;
use sandbox::PluginLimits;
use sandbox::{Executor, Limits, NoPlan, Options, Plugins, Position, Settings};
use serde_json::json;
use std::{sync::Arc, time::Duration};

/// A job of the hostile plugin with a uid of its own; what it does stands in its spec.
fn job(plugins: &Plugins, uid: &str, spec: serde_json::Value) -> Snapshot {
    let mut snapshot = job_of(plugins, "hostile", spec);
    Arc::make_mut(&mut snapshot.job).uid = uid.into();
    snapshot
}

fn ask(plugins: &Plugins, snapshot: &Snapshot) -> Answer {
    match plan(plugins, snapshot) {
        Ok(plan) => judge(plugins, snapshot, &plan, &[]),
        Err(no_plan) => no_plan.into(),
    }
}

/// The same for somebody who looks at the job.
fn rehearse(plugins: &Plugins, snapshot: &Snapshot) -> Answer {
    let (plugins, snapshot) = (plugins.rehearsing(snapshot), Box::new(snapshot.clone()));
    let (_, passed, _) = block_on(plugins.ask_and_decide(snapshot, |_| Err(NoPorts::NoneFree)));
    passed.answer
}

fn later(snapshot: &mut Snapshot, seconds: i64) {
    snapshot.now += SignedDuration::from_secs(seconds);
}

fn alone() -> Plugins {
    hostile_alone(Executor::Inline, Limits { fuel: 20_000_000, ..Limits::default() })
}

#[test]
fn a_job_that_its_plugin_fails_for_is_asked_about_less_and_less_and_others_as_before() {
    let plugins = alone();
    let mut bad = job(&plugins, "bad", json!({ "judge": "trap" }));
    let reasons: Vec<_> = (0..20).map(|_| fault(ask(&plugins, &bad)).0).collect();
    assert_eq!(reasons[..3], ["Trapped", "Trapped", "BreakerOpen"]);
    assert!(reasons[3..].iter().all(|reason| reason == "BreakerOpen"), "{reasons:?}");
    assert_eq!(calls_of(&plugins, "judge"), 3);
    assert!(matches!(ask(&plugins, &job(&plugins, "good", json!({}))), Answer::Judged { .. }));

    let answer = ask(&plugins, &bad);
    let Answer::Faulted(Fault::BreakerOpen { scope: Scope::Job, until, .. }) = &answer else { panic!("{answer:?}") };
    assert_eq!(decide(&bad, &answer).wake, Wake::At(*until));
    assert_eq!(until.duration_since(bad.now), SignedDuration::from_mins(1));
    let told = fault(answer).2;
    assert!(told.contains("trapped in judge") && told.contains("as I was told"), "{told}");

    later(&mut bad, 60);
    assert_eq!((fault(ask(&plugins, &bad)).0.as_str(), calls_of(&plugins, "judge")), ("BreakerOpen", 5));
    later(&mut bad, 120);
    Arc::make_mut(&mut bad.job).spec = json!({});
    assert!(matches!(ask(&plugins, &bad), Answer::Judged { .. }));
    Arc::make_mut(&mut bad.job).spec = json!({ "judge": "trap" });
    assert_eq!(fault(ask(&plugins, &bad)).0, "Trapped");
}

#[test]
fn a_plugin_that_fails_in_several_namespaces_is_not_asked_about_any_job_until_one_is_answered() {
    let plugins = plugins();
    for _ in 0..2 {
        for namespace in ["a", "b", "c"] {
            let mut bad = job(&plugins, namespace, json!({ "plan": "exit" }));
            Arc::make_mut(&mut bad.job).namespace = namespace.into();
            fault(ask(&plugins, &bad));
        }
    }
    let mut good = job(&plugins, "good", json!({}));
    let answer = ask(&plugins, &good);
    assert!(matches!(&answer, Answer::Faulted(Fault::BreakerOpen { scope: Scope::Plugin, .. })), "{answer:?}");
    paddle_still_answers(&plugins);
    let position = |now| plugins.breakers(now).into_iter().find(|it| it.plugin == "hostile").unwrap().position;
    assert!(matches!(position(good.now), Position::Open { cause, .. } if cause.contains("it exited")));

    // What needs no plugin goes on: a job that is being deleted, or is another's.
    Arc::make_mut(&mut good.job).deleting = true;
    assert!(matches!(triage(&good), Triage::Settled(_)));
    Arc::make_mut(&mut good.job).deleting = false;

    later(&mut good, 30);
    assert!(matches!(ask(&plugins, &good), Answer::Judged { .. }));
    assert_eq!(position(good.now), Position::Closed);
}

#[test]
fn a_plugin_that_has_burnt_its_fuel_of_a_minute_waits_and_others_do_not() {
    let plugins = plugins();
    let [digest] = &plugins.digests_of("hostile")[..] else { panic!("one digest") };
    let limits = PluginLimits { fuel_per_minute: Some(2_000_000), ..PluginLimits::default() };
    plugins.restrict(digest, &Settings { limits: Some(limits), ..Settings::default() });
    let pass = |number: i64, seconds| {
        let mut snapshot = job(&plugins, &format!("uid-{number}"), json!({}));
        later(&mut snapshot, seconds);
        (ask(&plugins, &snapshot), snapshot)
    };
    let (answer, snapshot) = (0..1000).map(|number| pass(number, 0)).find(|(answer, _)| !answered(answer)).unwrap();
    let Answer::Faulted(Fault::Throttled { until, .. }) = &answer else { panic!("{answer:?}") };
    assert_eq!(decide(&snapshot, &answer).wake, Wake::At(*until));
    paddle_still_answers(&plugins);
    // It is no fault of the jobs: no breaker opens, and the next minute has fuel for all of them again.
    assert!(plugins.breakers(snapshot.now).iter().all(|breaker| breaker.position == Position::Closed));
    let pause = until.duration_since(snapshot.now);
    assert!(pause <= SignedDuration::from_secs(10), "{pause}");
    let (early, late) = (pass(2000, pause.as_secs() / 2).0, pass(2001, pause.as_secs() + 1).0);
    assert!(!answered(&early), "{pause}: {early:?}");
    assert!(answered(&late), "{pause}: {late:?}");
}

// Who may read one job of a namespace asks for its pass again and again.
#[test]
fn passes_for_readers_take_no_fuel_from_live_jobs() {
    let plugins = plugins();
    let [digest] = &plugins.digests_of("hostile")[..] else { panic!("one digest") };
    let limits = PluginLimits { fuel_per_minute: Some(2_000_000), ..PluginLimits::default() };
    plugins.restrict(digest, &Settings { limits: Some(limits), ..Settings::default() });
    let job = |number: i64| job(&plugins, &format!("uid-{number}"), json!({}));
    let answer = (0..1000).map(|number| rehearse(&plugins, &job(number))).find(|answer| !answered(answer)).unwrap();
    assert!(matches!(answer, Answer::Faulted(Fault::Throttled { .. })), "{answer:?}");
    let live = (2000..).take_while(|number| answered(&ask(&plugins, &job(*number)))).count();
    let read = (0..).take_while(|number| answered(&rehearse(&plugins, &job(3000 + number)))).count();
    assert!(live > 0 && read == 0, "live jobs have all of their fuel: {live} answers, {read} for readers");
}

#[test]
fn passes_for_readers_count_for_no_breaker_and_see_those_of_live_jobs() {
    let plugins = alone();
    let bad = job(&plugins, "bad", json!({ "judge": "trap" }));
    let read = || fault(rehearse(&plugins, &bad)).0;
    assert_eq!([(); 8].map(|()| read()), ["Trapped"; 8]);
    let reasons = [(); 3].map(|()| fault(ask(&plugins, &bad)).0);
    assert_eq!(reasons, ["Trapped", "Trapped", "BreakerOpen"], "three faults of live passes open it, and no fewer");
    let calls = calls_of(&plugins, "judge");
    assert_eq!((read().as_str(), calls_of(&plugins, "judge")), ("BreakerOpen", calls));
}

fn answered(answer: &Answer) -> bool {
    matches!(answer, Answer::Judged { .. })
}

#[test]
fn a_plugin_that_loops_leaves_a_permit_for_others() {
    let limits = Limits { fuel: u64::MAX / 4, wall: Duration::from_millis(300), ..Limits::default() };
    let plugins = Plugins::empty(Options { limits, ..Options::new(Executor::Blocking { at_once: 2 }) }).unwrap();
    plugins.load("hostile", &guest("")).unwrap();
    plugins.load("handmade", &Handmade::default().component()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let loops: Vec<_> = (0..6)
        .map(|number| {
            // A plugin that has not failed yet, on the permits of all.
            let plugins = plugins.fork();
            let snapshot = job(&plugins, &format!("uid-{number}"), json!({ "plan": "loop", "n": number }));
            runtime.spawn(async move { plugins.plan(&snapshot).await })
        })
        .collect();
    runtime.block_on(plugins.plan(&job_of(&plugins, "handmade", json!({})))).unwrap();
    let running = || loops.iter().filter(|call| !call.is_finished()).count();
    assert!(running() >= 4, "{} of 6 calls are left, the other plugin waited for them", running());
    let faults: Vec<_> = loops.into_iter().map(|call| runtime.block_on(call).unwrap().unwrap_err()).collect();
    let out_of_time = |no_plan: &NoPlan| no_plan.to_string() == "plugin hostile ran out of time in plan";
    assert!(faults.iter().all(out_of_time), "{faults:?}");
}

#[test]
fn the_same_input_gives_the_same_bytes_on_another_thread_and_after_loading_again() {
    let specs = [json!({}), json!({ "judge": "look around" }), json!({ "bind": "log a little" })];
    let bytes = |plugins: &Plugins| -> Vec<u8> {
        let answers = specs.iter().map(|spec| {
            let snapshot = job_of(plugins, "hostile", spec.clone());
            let plan = plan(plugins, &snapshot).unwrap();
            let answer = judge(plugins, &snapshot, &plan, &["map"]);
            assert!(matches!(answer, Answer::Judged { .. }), "{answer:?}");
            serde_json::to_vec(&answer).unwrap()
        });
        answers.collect::<Vec<_>>().concat()
    };
    let first = alone();
    let here = bytes(&first);
    let again = first.fork();
    let there = std::thread::scope(|threads| threads.spawn(|| bytes(&again)).join().unwrap());
    assert!(here == there && here == bytes(&alone()));
}

#[test]
fn answers_are_asked_for_again_of_the_plugin_loaded_anew_and_have_to_be_the_same() {
    let plugins = alone();
    let answered = |spec| {
        let snapshot = job(&plugins, "uid", spec);
        let answer = block_on(plugins.answer(&snapshot, snapshot.digest.as_ref().unwrap()));
        (snapshot, answer)
    };
    let (snapshot, answer) = answered(json!({}));
    let (_, other) = answered(json!({ "judge": "escapes" }));
    let digest = snapshot.digest.clone().unwrap();
    block_on(plugins.repeats(&digest, vec![(snapshot.clone(), answer.clone())])).unwrap();
    let fault = block_on(plugins.repeats(&digest, vec![(snapshot.clone(), answer), (snapshot, other)])).unwrap_err();
    assert_eq!(fault.reason().as_str(), "NonDeterministic");
    assert!(fault.to_string().contains("its answers differ at"), "{fault}");
}

#[test]
fn some_plans_are_asked_for_twice_in_service() {
    let plugins = alone();
    for number in 0..1024 {
        plan(&plugins, &job_of(&plugins, "hostile", json!({ "n": number }))).unwrap();
    }
    let calls = calls_of(&plugins, "plan");
    assert!((1025..=1080).contains(&calls), "{calls}");
}
