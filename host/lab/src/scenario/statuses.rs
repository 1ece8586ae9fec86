//! The statuses that the host writes to the job of a scenario.

use super::{Shorthand, script, world::World};
use crate::{campaign::HOST, virtual_time};
use anyhow::Context;
use parking_lot::Mutex;
use sandbox::Plugins;
use serde_json::Value;
use std::sync::Arc;

/// Replays a scenario's text and returns each job of it after each write of the host to it, in order.
///
/// # Errors
/// The command that cannot be run, and the reason.
pub fn jobs(text: &str, plugins: Plugins, shorthand: &Shorthand) -> anyhow::Result<Vec<Arc<Value>>> {
    let replayed = async {
        let (world, jobs) = (World::new(plugins).await?, Arc::<Mutex<Vec<_>>>::default());
        let (kept, kinds) = (Arc::clone(&jobs), world.plugins.kinds());
        world.sim.on_write(move |write, _| {
            let is_job = || kinds.iter().any(|kind| kind.group == write.group && kind.kind == write.kind);
            if let Some(after) = write.after.as_ref().filter(|_| write.actor == HOST && is_job()) {
                kept.lock().push(Arc::clone(after));
            }
        });
        let stuck = script::replay(text, world, shorthand).await.stuck;
        let jobs = std::mem::take(&mut *jobs.lock());
        stuck.map_or(Ok(jobs), |stuck| Err(stuck.error))
    };
    virtual_time::run("a scenario", replayed).context("no runtime")?
}
