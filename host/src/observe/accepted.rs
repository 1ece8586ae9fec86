//! The digests that this host has accepted, and for which kinds of job. Only what the host itself has written counts:
//! the marks on plugins in its archive, and the statuses of Plugins. Fields of jobs do not count.

use decide::{Digest, plan::JobKind};
use std::collections::{BTreeMap, BTreeSet};

/// What the host knows of a digest that is not loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Acceptance {
    /// The host has accepted it for the kind.
    Accepted,
    /// Nothing says that the host ever accepted it.
    Never,
    /// The host's namespace has not been listed yet.
    Unknown,
}

/// The digests that this host has accepted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Accepted {
    /// The digests in the archive, each with the kinds (`TaleJob.example.com`) that it was accepted for. `None` until
    /// the archive has been listed.
    kept: Option<BTreeMap<Digest, BTreeSet<String>>>,
    /// Digests that statuses of Plugins name.
    named: BTreeSet<Digest>,
}

impl Accepted {
    /// Records that the status of a Plugin names this digest.
    pub(crate) fn name(&mut self, digest: &Digest) {
        self.named.insert(digest.clone());
    }

    /// Replaces the digests in the archive, each with the kinds that it was accepted for. Returns the digests that are
    /// new or whose kinds have changed.
    pub(crate) fn keep(&mut self, kept: BTreeMap<Digest, BTreeSet<String>>) -> Vec<Digest> {
        let before = self.kept.replace(kept).unwrap_or_default();
        let now = self.kept.iter().flatten().filter(|(digest, kinds)| before.get(*digest) != Some(*kinds));
        now.map(|(digest, _)| digest.clone()).collect()
    }

    /// Returns whether the digest was accepted for any kind.
    pub(crate) fn has(&self, digest: &Digest) -> bool {
        self.named.contains(digest) || self.kept.as_ref().is_some_and(|kept| kept.contains_key(digest))
    }

    /// Returns what is known of this digest for this kind. A Plugin's status accepts a digest for every kind.
    pub(crate) fn of(&self, digest: &Digest, kind: &JobKind) -> Acceptance {
        if self.named.contains(digest) {
            return Acceptance::Accepted;
        }
        match &self.kept {
            None => Acceptance::Unknown,
            Some(kept) if kept.get(digest).is_some_and(|kinds| kinds.contains(&kind.id())) => Acceptance::Accepted,
            Some(_) => Acceptance::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use decide::testkit::digest;

    fn kind(name: &str) -> JobKind {
        JobKind { kind: name.into(), ..decide::testkit::kind() }
    }

    #[test]
    fn a_digest_is_accepted_for_the_kinds_that_its_mark_names() {
        let play = kind("Play");
        let mut accepted = Accepted::default();
        assert_eq!(accepted.of(&digest("one"), &play), Acceptance::Unknown);
        let kept = BTreeMap::from([(digest("one"), BTreeSet::from([play.id()]))]);
        assert_eq!(accepted.keep(kept.clone()), [digest("one")]);
        assert_eq!(accepted.of(&digest("one"), &play), Acceptance::Accepted);
        assert_eq!(accepted.of(&digest("one"), &kind("Opera")), Acceptance::Never);
        assert_eq!(accepted.of(&digest("two"), &play), Acceptance::Never);
        assert!(accepted.keep(kept).is_empty());
    }

    #[test]
    fn a_digest_that_a_plugins_status_names_was_accepted_although_its_bytes_are_lost() {
        let mut accepted = Accepted::default();
        accepted.name(&digest("one"));
        accepted.keep(BTreeMap::new());
        assert_eq!(accepted.of(&digest("one"), &kind("Play")), Acceptance::Accepted);
    }
}
