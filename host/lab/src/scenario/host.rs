//! The host of a scenario: the real one, on the simulator. Its watches run by themselves; its loop is turned by hand.

use crate::campaign;
use jiff::Timestamp;
use sandbox::Plugins;
use sim::{RequestRecord, Sim};
use std::sync::Arc;
use troupe::{
    clock::Clock,
    control::{
        operator::{Operator, Options},
        reconcile::{Context, Looked},
        supervise::AbortOnDrop,
    },
    job_key::JobKey,
};

/// Who writes as the host.
pub(super) const ACTOR: &str = campaign::HOST;

/// Where its keys come from.
const SEED: [u8; 32] = [7; 32];

/// One life of a host; nothing is left of it when it is dropped.
pub(super) struct Host {
    context: Arc<Context>,
    _watches: Vec<AbortOnDrop>,
}

impl Host {
    /// A host as its process starts. Its watches list everything that there is.
    pub(super) fn start(sim: &Sim, plugins: Arc<Plugins>) -> Self {
        let options = Options::alone(Clock::starting_at(sim.now()), SEED);
        let operator = Operator::new(sim.client(ACTOR), plugins, options);
        Self { context: operator.context(), _watches: operator.watches() }
    }

    /// All that it watches is listed.
    pub(super) fn is_ready(&self) -> bool {
        self.context.is_ready()
    }

    /// One pass.
    pub(super) async fn look(&self, key: &JobKey) -> Looked {
        self.context.look(key).await
    }

    /// Returns when it is this time by its clock.
    pub(super) async fn wait_until(&self, at: Timestamp) {
        tokio::time::sleep_until(self.context.clock().instant(at)).await;
    }
}

/// Every request of the host so far but those of its watches, in the order of their effects.
pub(super) fn requests(sim: &Sim) -> Vec<RequestRecord> {
    let mut requests = sim.requests_of(ACTOR);
    requests.retain(|request| !["list", "watch"].contains(&request.verb.as_str()));
    requests
}
