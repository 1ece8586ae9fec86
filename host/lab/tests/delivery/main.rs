//! The delivery as a part of a whole host, on a simulated cluster in virtual time.

#![expect(clippy::unwrap_used, reason = "a test says by its panic what is wrong")]

mod candidates;
mod failures;
mod kinds;
mod looking;
mod made_again;
mod pinned;
mod refused;
mod startup;

use base64::{Engine, engine::general_purpose::STANDARD};
use decide::grants::Grants;
use futures::{FutureExt, future::BoxFuture};
use http::Request;
use kube::client::Body;
use lab::campaign::{self, another};
use sandbox::{Plugins, source};
use serde_json::{Value, json};
use sim::{Kind, Running, Sim};
use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};
use tower::layer::layer_fn;
use troupe::{
    clock::Clock,
    control::{
        operator::{Operator, Options},
        reconcile::Context,
    },
};

const NAMESPACE: &str = "troupe-system";
const API: &str = "troupe.dev/v1alpha1";
const JOBS: (&str, &str) = ("batch.paddlepaddle.org/v1", "PaddleJob");

/// Virtual time in which whatever a test waits for has to happen.
const PATIENCE: Duration = Duration::from_secs(120);

/// The plugins that come with the host, compiled once.
fn built_in() -> Plugins {
    static LOADED: LazyLock<Arc<Plugins>> = LazyLock::new(|| campaign::plugins().unwrap());
    LOADED.fork()
}

/// What the plugin of a framework asks for.
fn grants(framework: &str) -> Grants {
    let frameworks = built_in().frameworks();
    let (descriptor, _) = frameworks.into_iter().find(|(descriptor, _)| descriptor.name == framework).unwrap();
    descriptor.wanted_grants()
}

/// A Plugin that comes from the ConfigMap of its name.
fn plugin(name: &str, grants: &Grants) -> Value {
    let spec = json!({ "source": { "configMap": { "name": name } }, "grants": grants });
    json!({ "apiVersion": API, "kind": "Plugin", "metadata": { "name": name }, "spec": spec })
}

fn map(name: &str, wasm: &[u8]) -> Value {
    let metadata = json!({ "name": name, "namespace": NAMESPACE });
    let data = json!({ source::KEY: STANDARD.encode(wasm) });
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": data })
}

fn job(name: &str) -> Value {
    let template = json!({ "spec": { "containers": [{ "name": "main", "image": "example.com/train:1" }] } });
    json!({
        "apiVersion": JOBS.0, "kind": JOBS.1,
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "worker": { "replicas": 1, "template": template } },
    })
}

/// What comes before a request.
type Meddling = BoxFuture<'static, ()>;

/// An answer that does not come from the simulated API server.
type Answer = http::Response<axum::body::Body>;

/// A cluster and a host in it.
struct Stage {
    sim: Sim,
    client: Box<dyn Fn(&Sim) -> kube::Client>,
    context: Arc<Context>,
    host: JoinHandle<()>,
    _running: Running,
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.host.abort();
    }
}

/// The digest of a component, as statuses have it.
fn digest_of(wasm: &[u8]) -> String {
    source::digest(wasm).to_string()
}

impl Stage {
    /// The cluster has these objects before the host starts.
    fn with(objects: Vec<Value>) -> Self {
        Self::meddled(objects, |_| std::future::ready(()).boxed())
    }

    /// The same; the host's requests pass `before`, which may panic or take its time.
    fn meddled(
        objects: Vec<Value>,
        before: impl Fn(&Request<Body>) -> Meddling + Clone + Send + Sync + 'static,
    ) -> Self {
        Self::answered(objects, move |request| before(request).map(|()| None).boxed())
    }

    /// The same; the host's requests are refused as `refusal` says.
    fn refusing(
        objects: Vec<Value>,
        refusal: impl Fn(&Request<Body>) -> Option<Answer> + Clone + Send + Sync + 'static,
    ) -> Self {
        Self::answered(objects, move |request| std::future::ready(refusal(request)).boxed())
    }

    /// The same; the API server sees only those of the host's requests that `first` does not answer.
    fn answered(
        objects: Vec<Value>,
        first: impl Fn(&Request<Body>) -> BoxFuture<'static, Option<Answer>> + Clone + Send + Sync + 'static,
    ) -> Self {
        let layer = layer_fn(move |server: sim::Server| {
            let first = first.clone();
            tower::service_fn(move |request: Request<Body>| {
                let (first, mut server) = (first(&request), server.clone());
                async move {
                    if let Some(answer) = first.await {
                        return Ok(answer);
                    }
                    let answer = tower::Service::call(&mut server, request).await?;
                    Ok::<_, tower::BoxError>(answer.map(axum::body::Body::new))
                }
            })
        });
        let mut kinds = campaign::kinds(&built_in());
        kinds.push(Kind::new(API, "Plugin", "plugins", false, true));
        kinds.push(Kind::custom(JOBS.0, kinds::POODLE, "poodlejobs"));
        let life = sim::Life::default().rule("held-*", "schedule-after", "forever").rule("long-*", "run-for", "1h");
        let sim = Sim::new(sim::Options { kinds, life, ..sim::Options::default() });
        let running = sim.start();
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
        std::iter::once(namespace).chain(objects).for_each(|object| drop(sim.create(object)));
        let client: Box<dyn Fn(&Sim) -> kube::Client> = Box::new(move |sim| sim.client_through("troupe", &layer));
        let (context, host) = start_host(&sim, client(&sim));
        Self { sim, client, context, host, _running: running }
    }

    /// Ends the host as a crash does, and starts another.
    fn restart(&mut self) {
        self.host.abort();
        self.sim.crash("troupe");
        (self.context, self.host) = start_host(&self.sim, (self.client)(&self.sim));
    }

    /// What `seen` finds, once it finds something.
    async fn until<T>(&self, what: &str, seen: impl Fn(&Self) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = seen(self) {
                return found;
            }
            assert!(Instant::now() < deadline, "waited for {what}; Plugins: {:#?}", self.sim.list(API, "Plugin", ""));
            sleep(Duration::from_millis(100)).await;
        }
    }

    fn plugin(&self, name: &str) -> Value {
        self.sim.get(API, "Plugin", "", name).unwrap_or_default()
    }

    /// Waits until a condition of the Plugin has this reason.
    async fn is(&self, plugin: &str, kind: &str, reason: &str) -> Value {
        self.until(&format!("{kind} of {plugin} to be {reason}"), |stage| {
            let plugin = stage.plugin(plugin);
            let found = condition(&plugin, kind)?.1 == reason;
            found.then_some(plugin)
        })
        .await
    }

    async fn serves(&self, plugin: &str, wasm: &[u8]) {
        let digest = digest_of(wasm);
        self.until(&format!("{plugin} to be served by {digest}"), |stage| {
            (stage.plugin(plugin)["status"]["digest"] == digest.as_str()).then_some(())
        })
        .await;
    }

    /// The digest that plans the job and has it Running.
    async fn planner(&self, job: &str) -> String {
        self.until(&format!("{job} to run"), |stage| {
            let job = stage.sim.get(JOBS.0, JOBS.1, "default", job)?;
            (job["status"]["phase"] == "Running")
                .then(|| job["status"]["troupe"]["digest"].as_str().map(str::to_owned))?
        })
        .await
    }

    /// The tasks that were started again.
    fn restarts(&self) -> Vec<(&'static str, u64)> {
        self.context.restarts().read().into_iter().filter(|(_, restarts)| *restarts > 0).collect()
    }
}

fn start_host(sim: &Sim, client: kube::Client) -> (Arc<Context>, JoinHandle<()>) {
    let delivery =
        troupe::delivery::Options { namespace: Some(NAMESPACE.to_owned()), ..troupe::delivery::Options::default() };
    let options = Options { delivery: Some(delivery), ..Options::alone(Clock::starting_at(sim.now()), [7; 32]) };
    let mut operator = Operator::new(client, Arc::new(built_in()), options);
    let context = operator.context();
    let host = tokio::spawn(async move {
        let _ended = operator.run(std::future::pending()).await;
    });
    (context, host)
}

/// Status and reason.
fn condition(plugin: &Value, kind: &str) -> Option<(String, String)> {
    let conditions = plugin["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == kind)?;
    Some((found["status"].as_str()?.to_owned(), found["reason"].as_str()?.to_owned()))
}
