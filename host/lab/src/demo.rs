//! `troupe demo`: runs jobs from submission to their end on an embedded cluster, with the real host, plugins and
//! client.

mod timeline;

use crate::{campaign, children::serve_children, manifest};
use admin::{Access, telemetry};
use anyhow::{Context, bail};
use decide::{
    Snapshot,
    condition::Condition,
    decide,
    own_conditions::{current_true, last_true_of_framework},
};
use sandbox::{Executor, LARGEST_COMPONENT, Limits, Plugins};
use serde_json::{Value, json};
use sim::{RequestRecord, Sim};
use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    pin::Pin,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};
use timeline::{HOST, Timeline, USER, phase};
use tokio::{
    net::TcpListener,
    signal::ctrl_c,
    time::{Instant, MissedTickBehavior, interval},
};
use troupe::{
    api::resource::Resource,
    clock::Clock,
    control::{
        operator::{Operator, Options},
        reconcile::Context as HostContext,
    },
    error::chain,
    job_key::{GroupKind, JobKey},
    measure::requests::Requests,
    observe::layout::Served,
    out,
};

/// How often lines are printed.
const TICK: Duration = Duration::from_millis(40);

/// The demo ends after the last job has ended and no API request was made for this long.
const REST: Duration = Duration::from_millis(400);

/// How long pods run for where somebody watches them on the page.
const WATCHED: Duration = Duration::from_secs(60);

/// The port of the page, unless it is taken.
const PAGE_PORT: u16 = 8080;

/// The options of the demo.
#[derive(Debug)]
pub struct Demo {
    /// The plugins that serve, a label and the component of each; without any, the built-in ones.
    pub components: Vec<(String, Vec<u8>)>,
    /// Files with manifests of jobs; without any, an example of each built-in framework.
    pub manifests: Vec<PathBuf>,
    /// Print the environment and ConfigMaps of pods.
    pub explain: bool,
    /// Serve the host's page on a loopback address until interrupted.
    pub web: bool,
    /// How long to wait for the end of all jobs; with `web`, beside the time that pods run for.
    pub patience: Duration,
}

/// Runs jobs from submission to their end and prints what happens. Returns success if every job succeeds.
///
/// # Errors
/// A manifest cannot be read, or the embedded API server refuses it.
pub fn demo(args: &Demo) -> anyhow::Result<ExitCode> {
    telemetry::start(false, "error", None);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime")?;
    // Boxed, so that the runtime's code is not compiled with all of it inside.
    runtime.block_on(Box::pin(show(args)) as Pin<Box<dyn Future<Output = _>>>)
}

/// How a job ended.
enum End {
    Succeeded,
    /// In the words of its status, or of its pod.
    Failed(String),
}

struct Shown {
    sim: Sim,
    host: Arc<HostContext>,
    jobs: Vec<Value>,
    timeline: Timeline,
    waiting: BTreeMap<JobKey, String>,
}

async fn show(args: &Demo) -> anyhow::Result<ExitCode> {
    let plugins = Arc::new(plugins(&args.components)?);
    let kinds = campaign::kinds(&plugins);
    let run = if args.web { WATCHED } else { Duration::from_secs(2) };
    let life = sim::Life { pull: Duration::from_millis(300), run: Some(run), ..sim::Life::default() };
    let base = Clock::system().now();
    let sim = Sim::new(sim::Options { kinds, life: life.jitter(0.3), base, ..sim::Options::default() });
    // The autoscaler of an elastic job, for one.
    serve_children(&sim, &plugins);
    let _running = sim.start();
    let options = Options::alone(Clock::starting_at(base), [7; 32]);
    let requests = Requests::default();
    let mut operator = Operator::new(sim.client_through(HOST, &requests.layer("sim")), plugins, options);
    let host = operator.context();
    let jobs = read(args, &host)?;
    let names: Vec<_> = host.stores().layout().kinds().values().map(|served| served.kind.kind.clone()).collect();
    let timeline = Timeline::of(&sim, &names);
    tokio::spawn(async move { operator.run(std::future::pending()).await });

    let page = if args.web { Some(serve_page(&host, requests).await?) } else { None };
    let mut shown = Shown { sim, host, jobs, timeline, waiting: BTreeMap::new() };
    shown.submit().await?;
    let patience = if args.web { args.patience.saturating_add(WATCHED) } else { args.patience };
    let ended = tokio::select! {
        ended = shown.follow(patience) => ended,
        interrupted = ctrl_c(), if page.is_some() => {
            interrupted.context("an interrupt cannot be listened to")?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    if args.explain {
        shown.explain();
    }
    shown.summary();
    let verdict = shown.verdict(ended);
    if let Some(page) = page {
        out::line(format_args!("\nthe page is still at {page}; interrupt to end"));
        ctrl_c().await.context("an interrupt cannot be listened to")?;
    }
    Ok(verdict)
}

/// Serves the host's admin port on a loopback address for as long as the process runs. Returns where the page is.
async fn serve_page(host: &Arc<HostContext>, requests: Requests) -> anyhow::Result<String> {
    let addresses = [PAGE_PORT, 0].map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let listener = TcpListener::bind(&addresses[..]).await.context("no port of the loopback address can be opened")?;
    let page = format!("http://{}/", listener.local_addr().context("the page has no address")?);
    out::line(format_args!("the page is at {page}\n"));
    tokio::spawn(admin::serve(listener, Arc::clone(host), requests, Access::Loopback));
    Ok(page)
}

/// Loads these components, or the built-in plugins if there are none.
fn plugins(components: &[(String, Vec<u8>)]) -> anyhow::Result<Plugins> {
    if components.is_empty() {
        return Plugins::builtin(Executor::blocking()).context("a built-in plugin does not load");
    }
    let limits = Limits { component: LARGEST_COMPONENT, ..Limits::default() };
    let plugins = Plugins::empty(sandbox::Options { limits, ..sandbox::Options::new(Executor::blocking()) })?;
    for (label, wasm) in components {
        plugins.load(label, wasm).with_context(|| format!("the host would refuse {label}"))?;
    }
    Ok(plugins)
}

fn read(args: &Demo, host: &HostContext) -> anyhow::Result<Vec<Value>> {
    let layout = host.stores().layout();
    let read = if args.manifests.is_empty() {
        manifest::EXAMPLES
            .iter()
            .map(|(file, text)| manifest::parse(file, text, &layout))
            .collect::<Result<Vec<_>, _>>()
    } else {
        args.manifests.iter().map(|path| manifest::read(path, &layout)).collect()
    };
    Ok(read?.into_iter().flatten().collect())
}

impl Shown {
    /// Submits the jobs, and creates the namespaces that they are in.
    async fn submit(&self) -> anyhow::Result<()> {
        let layout = self.host.stores().layout();
        for job in &self.jobs {
            let Some(key) = self.key(job) else { continue };
            let Some(served) = layout.kinds().get(&key.kind) else { continue };
            if self.sim.get("v1", "Namespace", "", &key.namespace).is_none() {
                let metadata = json!({ "name": key.namespace });
                let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata });
                self.create(&Resource::new("v1", "Namespace", "namespaces"), None, &namespace).await?;
            }
            self.create(&Resource::from(&*served.kind), Some(&key.namespace), job).await?;
        }
        Ok(())
    }

    async fn create(&self, resource: &Resource, namespace: Option<&str>, object: &Value) -> anyhow::Result<()> {
        let body = serde_json::to_vec(object).context("an object as JSON")?;
        let request = resource.requests(namespace).create(&kube::api::PostParams::default(), body)?;
        let created: Result<Value, _> = self.sim.client(USER).request(request).await;
        match created {
            Ok(_) => Ok(()),
            Err(error) => {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                bail!("{}/{name}: {}", resource.plural, chain(&error))
            }
        }
    }

    /// Prints until every job has ended and no more requests are made; returns false if the patience runs out first.
    async fn follow(&mut self, patience: Duration) -> bool {
        let start = Instant::now();
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut asked = (0, Instant::now());
        loop {
            tick.tick().await;
            self.record_waiting();
            self.timeline.print();
            if self.sim.asked(HOST) != asked.0 {
                asked = (self.sim.asked(HOST), Instant::now());
            }
            if self.jobs.iter().all(|job| self.end_of(job).is_some()) && asked.1.elapsed() > REST {
                return true;
            }
            if start.elapsed() > patience {
                return false;
            }
        }
    }

    fn record_waiting(&mut self) {
        let passes = self.host.passes().fresh();
        // Keep the latest pass of each job.
        let last: BTreeMap<_, _> = passes.iter().map(|pass| (key_of(&pass.snapshot), pass)).collect();
        for (key, pass) in last {
            let decision = decide(&pass.snapshot, &pass.answer);
            let waiting = decision.waiting.first().map(ToString::to_string).unwrap_or_default();
            if self.waiting.insert(key.clone(), waiting.clone()).as_ref() != Some(&waiting) && !waiting.is_empty() {
                self.timeline.add(self.sim.now(), "waiting", format!("{}: {waiting}", key.name));
            }
        }
    }

    fn key(&self, job: &Value) -> Option<JobKey> {
        let layout = self.host.stores().layout();
        let is_meant =
            |served: &Served| job["kind"] == served.kind.kind && job["apiVersion"] == served.kind.api_version();
        let (kind, _) = layout.kinds().iter().find(|(_, served)| is_meant(served))?;
        let text = |field: &str| job["metadata"][field].as_str();
        Some(JobKey::new(kind, text("namespace")?, text("name")?))
    }

    fn status(&self, job: &Value) -> Value {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text(&job["apiVersion"]), text(&job["kind"]));
        let (namespace, name) = (text(&job["metadata"]["namespace"]), text(&job["metadata"]["name"]));
        self.sim.get(&api_version, &kind, &namespace, &name).map(|mut job| job["status"].take()).unwrap_or_default()
    }

    /// Returns how a job ended: None while it runs, otherwise the reason if it failed.
    fn end_of(&self, job: &Value) -> Option<End> {
        let status = self.status(job);
        let held = [Condition::Rejected, Condition::PluginFaulted].into_iter().find_map(|it| current_true(&status, it));
        if let Some(trouble) = held {
            return Some(End::Failed(trouble["message"].as_str().unwrap_or_default().to_owned()));
        }
        match status["troupe"]["finished"]["outcome"].as_str()? {
            "succeeded" => Some(End::Succeeded),
            _ => {
                let why = last_true_of_framework(&status).and_then(|it| it["message"].as_str());
                Some(End::Failed(why.map_or_else(|| self.failed_pod(job), ToOwned::to_owned)))
            }
        }
    }

    fn failed_pod(&self, job: &Value) -> String {
        let namespace = job["metadata"]["namespace"].as_str().unwrap_or_default();
        let failed = self.sim.list("v1", "Pod", namespace).into_iter().find(|pod| pod["status"]["phase"] == "Failed");
        let Some(pod) = failed else { return "a pod failed".into() };
        let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
        format!(
            "pod {} failed with exit code {}",
            pod["metadata"]["name"].as_str().unwrap_or_default(),
            ended["exitCode"]
        )
    }

    fn verdict(&self, ended: bool) -> ExitCode {
        let mut code = ExitCode::SUCCESS;
        for job in &self.jobs {
            let name = job["metadata"]["name"].as_str().unwrap_or_default();
            match self.end_of(job) {
                Some(End::Succeeded) => continue,
                Some(End::Failed(why)) => out::diagnostic(format_args!("{name} failed: {why}")),
                None if ended => continue,
                None => {
                    let waiting = self.key(job).and_then(|key| self.waiting.get(&key).cloned());
                    let why = waiting.filter(|it| !it.is_empty()).map_or_else(
                        || "the host waits for nothing, and no container may have started: only ConfigMaps and Secrets that jobs make are here".to_owned(),
                        |it| format!("waiting for {it}"),
                    );
                    out::diagnostic(format_args!("{name} has not ended: {}; {why}", phase(&self.status(job))));
                }
            }
            code = ExitCode::FAILURE;
        }
        code
    }

    /// Prints the environment of each pod's first container, and the ConfigMaps.
    fn explain(&self) {
        for job in &self.jobs {
            let Some(key) = self.key(job) else { continue };
            out::line(format_args!("\n{} {}", job["kind"].as_str().unwrap_or_default(), key.name));
            let last = self.host.passes().latest().filter(|pass| key_of(&pass.snapshot) == key);
            for request in last.last().iter().flat_map(|pass| plan_of(&pass.answer)) {
                out::line(&request);
            }
            for map in self.sim.list("v1", "ConfigMap", &key.namespace) {
                let name = map["metadata"]["name"].as_str().unwrap_or_default();
                if !name.starts_with(&key.name) {
                    continue;
                }
                out::line(format_args!("  configmap/{name}"));
                for (entry, text) in map["data"].as_object().into_iter().flatten() {
                    for (number, line) in text.as_str().unwrap_or_default().lines().enumerate() {
                        out::line(format_args!(
                            "    {}{line}",
                            if number == 0 { format!("{entry}=") } else { "  ".into() }
                        ));
                    }
                }
            }
        }
    }

    fn summary(&self) {
        let requests = self.sim.requests_of(HOST);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let names = self.jobs.iter().map(|job| text(&job["metadata"]["name"]));
        let (wide, kinds) = (width("JOB", names), width("KIND", self.jobs.iter().map(|job| text(&job["kind"]))));
        let phases = width("PHASE", self.jobs.iter().map(|job| phase(&self.status(job)).to_owned()));
        out::line(format_args!(
            "\n{:<wide$}{:<kinds$}{:<phases$}{:>5}{:>8}{:>8}{:>8}{:>8}{:>6}",
            "JOB", "KIND", "PHASE", "PODS", "CREATE", "STATUS", "PATCH", "DELETE", "EVENT"
        ));
        for job in &self.jobs {
            let (name, kind) =
                (job["metadata"]["name"].as_str().unwrap_or_default(), job["kind"].as_str().unwrap_or_default());
            let mine: Vec<_> =
                requests.iter().filter(|request| request.name.starts_with(name) && request.is_write()).collect();
            let count = |is: &dyn Fn(&RequestRecord) -> bool| mine.iter().filter(|request| is(request)).count();
            out::line(format_args!(
                "{name:<wide$}{kind:<kinds$}{:<phases$}{:>5}{:>8}{:>8}{:>8}{:>8}{:>6}",
                phase(&self.status(job)),
                count(&|r| r.verb == "create" && r.resource == "pods"),
                count(&|r| r.verb == "create" && r.resource != "events"),
                count(&|r| r.subresource == "status"),
                count(&|r| r.verb == "patch" && r.subresource.is_empty()),
                count(&|r| r.verb == "delete"),
                count(&|r| r.resource == "events"),
            ));
        }
        let calls = self.host.plugins().calls();
        let wide = width("PLUGIN", calls.iter().map(|(plugin, ..)| plugin.clone()));
        let functions = width("FUNCTION", calls.iter().map(|(_, function, _)| function.clone()));
        out::line(format_args!("\n{:<wide$}{:<functions$}{:>8}{:>12}", "PLUGIN", "FUNCTION", "CALLS", "MEDIAN"));
        for (plugin, function, stats) in calls {
            let median = stats.median().as_micros();
            out::line(format_args!("{plugin:<wide$}{function:<functions$}{:>8}{median:>9} us", stats.count));
        }
        let reads = requests.iter().filter(|request| !request.is_write() && request.verb == "get").count();
        out::line(format_args!("\nreads after the first lists: {reads}"));
    }
}

/// Returns the width of a column: its widest text, and two spaces.
fn width(head: &str, texts: impl Iterator<Item = String>) -> usize {
    texts.map(|text| text.chars().count()).chain([head.len()]).max().unwrap_or_default() + 2
}

fn key_of(snapshot: &Snapshot) -> JobKey {
    JobKey::new(&GroupKind::from(&*snapshot.kind), &snapshot.job.namespace, &snapshot.job.name)
}

fn plan_of(answer: &decide::plan::Answer) -> Vec<String> {
    let decide::plan::Answer::Judged { plan, .. } = answer else { return vec![] };
    let mut lines = Vec::new();
    for role in &plan.roles {
        lines.push(format!("  role {} x{}", role.name, role.replicas));
        let first = role.template.pointer("/spec/containers/0");
        for env in first.and_then(|first| first["env"].as_array()).into_iter().flatten() {
            let name = env["name"].as_str().unwrap_or_default();
            let per_replica = role.env.iter().find(|entry| entry.name == name);
            let value = match (per_replica, env["value"].as_str()) {
                (Some(entry), _) => {
                    format!("{} (replica 0)", decide::names::expand(&entry.value, "", Some("its pod's name"), 0))
                }
                (None, Some(value)) => value.to_owned(),
                (None, None) => env["valueFrom"].to_string(),
            };
            lines.push(format!("    {name}={value}"));
        }
    }
    lines
}
