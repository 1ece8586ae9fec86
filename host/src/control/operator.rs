//! Wiring: plugins, watches, queue and workers of one host.

use crate::{
    api::{deadline::with_deadline, discovery::Discovery},
    clock::Clock,
    control::{
        host_ports::{self, PortAllocator},
        lease::Election,
        memory::Memory,
        pace::Pace,
        queue::{PASSES, Queue},
        reconcile::{Context, Next},
        supervise::{AbortOnDrop, Restarts, supervise},
    },
    delivery::{self, Delivery, Handles, trials::Trials},
    error::chain,
    job_key::JobKey,
    measure::{
        Policies,
        jobs::Jobs,
        passes::{self, OfTrace, PassEnd},
    },
    observe::{
        contents::Contents,
        events,
        layout::{Layout, Route, WatchId},
        stores::Stores,
        watch::watch,
    },
    record::{events::Events, passes::Passes},
    traces::{Traces, spans},
    write::{apply::Writer, publish::Publisher, warnings::FieldValidation},
};
use decide::{Digest, Wake};
use futures::{FutureExt, future::BoxFuture};
use kube::Client;
use sandbox::Plugins;
use std::{
    collections::BTreeMap,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::{task::JoinSet, time::Instant};
use tracing::{Instrument, debug, error, info, info_span, warn};

/// The running watches; each runs until this value is dropped.
#[derive(Default)]
pub struct Watches(BTreeMap<WatchId, AbortOnDrop>);

/// Configuration of a host.
pub struct Options {
    /// The only namespace that is served; `None` serves all.
    pub namespace: Option<String>,
    /// The clock.
    pub clock: Clock,
    /// The seed of keys and jitter.
    pub seed: [u8; 32],
    /// The host ports that jobs may hold.
    pub host_ports: host_ports::Limits,
    /// What the API server does about unknown fields in what this host creates.
    pub field_validation: FieldValidation,
    /// Whether the metrics have the names of the original operators too.
    pub compat_metrics: bool,
    /// The leader election among several hosts; `None` serves at once.
    pub election: Option<Election>,
    /// How Plugin resources deliver plugins; `None` serves only the plugins that are loaded.
    pub delivery: Option<delivery::Options>,
    /// The traces of passes, which the layer of the subscriber makes; `None` sends none.
    pub traces: Option<Arc<Traces>>,
}

impl Options {
    /// Returns the options of a single host that serves all namespaces at once, with the default host ports.
    #[must_use]
    pub fn alone(clock: Clock, seed: [u8; 32]) -> Self {
        Self {
            namespace: None,
            clock,
            seed,
            host_ports: host_ports::Limits::default(),
            field_validation: FieldValidation::default(),
            compat_metrics: false,
            election: None,
            delivery: None,
            traces: None,
        }
    }
}

/// One host: watches and the loop over its queue.
pub struct Operator {
    context: Arc<Context>,
    client: Client,
    /// Shared by the watches of kinds that are not served.
    discovery: Arc<Discovery>,
    seed: [u8; 32],
    namespace: Option<String>,
    election: Option<Election>,
    delivery: Option<delivery::Options>,
}

/// Why a host has stopped serving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was asked to stop.
    AsAsked,
    /// Another host may hold the lease now.
    LeaseLost,
}

impl Operator {
    /// Returns a host that serves these plugins through this client. Starts nothing.
    #[must_use]
    pub fn new(client: Client, plugins: Arc<Plugins>, options: Options) -> Self {
        let mut layout = Layout::default();
        for (framework, digest) in plugins.frameworks() {
            layout.add(&framework, &digest);
            layout.route(&framework.name, &Route::to(&digest));
        }
        let stores = Arc::new(Stores::new(layout));
        stores.limit_specs(plugins.limits().spec);
        let queue = Arc::new(Queue::default());
        let published = Arc::default();
        let contents = Arc::new(Contents::new(client.clone()));
        let (clock, watched) = (options.clock.clone(), (stores.clone(), Arc::clone(&published)));
        let delivery =
            Arc::new(Handles::new(clock, options.seed, watched, queue.clone(), (plugins.clone(), contents.clone())));
        let context = Context {
            queue,
            writer: Writer::new(client.clone(), stores.clone(), options.seed, options.field_validation),
            memory: Memory::default(),
            pace: Pace::default(),
            contents: contents.clone(),
            publisher: Publisher::new(client.clone(), stores.clone(), options.clock.clone(), published),
            ports: Arc::new(PortAllocator::new(stores.clone(), options.host_ports, delivery.is_starting.clone())),
            clock: options.clock,
            stores,
            plugins,
            passes: Passes::default(),
            stands_by: AtomicBool::new(options.election.is_some()),
            lease: options.election.as_ref().map(|election| election.name().to_owned()),
            measured: passes::Passes::default(),
            jobs: Jobs::default(),
            policies: Policies::default(),
            has_compat_metrics: options.compat_metrics,
            delivery,
            traces: options.traces,
        };
        Self {
            context: Arc::new(context),
            discovery: Arc::new(Discovery::new(client.clone())),
            client,
            seed: options.seed,
            namespace: options.namespace,
            election: options.election,
            delivery: options.delivery,
        }
    }

    /// Returns the state that all passes share, for the admin port.
    #[must_use]
    pub fn context(&self) -> Arc<Context> {
        self.context.clone()
    }

    /// Starts all watches of this host.
    #[must_use]
    pub fn watches(&self) -> Watches {
        let mut watches = Watches::default();
        self.follow_layout(&mut watches);
        watches
    }

    /// Stops the watches that the layout has no longer, and starts those that are not running yet.
    fn follow_layout(&self, Watches(running): &mut Watches) {
        let layout = self.context.stores.layout();
        running.retain(|id, _| layout.watches().contains_key(id));
        for (id, spec) in layout.watches() {
            running.entry(*id).or_insert_with(|| {
                let (client, context, namespace) = (self.client.clone(), self.context.clone(), self.namespace.clone());
                let (id, spec, seed, discovery) = (*id, spec.clone(), self.seed, self.discovery.clone());
                supervise("watch", &self.context.delivery.restarts, move || {
                    let (stores, queue) = (context.stores.clone(), context.queue.clone());
                    let place = (id, spec.clone());
                    watch(client.clone(), discovery.clone(), stores, queue, place, namespace.clone(), seed)
                })
            });
        }
    }

    /// Delivers plugins until the value is dropped. A restarted task reads its whole state again.
    fn deliver(&self, started: Delivery) -> AbortOnDrop {
        let handles = self.context.delivery.clone();
        let (client, options) = (with_deadline(&self.client), self.delivery.clone());
        let mut started = Some(started);
        supervise("delivery", &self.context.delivery.restarts, move || {
            let (started, client, handles) = (started.take(), client.clone(), handles.clone());
            let options = options.clone().unwrap_or_default();
            async move {
                let delivery = match started {
                    Some(delivery) => delivery,
                    None => Delivery::start(client, handles, options).await,
                };
                delivery.run().await;
            }
        })
    }

    /// Shows passes to candidates until the value is dropped.
    fn compare(&self) -> AbortOnDrop {
        let handles = self.context.delivery.clone();
        supervise("comparisons", &self.context.delivery.restarts, move || {
            let handles = handles.clone();
            async move { handles.show_to_candidates().await }
        })
    }

    /// Records what schedulers say in events until the value is dropped.
    fn report(&self) -> AbortOnDrop {
        let (client, context, namespace, seed) =
            (self.client.clone(), self.context.clone(), self.namespace.clone(), self.seed);
        supervise("reports", &self.context.delivery.restarts, move || {
            events::follow(client.clone(), context.stores.clone(), context.queue.clone(), namespace.clone(), seed)
        })
    }

    /// Serves until `shutdown` completes or the lease is lost; then starts no new pass, and returns when the running
    /// passes have ended. With an election, waits for the lease first.
    ///
    /// The future is boxed, as are others that callers in other crates await, so that it is compiled here and once.
    pub fn run<'a>(&'a mut self, shutdown: impl Future<Output = ()> + Send + 'a) -> BoxFuture<'a, Ended> {
        self.run_until(Box::pin(shutdown))
    }

    fn run_until<'a>(&'a mut self, shutdown: BoxFuture<'a, ()>) -> BoxFuture<'a, Ended> {
        Box::pin(self.run_in_turn(shutdown))
    }

    async fn run_in_turn(&mut self, mut shutdown: BoxFuture<'_, ()>) -> Ended {
        let mut election = self.election.take();
        if let Some(election) = &mut election {
            tokio::select! {
                biased;
                () = &mut shutdown => return Ended::AsAsked,
                () = election.won() => {}
            }
            self.context.stands_by.store(false, Ordering::Relaxed);
        }
        let ended = self.serve(&mut shutdown, election.as_mut()).await;
        if let (Ended::AsAsked, Some(election)) = (ended, &mut election) {
            election.give_back().await;
        }
        ended
    }

    async fn serve(&self, shutdown: &mut BoxFuture<'_, ()>, election: Option<&mut Election>) -> Ended {
        let lost = async {
            match election {
                Some(election) => election.lost().await,
                None => std::future::pending().await,
            }
        };
        let mut lost = std::pin::pin!(lost);
        let delivery = async {
            let options = self.delivery.clone()?;
            self.context.delivery.is_starting.store(true, Ordering::Relaxed);
            Some(Delivery::start(with_deadline(&self.client), self.context.delivery.clone(), options).await)
        };
        // Plan no job before it is known which digests serve. Those that take long to load are loaded beside the passes.
        let delivery = tokio::select! {
            biased;
            () = &mut *shutdown => return Ended::AsAsked,
            () = &mut lost => return Ended::LeaseLost,
            delivery = delivery => delivery,
        };
        let _delivery = delivery.map(|delivery| self.deliver(delivery));
        let _comparisons = self.compare();
        let _reports = self.report();
        let _traces = self.context.traces.as_ref().map(|traces| traces.send(&self.context.delivery.restarts));
        let mut watches = self.watches();
        let mut passes = JoinSet::new();
        let ended = loop {
            tokio::select! {
                biased;
                () = &mut *shutdown => break Ended::AsAsked,
                () = &mut lost => break Ended::LeaseLost,
                () = self.context.stores.watches_changed() => self.follow_layout(&mut watches),
                Some(_) = passes.join_next() => {}
                key = self.context.queue.next(), if passes.len() < PASSES => {
                    let context = self.context.clone();
                    passes.spawn(async move { context.pass(key).await });
                }
            }
        };
        info!(under_way = passes.len(), "shutting down");
        while passes.join_next().await.is_some() {}
        drop(watches);
        if let Some(traces) = &self.context.traces {
            traces.finish().await;
        }
        ended
    }
}

impl Context {
    /// Runs one pass, and requeues the job by its result. A panic of the host costs one reconcile of one job.
    async fn pass(&self, key: JobKey) {
        let span = info_span!("reconcile", kind = key.kind.kind(), namespace = key.namespace, name = key.name);
        let trace = span.in_scope(|| spans::pass(&key));
        let start = Instant::now();
        let pass = self.reconcile(&key).instrument(trace.clone()).instrument(span.clone());
        let result = AssertUnwindSafe(pass).catch_unwind().await;
        let _entered = span.enter();
        let end = match &result {
            Ok(Ok(Next::Again(Wake::At(_)))) => PassEnd::RequeueAfter,
            Ok(Ok(Next::Nothing | Next::NotYet | Next::Again(Wake::OnChange))) => PassEnd::Success,
            Ok(Err(_)) => PassEnd::Error,
            Err(_) => PassEnd::Panic,
        };
        let id = spans::ended(&trace, end.result(), matches!(end, PassEnd::Error | PassEnd::Panic));
        let exemplar = id.map(|trace_id| (OfTrace { trace_id }, self.clock.now().into()));
        self.measured.record(&key.kind, end, start.elapsed(), exemplar);
        match result {
            Ok(Ok(Next::Nothing)) => self.queue.gone(&key),
            Ok(Ok(Next::NotYet)) => self.queue.not_yet(&key, start.elapsed()),
            Ok(Ok(Next::Again(wake))) => {
                debug!(?wake, "decided");
                self.queue.done(&key, start.elapsed());
                if let Wake::At(at) = wake {
                    self.queue.add_at(key, self.clock.instant(at));
                }
            }
            Ok(Err(failed)) => {
                warn!(error = chain(&failed), "pass failed and is tried again");
                let least = failed.retry_after();
                self.queue.failed(&key, |failures| self.writer.back_off(failures).max(least));
            }
            Err(_) => {
                error!("the host panicked in this pass; other jobs go on");
                self.queue.failed(&key, |failures| self.writer.back_off(failures));
            }
        }
    }

    /// Returns whether it was tried to load what served before, and every watch has listed, or waits for its kind to be
    /// served or for the right to it, or this host waits for the lease.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let is_starting = self.delivery.is_starting.load(Ordering::Relaxed);
        self.stands_by.load(Ordering::Relaxed) || (!is_starting && self.stores.have_answers())
    }

    /// Returns how many passes ended in a panic of the host.
    #[must_use]
    pub fn panics(&self) -> u64 {
        self.measured.count_panics()
    }

    /// Returns the lease that this host seeks, and whether it has it; `None` if it serves without one.
    #[must_use]
    pub fn lease(&self) -> Option<(&str, bool)> {
        let name = self.lease.as_deref()?;
        Some((name, !self.stands_by.load(Ordering::Relaxed)))
    }

    /// Returns the counters and times of passes.
    #[must_use]
    pub fn measured(&self) -> &passes::Passes {
        &self.measured
    }

    /// Returns what is known of the policies around the host; whoever reads them notes it here.
    #[must_use]
    pub fn policies(&self) -> &Policies {
        &self.policies
    }

    /// Returns the counters and times of jobs.
    #[must_use]
    pub fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Returns how often long-lived tasks were started again.
    #[must_use]
    pub fn restarts(&self) -> &Arc<Restarts> {
        &self.delivery.restarts
    }

    /// Returns the traces of passes, if they are sent.
    #[must_use]
    pub fn traces(&self) -> Option<&Traces> {
        self.traces.as_deref()
    }

    /// Returns the recent passes of all jobs.
    #[must_use]
    pub fn passes(&self) -> &Passes {
        &self.passes
    }

    /// Returns the latest events that this host has emitted about jobs.
    #[must_use]
    pub fn events(&self) -> &Events {
        self.publisher.events()
    }

    /// Returns the stores.
    #[must_use]
    pub fn stores(&self) -> &Stores {
        &self.stores
    }

    /// Returns the work queue.
    #[must_use]
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Returns the candidate digest of this plugin, and how many passes it was shown.
    #[must_use]
    pub fn candidate(&self, plugin: &str) -> Option<(Digest, u32)> {
        self.delivery.trials.read(plugin).map(|trial| (trial.digest, trial.live.passes))
    }

    /// Returns the candidates that are tried now.
    #[must_use]
    pub fn trials(&self) -> &Trials {
        &self.delivery.trials
    }

    /// Returns whether its metrics have the original operators' names too.
    #[must_use]
    pub fn has_compat_metrics(&self) -> bool {
        self.has_compat_metrics
    }

    /// Returns the clock of this host.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns the plugins.
    #[must_use]
    pub fn plugins(&self) -> &Plugins {
        &self.plugins
    }
}
