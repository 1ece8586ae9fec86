//! The page of the host: who sees which jobs, what is told of each, what it costs, and, in `browser`, what it looks like.

mod browser;

use crate::{
    built_in,
    fleet::{Fleet, running_job},
};
use admin::{Access, Reviewer, Tls};
use axum::{Router, body::Body};
use futures::{FutureExt, StreamExt};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::Client;
use lab::campaign::{self, HOST};
use serde_json::{Value, json};
use sim::{Life, Sim};
use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::task::JoinHandle;
use tower::ServiceExt;
use troupe::{
    clock::Clock,
    control::{
        operator::{Ended, Operator, Options},
        reconcile::Context,
    },
    measure::requests::Requests,
};

/// Version and kind of the jobs, and where the page has them.
const TF: (&str, &str) = ("kubeflow.org/v1", "TFJob");
const TFJOBS: &str = "/page/jobs/tfjobs.kubeflow.org";

/// A host on a simulated cluster. It ends with the value.
pub(crate) struct World {
    pub(crate) sim: Sim,
    pub(crate) context: Arc<Context>,
    _life: sim::Running,
    host: JoinHandle<Ended>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.host.abort();
    }
}

impl World {
    pub(crate) fn new(life: Life) -> Self {
        Self::after(life, |_| {})
    }

    /// The same after something has been made that the host finds when it starts.
    pub(crate) fn after(life: Life, before: impl FnOnce(&Sim)) -> Self {
        let plugins = built_in::plugins();
        // Without a Service for each pod.
        plugins.configure("paddle", &json!({ "lean": true })).unwrap();
        let plugins = Arc::new(plugins);
        let base = Clock::system().now();
        let kinds = campaign::kinds(&plugins);
        let sim = Sim::new(sim::Options { kinds, life, base, ..sim::Options::default() });
        before(&sim);
        let life = sim.start();
        let options = Options::alone(Clock::starting_at(sim.now()), [1; 32]);
        let mut operator = Operator::new(sim.client(HOST), plugins, options);
        let context = operator.context();
        let host = tokio::spawn(async move { operator.run(std::future::pending()).await });
        Self { sim, context, _life: life, host }
    }

    /// A TFJob, whose workers wait for nobody.
    pub(crate) fn job(&self, namespace: &str, name: &str, workers: u32) {
        let env = json!([{ "name": "PASSWORD", "value": "hunter2" }]);
        let container = json!({ "name": "tensorflow", "image": "x", "env": env });
        let template = json!({ "spec": { "containers": [container] } });
        let worker = json!({ "replicas": workers, "restartPolicy": "Never", "template": template });
        self.sim.create(json!({
            "apiVersion": TF.0, "kind": TF.1, "metadata": { "name": name, "namespace": namespace },
            "spec": { "runPolicy": { "cleanPodPolicy": "None" }, "tfReplicaSpecs": { "Worker": worker } },
        }));
    }

    /// Has the scheduler say that no node takes a pod.
    pub(crate) fn block(&self, namespace: &str, pod: &str, message: &str) {
        let condition =
            json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message });
        let blocked = |pod: &mut Value| pod["status"]["conditions"] = json!([condition]);
        self.sim.alter("v1", "Pod", namespace, pod, blocked).unwrap();
    }

    /// A job of another kind, which `ann` may not list.
    pub(crate) fn torch(&self, namespace: &str, name: &str) {
        let template = json!({ "spec": { "containers": [{ "name": "pytorch", "image": "x" }] } });
        self.sim.create(json!({
            "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
            "metadata": { "name": name, "namespace": namespace },
            "spec": { "pytorchReplicaSpecs": { "Master": { "replicas": 1, "template": template } } },
        }));
    }

    fn routes(&self, access: Access) -> Router {
        admin::routes(Arc::clone(&self.context), Requests::default(), Arc::new(access))
    }
}

/// An API server that reviews: `root` may do everything, `ann` and `ann-2` to `ann-5` may list TFJobs in the namespace `hers`,
/// `eve` nothing.
/// Counts the requests.
fn reviewer(asked: &Arc<AtomicUsize>) -> Access {
    let asked = Arc::clone(asked);
    let answer = move |request: Request<kube::client::Body>| {
        asked.fetch_add(1, Ordering::Relaxed);
        async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let mut review: Value = serde_json::from_slice(&body).unwrap();
            review["status"] = if review["kind"] == "TokenReview" {
                let user = review["spec"]["token"].clone();
                let is_known =
                    ["root", "ann", "eve", "ann-2", "ann-3", "ann-4", "ann-5"].iter().any(|name| user == *name);
                json!({ "authenticated": is_known, "user": { "username": user } })
            } else {
                let asks = &review["spec"]["resourceAttributes"];
                let is_hers = asks["namespace"] == "hers" && asks["resource"] == "tfjobs" && asks["verb"] == "list";
                let user = review["spec"]["user"].as_str().unwrap_or_default();
                json!({ "allowed": user == "root" || user.starts_with("ann") && is_hers })
            };
            Ok::<_, Infallible>(Response::new(http_body_util::Full::from(review.to_string().into_bytes())))
        }
    };
    let client = Client::new(tower::service_fn(answer), "default");
    Access::Reviewed(Box::new(Reviewer::new(client)), Tls::self_signed().unwrap())
}

fn request(path: &str, token: &str, accept: &str) -> Request<Body> {
    let request = Request::get(path).header("host", "localhost:8080").header("accept", accept);
    let request = if token.is_empty() { request } else { request.header("authorization", format!("Bearer {token}")) };
    request.body(Body::empty()).unwrap()
}

async fn get(routes: &Router, path: &str, token: &str) -> (StatusCode, HeaderMap, String) {
    let response = routes.clone().oneshot(request(path, token, "*/*")).await.unwrap();
    let (head, body) = response.into_parts();
    (head.status, head.headers, String::from_utf8(body.collect().await.unwrap().to_bytes().into()).unwrap())
}

async fn seen(routes: &Router, path: &str, token: &str) -> Value {
    let (code, _, text) = get(routes, path, token).await;
    assert_eq!(code, 200, "{path}: {text}");
    serde_json::from_str(&text).unwrap()
}

fn names(list: &Value) -> Vec<String> {
    let rows = list["rows"].as_array().unwrap().iter();
    rows.map(|row| format!("{}/{}", row["namespace"].as_str().unwrap(), row["name"].as_str().unwrap())).collect()
}

/// The states of all pods, in the order of roles and indices.
fn cells(job: &Value) -> String {
    job["grid"].as_array().unwrap().iter().map(|role| role["cells"].as_str().unwrap()).collect()
}

fn in_virtual_time(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(test);
}

async fn after(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn running() -> Life {
    Life::default().rule("*", "run-for", "1h")
}

#[test]
fn the_document_is_open_and_says_what_it_may_load() {
    in_virtual_time(async {
        let world = World::new(running());
        let routes = world.routes(reviewer(&Arc::default()));
        let (code, head, text) = get(&routes, "/", "").await;
        assert_eq!(code, 200);
        let policy = head["content-security-policy"].to_str().unwrap();
        for part in ["default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "style-src 'sha256-"] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(head["x-content-type-options"], "nosniff");
        assert_eq!(head["referrer-policy"], "no-referrer");
        assert!(text.starts_with("<!doctype html>"), "{text}");
    });
}

#[test]
fn each_viewer_sees_the_jobs_that_he_may_list() {
    in_virtual_time(async {
        let world = World::new(running());
        world.job("hers", "tale", 2);
        world.torch("hers", "other-kind");
        world.job("theirs", "secret", 2);
        after(10).await;
        let routes = world.routes(reviewer(&Arc::default()));
        for (token, path, code) in [
            ("", "/page/jobs".to_owned(), 401),
            ("", format!("{TFJOBS}/hers/tale"), 401),
            ("", "/page/jobs/no.such.kind/hers/tale".to_owned(), 401),
            ("made-up", "/page/jobs".to_owned(), 401),
            ("eve", "/page/jobs".to_owned(), 403),
            ("eve", "/page/jobs?namespace=hers".to_owned(), 403),
            ("ann", "/page/jobs".to_owned(), 403),
            ("ann", "/page/jobs?namespace=theirs".to_owned(), 403),
            ("ann", "/page/jobs?namespace=hers".to_owned(), 200),
            ("ann", format!("{TFJOBS}/hers/tale"), 200),
            ("ann", format!("{TFJOBS}/hers/nobodys"), 404),
            ("ann", format!("{TFJOBS}/theirs/secret"), 403),
            ("ann", "/page/jobs/pytorchjobs.kubeflow.org/hers/other-kind".to_owned(), 403),
            ("root", format!("{TFJOBS}/theirs/secret"), 200),
            ("root", "/page/jobs/no.such.kind/hers/tale".to_owned(), 404),
        ] {
            let (answered, _, text) = get(&routes, &path, token).await;
            assert_eq!(answered, code, "{token} {path}: {text}");
        }
        let hers = seen(&routes, "/page/jobs?namespace=hers", "ann").await;
        assert_eq!(names(&hers), ["hers/tale"]);
        assert_eq!((&hers["jobs"], &hers["namespaces"]), (&json!(1), &json!(["hers"])));
        let all = seen(&routes, "/page/jobs", "root").await;
        assert_eq!(all["namespaces"], json!(["hers", "theirs"]));
        assert_eq!(all["jobs"], 3);
        // On a loopback address everything is open, but not to a page of another name.
        let open = world.routes(Access::Loopback);
        assert_eq!(seen(&open, "/page/jobs", "").await["jobs"], 3);
        let rebound =
            Request::get("/page/jobs").header("host", "rebound.example.com:8080").body(Body::empty()).unwrap();
        assert_eq!(open.oneshot(rebound).await.unwrap().status(), 421);
    });
}

#[test]
fn no_value_of_an_environment_variable_is_shown() {
    in_virtual_time(async {
        let world = World::new(running());
        world.job("default", "tale", 2);
        after(10).await;
        let routes = world.routes(Access::Loopback);
        let (_, _, list) = get(&routes, "/page/jobs", "").await;
        let (_, _, one) = get(&routes, &format!("{TFJOBS}/default/tale"), "").await;
        assert!(list.contains("tale") && one.contains("tale-worker-0"), "{one}");
        assert!(!list.contains("hunter2") && !one.contains("hunter2") && !one.contains("PASSWORD"), "{one}");
    });
}

#[test]
fn a_job_is_shown_from_submit_to_end_in_the_words_of_the_command_line() {
    in_virtual_time(async {
        let life = Life::default().rule("fits-worker-*", "run-for", "60s").rule("*-worker-0", "run-for", "1h");
        let life = life.rule("stuck-worker-1", "schedule-after", "forever");
        let world =
            World::new(life.rule("breaks-worker-1", "exit-code", "3").rule("breaks-worker-1", "run-for", "20s"));
        for name in ["fits", "stuck", "breaks"] {
            world.job("default", name, 2);
        }
        let routes = world.routes(Access::Loopback);
        let of = |name: &str| format!("{TFJOBS}/default/{name}");
        after(10).await;
        let running = seen(&routes, &of("fits"), "").await;
        assert_eq!((&running["group"], &running["why"]), (&json!("running"), &Value::Null), "{running:#}");
        assert_eq!(cells(&running), "RR", "{running:#}");
        let line = &running["timeline"];
        let at = |step: &str| line[step].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
        let steps = ["submitted", "made", "running"].map(at);
        assert!(steps.is_sorted() && line["ended"].is_null(), "{line}");
        assert_eq!(running["plugin"]["name"], "kubeflow");
        let commands: Vec<_> = running["commands"].as_array().unwrap().iter().map(|it| it["text"].clone()).collect();
        assert!(commands.contains(&json!("kubectl troupe explain tfjob/fits -n default")), "{commands:?}");

        world.block("default", "stuck-worker-1", "0/4 nodes are available: 4 Insufficient nvidia.com/gpu.");
        after(10).await;
        let stuck = seen(&routes, &of("stuck"), "").await;
        assert_eq!((&stuck["group"], cells(&stuck)), (&json!("waiting"), "RB".into()), "{stuck:#}");
        let status = world.sim.get(TF.0, TF.1, "default", "stuck").unwrap();
        let said = decide::summary::why(&status["status"]).unwrap();
        assert!(said.starts_with("waits for pod/stuck-worker-1 to be scheduled: "), "{said}");
        assert_eq!(stuck["why"], said.as_str());
        assert_eq!(stuck["pods"][0]["name"], "stuck-worker-1", "trouble comes first");
        let describe = &stuck["commands"][0]["text"];
        assert_eq!(describe, "kubectl describe pod stuck-worker-1 -n default");

        after(120).await;
        let broken = seen(&routes, &of("breaks"), "").await;
        assert_eq!(
            (&broken["group"], &broken["timeline"]["outcome"]),
            (&json!("failed"), &json!("failed")),
            "{broken:#}"
        );
        let why = broken["why"].as_str().unwrap();
        assert!(why.starts_with("container tensorflow of pod/breaks-worker-1 failed first with exit code 3"), "{why}");
        let fits = seen(&routes, &of("fits"), "").await;
        assert_eq!((&fits["group"], &fits["timeline"]["outcome"]), (&json!("succeeded"), &json!("succeeded")));
        assert_eq!(cells(&fits), "SS");
        assert!(fits["timeline"]["running"].is_string() && fits["timeline"]["ended"].is_string());
        let list = seen(&routes, "/page/jobs", "").await;
        assert_eq!(names(&list), ["default/stuck", "default/breaks", "default/fits"], "what waits or failed is first");
        assert_eq!(names(&seen(&routes, "/page/jobs?group=failed", "").await), ["default/breaks"]);
        assert_eq!(names(&seen(&routes, "/page/jobs?text=SCHEDULED%20stuck", "").await), ["default/stuck"]);
        let cut = seen(&routes, "/page/jobs?limit=1", "").await;
        assert_eq!((names(&cut).len(), &cut["matching"]), (1, &json!(3)));
    });
}

/// The messages of a stream, as they come.
async fn stream(routes: &Router, path: &str, token: &str) -> impl futures::Stream<Item = String> + Unpin + use<> {
    let response = routes.clone().oneshot(request(path, token, "text/event-stream")).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let frames = response.into_body().into_data_stream();
    Box::pin(frames.map(|frame| String::from_utf8(frame.unwrap().to_vec()).unwrap()))
}

#[test]
fn a_change_is_sent_within_two_seconds_and_nothing_where_nothing_changes() {
    in_virtual_time(async {
        let world = World::new(running());
        world.job("default", "first", 1);
        after(10).await;
        let routes = world.routes(Access::Loopback);
        let mut list = stream(&routes, "/page/jobs", "").await;
        let first = list.next().await.unwrap();
        assert!(first.starts_with("id: ") && first.contains("\ndata: {") && first.ends_with("\n\n"), "{first}");
        let quiet = tokio::time::timeout(Duration::from_secs(14), list.next()).await;
        assert!(quiet.is_err(), "{quiet:?}");
        assert_eq!(list.next().await.unwrap(), ":\n\n", "a comment shows that the connection is there");
        let (before, mut news) = (tokio::time::Instant::now(), String::new());
        world.job("default", "second", 1);
        while !news.contains("second") {
            news = list.next().await.unwrap();
        }
        assert!(before.elapsed() <= Duration::from_secs(2), "{:?}", before.elapsed());
        // A pod that fails is seen on the page of its job.
        let path = &format!("{TFJOBS}/default/second");
        let mut job = stream(&routes, path, "").await;
        after(10).await;
        while !news.contains(r#""cells":"R""#) {
            news = job.next().await.unwrap();
        }
        let before = tokio::time::Instant::now();
        world.sim.set_failed("default", "second-worker-0", 1);
        while !news.contains(r#""cells":"F""#) {
            news = job.next().await.unwrap();
        }
        assert!(before.elapsed() <= Duration::from_secs(2), "{:?}", before.elapsed());
        world.sim.delete(TF.0, TF.1, "default", "second").unwrap();
        while job.next().await.is_some() {}
    });
}

#[test]
fn a_viewer_who_opens_many_pages_closes_the_page_for_nobody() {
    in_virtual_time(async {
        const HERS: &str = "/page/jobs?namespace=hers";
        let world = World::new(running());
        world.job("hers", "tale", 1);
        after(10).await;
        let routes = world.routes(reviewer(&Arc::default()));
        let open = async |token: &str| {
            let response = routes.clone().oneshot(request(HERS, token, "text/event-stream")).await.unwrap();
            let is_open = response.status() == 200;
            (is_open, response)
        };
        let mut of_ann = vec![];
        for _ in 0..75 {
            of_ann.extend(Some(open("ann").await).filter(|(is_open, _)| *is_open).map(|(_, stream)| stream));
        }
        assert_eq!(of_ann.len(), 16);
        let (code, _, text) = get(&routes, HERS, "ann").await;
        assert!(code == 503 && text.contains("close some"), "{code} {text}");
        let mut administrator = stream(&routes, "/page/jobs", "root").await;
        assert!(administrator.next().await.unwrap().contains("tale"));
        drop(administrator);
        // Several viewers that have taken all of the places give one to each who has none.
        let mut of_others = vec![];
        for token in ["ann-2", "ann-3", "ann-4"] {
            for _ in 0..16 {
                let (is_open, stream) = open(token).await;
                assert!(is_open);
                of_others.push(stream);
            }
        }
        let mut last = stream(&routes, HERS, "ann-5").await;
        let mut administrator = stream(&routes, "/page/jobs", "root").await;
        assert!(last.next().await.is_some() && administrator.next().await.is_some());
        let all = of_ann.into_iter().chain(of_others).map(|response| response.into_body().into_data_stream());
        let mut ended = 0;
        for mut stream in all {
            ended += usize::from(stream.next().await.is_none());
        }
        assert_eq!(ended, 2, "of two streams the places were given away");
    });
}

#[test]
fn viewers_ask_the_api_server_for_their_rights_alone_and_seldom() {
    in_virtual_time(async {
        let world = World::new(running());
        world.job("hers", "tale", 1);
        after(10).await;
        let asked = Arc::default();
        let routes = world.routes(reviewer(&asked));
        let kinds = world.context.stores().layout().kinds().len();
        let before = world.sim.asked(HOST);
        let mut viewers = vec![];
        for _ in 0..10 {
            let mut viewer = stream(&routes, "/page/jobs?namespace=hers", "ann").await;
            assert!(viewer.next().await.unwrap().contains("tale"));
            viewers.push(viewer);
        }
        // The token, and one right for each kind; the second viewer of the same token costs nothing.
        assert_eq!(asked.load(Ordering::Relaxed), 1 + kinds);
        for _ in 0..55 {
            after(1).await;
            for viewer in &mut viewers {
                let _ = tokio::time::timeout(Duration::ZERO, viewer.next()).await;
            }
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1 + kinds, "a stream that goes on is not reviewed each second");
        assert_eq!(world.sim.asked(HOST), before, "the host reads nothing for viewers");
    });
}

#[test]
fn a_name_that_no_api_server_has_and_a_flood_of_names_are_not_asked_about() {
    in_virtual_time(async {
        let world = World::new(running());
        after(2).await;
        let asked = Arc::default();
        let routes = world.routes(reviewer(&asked));
        for path in ["/page/jobs?namespace=No_Label", "/jobs?namespace=a/b", "/page/jobs/tfjobs.kubeflow.org/A/x"] {
            let (code, _, text) = get(&routes, path, "ann").await;
            assert!(code == 400 && text.contains("is no name of a namespace"), "{path}: {code} {text}");
        }
        assert_eq!(asked.load(Ordering::Relaxed), 0);

        let mut codes = vec![];
        for number in 0..200 {
            codes.push(get(&routes, &format!("/page/jobs?namespace=n{number}"), "eve").await.0);
        }
        assert_eq!((codes[0], codes[199]), (StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS));
        assert!(asked.load(Ordering::Relaxed) <= 201, "{asked:?}");
        let (code, ..) = get(&routes, "/page/jobs?namespace=hers", "ann").await;
        assert_eq!(code, 200, "another viewer is not hurt");
        after(5).await;
        let (code, ..) = get(&routes, "/page/jobs?namespace=later", "eve").await;
        assert_eq!(code, StatusCode::FORBIDDEN, "he is asked about again");
    });
}

#[test]
fn a_flood_of_made_up_tokens_does_not_keep_out_who_has_one() {
    in_virtual_time(async {
        let world = World::new(running());
        after(2).await;
        let asked = Arc::default();
        let routes = world.routes(reviewer(&asked));
        assert_eq!(get(&routes, "/page/jobs?namespace=hers", "ann").await.0, 200);
        // Longer than a verdict is cached, and than most scrape intervals.
        after(60).await;
        let mut codes = vec![];
        for number in 0..1_100 {
            codes.push(get(&routes, "/page/jobs?namespace=hers", &format!("made-up-{number}")).await.0);
        }
        assert_eq!((codes[0], codes[1_099]), (StatusCode::UNAUTHORIZED, StatusCode::TOO_MANY_REQUESTS));
        assert_eq!(get(&routes, "/page/jobs?namespace=hers", "ann").await.0, 200);
        assert_eq!(get(&routes, "/page/jobs?namespace=hers", "root").await.0, StatusCode::TOO_MANY_REQUESTS);
        after(5).await;
        assert_eq!(get(&routes, "/page/jobs?namespace=hers", "root").await.0, 200);
    });
}

#[test]
fn there_is_a_most_of_pages_of_one_viewer_and_one_that_is_closed_makes_room() {
    in_virtual_time(async {
        let world = World::new(running());
        after(2).await;
        let routes = world.routes(Access::Loopback);
        let mut viewers = vec![];
        for _ in 0..16 {
            viewers.push(stream(&routes, "/page/jobs", "").await);
        }
        assert_eq!(get(&routes, "/page/jobs", "").await.0, 503);
        viewers.pop();
        assert_eq!(get(&routes, "/page/jobs", "").await.0, 200);
    });
}

/// 10,000 pods of 2,500 jobs: a viewer costs what has changed, not what there is.
#[test]
fn what_viewers_of_10_000_pods_cost_has_a_budget() {
    const JOBS: usize = 2_500;
    let fleet = Fleet::new(JOBS, &running_job());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let plugins = Arc::new(built_in::plugins());
    let routes = runtime.block_on(async {
        let mut operator = Operator::new(fleet.client(), plugins, Options::alone(Clock::system(), [1; 32]));
        let context = operator.context();
        let host = tokio::spawn(async move { operator.run(std::future::pending()).await });
        let listed = || async { Ok(context.is_ready().then_some(())) };
        harness::until(Duration::from_secs(60), "the lists", listed).await.unwrap();
        host.abort();
        admin::routes(context, Requests::default(), Arc::new(Access::Loopback))
    });
    let mut looks = vec![];
    runtime.block_on(async {
        tokio::time::pause();
        // Rows are kept while somebody looks.
        let _viewer = stream(&routes, "/page/jobs", "").await;
        for _ in 0..3 {
            let (began, mut sent) = (std::time::Instant::now(), 0);
            let work = allocation_counter::measure(|| {
                let (code, _, text) = get(&routes, "/page/jobs", "").now_or_never().unwrap();
                assert_eq!(code, 200);
                sent = text.len();
            });
            eprintln!("{} allocations, {sent} bytes, {:?} in this profile", work.count_total, began.elapsed());
            looks.push((work.count_total, sent));
            tokio::time::advance(Duration::from_secs(2)).await;
        }
    });
    // Passes that were under way have ended by the second look.
    let [(first, sent), _, (again, _)] = looks[..] else { panic!("three looks") };
    assert!(sent < 64 << 10, "{sent} bytes for 200 rows");
    assert!(first / JOBS as u64 <= 200, "{first} allocations to read {JOBS} jobs once");
    assert!(again <= 2_000, "{again} allocations where nothing has changed");
}
