//! The recording: the latest passes that wrote something, and of every other open job the pass as it would run now.
//!
//! Each line is made while it is sent, beside the threads of passes: one at a time, in turn with those of other readers.

use super::{
    answers::{LARGEST, is_too_large},
    reader::Reader,
    redact::Environment,
    seats::Seat,
};
use futures::{Stream, StreamExt, future::ready, stream};
use std::{collections::BTreeSet, io, mem, sync::Arc, vec};
use troupe::{
    control::reconcile::{Context, Rehearsal},
    observe::stores::OpenJob,
    record::passes::{Latest, RecordedPass},
};

/// A line of JSON.
type Line = io::Result<Vec<u8>>;

/// Returns passes over all jobs or over those of one plugin as lines of JSON: first those that were recorded, the oldest
/// first. The place is taken for as long as there is the stream.
pub(super) fn lines(
    context: Arc<Context>,
    plugin: Option<String>,
    environment: Environment,
    place: Seat<Reader>,
) -> impl Stream<Item = Line> {
    let left = Left::Recorded(context.passes().latest());
    let wanted = Wanted { plugin, environment };
    let lines = Lines { context, wanted, seen: BTreeSet::new(), left, _place: place };
    stream::unfold(lines, |mut lines| async move {
        let line = lines.next().await?;
        Some((line, lines))
    })
}

struct Lines {
    context: Arc<Context>,
    wanted: Wanted,
    /// The uids of the jobs of recorded passes.
    seen: BTreeSet<String>,
    left: Left,
    _place: Seat<Reader>,
}

/// What a reader asks for.
#[derive(Clone)]
struct Wanted {
    plugin: Option<String>,
    environment: Environment,
}

impl Wanted {
    fn is_meant(&self, plugin: &str) -> bool {
        self.plugin.as_deref().is_none_or(|only| only == plugin)
    }

    /// Returns the line of a recorded pass with the uid of its job, if it is meant.
    fn recorded(&self, pass: RecordedPass) -> Option<(String, Line)> {
        if !self.is_meant(&pass.plugin) {
            return None;
        }
        let uid = pass.snapshot.job.uid.clone();
        Some((uid, self.environment.line(pass.decided(), LARGEST)))
    }

    fn rehearsed(&self, rehearsal: Rehearsal) -> Option<Line> {
        self.is_meant(&rehearsal.pass.plugin).then(|| self.environment.line(rehearsal.pass, LARGEST))
    }
}

/// What has not been sent yet.
enum Left {
    /// These passes, then those over the jobs of which there was none.
    Recorded(Latest),
    Others(vec::IntoIter<OpenJob>),
}

impl Lines {
    async fn next(&mut self) -> Option<Line> {
        loop {
            let wanted = self.wanted.clone();
            match &mut self.left {
                Left::Recorded(latest) => {
                    let mut latest = mem::take(latest);
                    let read = move || {
                        let pass = latest.next();
                        let is_last = pass.is_none();
                        (latest, is_last, pass.and_then(|pass| wanted.recorded(pass)))
                    };
                    let (latest, is_last, line) = self.context.plugins().run_beside(read).await;
                    self.left = match is_last {
                        true => Left::Others(self.context.stores().open_jobs().into_iter()),
                        false => Left::Recorded(latest),
                    };
                    if let Some((uid, line)) = line {
                        self.seen.insert(uid);
                        return Some(line);
                    }
                }
                Left::Others(jobs) => {
                    let OpenJob { key, uid, digest } = jobs.next()?;
                    // No other plugin is asked. The pass of a held job names none.
                    let layout = self.context.stores().layout();
                    let is_meant =
                        layout.framework(&key.kind, digest.as_ref()).is_some_and(|it| wanted.is_meant(&it.name));
                    if !is_meant || self.seen.contains(&uid) {
                        continue;
                    }
                    if let Some(rehearsal) = self.context.rehearse(&key).await
                        && let Some(line) = self.context.plugins().run_beside(move || wanted.rehearsed(rehearsal)).await
                    {
                        return Some(line);
                    }
                }
            }
        }
    }
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
    use parking_lot::Mutex;

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
