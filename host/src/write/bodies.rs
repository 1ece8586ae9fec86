//! Permits for the memory of bodies, which are built only to be sent.

use fairness::{Rank, Share, Turn, Turns};

/// Memory of all large bodies at once, in bytes.
const LARGE: usize = 16 << 20;

/// Memory of the large bodies for jobs of one namespace: they leave room for other namespaces. A larger body is sent alone
/// in its namespace.
const LARGE_OF_ONE: usize = 12 << 20;

/// A body of at most so many bytes needs no permit, so that large bodies of others never delay it: the number of requests at
/// once bounds the memory of small ones.
const SMALL: usize = 128 << 10;

/// The permits for the bodies of all requests.
pub(super) struct Bodies(Turns);

impl Default for Bodies {
    fn default() -> Self {
        Self(Turns::new(LARGE, Share::fixed(LARGE_OF_ONE)))
    }
}

impl Bodies {
    /// Waits until there is room for a body of so many bytes. The room is taken until the permit is dropped.
    pub(super) async fn room(&self, bytes: usize, rank: Rank, namespace: &str) -> Option<Turn> {
        if bytes <= SMALL {
            return None;
        }
        Some(self.0.wait_for(bytes, rank, namespace).await)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    // Two namespaces take turns with all the room there is.
    #[test]
    fn a_small_body_does_not_wait_for_large_ones_of_others() {
        let bodies = Bodies::default();
        let room = |bytes, namespace| bodies.room(bytes, Rank::Pod, namespace);
        let first = room(LARGE, "a").now_or_never().expect("there is room");
        let mut second = Box::pin(room(LARGE, "b"));
        assert!((&mut second).now_or_never().is_none());
        assert!(room(SMALL, "c").now_or_never().is_some());
        assert!(room(SMALL + 1, "c").now_or_never().is_none(), "it waits for its turn");
        drop(first);
        assert!(second.now_or_never().is_some());
    }
}
