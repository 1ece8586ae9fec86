//! Jobs that no plugin can do anything with: each is its user's error, told on that job alone, and whoever else has jobs
//! of the framework is served.

use super::{calls_of, hostile_alone, job_of, judge, plan, plugins, unsampled};
use decide::{
    Snapshot,
    plan::{Answer, Fault, Piece, Rejection, Scope},
    snapshot::Job,
};
use sandbox::PluginLimits;
use sandbox::{Executor, Limits, NoPlan, Plugins, Position, Settings};
use serde_json::{Value, json};
use std::sync::Arc;

fn role(replicas: u32) -> Value {
    role_in("main", replicas)
}

/// Replicas whose container has this name.
fn role_in(container: &str, replicas: u32) -> Value {
    let container = json!({ "name": container, "image": "i", "env": [{ "name": "A", "value": "1" }], "args": ["x"] });
    let metadata = json!({ "labels": { "team": "x" }, "annotations": { "note": "y" } });
    let spec = json!({ "restartPolicy": "Never", "containers": [container], "volumes": [{ "name": "v", "emptyDir": {} }],
        "dnsConfig": { "searches": ["x"] } });
    json!({ "replicas": replicas, "template": { "metadata": metadata, "spec": spec } })
}

/// A job of each framework that comes with the host, of two kinds where it has several, with most of what its users may
/// say.
fn samples() -> [(&'static str, &'static str, Value); 7] {
    let paddle = json!({ "cleanPodPolicy": "Never", "intranet": "Service", "withGloo": 1, "ps": role(2),
        "worker": role(2), "schedulingPolicy": { "minAvailable": 1, "queue": "q" } });
    let mpi = json!({ "slotsPerWorker": 1, "mpiImplementation": "OpenMPI", "sshAuthMountPath": "/root/.ssh",
        "runPolicy": { "cleanPodPolicy": "Running", "backoffLimit": 1, "suspend": false,
            "schedulingPolicy": { "minAvailable": 1 } },
        "mpiReplicaSpecs": { "Launcher": role(1), "Worker": role(2) } });
    let rhino = json!({ "image": "i", "appExec": "./f", "appArgs": ["a"], "parallelism": 2, "ttl": 60, "dataServer": "s",
        "dataPath": "/d", "memoryAllocationMode": "FixedTotalMemory", "memoryAllocationSize": 1 });
    let tensorflow = json!({ "successPolicy": "AllWorkers", "enableDynamicWorker": false,
        "runPolicy": { "cleanPodPolicy": "Running", "backoffLimit": 1, "activeDeadlineSeconds": 60,
            "ttlSecondsAfterFinished": 60, "suspend": false, "schedulingPolicy": { "minAvailable": 1, "queue": "q" } },
        "tfReplicaSpecs": { "Chief": role_in("tensorflow", 1), "PS": role_in("tensorflow", 2),
            "Worker": role_in("tensorflow", 2), "Evaluator": role_in("tensorflow", 1) } });
    let xgboost = json!({ "runPolicy": { "cleanPodPolicy": "All", "backoffLimit": 1 },
        "xgbReplicaSpecs": { "Master": role_in("xgboost", 1), "Worker": role_in("xgboost", 2) } });
    let disruption = json!({ "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget" }] });
    let codes = json!({ "action": "FailIndex",
        "onExitCodes": { "containerName": "main", "operator": "In", "values": [42] } });
    let indexed = json!({ "parallelism": 2, "completions": 2, "completionMode": "Indexed", "backoffLimit": 1,
        "backoffLimitPerIndex": 1, "maxFailedIndexes": 1, "activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 60,
        "suspend": false, "podFailurePolicy": { "rules": [disruption, codes] },
        "successPolicy": { "rules": [{ "succeededIndexes": "0", "succeededCount": 1 }] },
        "template": role(1)["template"] });
    let cron = json!({ "schedule": "@hourly", "timeZone": "Europe/Berlin", "startingDeadlineSeconds": 600,
        "concurrencyPolicy": "Replace", "suspend": false, "successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 1,
        "jobTemplate": { "metadata": { "labels": { "team": "x" }, "annotations": { "note": "y" } },
            "spec": { "template": role(1)["template"] } } });
    [
        ("paddle", "PaddleJob", paddle),
        ("mpi", "MPIJob", mpi),
        ("rhino", "RhinoJob", rhino),
        ("kubeflow", "TFJob", tensorflow),
        ("kubeflow", "XGBoostJob", xgboost),
        ("job", "IndexedJob", indexed),
        ("cron", "CronJob", cron),
    ]
}

/// The sample of this kind.
fn sample(kind: &str) -> (&'static str, &'static str, Value) {
    samples().into_iter().find(|(_, of, _)| *of == kind).unwrap()
}

/// Where the samples say how many replicas there are, but for types that must have one. A CronJob has none.
const REPLICAS: [&str; 8] = [
    "/ps/replicas",
    "/worker/replicas",
    "/mpiReplicaSpecs/Worker/replicas",
    "/parallelism",
    "/completions",
    "/tfReplicaSpecs/PS/replicas",
    "/tfReplicaSpecs/Worker/replicas",
    "/xgbReplicaSpecs/Worker/replicas",
];

/// The spec with so many replicas in each place of [`REPLICAS`] that it has.
fn with_replicas(spec: &Value, many: u64) -> Value {
    let mut spec = spec.clone();
    for place in REPLICAS {
        if let Some(replicas) = spec.pointer_mut(place) {
            *replicas = json!(many);
        }
    }
    spec
}

/// A job of this kind.
fn job_of_kind(plugins: &Plugins, (framework, kind, spec): (&str, &str, Value)) -> Snapshot {
    let mut snapshot = job_of(plugins, framework, spec);
    let frameworks = plugins.frameworks();
    let mut kinds = frameworks.iter().filter(|(it, _)| it.name == framework).flat_map(|(it, _)| &it.kinds);
    snapshot.kind = Arc::new(kinds.find(|it| it.kind == kind).unwrap().clone());
    snapshot
}

/// The same job in another namespace, under another uid.
fn within(snapshot: &Snapshot, namespace: &str, uid: &str) -> Snapshot {
    let mut snapshot = snapshot.clone();
    let job = Arc::make_mut(&mut snapshot.job);
    (job.namespace, job.uid) = (namespace.into(), uid.into());
    snapshot.ledger.uid = uid.into();
    snapshot
}

fn ask(plugins: &Plugins, snapshot: &Snapshot) -> Answer {
    match plan(plugins, snapshot) {
        Ok(plan) => judge(plugins, snapshot, &plan, &[]),
        Err(no_plan) => no_plan.into(),
    }
}

fn rejected(answer: Answer) -> Rejection {
    match answer {
        Answer::Rejected(rejection) => rejection,
        answer => panic!("not the user's error: {answer:?}"),
    }
}

fn serves(plugins: &Plugins, snapshot: &Snapshot) {
    let answer = ask(plugins, snapshot);
    assert!(matches!(answer, Answer::Judged { .. }), "{answer:?}");
    let breakers = plugins.breakers(snapshot.now);
    assert!(breakers.iter().all(|it| it.position == Position::Closed && it.jobs + it.namespaces == 0), "{breakers:?}");
}

#[test]
fn six_jobs_with_too_many_replicas_are_rejected_with_the_limit_and_stop_nobody() {
    let plugins = plugins();
    for (framework, kind, spec) in samples() {
        if with_replicas(&spec, 0) == spec {
            continue;
        }
        let good = within(&job_of_kind(&plugins, (framework, kind, spec.clone())), "quiet", "good");
        for (number, many) in
            [10_001, 10_001, 10_001, 1 << 31, 1 << 32, i64::MAX.unsigned_abs()].into_iter().enumerate()
        {
            let mut bad = within(&good, "noisy", &format!("bad-{number}"));
            Arc::make_mut(&mut bad.job).spec = with_replicas(&spec, many);
            for _ in 0..6 {
                let told = rejected(ask(&plugins, &bad)).to_string();
                // An IndexedJob is told the range alone, as a Job is.
                let names_both = told.contains("10000") && (kind == "IndexedJob" || told.contains(&many.to_string()));
                assert!(names_both, "{kind}: {told}");
            }
        }
        serves(&plugins, &good);
    }
}

// What is as large as its numbers and names may be is too large for some answers: a list of all replicas in each role.
#[test]
fn jobs_of_the_most_replicas_and_the_longest_names_are_rejected_or_served_and_stop_nobody() {
    // The longest names: a type of 10,000 replicas, a CronJob, an IndexedJob of 10,000 indexes, a label.
    let names = [1, 20, 51, 52, 58, 63].map(|length| "a".repeat(length));
    let plugins = plugins();
    for (framework, kind, spec) in samples() {
        let good = within(&job_of_kind(&plugins, (framework, kind, spec.clone())), "quiet", "good");
        let (mut served, mut refused) = (0, 0);
        for many in [10_000, 9_999, 5_000, 1_000] {
            for name in &names {
                let uid = format!("uid-{framework}-{many}-{}", name.len());
                let mut extreme = within(&good, "noisy", &uid);
                let job = Arc::make_mut(&mut extreme.job);
                (job.name, job.spec) = (name.clone(), with_replicas(&spec, many));
                match ask(&plugins, &extreme) {
                    Answer::Judged { .. } => served += 1,
                    Answer::Rejected(_) => refused += 1,
                    answer => panic!("{kind}, {many} replicas, a name of {}: {answer:?}", name.len()),
                }
            }
        }
        assert!(served > 0 && refused > 0, "{kind}: {served} served, {refused} refused");
        serves(&plugins, &good);
    }
}

// Each of five roles has a list of nearly as many bytes as a variable may have.
#[test]
fn the_largest_list_of_replicas_in_the_most_roles_is_served() {
    let plugins = plugins();
    let (framework, kind, mut spec) = sample("TFJob");
    spec["tfReplicaSpecs"]["Worker"]["replicas"] = json!(4_200);
    let mut large = within(&job_of_kind(&plugins, (framework, kind, spec)), "noisy", "large");
    Arc::make_mut(&mut large.job).name = "a".into();
    let whole = plan(&plugins, &large).unwrap();
    let env = whole.roles.iter().flat_map(|role| &role.env).flat_map(|entry| &entry.value.0);
    let bytes = env.map(|piece| if let Piece::Fixed(text) = piece { text.len() } else { 0 }).sum::<usize>();
    assert!(bytes > 5 * 125_000, "{bytes}");
    serves(&plugins, &large);
}

#[test]
fn many_containers_that_all_get_a_list_of_replicas_are_the_users_error() {
    let plugins = plugins();
    let (framework, kind, mut spec) = sample("XGBoostJob");
    let good = within(&job_of_kind(&plugins, (framework, kind, spec.clone())), "quiet", "good");
    let worker = &mut spec["xgbReplicaSpecs"]["Worker"];
    worker["replicas"] = json!(20);
    let containers = worker["template"]["spec"]["containers"].as_array_mut().unwrap();
    containers.extend(vec![json!({ "name": "a", "image": "i" }); 2_400]);
    // A heavier job could only blame itself.
    assert!(spec.to_string().len() < 64_000);
    for number in 0..6 {
        let mut bad = within(&good, "noisy", &format!("bad-{number}"));
        Arc::make_mut(&mut bad.job).spec = spec.clone();
        let told = rejected(ask(&plugins, &bad)).to_string();
        assert!(told.starts_with("spec.xgbReplicaSpecs: must have fewer containers"), "{told}");
    }
    serves(&plugins, &good);
}

// The CRD has no maximum, and no calendar has the end.
#[test]
fn a_deadline_that_never_comes_is_served() {
    let plugins = plugins();
    for seconds in [300_000_000_000, i64::MAX] {
        let (framework, kind, mut spec) = sample("TFJob");
        spec["runPolicy"]["activeDeadlineSeconds"] = json!(seconds);
        let patient = job_of_kind(&plugins, (framework, kind, spec));
        serves(&plugins, &within(&patient, "quiet", &format!("patient-{seconds}")));
    }
}

#[test]
fn six_jobs_outside_the_granted_namespaces_are_rejected_and_stop_nobody() {
    let plugins = plugins();
    for (framework, kind, spec) in samples() {
        let good = within(&job_of_kind(&plugins, (framework, kind, spec)), "quiet", "good");
        let [digest] = &plugins.digests_of(framework)[..] else { panic!("one digest") };
        let mut grants = plugins.prepared(digest).unwrap().descriptor.asks.clone();
        grants.namespaces = Some(["quiet".to_owned()].into());
        let granted = plugins.prepared(digest).unwrap().descriptor.wanted_grants().with(&grants);
        let granted = decide::grants::Grants { namespaces: grants.namespaces, ..granted };
        plugins.restrict(digest, &Settings { grants: Some(granted), ..Settings::default() });
        for number in 0..6 {
            let bad = within(&good, "noisy", &format!("bad-{number}"));
            for _ in 0..6 {
                let told = rejected(ask(&plugins, &bad)).to_string();
                assert!(told.contains("namespace noisy") && told.contains("spec.grants.namespaces"), "{told}");
            }
        }
        serves(&plugins, &good);
    }
}

#[test]
fn a_plugin_that_fails_for_one_namespace_serves_the_others_and_they_read_nothing_of_it() {
    let plugins = plugins();
    let job = |namespace: &str, uid: &str, spec| within(&job_of(&plugins, "hostile", spec), namespace, uid);
    for round in 0..6 {
        for uid in 0..6 {
            ask(&plugins, &job("noisy", &format!("{uid}"), json!({ "plan": "trap", "round": round })));
        }
    }
    let good = job("quiet", "good", json!({}));
    let Answer::Faulted(Fault::BreakerOpen { scope: Scope::Namespace, cause, .. }) =
        ask(&plugins, &job("noisy", "other", json!({})))
    else {
        panic!("its namespace is not asked about");
    };
    assert!(cause.contains("as I was told"), "{cause}");
    assert!(matches!(ask(&plugins, &good), Answer::Judged { .. }));

    let plugins = super::plugins();
    for namespace in ["a", "b", "c"] {
        for _ in 0..3 {
            ask(&plugins, &job(namespace, namespace, json!({ "plan": "trap" })));
        }
    }
    let Answer::Faulted(Fault::BreakerOpen { scope: Scope::Plugin, cause, .. }) = ask(&plugins, &good) else {
        panic!("three namespaces have seen faults");
    };
    assert!(!cause.contains("as I was told") && cause.contains("other namespaces"), "{cause}");
}

#[test]
fn what_a_heavy_job_uses_up_is_its_own_doing() {
    let plugins = plugins();
    let [digest] = &plugins.digests_of("hostile")[..] else { panic!("one digest") };
    let limits = PluginLimits { fuel: Some(20_000_000), ..PluginLimits::default() };
    plugins.restrict(digest, &Settings { limits: Some(limits), ..Settings::default() });
    let heavy = "x".repeat(70_000);
    for misdeed in ["loop", "allocate", "huge", "large"] {
        for function in ["plan", "judge"] {
            if (misdeed, function) == ("large", "judge") {
                continue;
            }
            for number in 0..6 {
                let spec = json!({ (function): misdeed, "ballast": heavy });
                let uid = format!("{misdeed}-{function}-{number}");
                let told = rejected(ask(&plugins, &within(&job_of(&plugins, "hostile", spec), "noisy", &uid)));
                assert_eq!(told.reason().as_str(), "LimitExceeded");
                let told = told.to_string();
                assert!(told.contains("65536") && told.contains(function), "{misdeed}: {told}");
            }
        }
    }
    serves_hostile(&plugins);
}

/// Some of its jobs are paused, each for what it burns; others are served.
fn serves_hostile(plugins: &Plugins) {
    let good = within(&job_of(plugins, "hostile", json!({})), "noisy", "good");
    assert!(matches!(ask(plugins, &good), Answer::Judged { .. }));
    let breakers = plugins.breakers(good.now);
    assert!(breakers.iter().all(|it| it.position == Position::Closed && it.namespaces == 0), "{breakers:?}");
}

/// Numbers that are the same each time.
struct Dice(u64);

impl Dice {
    fn draw(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below as u64).unwrap()
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.draw(of.len())].clone()
    }

    /// What nobody expects anywhere.
    fn odd(&mut self) -> Value {
        let deep = (0..80).fold(json!(1), |inner, _| json!([inner]));
        let words = "w".repeat(100_000);
        self.pick(&[
            json!(null),
            json!(true),
            json!(-1),
            json!(3),
            json!(10_001),
            json!(i64::from(u32::MAX) + 1),
            json!(u64::MAX),
            json!(1.5),
            json!(1e300),
            json!(""),
            json!("x"),
            json!("\u{7}\n\u{202e}"),
            json!("troupe.dev/plugin-digest"),
            json!([]),
            json!({}),
            json!(["x"]),
            json!([{ "name": 1 }]),
            json!({ "x": 1 }),
            json!({ "troupe.dev/plugin-digest": "x", "job-name": "y" }),
            deep,
            json!(words),
        ])
    }
}

/// All places of the JSON.
fn places(at: &str, json: &Value, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match json {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, field)| places(&format!("{at}/{}", name.replace('/', "~1")), field, found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| places(&format!("{at}/{index}"), item, found));
        }
        _ => {}
    }
}

/// Makes one thing in the job odd: a value of its spec, a new field in it, its name, its labels, its status.
fn spoil(dice: &mut Dice, job: &mut Job) {
    let fields = [
        "env",
        "annotations",
        "labels",
        "hostname",
        "subdomain",
        "hostNetwork",
        "initContainers",
        "envFrom",
        "ports",
        "volumeMounts",
        "command",
        "priorityClassName",
        "securityContext",
        "elastic",
        "limits",
        "minResources",
        "metadata",
        "resources",
        "requests",
        "schedulerName",
        "status",
        "unheardOf",
    ];
    let odd = dice.odd();
    match dice.draw(10) {
        0 => job.name = dice.pick(&["a.b".to_owned(), "a".repeat(63), "b".repeat(200), "9".to_owned()]),
        1 => job.annotations = [("a".to_owned(), odd.to_string())].into(),
        2 => job.status = odd,
        draw => {
            let mut all = vec![];
            places("", &job.spec, &mut all);
            let place = dice.pick(&all);
            let there = job.spec.pointer_mut(&place).expect("it was found there");
            match there {
                Value::Object(there) if draw < 6 => drop(there.insert(dice.pick(&fields).to_owned(), odd)),
                there => *there = odd,
            }
        }
    }
}

// The plugins that come with the host are to tell every mistake of a user from their own.
#[test]
fn whatever_stands_in_a_job_is_never_the_plugins_fault() {
    let plugins = plugins();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let (mut judged, mut refused) = (0, 0);
    for number in 0..4000 {
        let (framework, kind, spec) = dice.pick(&samples());
        let of_kind = job_of_kind(&plugins, (framework, kind, spec));
        let mut snapshot = within(&of_kind, "noisy", &format!("uid-{number}"));
        for _ in 0..=dice.draw(3) {
            spoil(&mut dice, Arc::make_mut(&mut snapshot.job));
        }
        let job = &snapshot.job;
        match ask(&plugins, &snapshot) {
            Answer::Judged { .. } => judged += 1,
            Answer::Rejected(rejection) => {
                refused += 1;
                assert!(!rejection.to_string().contains(char::is_control), "{rejection}");
            }
            Answer::Faulted(fault) => {
                let spec: String = job.spec.to_string().chars().take(3000).collect();
                panic!("{number}: {framework} {kind} {}: {fault}\n{spec}\n{}", job.name, job.status);
            }
        }
    }
    assert!(judged > 500 && refused > 500, "{judged} judged, {refused} refused");
}

#[test]
fn a_users_rejection_is_remembered_and_asked_for_once() {
    let plugins = hostile_alone(Executor::Inline, Limits::default());
    let bad = unsampled(&json!({ "plan": "many replicas" }));
    let first = plan(&plugins, &bad);
    assert!(matches!(&first, Err(NoPlan::Rejected(Rejection::TooMuch(_)))), "{first:?}");
    assert_eq!(plan(&plugins, &bad), first);
    assert_eq!(calls_of(&plugins, "plan"), 1);
}
