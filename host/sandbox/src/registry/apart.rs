//! Copies of the loaded plugins whose calls do not affect live jobs: for other hosts, replays and candidates; and views of
//! the same plugins whose calls run elsewhere.

use super::{Allowances, Compiled, Compiler, Loaded, NoPlan, PlanCache, Plugins, REMEMBERED, Runner};
use decide::{
    Digest, Snapshot,
    plan::{Answer, Plan},
    ports::NoPorts,
};
use futures::FutureExt;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;

impl Plugins {
    /// Returns the same plugins with a cache, breakers and fuel of their own. Calls of a fork count in the statistics of
    /// the original. Compiles nothing.
    #[must_use]
    pub fn fork(&self) -> Self {
        self.fork_with(self.loaded())
    }

    pub(super) fn fork_with(&self, loaded: Vec<Arc<Loaded>>) -> Self {
        Self {
            loaded: Arc::new(RwLock::new(loaded)),
            plan_cache: Arc::new(Mutex::new(PlanCache::new(REMEMBERED))),
            breakers: Arc::default(),
            aside: Arc::default(),
            ..self.view(self.runner.clone(), &Arc::default())
        }
    }

    /// Returns the same plugins with call statistics of their own, which begin at zero.
    #[must_use]
    pub fn counted_anew(self) -> Self {
        Self { caller: Arc::new(self.caller.counted_anew()), ..self }
    }

    /// Returns the same plugins with a compiler that all forks share and that compiles each component once.
    #[must_use]
    pub fn compiled_once(self) -> Self {
        Self { compiler: Compiler::Once(Compiled::default()), ..self }
    }

    /// Returns a fork whose calls take no permits from live jobs. Its cache, breakers and fuel are its own.
    pub fn apart(&self) -> Self {
        Self { runner: self.runner.beside(), ..self.fork() }
    }

    /// Runs work about a job in one turn of the plugin that plans it, on a thread where calls run. The work gets the same
    /// plugins, whose calls then run on its thread.
    pub(crate) async fn in_one_turn<T: Send + 'static>(
        &self,
        snapshot: Box<Snapshot>,
        work: impl FnOnce(&Self, Box<Snapshot>) -> T + Send + 'static,
    ) -> T {
        let here = self.view(Runner::Inline, &self.allowances);
        let Ok(plugin) = self.planner_of(&snapshot) else {
            return match &self.runner {
                Runner::Beside(beside) => beside.run(move || work(&here, snapshot)).await,
                Runner::Inline | Runner::Blocking { .. } => work(&here, snapshot),
            };
        };
        let namespace = snapshot.job.namespace.clone();
        self.runner.run(&plugin.share, &namespace, move || work(&here, snapshot)).await
    }

    /// Returns the same plugins with the same cache and breakers. Calls take neither permits nor fuel from live jobs.
    fn beside(&self) -> Self {
        self.view(self.runner.beside(), &self.aside)
    }

    /// Returns the same plugins for calls about this job that are made for somebody who looks at it. Calls take neither
    /// permits nor fuel from live jobs, see the breakers as they are now, and count for none. A fault
    /// [`Throttled`](decide::plan::Fault::Throttled) says that calls for no live job have used up their own fuel.
    #[must_use]
    pub fn rehearsing(&self, snapshot: &Snapshot) -> Self {
        let circuits = snapshot.digest.as_ref().map(|digest| self.breakers.copy_of(digest, &snapshot.job));
        Self { breakers: Arc::new(circuits.unwrap_or_default()), ..self.beside() }
    }

    /// Returns the same plugins, whatever is loaded later included. Calls run there, and take this fuel.
    fn view(&self, runner: Runner, allowances: &Arc<Allowances>) -> Self {
        Self {
            caller: Arc::clone(&self.caller),
            loaded: Arc::clone(&self.loaded),
            plan_cache: Arc::clone(&self.plan_cache),
            breakers: Arc::clone(&self.breakers),
            allowances: Arc::clone(allowances),
            aside: Arc::clone(&self.aside),
            compiler: self.compiler.clone(),
            vet: self.vet,
            runner,
        }
    }

    /// Runs work that no live job waits for, and returns its result. All such work has one thread, of lower priority; it is
    /// done a piece at a time, so that long work is best handed over in pieces. Work of a caller who is dropped before is not
    /// begun.
    pub async fn run_beside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let runner = self.runner.beside();
        runner.run(&runner.share("", None), "", work).await
    }

    /// Begins work that nobody waits for, where [`run_beside`](Self::run_beside) does its.
    pub fn begin_beside(&self, work: impl FnOnce() + Send + 'static) {
        self.runner.begin_beside(work);
    }

    /// Returns the plan as [`plan`](Self::plan) does, in one turn and on one thread: its input is made and its answer checked
    /// where the call runs.
    ///
    /// # Errors
    /// As for [`plan`](Self::plan).
    pub async fn plan_in_one_turn(&self, snapshot: Box<Snapshot>) -> Result<Arc<Plan>, NoPlan> {
        let planned = |here: &Self, snapshot: Box<Snapshot>| here.plan(&snapshot).now_or_never();
        self.in_one_turn(snapshot, planned).await.expect("calls run on this thread, so nothing is waited for")
    }

    /// Returns the answer of the plugin with this digest to the snapshot, whichever digest plans the job. Applies the
    /// host's own rules too. Calls take neither permits nor fuel from live jobs.
    pub async fn answer(&self, snapshot: &Snapshot, digest: &Digest) -> Answer {
        let mut snapshot = snapshot.clone();
        snapshot.digest = Some(digest.clone());
        self.beside().ask(&mut snapshot, |_| Err(NoPorts::NoneFree)).await.answer
    }
}
