//! The host of a scenario: the real host on the simulator. Its watches run by themselves; the scenario runs each pass.

use crate::campaign;
use jiff::Timestamp;
use sandbox::Plugins;
use sim::{RequestRecord, Sim};
use std::sync::Arc;
use troupe::{
    clock::Clock,
    control::{
        operator::{Operator, Options, Watches},
        reconcile::{Context, Reconciled},
    },
    job_key::JobKey,
};

/// The actor name of the host.
pub(super) const ACTOR: &str = campaign::HOST;

/// The seed for the host's keys.
const SEED: [u8; 32] = [7; 32];

/// One run of a host's process; dropping it leaves nothing behind.
pub(super) struct Host {
    context: Arc<Context>,
    _watches: Watches,
}

impl Host {
    /// Starts a host as a new process. Its watches list all objects.
    pub(super) fn start(sim: &Sim, plugins: Arc<Plugins>) -> Self {
        let options = Options::alone(Clock::starting_at(sim.now()), SEED);
        let operator = Operator::new(sim.client(ACTOR), plugins, options);
        Self { context: operator.context(), _watches: operator.watches() }
    }

    /// Whether everything that the host watches is listed.
    pub(super) fn is_ready(&self) -> bool {
        self.context.is_ready()
    }

    /// Runs one pass.
    pub(super) async fn run_pass(&self, key: &JobKey) -> Reconciled {
        self.context.run_pass(key).await
    }

    /// Returns when the host's clock reaches this time.
    pub(super) async fn wait_until(&self, at: Timestamp) {
        tokio::time::sleep_until(self.context.clock().instant(at)).await;
    }
}

/// Returns every request of the host so far except those of its watches, in the order of their effects.
pub(super) fn requests(sim: &Sim) -> Vec<RequestRecord> {
    let mut requests = sim.requests_of(ACTOR);
    requests.retain(|request| !["list", "watch"].contains(&request.verb.as_str()));
    requests
}
