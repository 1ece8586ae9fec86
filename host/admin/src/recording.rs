//! The recording: the latest passes that wrote something, and of every other open job the pass as it would run now.

use futures::{Stream, StreamExt, stream};
use parking_lot::Mutex;
use std::{collections::BTreeSet, sync::Arc};
use troupe::{control::reconcile::Context, record::passes::Pass};

/// Returns passes over all jobs or over those of one plugin: first those that were recorded, the oldest first.
pub(super) fn passes(context: Arc<Context>, plugin: Option<String>) -> impl Stream<Item = Pass> {
    let recorded = context.passes().latest(plugin.as_deref());
    // The uids of the jobs of recorded passes.
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let note = Arc::clone(&seen);
    let recorded = stream::iter(recorded).map(move |pass| {
        note.lock().insert(pass.snapshot.job.uid.clone());
        pass.decided()
    });
    // Polled when the recorded passes have been sent.
    let others = stream::once(async move {
        stream::iter(context.stores().jobs()).filter_map(move |key| {
            let (context, seen, plugin) = (Arc::clone(&context), Arc::clone(&seen), plugin.clone());
            async move {
                let sight = context.stores().sight(&key)?;
                if sight.ledger.finished.is_some() || seen.lock().contains(&sight.job.uid) {
                    return None;
                }
                let is_meant = |name: &str| plugin.as_ref().is_none_or(|only| only == name);
                let layout = context.stores().layout();
                let framework = layout.framework(&key.kind, sight.ledger.digest.digest())?;
                // No other plugin is asked. The pass of a held job names none.
                if !is_meant(&framework.name) {
                    return None;
                }
                context.rehearse(&key).await.filter(|pass| is_meant(&pass.plugin))
            }
        })
    });
    recorded.chain(others.flatten())
}
