//! What a whole host on the simulator tells Prometheus: each metric changes for its own reason, and has the name, type and
//! labels that `docs/metrics.md` says.

pub(crate) mod exposition;

use crate::built_in;
use admin::metrics::{self, originals, table};
use exposition::Exposition;
use lab::campaign::{self, HOST};
use serde_json::{Value, json};
use sim::{ApiError, Faults, Life, Matching, Sim};
use std::{fs, path::Path, sync::Arc, time::Duration};
use tokio::task::JoinHandle;
use troupe::{
    clock::Clock,
    control::{
        lease::{Election, LeaseName, WriteGate},
        operator::{Ended, Operator, Options},
        reconcile::Context,
    },
    measure::requests::Requests,
};

const PADDLE: &str = r#"controller="paddlejob.batch.paddlepaddle.org""#;
const TORCH: &str = r#"controller="pytorchjob.kubeflow.org""#;

/// A host on a simulated cluster. It ends with the value.
struct World {
    sim: Sim,
    context: Arc<Context>,
    requests: Requests,
    _life: sim::Running,
    host: JoinHandle<Ended>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.host.abort();
    }
}

impl World {
    fn new(life: Life) -> Self {
        Self::of(life, |_, _| None, false)
    }

    fn of(life: Life, election: impl FnOnce(&Sim, &Clock) -> Option<Election>, compat_metrics: bool) -> Self {
        let plugins = Arc::new(built_in::plugins());
        let sim = Sim::new(sim::Options { kinds: campaign::kinds(&plugins), life, ..sim::Options::default() });
        let life = sim.start();
        let requests = Requests::default();
        let clock = Clock::starting_at(sim.now());
        let election = election(&sim, &clock);
        let options = Options { election, compat_metrics, ..Options::alone(clock, [1; 32]) };
        let mut operator = Operator::new(sim.client_through(HOST, &requests.layer("sim:6443")), plugins, options);
        let context = operator.context();
        let host = tokio::spawn(async move { operator.run(std::future::pending()).await });
        Self { sim, context, requests, _life: life, host }
    }

    fn read(&self) -> Exposition {
        Exposition::parse(&metrics::text(&self.context, &self.requests).unwrap())
    }

    fn paddle(&self, name: &str, spec: &Value) {
        self.sim.create(json!({
            "apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob",
            "metadata": { "name": name, "namespace": "default" }, "spec": spec,
        }));
    }

    fn torch(&self, name: &str) {
        self.torch_with(name, &json!({}));
    }

    fn mpi(&self, name: &str) {
        let containers = json!([{ "name": "main", "image": "x" }]);
        let role = json!({ "replicas": 1, "template": { "spec": { "containers": containers } } });
        self.sim.create(json!({
            "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob",
            "metadata": { "name": name, "namespace": "default" },
            "spec": { "runPolicy": { "backoffLimit": 0 }, "mpiReplicaSpecs": { "Launcher": role, "Worker": role } },
        }));
    }

    fn torch_with(&self, name: &str, policy: &Value) {
        let containers = json!([{ "name": "pytorch", "image": "x" }]);
        let template = json!({ "spec": { "containers": containers } });
        self.sim.create(json!({
            "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
            "metadata": { "name": name, "namespace": "default" },
            "spec": { "runPolicy": policy, "pytorchReplicaSpecs": { "Master": {
                "replicas": 1, "restartPolicy": "ExitCode", "template": template,
            } } },
        }));
    }
}

fn workers(replicas: u32) -> Value {
    let containers = json!([{ "name": "main", "image": "x" }]);
    json!({ "worker": { "replicas": replicas, "template": { "spec": { "containers": containers } } } })
}

fn in_virtual_time(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(test);
}

async fn after(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// Labels of a kind, and one more.
fn and(kind: &str, label: &str, value: &str) -> String {
    format!("{kind},{label}=\"{value}\"")
}

#[test]
fn a_job_is_counted_and_timed_from_submit_to_end() {
    in_virtual_time(async {
        let world = World::new(Life::default().rule("*", "run-for", "60s"));
        after(5).await;
        let idle = world.read();
        assert_eq!(idle.value("troupe_jobs", &and(PADDLE, "phase", "running")), 0.0);
        assert_eq!(idle.value("controller_runtime_reconcile_errors_total", PADDLE), 0.0);
        assert_eq!(idle.value("troupe_ready", ""), 1.0);
        world.paddle("wide", &workers(3));
        after(10).await;
        let running = world.read();
        assert_eq!(running.value("troupe_jobs", &and(PADDLE, "phase", "running")), 1.0);
        assert_eq!(running.value("troupe_jobs_created_total", PADDLE), 1.0);
        assert_eq!(running.value("troupe_job_pods_created_seconds_count", PADDLE), 1.0);
        assert_eq!(running.value("troupe_job_running_seconds_count", PADDLE), 1.0);
        let [pods, run] = ["troupe_job_pods_created_seconds_sum", "troupe_job_running_seconds_sum"]
            .map(|metric| running.value(metric, PADDLE));
        // The simulator's scheduler, sandbox and image take 0.55 s.
        assert!(pods < 0.1 && (0.55..2.0).contains(&run), "{pods} s, {run} s");
        assert_eq!(running.samples("troupe_job_end_seconds_count"), 0);
        let made = r#"code="201",method="POST",host="sim:6443",resource="pods""#;
        assert_eq!(running.value("rest_client_requests_total", made), 3.0);
        assert_eq!(running.value("troupe_watched_objects", r#"resource="pods""#), 3.0);
        after(120).await;
        let ended = world.read();
        assert_eq!(ended.value("troupe_jobs", &and(PADDLE, "phase", "succeeded")), 1.0);
        assert_eq!(ended.value("troupe_jobs", &and(PADDLE, "phase", "running")), 0.0);
        let succeeded = and(PADDLE, "outcome", "succeeded");
        assert_eq!(ended.value("troupe_job_end_seconds_count", &succeeded), 1.0);
        let seconds = ended.value("troupe_job_end_seconds_sum", &succeeded);
        assert!((60.0..63.0).contains(&seconds), "{seconds}");
        assert_eq!(ended.value("troupe_job_running_seconds_count", PADDLE), 1.0, "once in the job's life");
        // Nothing is left of a job that is gone but what it has taken.
        world.sim.delete("batch.paddlepaddle.org/v1", "PaddleJob", "default", "wide").unwrap();
        after(5).await;
        let gone = world.read();
        assert_eq!(gone.value("troupe_jobs", &and(PADDLE, "phase", "succeeded")), 0.0);
        assert_eq!(gone.value("troupe_job_end_seconds_count", &succeeded), 1.0);
    });
}

#[test]
fn passes_and_the_queue_agree_with_each_other() {
    in_virtual_time(async {
        let world = World::new(Life::default().rule("*", "run-for", "5s"));
        (0..4).for_each(|number| world.paddle(&format!("job-{number}"), &workers(2)));
        after(60).await;
        let read = world.read();
        let ended = ["success", "requeue_after", "error"]
            .map(|result| read.value("controller_runtime_reconcile_total", &and(PADDLE, "result", result)));
        let passes: f64 = ended.iter().sum();
        assert!(passes > 12.0 && ended[2] == 0.0, "{ended:?}");
        assert_eq!(read.value("controller_runtime_reconcile_time_seconds_count", PADDLE), passes);
        assert_eq!(
            read.value("controller_runtime_reconcile_time_seconds_bucket", &format!("le=\"60.0\",{PADDLE}")),
            passes
        );
        let queue = r#"name="jobs""#;
        for metric in ["workqueue_adds_total", "workqueue_queue_duration_seconds_count"] {
            assert_eq!(read.value(metric, queue), passes, "{metric}");
        }
        assert_eq!(read.value("workqueue_work_duration_seconds_count", queue), passes);
        for metric in ["workqueue_depth", "workqueue_retries_total", "workqueue_unfinished_work_seconds"] {
            assert_eq!(read.value(metric, queue), 0.0, "{metric}");
        }
        assert_eq!(read.value("controller_runtime_max_concurrent_reconciles", PADDLE), 80.0);
        let judged = r#"plugin="paddle",function="judge""#;
        let calls = read.value("troupe_plugin_call_seconds_count", judged);
        assert!(calls > 8.0, "{calls}");
        assert_eq!(read.value("troupe_plugin_call_seconds_bucket", &format!("le=\"+Inf\",{judged}")), calls);
        assert!(read.value("troupe_plugin_fuel_total", judged) > 1_000.0);
        assert_eq!(read.value("troupe_plugin_call_faults_total", judged), 0.0);
    });
}

#[test]
fn a_pass_that_waits_for_the_api_server_is_under_way() {
    in_virtual_time(async {
        let world = World::new(Life::default());
        after(5).await;
        world.sim.set_faults(Faults { slow: 1.0, ..Faults::none() });
        world.paddle("held", &workers(1));
        tokio::time::sleep(Duration::from_millis(900)).await;
        let read = world.read();
        assert_eq!(read.value("controller_runtime_active_workers", PADDLE), 1.0);
        let queue = r#"name="jobs""#;
        for metric in ["workqueue_longest_running_processor_seconds", "workqueue_unfinished_work_seconds"] {
            let age = read.value(metric, queue);
            assert!((0.8..=0.9).contains(&age), "{metric} {age}");
        }
        world.sim.set_faults(Faults::none());
        after(60).await;
        assert_eq!(world.read().value("controller_runtime_active_workers", PADDLE), 0.0);
        // A slow request takes a second at least, and a pass with one as long.
        let seconds = world.read().value("controller_runtime_reconcile_time_seconds_sum", PADDLE);
        assert!(seconds > 1.0, "{seconds}");
    });
}

#[test]
fn what_the_api_server_refuses_is_a_failed_pass_a_retry_and_what_the_job_waits_for() {
    in_virtual_time(async {
        let world = World::new(Life::default());
        let quota = ApiError::forbidden("pods", "", "exceeded quota");
        let refusal = world.sim.refuse(Matching::create("pods"), quota);
        world.paddle("refused", &workers(1));
        after(20).await;
        let read = world.read();
        let errors = read.value("controller_runtime_reconcile_errors_total", PADDLE);
        assert!(errors >= 2.0, "{errors}");
        assert_eq!(read.value("controller_runtime_reconcile_total", &and(PADDLE, "result", "error")), errors);
        assert_eq!(read.value("workqueue_retries_total", r#"name="jobs""#), errors);
        assert_eq!(read.value("troupe_failed_writes_total", &and(PADDLE, "reason", "Refused")), errors);
        assert_eq!(read.value("troupe_jobs_waiting", &and(PADDLE, "reason", "Refused")), 1.0);
        assert_eq!(read.value("troupe_jobs", &and(PADDLE, "phase", "pending")), 1.0);
        let refused = r#"code="403",method="POST",host="sim:6443",resource="pods""#;
        assert_eq!(read.value("rest_client_requests_total", refused), errors);
        assert_eq!(read.samples("troupe_job_pods_created_seconds_count"), 0);
        world.sim.lift(refusal);
        after(60).await;
        let read = world.read();
        assert_eq!(read.samples("troupe_jobs_waiting"), 0);
        assert_eq!(read.value("troupe_job_pods_created_seconds_count", PADDLE), 1.0);
        assert!(read.value("troupe_job_pods_created_seconds_sum", PADDLE) > 10.0);
    });
}

#[test]
fn a_job_that_its_user_has_to_change_is_rejected_and_a_suspended_one_is_not_timed() {
    in_virtual_time(async {
        let world = World::new(Life::default());
        let mut wrong = workers(1);
        wrong["worker"]["template"]["spec"]["containers"] = json!([]);
        world.paddle("wrong", &wrong);
        world.sim.create(json!({
            "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
            "metadata": { "name": "held", "namespace": "default" },
            "spec": { "runPolicy": { "suspend": true }, "pytorchReplicaSpecs": { "Master": { "replicas": 1,
                "template": { "spec": { "containers": [{ "name": "pytorch", "image": "x" }] } } } } },
        }));
        after(5).await;
        let read = world.read();
        assert_eq!(read.value("troupe_jobs", &and(PADDLE, "phase", "rejected")), 1.0);
        assert!(read.value("troupe_rejections_total", &and(PADDLE, "reason", "ValidationError")) >= 1.0);
        assert_eq!(read.value("troupe_jobs_waiting", &and(PADDLE, "reason", "ValidationError")), 1.0);
        assert_eq!(read.value("troupe_jobs", &and(TORCH, "phase", "suspended")), 1.0);
        let resumed = json!({ "spec": { "runPolicy": { "suspend": false } } });
        world.sim.patch("kubeflow.org/v1", "PyTorchJob", "default", "held", resumed).unwrap();
        after(30).await;
        let read = world.read();
        assert_eq!(read.value("troupe_jobs", &and(TORCH, "phase", "succeeded")), 1.0);
        assert_eq!(read.samples("troupe_job_running_seconds_count"), 0);
        assert_eq!(read.value("troupe_job_end_seconds_count", &and(TORCH, "outcome", "succeeded")), 1.0);
    });
}

#[test]
fn each_failed_pod_that_is_replaced_counts_once() {
    in_virtual_time(async {
        let life = Life::default().rule("*", "run-for", "1s").rule("*", "exit-code", "137,137,0");
        let world = World::new(life);
        world.torch("fragile");
        after(300).await;
        let read = world.read();
        assert_eq!(read.value("troupe_pods_replaced_total", TORCH), 2.0);
        assert_eq!(read.value("troupe_jobs", &and(TORCH, "phase", "succeeded")), 1.0);
    });
}

#[test]
fn a_job_whose_plugin_is_not_there_is_a_fault_and_says_so() {
    in_virtual_time(async {
        let world = World::new(Life::default().rule("*", "run-for", "1h"));
        world.paddle("orphan", &workers(1));
        after(5).await;
        let plugins = world.context.plugins();
        let digest = plugins.digests_of("paddle").remove(0);
        plugins.unload(&digest);
        world.sim.set_failed("default", "orphan-worker-0", 1);
        after(60).await;
        let read = world.read();
        assert!(read.value("troupe_faults_total", &and(PADDLE, "reason", "PluginMissing")) >= 1.0);
        assert_eq!(read.value("troupe_jobs", &and(PADDLE, "phase", "faulted")), 1.0);
        assert_eq!(read.value("troupe_jobs_waiting", &and(PADDLE, "reason", "PluginMissing")), 1.0);
    });
}

#[test]
fn a_host_reports_whether_it_has_the_lease() {
    in_virtual_time(async {
        let lease = LeaseName { namespace: "default".into(), name: "troupe".into(), identity: HOST.into() };
        let world = World::of(
            Life::default(),
            |sim, clock| Some(Election::new(sim.client(HOST), lease, clock.clone(), WriteGate::closed())),
            false,
        );
        assert_eq!(world.read().value("leader_election_master_status", r#"name="troupe""#), 0.0);
        after(5).await;
        assert_eq!(world.read().value("leader_election_master_status", r#"name="troupe""#), 1.0);
    });
}

#[test]
fn the_process_reports_what_it_uses() {
    in_virtual_time(async {
        let read = World::new(Life::default()).read();
        let values = ["process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"]
            .map(|metric| read.value(metric, ""));
        assert!(values[0] > 0.0 && values[1] > 1e6 && values[2] >= 3.0, "{values:?}");
        assert!(read.value("process_virtual_memory_bytes", "") >= values[1]);
        assert!(read.value("process_max_fds", "") > values[2]);
        assert!(read.value("process_start_time_seconds", "") > 1.7e9);
    });
}

#[test]
fn what_a_host_reports_is_what_the_table_says() {
    in_virtual_time(async {
        let world = World::new(Life::default().rule("*", "run-for", "1s").rule("*", "exit-code", "137,0"));
        world.torch("fragile");
        world.paddle("wrong", &json!({ "worker": { "replicas": 1, "template": { "spec": { "containers": [] } } } }));
        after(60).await;
        let read = world.read();
        let told: Vec<_> = read.families().collect();
        // Nothing of these has happened here: the tests above have them, cluster tests those of candidates and policies,
        // `traces` that of spans.
        let untold = [
            "leader_election_master_status",
            "troupe_failed_writes_total",
            "troupe_faults_total",
            "troupe_plugin_trial_passes",
            "troupe_policy_applied",
            "troupe_trace_spans_dropped_total",
        ];
        let known: Vec<_> = table::ALL.iter().filter(|metric| !untold.contains(&metric.name)).collect();
        assert_eq!(told, known.iter().map(|metric| (metric.name, metric.kind.as_str())).collect::<Vec<_>>());
        for metric in known {
            for labels in read.labels_of(metric.name, metric.kind.as_str()) {
                assert_eq!(labels, metric.labels, "{}", metric.name);
            }
            let help = read.help(metric.name);
            assert_eq!(help.strip_suffix('.'), Some(metric.help), "{}", metric.name);
        }
        let text = metrics::text(&world.context, &world.requests).unwrap();
        assert!(!text.contains("fragile") && !text.contains("wrong"), "the name of a job is in a label");
    });
}

#[test]
fn the_original_operators_dashboards_find_their_names_and_every_event_once() {
    in_virtual_time(async {
        let life = Life::default().rule("*-worker-*", "run-for", "1h").rule("*", "run-for", "1s");
        let life = life.rule("fragile-*", "exit-code", "137,137,0").rule("broken-*", "exit-code", "1");
        let world = World::of(life, |_, _| None, true);
        after(5).await;
        let [torch, mpi] = ["training_operator_jobs", "mpi_operator_jobs"];
        let labels = r#"job_namespace="default",framework="pytorch""#;
        assert_eq!(world.read().value(&format!("{mpi}_created_total"), ""), 0.0);
        assert_eq!(world.read().samples(&format!("{torch}_created_total")), 0);
        for job in ["fine", "fragile", "broken"] {
            world.torch(job);
        }
        world.torch_with("short", &json!({ "ttlSecondsAfterFinished": 5 }));
        world.mpi("pi");
        world.mpi("broken");
        after(120).await;
        let read = world.read();
        let of_torch = |what: &str| read.value(&format!("{torch}_{what}_total"), labels);
        let counted = ["created", "successful", "failed", "restarted", "deleted"].map(of_torch);
        assert_eq!(counted, [4.0, 3.0, 1.0, 2.0, 1.0]);
        let of_mpi = |what: &str| read.value(&format!("{mpi}_{what}_total"), "");
        assert_eq!(["created", "successful", "failed"].map(of_mpi), [2.0, 1.0, 1.0]);
        assert_eq!(read.value("mpi_operator_job_info", r#"launcher="pi-launcher",namespace="default""#), 1.0);
        assert_eq!(read.value("mpi_operator_is_leader", ""), 1.0);
        for metric in originals::all() {
            for labels in read.labels_of(metric.name, metric.kind.as_str()) {
                assert_eq!(labels, metric.labels, "{}", metric.name);
            }
        }
        let names: Vec<_> = read.families().map(|(name, _)| name).collect();
        let known = table::ALL.iter().chain(&originals::all()).map(|metric| metric.name).collect::<Vec<_>>();
        assert!(names.iter().all(|name| known.contains(name)), "{names:?}");

        // What is looked at again is not counted again.
        let label = json!({ "metadata": { "labels": { "a": "b" } } });
        world.sim.patch("kubeflow.org/v1", "PyTorchJob", "default", "fine", label).unwrap();
        after(60).await;
        let again = world.read();
        assert_eq!(again.value(&format!("{torch}_successful_total"), labels), 3.0);
        assert_eq!(again.value(&format!("{torch}_created_total"), labels), 4.0);
    });
}

#[test]
fn without_the_flag_no_metric_has_the_name_of_an_original() {
    in_virtual_time(async {
        let world = World::new(Life::default().rule("*", "run-for", "1s"));
        world.torch("fine");
        after(30).await;
        let read = world.read();
        let originals = originals::all();
        assert!(originals.len() == 10, "{originals:?}");
        assert!(read.families().all(|(name, _)| originals.iter().all(|original| original.name != name)));
    });
}

#[test]
fn the_page_about_metrics_is_made_from_the_table() {
    let all = [table::ALL, &originals::all()].concat();
    let rows = all.iter().map(|metric| {
        let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        format!(
            "| `{}` | {} | {} | {} |\n",
            metric.name,
            metric.kind.as_str(),
            labels.join(" "),
            metric.help.replace('<', "&lt;")
        )
    });
    let rows: String = rows.collect();
    let expected = format!("{}{rows}", include_str!("metrics/head.md"));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&file, &expected).unwrap();
    }
    assert_eq!(fs::read_to_string(file).unwrap_or_default(), expected, "UPDATE_EXPECT=1 writes it");
}
