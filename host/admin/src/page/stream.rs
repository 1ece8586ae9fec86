//! Server-sent events: a viewer is sent what he looks at whenever it has changed, at most once a second.
//!
//! A message is made when the connection has room for it, and nothing is kept of it but its hash: a viewer who does not
//! read costs the one message that is on its way to him.

use super::board::FRESH;
use axum::{
    body::Body,
    http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
    response::{IntoResponse, Response},
};
use futures::{StreamExt, stream};
use sha2::{Digest, Sha256};
use std::{convert::Infallible, time::Duration};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};
use troupe::clock::Clock;

/// A comment is sent after this long without a change, so that a connection that is lost is noticed.
const QUIET: Duration = Duration::from_secs(15);

/// A stream ends after this long, before the connection is cut; the viewer asks again.
const LONGEST: Duration = Duration::from_secs(240);

/// One who looks.
pub(super) trait Look: Send + 'static {
    /// Returns what is seen now, as JSON; `None` ends the stream.
    fn look(&mut self) -> impl Future<Output = Option<String>> + Send;
}

/// Where the messages of one viewer come from.
struct Feed<L> {
    viewer: L,
    clock: Clock,
    tick: Interval,
    last: Option<[u8; 32]>,
    sent: Instant,
    began: Instant,
}

/// Returns a response that sends what the viewer sees each time that it has changed, with the time as the event's id. It ends
/// when `revoked` completes. The viewer asks again when the stream ends.
pub(super) fn response(
    clock: Clock,
    viewer: impl Look,
    revoked: impl Future<Output = ()> + Send + 'static,
) -> Response {
    let mut tick = interval(FRESH);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let feed = Feed { viewer, clock, tick, last: None, sent: Instant::now(), began: Instant::now() };
    let messages = stream::unfold(feed, |mut feed| async move {
        let message = feed.next().await?;
        Some((Ok::<_, Infallible>(message), feed))
    });
    let messages = messages.take_until(Box::pin(revoked));
    let head = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store"), (X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (head, Body::from_stream(messages)).into_response()
}

impl<L: Look> Feed<L> {
    async fn next(&mut self) -> Option<String> {
        loop {
            self.tick.tick().await;
            if self.began.elapsed() >= LONGEST {
                return None;
            }
            let seen = self.viewer.look().await?;
            let hash = Sha256::digest(&seen).into();
            if self.last != Some(hash) {
                (self.last, self.sent) = (Some(hash), Instant::now());
                return Some(format!("id: {}\ndata: {seen}\n\n", self.clock.now()));
            }
            if self.sent.elapsed() >= QUIET {
                self.sent = Instant::now();
                return Some(":\n\n".to_owned());
            }
        }
    }
}
