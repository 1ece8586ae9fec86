//! Plans remembered under the hash of exactly what the plugin was shown.

use decide::plan::{Plan, Rejection};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// What a plan is remembered under.
pub(super) type Key = [u8; 32];

/// What is remembered: the user's mistake too, since it is as much a function of the input. A fault never is.
pub(super) type Planned = Result<Arc<Plan>, Rejection>;

/// The least recently used is forgotten when the bytes run out.
#[derive(Debug)]
pub(super) struct Memo {
    entries: HashMap<Key, Entry>,
    by_use: BTreeMap<u64, Key>,
    uses: u64,
    bytes: usize,
    limit: usize,
}

#[derive(Debug)]
struct Entry {
    planned: Planned,
    bytes: usize,
    used: u64,
}

impl Memo {
    /// An empty one that holds about so many bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { entries: HashMap::new(), by_use: BTreeMap::new(), uses: 0, bytes: 0, limit }
    }

    pub(super) fn get(&mut self, key: &Key) -> Option<Planned> {
        let entry = self.entries.get_mut(key)?;
        self.uses += 1;
        self.by_use.remove(&entry.used);
        self.by_use.insert(self.uses, *key);
        entry.used = self.uses;
        Some(entry.planned.clone())
    }

    pub(super) fn put(&mut self, key: Key, planned: Planned) {
        let bytes = weight(&planned);
        self.forget(&key);
        self.uses += 1;
        self.bytes += bytes;
        self.by_use.insert(self.uses, key);
        self.entries.insert(key, Entry { planned, bytes, used: self.uses });
        while self.bytes > self.limit {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            self.forget(&oldest);
        }
    }

    fn forget(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.by_use.remove(&entry.used);
            self.bytes -= entry.bytes;
        }
    }
}

/// About the memory that a plan takes: a `Value` is some times its text.
fn weight(planned: &Planned) -> usize {
    struct Length(usize);
    impl std::io::Write for Length {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut length = Length(0);
    let counted = match planned {
        Ok(plan) => serde_json::to_writer(&mut length, &**plan),
        Err(rejection) => serde_json::to_writer(&mut length, rejection),
    };
    match counted {
        Ok(()) => 4 * length.0 + 512,
        Err(_) => usize::MAX / 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected(why: &str) -> Planned {
        Err(Rejection::Unsupported(why.to_owned()))
    }

    #[test]
    fn the_least_recently_used_is_forgotten() {
        let one = weight(&rejected("a"));
        let mut memo = Memo::new(2 * one);
        memo.put([1; 32], rejected("a"));
        memo.put([2; 32], rejected("b"));
        assert_eq!(memo.get(&[1; 32]), Some(rejected("a")));
        memo.put([3; 32], rejected("c"));
        assert_eq!((memo.get(&[1; 32]), memo.get(&[2; 32])), (Some(rejected("a")), None));
        memo.put([3; 32], rejected("d"));
        assert_eq!((memo.get(&[3; 32]), memo.bytes, memo.by_use.len()), (Some(rejected("d")), 2 * one, 2));
    }

    #[test]
    fn what_is_larger_than_all_is_not_kept() {
        let mut memo = Memo::new(10);
        memo.put([1; 32], rejected("a"));
        assert_eq!((memo.get(&[1; 32]), memo.bytes), (None, 0));
    }
}
