//! What the host writes in a scenario.

use super::{Shorthand, script, world::World};
use crate::{campaign::HOST, virtual_time};
use anyhow::Context;
use parking_lot::Mutex;
use sandbox::Plugins;
use serde_json::Value;
use std::sync::Arc;

/// What the host has written in a scenario: each object after each write of it, in order.
#[derive(Debug, Default)]
pub struct Written {
    /// Jobs, whose status it writes.
    pub jobs: Vec<Arc<Value>>,
    /// Other objects that it has created, each with its job as it was then.
    pub created: Vec<(Arc<Value>, Value)>,
}

/// Replays a scenario's text and returns what the host writes.
///
/// # Errors
/// The command that cannot be run, and the reason.
pub fn written(text: &str, plugins: Plugins, shorthand: &Shorthand) -> anyhow::Result<Written> {
    let replayed = async {
        let (world, written) = (World::new(plugins).await?, Arc::<Mutex<Written>>::default());
        let (kept, kinds) = (Arc::clone(&written), world.plugins.kinds());
        world.sim.on_write(move |write, view| {
            let Some(after) = write.after.as_ref().filter(|_| write.actor == HOST) else { return };
            if kinds.iter().any(|kind| kind.group == write.group && kind.kind == write.kind) {
                kept.lock().jobs.push(Arc::clone(after));
            }
            let owner = after.pointer("/metadata/ownerReferences/0/uid").and_then(Value::as_str);
            if let (true, Some(job)) = (write.created(), owner.and_then(|uid| view.by_uid(uid))) {
                kept.lock().created.push((Arc::clone(after), job.clone()));
            }
        });
        let stuck = script::replay(text, world, shorthand).await.stuck;
        let written = std::mem::take(&mut *written.lock());
        stuck.map_or(Ok(written), |stuck| Err(stuck.error))
    };
    virtual_time::run("a scenario", replayed).context("no runtime")?
}
