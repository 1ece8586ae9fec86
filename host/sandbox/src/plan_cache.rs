//! A cache of plans by the hash of the plugin's exact input, and of those inputs. Our own: it is bounded by bytes and
//! forgets a job's input with its plan, of which the crate lru does neither, and quick_cache evicts by another rule.

use super::convert::JobInput;
use decide::{
    Digest,
    ledger::HostPorts,
    plan::{Plan, Rejection},
    snapshot::Snapshot,
    weight,
};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// Bytes that an entry takes in the maps, beside its plan and its input.
const ENTRY: usize = 512;

/// The hash of a plugin's input, the key of the cache.
pub(super) type Key = [u8; 32];

/// A cached result. A rejection is cached too, since it is a function of the input as well. A fault never is.
pub(super) type Planned = Result<Arc<Plan>, Rejection>;

/// A plugin's input for a job, with its hash.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub(super) input: Arc<JobInput>,
    pub(super) key: Key,
}

/// The cache. It evicts the least recently used entry when its bytes exceed the limit.
#[derive(Debug)]
pub(super) struct PlanCache {
    /// The last input of each job, by the job's uid. Only for cached entries.
    shown: HashMap<String, LastShown>,
    entries: HashMap<Key, Entry>,
    by_use: BTreeMap<u64, Key>,
    uses: u64,
    bytes: usize,
    limit: usize,
}

/// A job's last input and the resource version that it was made from: the same uid and version mean the same object.
#[derive(Debug)]
struct LastShown {
    resource_version: String,
    /// The job's ports, which do not follow from the job alone: the host only trusts ports that it assigned.
    host_ports: Option<HostPorts>,
    digest: Digest,
    shown: Shown,
}

#[derive(Debug)]
struct Entry {
    planned: Planned,
    bytes: usize,
    used: u64,
    uid: String,
}

impl PlanCache {
    /// Returns an empty cache of about `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { shown: HashMap::new(), entries: HashMap::new(), by_use: BTreeMap::new(), uses: 0, bytes: 0, limit }
    }

    pub(super) fn get(&mut self, key: &Key) -> Option<Planned> {
        let entry = self.entries.get_mut(key)?;
        self.uses += 1;
        self.by_use.remove(&entry.used);
        self.by_use.insert(self.uses, *key);
        entry.used = self.uses;
        Some(entry.planned.clone())
    }

    /// Returns the input that the plugin with this digest got for this very version of the job.
    pub(super) fn shown(&self, snapshot: &Snapshot, digest: &Digest) -> Option<Shown> {
        let (job, ports) = (&snapshot.job, snapshot.ledger.host_ports);
        let last = self.shown.get(&job.uid)?;
        let same = last.resource_version == job.resource_version && last.host_ports == ports && last.digest == *digest;
        let same = same && last.shown.input.has(&snapshot.contents);
        (same && !job.resource_version.is_empty()).then(|| last.shown.clone())
    }

    /// Stores the input for this version of the job, if its plan is cached.
    pub(super) fn show(&mut self, snapshot: &Snapshot, digest: &Digest, shown: &Shown) {
        let job = &snapshot.job;
        if let Some(entry) = self.entries.get_mut(&shown.key) {
            entry.uid.clone_from(&job.uid);
            let last = LastShown {
                resource_version: job.resource_version.clone(),
                host_ports: snapshot.ledger.host_ports,
                digest: digest.clone(),
                shown: shown.clone(),
            };
            self.shown.insert(job.uid.clone(), last);
        }
    }

    /// Caches the plugin's result. `input` is the size of its input, which may be kept with it.
    pub(super) fn put(&mut self, key: Key, planned: Planned, input: usize) {
        let bytes = ENTRY + weight(&planned) + input;
        self.evict(&key);
        self.uses += 1;
        self.bytes += bytes;
        self.by_use.insert(self.uses, key);
        self.entries.insert(key, Entry { planned, bytes, used: self.uses, uid: String::new() });
        while self.bytes > self.limit {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            self.evict(&oldest);
        }
    }

    fn evict(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.by_use.remove(&entry.used);
            self.bytes -= entry.bytes;
            if self.shown.get(&entry.uid).is_some_and(|last| last.shown.key == *key) {
                self.shown.remove(&entry.uid);
            }
        }
    }
}

fn weight(planned: &Planned) -> usize {
    match planned {
        Ok(plan) => weight::plan(plan),
        Err(rejection) => 512 + rejection.to_string().len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use decide::testkit;

    fn rejected(why: &str) -> Planned {
        Err(Rejection::Unsupported(why.to_owned()))
    }

    #[test]
    fn the_least_recently_used_entry_is_evicted() {
        let one = ENTRY + weight(&rejected("a"));
        let mut plan_cache = PlanCache::new(2 * one);
        plan_cache.put([1; 32], rejected("a"), 0);
        plan_cache.put([2; 32], rejected("b"), 0);
        assert_eq!(plan_cache.get(&[1; 32]), Some(rejected("a")));
        plan_cache.put([3; 32], rejected("c"), 0);
        assert_eq!((plan_cache.get(&[1; 32]), plan_cache.get(&[2; 32])), (Some(rejected("a")), None));
        plan_cache.put([3; 32], rejected("d"), 0);
        assert_eq!(
            (plan_cache.get(&[3; 32]), plan_cache.bytes, plan_cache.by_use.len()),
            (Some(rejected("d")), 2 * one, 2)
        );
    }

    // The stores make a new job value at every observation.
    #[test]
    fn an_input_is_found_by_the_resource_version_of_the_job() {
        let seen = |version: &str, ports: Option<u32>| {
            let mut snapshot = testkit::snapshot(testkit::job("a", "uid"));
            Arc::make_mut(&mut snapshot.job).resource_version = version.into();
            snapshot.ledger.host_ports = ports.map(|first| HostPorts { first, count: 10 });
            snapshot
        };
        let (mut plan_cache, digest) = (PlanCache::new(10_000), testkit::digest("one"));
        let input = Arc::new(JobInput::new(&seen("1", None), "{}"));
        let shown = Shown { key: input.key("one"), input };
        plan_cache.put(shown.key, rejected("a"), 0);
        plan_cache.show(&seen("1", None), &digest, &shown);
        assert_eq!(plan_cache.shown(&seen("1", None), &digest).map(|shown| shown.key), Some(shown.key));
        for (other, digest) in [
            (seen("2", None), "one"),
            (seen("1", Some(35_000)), "one"),
            (seen("1", None), "two"),
            (seen("", None), "one"),
        ] {
            assert!(plan_cache.shown(&other, &testkit::digest(digest)).is_none(), "{other:?} {digest}");
        }
    }

    #[test]
    fn an_entry_larger_than_the_limit_is_not_kept() {
        let mut plan_cache = PlanCache::new(10);
        plan_cache.put([1; 32], rejected("a"), 0);
        assert_eq!((plan_cache.get(&[1; 32]), plan_cache.bytes), (None, 0));
    }
}
