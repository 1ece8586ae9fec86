//! Bodies that the plans of a plugin have in common. Many objects have the same text for every job, such as a Service with
//! its ports; it is parsed once, and all plans share the value.

use parking_lot::Mutex;
use serde_json::Value;
use std::{collections::VecDeque, sync::Arc};

/// So many bodies are kept: those that were asked for last.
const MOST: usize = 16;

/// A body of a longer text, in bytes, is not kept. A constant one is shorter.
const MOST_BYTES: usize = 4 << 10;

/// The bodies that a plugin's plans had last, by their text. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Bodies(Arc<Mutex<VecDeque<Kept>>>);

struct Kept {
    text: String,
    body: Arc<Value>,
}

impl Bodies {
    /// Returns the body of this text, which is parsed unless it is kept.
    ///
    /// # Errors
    /// The parser's.
    pub(super) fn of<E>(&self, text: String, parse: impl FnOnce(&str) -> Result<Value, E>) -> Result<Arc<Value>, E> {
        if let Some(body) = self.kept(&text) {
            return Ok(body);
        }
        let body = Arc::new(parse(&text)?);
        if text.len() <= MOST_BYTES {
            let mut kept = self.0.lock();
            kept.push_front(Kept { text, body: Arc::clone(&body) });
            kept.truncate(MOST);
        }
        Ok(body)
    }

    fn kept(&self, text: &str) -> Option<Arc<Value>> {
        let mut kept = self.0.lock();
        let at = kept.iter().position(|one| one.text == text)?;
        let found = kept.remove(at)?;
        let body = Arc::clone(&found.body);
        kept.push_front(found);
        Some(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn parsed(bodies: &Bodies, text: &str) -> bool {
        let mut parsed = false;
        let parse = |text: &str| {
            parsed = true;
            Ok::<_, Infallible>(text.into())
        };
        let Ok(body) = bodies.of(text.to_owned(), parse);
        assert_eq!(*body, Value::from(text));
        parsed
    }

    #[test]
    fn a_text_is_parsed_once_while_it_is_one_of_the_last() {
        let bodies = Bodies::default();
        assert!(parsed(&bodies, "a") && !parsed(&bodies, "a"));
        for other in 1..MOST {
            assert!(parsed(&bodies, &other.to_string()));
        }
        assert!(!parsed(&bodies, "a") && parsed(&bodies, "one more") && !parsed(&bodies, "a"));
        assert!(parsed(&bodies, "1"));
    }

    #[test]
    fn a_long_text_and_an_error_are_not_kept() {
        let (bodies, long) = (Bodies::default(), "a".repeat(MOST_BYTES + 1));
        assert!(parsed(&bodies, &long) && parsed(&bodies, &long));
        assert_eq!(bodies.of("x".to_owned(), |_| Err("wrong")), Err("wrong"));
        assert!(parsed(&bodies, "x"));
    }
}
