//! The bounds of what readers are answered: for how many at once passes are made, how large an answer may be, and how many
//! large ones wait until slow readers have taken them.

use axum::{
    body::Body,
    http::{
        StatusCode,
        header::{CONTENT_TYPE, RETRY_AFTER},
    },
    response::{IntoResponse, Response},
};
use futures::stream;
use jiff::Timestamp;
use serde::Serialize;
use std::{convert::Infallible, io, sync::Arc, time::Duration};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

/// The maximum size of an answer in bytes. A pass over a job of ten thousand pods has about a third of it.
pub(super) const LARGEST: usize = 32 << 20;

/// The maximum number of passes that are made at once for readers of single jobs: one over a job of ten thousand pods is
/// seconds of work, and who may read one job can ask for it again and again.
const MOST_REHEARSALS: usize = 2;

/// How long a reader waits until a pass is made for him.
const PATIENCE: Duration = Duration::from_secs(10);

/// An answer of more bytes than this is large.
const LARGE: usize = 1 << 20;

/// The maximum number of large answers that are held at once: each is held until its reader has taken it.
const MOST_LARGE: usize = 2;

/// The places that readers share.
pub(super) struct Places {
    rehearsals: Semaphore,
    large: Arc<Semaphore>,
}

impl Default for Places {
    fn default() -> Self {
        Self { rehearsals: Semaphore::new(MOST_REHEARSALS), large: Arc::new(Semaphore::new(MOST_LARGE)) }
    }
}

impl Places {
    /// Waits until a pass can be made for one more reader. The place is taken until the permit is dropped.
    ///
    /// # Errors
    /// There is none for so long that the reader is told to ask later.
    pub(super) async fn rehearsal(&self) -> Result<SemaphorePermit<'_>, Unanswered> {
        let place = timeout(PATIENCE, self.rehearsals.acquire()).await;
        place.ok().and_then(Result::ok).ok_or(Unanswered::Busy)
    }

    /// Returns the answer with this text of JSON.
    ///
    /// # Errors
    /// It is large, and as many large ones as can be held wait for their readers.
    pub(super) fn answer(&self, text: Vec<u8>) -> Result<Response, Unanswered> {
        let head = [(CONTENT_TYPE, "application/json")];
        if text.len() <= LARGE {
            return Ok((head, text).into_response());
        }
        let place = Arc::clone(&self.large).try_acquire_owned().map_err(|_| Unanswered::Busy)?;
        // The connection asks for the end, with which the place goes, once it has sent nearly all of the text.
        let body = stream::unfold((Some(text), place), |(text, place)| async move {
            text.map(|text| (Ok::<_, Infallible>(text), (None, place)))
        });
        Ok((head, Body::from_stream(body)).into_response())
    }
}

/// Why a reader who has the right to is not answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unanswered {
    /// Others are answered.
    #[error("this host is busy with the answers to other readers; try again in {} s", PATIENCE.as_secs())]
    Busy,
    /// Passes for readers have used up the fuel that they have.
    #[error(
        "passes for readers have used up the fuel that plugin {plugin} has for them, which no live job needs; \
         try again in {seconds} s"
    )]
    Throttled {
        /// The plugin.
        plugin: String,
        /// When it may be asked again.
        seconds: u64,
    },
    /// The answer has more bytes than one may have.
    #[error("the answer has more than {} MiB, which is the most; {instead}", LARGEST >> 20)]
    TooLarge {
        /// What the reader can do.
        instead: &'static str,
    },
    /// The answer cannot be written as JSON.
    #[error("the answer cannot be written as JSON")]
    Broken(#[source] io::Error),
}

impl Unanswered {
    /// Returns that a plugin is asked for no reader until this time.
    pub(super) fn throttled(plugin: &str, until: Timestamp, now: Timestamp) -> Self {
        let pause = u64::try_from(until.duration_since(now).as_secs()).unwrap_or_default();
        Self::Throttled { plugin: plugin.to_owned(), seconds: pause + 1 }
    }

    /// Returns why there is no text; `instead` says what the reader can do if it would be too large.
    pub(super) fn without_text(error: io::Error, instead: &'static str) -> Self {
        if is_too_large(&error) { Self::TooLarge { instead } } else { Self::Broken(error) }
    }
}

impl IntoResponse for Unanswered {
    fn into_response(self) -> Response {
        let text = self.to_string();
        let seconds = match self {
            Self::Busy => PATIENCE.as_secs(),
            Self::Throttled { seconds, .. } => seconds,
            Self::TooLarge { .. } => return (StatusCode::PAYLOAD_TOO_LARGE, text).into_response(),
            Self::Broken(_) => return (StatusCode::INTERNAL_SERVER_ERROR, text).into_response(),
        };
        (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, seconds.to_string())], text).into_response()
    }
}

/// Returns whether this is the error of a text that would be too large.
pub(super) fn is_too_large(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::FileTooLarge
}

/// Returns the value as JSON of at most so many bytes.
///
/// # Errors
/// It would have more (see [`is_too_large`]): the rest is not made. Or it cannot be written as JSON.
pub(super) fn text(value: &impl Serialize, most: usize) -> io::Result<Vec<u8>> {
    let mut bounded = Bounded { text: Vec::new(), most };
    serde_json::to_writer(&mut bounded, value)?;
    Ok(bounded.text)
}

/// A text that takes no more than so many bytes.
struct Bounded {
    text: Vec<u8>,
    most: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.text.len() + more.len() > self.most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.text.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::to_bytes;
    use futures::FutureExt;

    fn head(unanswered: Unanswered) -> (u16, Option<String>) {
        let response = unanswered.into_response();
        let after = response.headers().get(RETRY_AFTER).map(|after| after.to_str().unwrap().to_owned());
        (response.status().as_u16(), after)
    }

    #[tokio::test(start_paused = true)]
    async fn passes_are_made_for_a_limited_number_of_readers_at_once_and_one_more_waits_then_is_told_to_ask_later() {
        let places = Places::default();
        let mut held = vec![];
        for _ in 0..MOST_REHEARSALS {
            held.push(places.rehearsal().now_or_never().expect("there is a place").unwrap());
        }
        let mut waits = Box::pin(places.rehearsal());
        assert!((&mut waits).now_or_never().is_none());
        held.pop();
        held.push((&mut waits).now_or_never().expect("a place is free").unwrap());
        let refused = places.rehearsal().await.unwrap_err();
        assert_eq!(head(refused), (503, Some("10".to_owned())));
    }

    #[tokio::test]
    async fn a_large_answer_is_held_until_its_reader_has_it_and_small_ones_count_for_nothing() {
        let places = Places::default();
        let large = || places.answer(vec![b' '; LARGE + 1]);
        let mut held: Vec<_> = (0..MOST_LARGE).map(|_| large().unwrap()).collect();
        assert_eq!(head(large().unwrap_err()), (503, Some("10".to_owned())));
        assert!((0..100).all(|_| places.answer(b"{}".to_vec()).is_ok()));
        let taken = held.pop().unwrap().into_body();
        assert_eq!(to_bytes(taken, usize::MAX).await.unwrap().len(), LARGE + 1);
        let next = large().unwrap();
        assert!(large().is_err());
        // One who goes before he has it gives his place back too.
        drop(next);
        assert!(large().is_ok());
    }

    #[test]
    fn a_text_that_would_be_too_large_is_not_made_and_its_reader_is_told_what_to_do() {
        let items = vec!["0123456789"; 1_000];
        assert_eq!(text(&items, 13_001).unwrap().len(), 13_001);
        let error = text(&items, 13_000).unwrap_err();
        assert!(is_too_large(&error), "{error}");
        let refused = Unanswered::without_text(error, "ask for less");
        assert_eq!(refused.to_string(), "the answer has more than 32 MiB, which is the most; ask for less");
        assert_eq!(head(refused), (413, None));
    }

    #[test]
    fn a_reader_who_has_used_up_the_fuel_of_readers_is_told_when_to_ask_again() {
        let now = Timestamp::UNIX_EPOCH;
        let until = |milliseconds| Timestamp::from_millisecond(milliseconds).unwrap();
        let seconds = [0, 2_500].map(|at| head(Unanswered::throttled("plays", until(at), now)));
        assert_eq!(seconds, [(503, Some("1".to_owned())), (503, Some("3".to_owned()))]);
    }
}
