//! Plugins that do what they should not: each misdeed becomes a typed fault of its own job, and the others are served.

mod artifacts;
mod bulkheads;
mod child;
mod corpus;
mod handmade;
mod users;

use decide::{
    Outlook, Snapshot,
    ledger::Ledger,
    plan::{Answer, Descriptor, Fault, Plan, Rejection},
    snapshot::Job,
    testkit,
};
use sandbox::{Executor, Limits, NoPlan, Options, Plugins};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

/// The component of `tests/hostile` with a feature, built once per test run.
pub(crate) fn guest(feature: &str) -> Vec<u8> {
    static BUILT: LazyLock<parking_lot::Mutex<BTreeMap<String, Vec<u8>>>> = LazyLock::new(Default::default);
    let mut built = BUILT.lock();
    built.entry(feature.to_owned()).or_insert_with(|| build(feature)).clone()
}

fn build(feature: &str) -> Vec<u8> {
    built("hostile", feature)
}

/// The component of a package of this workspace, with this feature.
pub(crate) fn built(package: &str, feature: &str) -> Vec<u8> {
    let target_dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile");
    let status = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .args(["build", "--locked", "--quiet", "--package", package, "--lib", "--release"])
        .args(["--target", "wasm32-wasip2", "--features", feature, "--target-dir"])
        .arg(&target_dir)
        .status()
        .unwrap();
    assert!(status.success(), "tests/{package} with {feature:?} does not build");
    let wasm: PathBuf = target_dir.join(format!("wasm32-wasip2/release/{package}.wasm"));
    fs::read(wasm).unwrap()
}

/// The built-in plugins and the hostile one, in one engine.
fn plugins() -> Plugins {
    static LOADED: LazyLock<Plugins> = LazyLock::new(|| {
        let plugins = Plugins::builtin(Executor::Inline).unwrap();
        plugins.load("hostile", &guest("")).unwrap();
        plugins
    });
    LOADED.fork()
}

fn hostile_alone(executor: Executor, limits: Limits) -> Plugins {
    let plugins = Plugins::empty(Options { limits, ..Options::new(executor) }).unwrap();
    plugins.load("hostile", &guest("")).unwrap();
    plugins
}

/// A job of the plugin with this name.
pub(crate) fn job_of(plugins: &Plugins, plugin: &str, spec: Value) -> Snapshot {
    let (framework, digest): (Arc<Descriptor>, decide::Digest) =
        plugins.frameworks().into_iter().find(|(framework, _)| framework.name == plugin).unwrap();
    Snapshot {
        now: "2026-01-01T00:00:00Z".parse().unwrap(),
        kind: Arc::new(framework.kinds[0].clone()),
        ledger: Ledger::default(),
        digest: Some(digest),
        ..testkit::snapshot(Job { spec, resource_version: String::new(), ..testkit::job("job", "uid-of-job") })
    }
}

/// A job of the hostile plugin whose plan is asked for once. A sample of one input in 64 is asked for twice, and which
/// inputs are in it follows from the digest of the plugin.
fn unsampled(spec: &Value) -> Snapshot {
    let job = |nonce: u32| {
        let plugins = hostile_alone(Executor::Inline, Limits::default());
        let mut spec = spec.clone();
        spec["nonce"] = nonce.into();
        let job = job_of(&plugins, "hostile", spec);
        drop(plan(&plugins, &job));
        (calls_of(&plugins, "plan") == 1).then_some(job)
    };
    (0..8).find_map(job).expect("of eight inputs one is not in the sample")
}

/// The number of calls of this function of the hostile plugin.
fn calls_of(plugins: &Plugins, function: &str) -> u64 {
    let of_hostile = |(plugin, of, _): &&(String, String, _)| plugin == "hostile" && of == function;
    plugins.calls().iter().find(of_hostile).map_or(0, |(_, _, stats)| stats.count)
}

fn plan(plugins: &Plugins, snapshot: &Snapshot) -> Result<Arc<Plan>, NoPlan> {
    futures::executor::block_on(plugins.plan(snapshot))
}

fn judge(plugins: &Plugins, snapshot: &Snapshot, plan: &Arc<Plan>, wanted: &[&str]) -> Answer {
    let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
    let outlook = Outlook { suspended: false, waiting: None, criteria_met: None };
    futures::executor::block_on(plugins.judge(snapshot, plan, &wanted, outlook))
}

/// The whole pass over a hostile job, by plugins that have not failed yet.
fn pass(plugins: &Plugins, spec: Value) -> Answer {
    let plugins = &plugins.fork();
    let snapshot = job_of(plugins, "hostile", spec);
    match plan(plugins, &snapshot) {
        Ok(plan) => judge(plugins, &snapshot, &plan, &["map"]),
        Err(no_plan) => no_plan.into(),
    }
}

/// The kind of the fault and what it says, without the plugin's name.
fn fault(answer: Answer) -> (String, String, String) {
    let Answer::Faulted(fault) = answer else { panic!("no fault: {answer:?}") };
    let reason = fault.reason().to_string();
    let (plugin, function, message) = match fault {
        Fault::Trapped { plugin, function, message }
        | Fault::Internal { plugin, function, message }
        | Fault::Unacceptable { plugin, function, message }
        | Fault::NonDeterministic { plugin, function, message } => (plugin, function, message),
        Fault::OutOfBudget { plugin, function, budget } => (plugin, function, budget.to_string()),
        Fault::BreakerOpen { plugin, scope, cause, .. } => (plugin, format!("{scope:?}"), cause),
        Fault::Throttled { plugin, fuel, .. } => (plugin, "any".to_owned(), fuel.to_string()),
        Fault::Missing { .. }
        | Fault::NotAccepted { .. }
        | Fault::Refused { .. }
        | Fault::NotKept { .. }
        | Fault::Unread { .. } => panic!("it was not asked: {fault}"),
    };
    assert_eq!(plugin, "hostile");
    (reason, function, message)
}

fn paddle_still_answers(plugins: &Plugins) {
    let containers = json!([{ "name": "c", "image": "i" }]);
    let role = json!({ "replicas": 1, "template": { "spec": { "containers": containers } } });
    let snapshot = job_of(plugins, "paddle", json!({ "worker": role }));
    let plan = plan(plugins, &snapshot).unwrap();
    assert_eq!(plan.roles[0].replicas, 1);
    let answer = judge(plugins, &snapshot, &plan, &[]);
    assert!(matches!(answer, Answer::Judged { .. }), "{answer:?}");
}

// Bodies for each pod are built from it, so it is bounded before any plugin is asked.
#[test]
fn a_job_whose_spec_is_too_large_is_rejected_and_its_user_is_reported_how_much_it_may_have() {
    let plugins = plugins();
    let large = json!({ "plan": "trap", "text": "x".repeat(256 << 10) });
    let Answer::Rejected(Rejection::Invalid(errors)) = pass(&plugins, large) else { panic!("it is not rejected") };
    assert_eq!(errors[0].path, "spec");
    assert!(errors[0].message.contains("more than 262144"), "{}", errors[0].message);
    assert!(errors[0].message.contains("--max-spec-bytes"), "{}", errors[0].message);
    paddle_still_answers(&plugins);
}

#[test]
fn a_misdeed_in_any_function_is_a_fault_of_its_kind_and_nobody_elses() {
    let plugins = plugins();
    let misdeeds = [
        ("trap", "Trapped", "as I was told"),
        ("exit", "Trapped", "it exited"),
        ("recurse", "Trapped", "call stack exhausted"),
        ("recurse widely", "Trapped", "out of bounds memory access"),
        ("sleep", "Trapped", "which the host does not have"),
        ("loop", "OutOfBudget", "fuel"),
        ("log", "OutOfBudget", "fuel"),
        ("log a lot", "OutOfBudget", "fuel"),
        ("print", "OutOfBudget", "fuel"),
        ("allocate", "OutOfBudget", "memory"),
        ("allocate crumbs", "OutOfBudget", "fuel"),
        ("huge", "UnacceptableAnswer", "larger than 1048576 bytes"),
        ("no json", "UnacceptableAnswer", "EOF while parsing an object"),
        ("no object", "UnacceptableAnswer", "it is not a JSON object"),
        ("deep json", "UnacceptableAnswer", "recursion limit exceeded"),
        ("no utf-8", "Trapped", "utf-8"),
    ];
    for function in ["plan", "bind", "judge"] {
        for (misdeed, reason, words) in misdeeds {
            let began = Instant::now();
            let (kind, at, message) = fault(pass(&plugins, json!({ (function): misdeed })));
            assert_eq!((kind.as_str(), at.as_str()), (reason, function), "{misdeed}: {message}");
            assert!(message.contains(words), "{function} {misdeed}: {message}");
            assert!(!message.contains(char::is_control), "{message:?}");
            println!("{function:<6} {misdeed:<16} {:>5} ms  {kind}: {message}", began.elapsed().as_millis());
        }
        paddle_still_answers(&plugins);
    }
}

#[test]
fn an_answer_that_says_too_much_is_not_accepted() {
    let plugins = plugins();
    let cases = [
        (json!({ "plan": "many roles" }), "plan", "larger than"),
        (json!({ "plan": "large" }), "plan", "template of role worker: 307208 bytes are more than 262144"),
        (json!({ "plan": "foreign name" }), "plan", "does not begin with the job's name"),
        (json!({ "bind": "another's key" }), "bind", "body of object secret: it was not asked for"),
        (json!({ "bind": "twice" }), "bind", "body of object map: it appears twice"),
        (json!({ "judge": "the ledger" }), "judge", "status: the field troupe is the host's"),
    ];
    for (spec, function, words) in cases {
        let (kind, at, message) = fault(pass(&plugins, spec));
        assert_eq!((kind.as_str(), at.as_str()), ("UnacceptableAnswer", function), "{message}");
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn an_edit_that_cannot_be_made_is_the_plugins_fault_and_says_why() {
    let plugins = plugins();
    let cases = [
        ("refer to nothing", "the job's spec has no object at /nowhere"),
        ("refer to everything", "\"\" is no JSON pointer to a field"),
        ("edit what is not there", "an edit leads to /spec/containers/7/image, but there is no item 7"),
        ("edit the whole", "\"\" is no JSON pointer to a field"),
        ("edit deeply", "an edit goes more than 32 steps deep"),
        ("edit twice", "what is at /spec/hostname of the template is not an object"),
        ("edit without json", "EOF while parsing an object"),
        ("edit too much", "307202 bytes are more than 262144"),
        ("append no list", "what is appended at /spec/containers is not a JSON array"),
        ("edit in a privilege", "/spec/hostNetwork is true, which the job's user does not ask for"),
    ];
    let template = json!({ "spec": { "containers": [{ "name": "c", "image": "one" }] } });
    for (misdeed, words) in cases {
        let (kind, at, message) = fault(pass(&plugins, json!({ "plan": misdeed, "template": template })));
        assert_eq!((kind.as_str(), at.as_str()), ("UnacceptableAnswer", "plan"), "{misdeed}: {message}");
        assert!(message.contains("role worker") && message.contains(words), "{misdeed}: {message}");
    }
}

// A thousand roles with the same template of the user's would cost the plugin nothing, and the host a gigabyte.
#[test]
fn what_roles_refer_to_is_bounded() {
    let container = json!({ "name": "c", "image": "one", "args": ["x".repeat(50_000)] });
    let template = json!({ "spec": { "containers": [container] } });
    let (kind, _, message) = fault(pass(&plugins(), json!({ "plan": "refer again and again", "template": template })));
    assert_eq!(kind, "UnacceptableAnswer", "{message}");
    assert!(message.contains("its roles refer to") && message.contains("more than 33554432"), "{message}");
}

#[test]
fn a_plan_reaches_no_further_than_its_user_and_the_grants() {
    let plugins = plugins();
    let cases = [
        ("take the node's network", "role worker: /spec/hostNetwork is true", "`spec.grants.hostNetwork: true`"),
        (
            "read a secret",
            "role worker: /spec/volumes/0/secret/secretName is theirs",
            "`spec.grants.secrets: [theirs]`",
        ),
        ("bring a sidecar", "role worker: /spec/initContainers/0/image is evil", "`spec.grants.images: [evil]`"),
        ("be an admin", "role worker: /spec/serviceAccountName is admin", "`spec.grants.serviceAccounts: [admin]`"),
    ];
    for (misdeed, at, grant) in cases {
        let answer = pass(&plugins, json!({ "plan": misdeed }));
        let Answer::Faulted(told) = &answer else { panic!("{misdeed}: {answer:?}") };
        assert!(told.to_string().starts_with("plugin hostile gave an answer in plan"), "{told}");
        let (kind, function, message) = fault(answer);
        assert_eq!((kind.as_str(), function.as_str()), ("UnacceptableAnswer", "plan"), "{message}");
        assert!(message.starts_with(at) && message.contains(grant), "{message}");
    }
    let (_, function, message) = fault(pass(&plugins, json!({ "bind": "speak for the host" })));
    assert_eq!(function, "bind");
    assert!(message.starts_with("object map: /metadata/annotations/troupe.dev~1plugin-digest"), "{message}");
    // The user's own wish is another matter.
    let users = json!({ "plan": "take the node's network", "hostNetwork": true });
    assert!(matches!(pass(&plugins, users), Answer::Judged { .. }));
}

#[test]
fn identity_in_a_template_is_dropped() {
    let snapshot = job_of(&plugins(), "hostile", json!({ "plan": "own itself" }));
    let plan = plan(&plugins(), &snapshot).unwrap();
    let pod = decide::build::pod(&snapshot, &plan, &plan.roles[0], 0, "job-worker-0");
    let metadata = pod["metadata"].as_object().unwrap();
    assert_eq!((&metadata["name"], &metadata["namespace"]), (&json!("job-worker-0"), &json!("ns")));
    assert_eq!(metadata["ownerReferences"][0]["uid"], "uid-of-job");
    assert!(!metadata.contains_key("finalizers"));
    // The Job controller would take the finalizers of its template.
    let job = decide::build::job(&snapshot, &plan, &plan.roles[0], &json!({}), "job-worker");
    assert_eq!(job["spec"]["template"]["metadata"], json!({}));
}

#[test]
fn a_refusal_is_the_users_and_an_internal_error_the_plugins() {
    let plugins = plugins();
    let Answer::Rejected(Rejection::Invalid(errors)) = pass(&plugins, json!({ "plan": "invalid" })) else { panic!() };
    assert_eq!((errors[0].path.as_str(), errors[0].message.as_str()), ("spec.plan", "be nice"));
    let unsupported = pass(&plugins, json!({ "plan": "unsupported" }));
    assert_eq!(unsupported, Answer::Rejected(Rejection::Unsupported("niceness".into())));
    let (kind, _, message) = fault(pass(&plugins, json!({ "plan": "internal" })));
    assert_eq!((kind.as_str(), message.as_str()), ("InternalError", "out of ideas"));
}

#[test]
fn words_for_people_carry_no_control_characters_and_end() {
    let Answer::Judged { verdict, .. } = pass(&plugins(), json!({ "judge": "escapes" })) else { panic!() };
    assert_eq!(verdict.headline, " [31mRunning x");
    assert_eq!((verdict.events.len(), verdict.events[0].message.as_str()), (64, "m "));
}

#[test]
fn a_guest_learns_nothing_that_the_host_does_not_pass_in() {
    let plugins = plugins();
    let look = || match pass(&plugins, json!({ "judge": "look around" })) {
        Answer::Judged { verdict, .. } => verdict.status,
        answer => panic!("{answer:?}"),
    };
    let mut status = look();
    assert_eq!(status, look());
    let chance = status.as_object_mut().unwrap().remove("chance").unwrap();
    let nothing = json!({ "clock": 1_767_225_600_000_u64, "elapsed": 0, "variables": 0, "arguments": 0, "file": false,
        "files": false, "input": 0 });
    assert_eq!((status, chance.is_string()), (nothing, true));

    let planned = plan(&plugins, &job_of(&plugins, "hostile", json!({ "plan": "look around" })));
    let Err(NoPlan::Faulted(Fault::Unacceptable { message, .. })) = planned else { panic!("{planned:?}") };
    assert!(message.contains("its template has no containers"), "{message}");
}

#[test]
fn a_plan_is_remembered_and_so_is_a_refusal_but_never_a_fault() {
    let plugins = Plugins::empty(Options::new(Executor::Inline)).unwrap();
    plugins.load("hostile", &guest("")).unwrap();
    let planned = |spec: Value| {
        let snapshot = unsampled(&spec);
        let (first, second) = (plan(&plugins, &snapshot), plan(&plugins, &snapshot));
        assert_eq!(first, second);
        calls_of(&plugins, "plan")
    };
    assert_eq!(planned(json!({})), 1);
    assert_eq!(planned(json!({ "plan": "invalid" })), 2);
    assert_eq!(planned(json!({ "plan": "trap" })), 4);
    assert_eq!(planned(json!({})), 4);
}

#[test]
fn in_production_a_loop_ends_by_the_clock() {
    let limits = Limits { fuel: u64::MAX / 4, wall: Duration::from_millis(200), ..Limits::default() };
    let plugins = hostile_alone(Executor::Blocking { at_once: 1 }, limits);
    let snapshot = job_of(&plugins, "hostile", json!({ "plan": "loop" }));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let began = Instant::now();
    let Err(NoPlan::Faulted(fault)) = runtime.block_on(plugins.plan(&snapshot)) else { panic!() };
    assert_eq!(fault.to_string(), "plugin hostile ran out of time in plan");
    assert!(began.elapsed() >= Duration::from_millis(150));
    let snapshot = job_of(&plugins, "hostile", json!({}));
    runtime.block_on(plugins.plan(&snapshot)).unwrap();
}

#[test]
fn many_threads_ask_at_once_while_one_misbehaves() {
    let plugins = plugins();
    std::thread::scope(|threads| {
        for thread in 0..16 {
            let plugins = &plugins;
            threads.spawn(move || match thread % 4 {
                0 => drop(fault(pass(plugins, json!({ "judge": "recurse", "n": thread })))),
                1 => drop(fault(pass(plugins, json!({ "bind": "allocate", "n": thread })))),
                _ => (0..20).for_each(|_| paddle_still_answers(plugins)),
            });
        }
    });
}
