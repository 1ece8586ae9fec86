//! The recording: the latest passes that wrote something, and of every other open job the pass as it would run now.

use super::answers::is_too_large;
use futures::{Stream, StreamExt, future::ready, stream};
use parking_lot::Mutex;
use std::{collections::BTreeSet, io, sync::Arc};
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
                context.rehearse(&key).await.map(|rehearsal| rehearsal.pass).filter(|pass| is_meant(&pass.plugin))
            }
        })
    });
    recorded.chain(others.flatten())
}

/// Returns these lines, but for those that would be too large, up to the first with which they would have more bytes than
/// this; what follows is not made.
pub(super) fn within(
    most: usize,
    lines: impl Stream<Item = io::Result<Vec<u8>>>,
) -> impl Stream<Item = io::Result<Vec<u8>>> {
    let is_sound = |line: &io::Result<Vec<u8>>| !line.as_ref().is_err_and(is_too_large);
    lines.filter(move |line| ready(is_sound(line))).scan(0, move |sent, line| {
        *sent += line.as_ref().map_or(0, Vec::len);
        ready((*sent <= most).then_some(line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_recording_that_is_too_large_ends_with_a_whole_line_and_no_more_is_made() {
        let made = Mutex::new(0);
        let lines = stream::iter(0..).map(|_| {
            *made.lock() += 1;
            Ok(b"0123456789".to_vec())
        });
        let sent: Vec<_> = within(35, lines).map(io::Result::unwrap).collect().await;
        assert_eq!((sent.concat().len(), *made.lock()), (30, 4));
    }

    #[tokio::test]
    async fn a_line_that_would_be_too_large_is_left_out_and_others_follow() {
        let lines = [Ok(b"1".to_vec()), Err(io::ErrorKind::FileTooLarge.into()), Ok(b"2".to_vec())];
        let sent: Vec<_> = within(35, stream::iter(lines)).map(io::Result::unwrap).collect().await;
        assert_eq!(sent.concat(), b"12");
    }
}
