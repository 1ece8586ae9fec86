//! The latest events that this process has emitted about each job, for people. The API server has them, too, for as long
//! as it keeps events.

use decide::plan::Event;
use jiff::Timestamp;
use parking_lot::Mutex;
use std::collections::VecDeque;

/// At most this many events are kept, of all jobs and of one job.
const MOST: usize = 4_096;
const MOST_OF_JOB: usize = 20;

/// Messages are kept at this length, in bytes.
const LONGEST: usize = 400;

/// An event that was emitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emitted {
    /// When.
    pub at: Timestamp,
    /// Whether it is a warning.
    pub warning: bool,
    /// CamelCase reason.
    pub reason: String,
    /// The message, of limited length.
    pub message: String,
}

/// The latest events. One job never keeps more than its share.
#[derive(Debug, Default)]
pub struct Events {
    /// The oldest first, each with the uid of its job.
    latest: Mutex<VecDeque<(String, Emitted)>>,
}

impl Events {
    /// Adds an event about the job with this uid as its latest.
    pub(crate) fn record(&self, uid: &str, at: Timestamp, event: &Event) {
        let mut latest = self.latest.lock();
        let of_job = latest.iter().filter(|(of, _)| of == uid).count();
        if of_job >= MOST_OF_JOB
            && let Some(oldest) = latest.iter().position(|(of, _)| of == uid)
        {
            latest.remove(oldest);
        } else if latest.len() >= MOST {
            latest.pop_front();
        }
        let (warning, reason) = (event.warning, event.reason.clone());
        latest.push_back((uid.to_owned(), Emitted { at, warning, reason, message: cut(&event.message) }));
    }

    /// Returns the latest events about the job with this uid, the oldest first.
    #[must_use]
    pub fn of(&self, uid: &str) -> Vec<Emitted> {
        self.latest.lock().iter().filter(|(of, _)| of == uid).map(|(_, event)| event.clone()).collect()
    }
}

fn cut(message: &str) -> String {
    if message.len() <= LONGEST {
        return message.to_owned();
    }
    format!("{} ...", &message[..message.floor_char_boundary(LONGEST)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(message: &str) -> Event {
        Event { warning: false, reason: "Created".into(), message: message.into() }
    }

    #[test]
    fn a_job_that_says_much_does_not_push_others_out() {
        let events = Events::default();
        events.record("quiet", Timestamp::UNIX_EPOCH, &event("once"));
        (0..2 * MOST).for_each(|number| events.record("loud", Timestamp::UNIX_EPOCH, &event(&number.to_string())));
        assert_eq!((events.of("quiet").len(), events.of("loud").len()), (1, MOST_OF_JOB));
        assert_eq!(events.of("loud").last().map(|it| it.message.clone()), Some((2 * MOST - 1).to_string()));
        (0..2 * MOST).for_each(|number| events.record(&number.to_string(), Timestamp::UNIX_EPOCH, &event("x")));
        assert_eq!(events.latest.lock().len(), MOST);
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let events = Events::default();
        events.record("job", Timestamp::UNIX_EPOCH, &event(&"\u{e4}".repeat(5_000)));
        let kept = &events.of("job")[0].message;
        assert!(kept.len() < LONGEST + 8 && kept.ends_with(" ..."), "{kept}");
    }
}
