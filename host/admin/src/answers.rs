//! The bounds of what readers are answered: for how many at once passes are made, how large an answer may be, and how many
//! large ones wait until slow readers have taken them.

use super::{
    reader::Reader,
    seats::{NoSeat, Seat, Seats},
};
use axum::{
    body::Body,
    http::{
        StatusCode,
        header::{CONTENT_TYPE, RETRY_AFTER},
    },
    response::{IntoResponse, Response},
};
use fairness::{Rank, Share, Turn, Turns};
use futures::stream;
use jiff::Timestamp;
use serde::Serialize;
use std::{convert::Infallible, io, sync::Arc, time::Duration};
use tokio::time::timeout;

/// The maximum size of an answer in bytes. A pass over a job of ten thousand pods has about a third of it.
pub(super) const LARGEST: usize = 32 << 20;

/// The maximum number of passes that are made at once for readers of single jobs: one over a job of ten thousand pods is
/// seconds of work, and who may read one job can ask for it again and again. One of them leaves room for another reader.
const MOST_REHEARSALS: usize = 2;

/// How long a reader waits until a pass is made for him.
const PATIENCE: Duration = Duration::from_secs(10);

/// An answer of more bytes than this is large.
const LARGE: usize = 1 << 20;

/// The maximum number of large answers that are held at once, in total and of one reader: each is held until its reader has
/// taken it.
const MOST_LARGE: usize = 4;
const MOST_LARGE_OF_ONE: usize = 1;

/// The maximum number of recordings that are sent at once, in total and to one reader: each holds what it sends, and passes
/// that were compressed together.
const MOST_RECORDINGS: usize = 24;
const MOST_RECORDINGS_OF_ONE: usize = 8;

/// The places that readers share.
pub(super) struct Places {
    rehearsals: Turns,
    large: Arc<Seats<Reader>>,
    recordings: Arc<Seats<Reader>>,
}

impl Default for Places {
    fn default() -> Self {
        let share = Share { alone: MOST_REHEARSALS, beside: MOST_REHEARSALS - 1 };
        Self {
            rehearsals: Turns::new(MOST_REHEARSALS, share),
            large: Seats::new(MOST_LARGE, MOST_LARGE_OF_ONE),
            recordings: Seats::new(MOST_RECORDINGS, MOST_RECORDINGS_OF_ONE),
        }
    }
}

impl Places {
    /// Waits until a pass can be made for this reader; readers take turns. The place is taken until it is dropped.
    ///
    /// # Errors
    /// There is none for so long that the reader is told to ask later.
    pub(super) async fn rehearsal(&self, reader: Reader) -> Result<Turn, Unanswered> {
        let reader = format!("{reader:?}");
        timeout(PATIENCE, self.rehearsals.wait(Rank::Rest, &reader)).await.map_err(|_| Unanswered::Busy)
    }

    /// Takes the place of one more recording for this reader.
    ///
    /// # Errors
    /// There is none for him.
    pub(super) fn recording(&self, reader: Reader) -> Result<Seat<Reader>, Unanswered> {
        Ok(self.recordings.take_free(reader)?)
    }

    /// Returns the answer with this text of JSON for this reader.
    ///
    /// # Errors
    /// It is large, and as many large ones as can be held wait for their readers, or for him.
    pub(super) fn answer(&self, text: Vec<u8>, reader: Reader) -> Result<Response, Unanswered> {
        let head = [(CONTENT_TYPE, "application/json")];
        if text.len() <= LARGE {
            return Ok((head, text).into_response());
        }
        let place = self.large.take_free(reader)?;
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
    /// The reader has as many answers under way as one may.
    #[error("as many answers as one reader may have are on their way to you; take those, or try again in {} s", PATIENCE.as_secs())]
    OneAfterAnother,
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

impl From<NoSeat> for Unanswered {
    fn from(none: NoSeat) -> Self {
        match none {
            NoSeat::OfAll => Self::Busy,
            NoSeat::OfOne => Self::OneAfterAnother,
        }
    }
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
            Self::Busy | Self::OneAfterAnother => PATIENCE.as_secs(),
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

    fn reader(number: u8) -> Reader {
        Reader::Address(Some([10, 0, 0, number].into()))
    }

    #[tokio::test(start_paused = true)]
    async fn passes_are_made_for_a_limited_number_of_readers_at_once_and_one_more_waits_then_is_told_to_ask_later() {
        let places = Places::default();
        let wait = |number| Box::pin(places.rehearsal(reader(number)));
        let mut held: Vec<_> = (0..2).map(|number| wait(number).now_or_never().expect("a place").unwrap()).collect();
        let mut waits = wait(2);
        assert!((&mut waits).now_or_never().is_none());
        held.pop();
        held.push((&mut waits).now_or_never().expect("a place is free").unwrap());
        let refused = wait(3).await.unwrap_err();
        assert_eq!(head(refused), (503, Some("10".to_owned())));
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_who_asks_for_many_passes_holds_up_no_other() {
        let places = Places::default();
        let wait = |number| Box::pin(places.rehearsal(reader(number)));
        let held = wait(1).now_or_never().expect("there is a place");
        let mut more: Vec<_> = (0..50).map(|_| wait(1)).collect();
        let beside: Vec<_> = more.iter_mut().filter_map(FutureExt::now_or_never).collect();
        assert_eq!(beside.len(), 1);
        let mut other = wait(2);
        assert!((&mut other).now_or_never().is_none());
        drop(held);
        assert!(other.now_or_never().is_some(), "the next place is not one more of the first reader's");
    }

    #[tokio::test]
    async fn a_large_answer_is_held_until_its_reader_has_it_and_small_ones_count_for_nothing() {
        let places = Places::default();
        let large = |number| places.answer(vec![b' '; LARGE + 1], reader(number));
        let held = large(1).unwrap();
        let refused = large(1).unwrap_err();
        assert!(refused.to_string().starts_with("as many answers as one reader may have"), "{refused}");
        assert_eq!(head(refused), (503, Some("10".to_owned())));
        let others: Vec<_> = (2..5).map(|number| large(number).unwrap()).collect();
        assert!(large(5).unwrap_err().to_string().starts_with("this host is busy"));
        assert!((0..100).all(|_| places.answer(b"{}".to_vec(), reader(1)).is_ok()));
        assert_eq!(to_bytes(held.into_body(), usize::MAX).await.unwrap().len(), LARGE + 1);
        let next = large(5).unwrap();
        assert!(large(1).is_err());
        // One who goes before he has it gives his place back too.
        drop((next, others));
        assert!(large(1).is_ok());
    }

    #[test]
    fn a_reader_of_many_recordings_leaves_some_for_others() {
        let places = Places::default();
        let taken: Vec<_> = (0..100).map_while(|_| places.recording(reader(1)).ok()).collect();
        assert_eq!(taken.len(), MOST_RECORDINGS_OF_ONE);
        assert!(places.recording(reader(2)).is_ok());
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
