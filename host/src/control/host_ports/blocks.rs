//! Which job holds which block of host ports. A block is given to a job only if no other job holds one of its ports.
//! After a restart of the host the blocks come from ledgers, without displacing running pods of another job.

use super::{Limits, free::Free};
use crate::job_key::JobKey;
use decide::{ledger::HostPorts, ports::NoPorts};
use jiff::Timestamp;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// The blocks of host ports that jobs hold, and the ports that are free.
#[derive(Debug)]
pub(crate) struct Blocks {
    limits: Limits,
    free: Free,
    /// Holders by job. A job that was deleted and created again has two while pods of the earlier job run.
    held: BTreeMap<JobKey, Vec<Holder>>,
    /// Number of ports that the jobs of each namespace hold.
    used: BTreeMap<String, u32>,
    /// Ports that are not given although no job is known to hold them.
    avoided: BTreeSet<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Holder {
    uid: String,
    ports: HostPorts,
    /// Whether pods of the job were seen on these ports when ledgers were read.
    evident: bool,
}

/// The host ports in a job's ledger when its kind was listed for the first time.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    pub(crate) key: JobKey,
    pub(crate) uid: String,
    pub(crate) created: Timestamp,
    pub(crate) ports: HostPorts,
    /// Whether a live pod of the job is on a node and declares one of these ports.
    pub(crate) evident: bool,
}

impl Default for Blocks {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Blocks {
    pub(crate) fn new(limits: Limits) -> Self {
        let free = Free::all(&limits.range);
        Self { limits, free, held: BTreeMap::new(), used: BTreeMap::new(), avoided: BTreeSet::new() }
    }

    /// Returns how many ports the jobs of one namespace may hold.
    pub(crate) fn most_of_a_namespace(&self) -> u32 {
        self.limits.per_namespace
    }

    /// Gives none of these ports to a job that does not hold it already.
    pub(crate) fn avoid(&mut self, ports: BTreeSet<u32>) {
        self.avoided = ports;
    }

    /// Returns the ports that the job holds.
    pub(crate) fn of(&self, key: &JobKey, uid: &str) -> Option<HostPorts> {
        self.held.get(key)?.iter().find(|holder| holder.uid == uid).map(|holder| holder.ports)
    }

    /// Returns a block of `count` ports for the job: the block that it holds, else the lowest free block, which it
    /// holds from now on. Releases a block of another size first.
    ///
    /// # Errors
    /// Returns why there is no block now: the quota of the namespace, or no free run of this length.
    pub(crate) fn allocate(&mut self, key: &JobKey, uid: &str, count: u32) -> Result<HostPorts, NoPorts> {
        if let Some(ports) = self.of(key, uid).filter(|ports| ports.count == count) {
            return Ok(ports);
        }
        self.release(key, uid);
        let ports = self.lowest(&key.namespace, count)?;
        self.hold(key, Holder { uid: uid.to_owned(), ports, evident: false });
        Ok(ports)
    }

    /// Returns the block that [`Blocks::allocate`] would return, without taking it.
    ///
    /// # Errors
    /// As for [`Blocks::allocate`].
    pub(crate) fn preview(&self, key: &JobKey, uid: &str, count: u32) -> Result<HostPorts, NoPorts> {
        match self.of(key, uid).filter(|ports| ports.count == count) {
            Some(ports) => Ok(ports),
            None => self.lowest(&key.namespace, count),
        }
    }

    fn lowest(&self, namespace: &str, count: u32) -> Result<HostPorts, NoPorts> {
        let (used, most) = (self.used(namespace), self.limits.per_namespace);
        if used.saturating_add(count) > most {
            return Err(NoPorts::Quota { used, most });
        }
        let first = self.free.lowest(count, &self.avoided).ok_or(NoPorts::NoneFree)?;
        Ok(HostPorts { first, count })
    }

    /// Takes note of the holders whose pods are on their ports, before claims of other jobs are accepted.
    pub(crate) fn see(&mut self, runs_on: impl Fn(&JobKey, &str, HostPorts) -> bool) {
        for (key, holders) in &mut self.held {
            for holder in holders {
                holder.evident = holder.evident || runs_on(key, &holder.uid, holder.ports);
            }
        }
    }

    /// Accepts claims of jobs within the quotas of their namespaces. Claims of jobs whose pods run on the ports come first,
    /// and displace holders without such pods. The others follow by age, and are accepted if their ports are free.
    ///
    /// Of two overlapping claims of jobs whose pods run there, both are accepted: whoever may write a job's status may
    /// write any block into its ledger, and may have a pod of his own on one of the ports, so that nothing tells which is
    /// true. A block that was given stays with its job, and nobody else is given a port of either.
    pub(crate) fn accept(&mut self, mut claims: Vec<Claim>) {
        claims.sort_by(|a, b| (Reverse(a.evident), a.created, &a.uid).cmp(&(Reverse(b.evident), b.created, &b.uid)));
        for Claim { key, uid, ports, evident, .. } in claims {
            let last = ports.first.saturating_add(ports.count);
            let sound = ports.first > 0 && ports.count > 0 && last <= 1 << 16;
            if !sound || self.used(&key.namespace).saturating_add(ports.count) > self.limits.per_namespace {
                continue;
            }
            if evident {
                self.clear(ports);
            } else if !self.free.contains(ports) {
                continue;
            }
            self.hold(&key, Holder { uid, ports, evident });
        }
    }

    /// Releases the ports of the job, if it holds any.
    pub(crate) fn release(&mut self, key: &JobKey, uid: &str) {
        let Some(holders) = self.held.get_mut(key) else { return };
        let Some(place) = holders.iter().position(|holder| holder.uid == uid) else { return };
        let Holder { ports, .. } = holders.remove(place);
        if holders.is_empty() {
            self.held.remove(key);
        }
        if let Some(used) = self.used.get_mut(&key.namespace) {
            *used -= ports.count;
            if *used == 0 {
                self.used.remove(&key.namespace);
            }
        }
        self.free.add(ports);
        let shared: Vec<_> = self.overlapping(ports).map(|(_, holder)| holder.ports).collect();
        shared.into_iter().for_each(|ports| self.free.take(ports));
    }

    /// Returns the uids of the jobs of this name that hold ports, except this uid.
    pub(crate) fn others(&self, key: &JobKey, uid: Option<&str>) -> Vec<String> {
        let holders = self.held.get(key).into_iter().flatten();
        holders.filter(|holder| Some(holder.uid.as_str()) != uid).map(|holder| holder.uid.clone()).collect()
    }

    fn used(&self, namespace: &str) -> u32 {
        self.used.get(namespace).copied().unwrap_or(0)
    }

    /// Releases the blocks that overlap these ports and on which no pods of their jobs were seen.
    fn clear(&mut self, ports: HostPorts) {
        let unfounded = self.overlapping(ports).filter(|(_, holder)| !holder.evident);
        let unfounded: Vec<_> = unfounded.map(|(key, holder)| (key.clone(), holder.uid.clone())).collect();
        unfounded.iter().for_each(|(key, uid)| self.release(key, uid));
    }

    /// Returns the holders of some of these ports.
    fn overlapping(&self, ports: HostPorts) -> impl Iterator<Item = (&JobKey, &Holder)> {
        let all = self.held.iter().flat_map(|(key, holders)| holders.iter().map(move |holder| (key, holder)));
        all.filter(move |(_, holder)| {
            let held = holder.ports;
            held.first < ports.first + ports.count && ports.first < held.first + held.count
        })
    }

    fn hold(&mut self, key: &JobKey, holder: Holder) {
        self.free.take(holder.ports);
        *self.used.entry(key.namespace.clone()).or_default() += holder.ports.count;
        self.held.entry(key.clone()).or_default().push(holder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_key::GroupKind;

    const RANGE: Limits = Limits { range: 100..=199, per_namespace: 60 };

    fn key(namespace: &str, name: &str) -> JobKey {
        JobKey::new(&GroupKind::new("example.com", "Tale"), namespace, name)
    }

    fn block(first: u32, count: u32) -> HostPorts {
        HostPorts { first, count }
    }

    fn claim(namespace: &str, name: &str, ports: HostPorts) -> Claim {
        let (key, uid) = (key(namespace, name), format!("uid-{name}"));
        Claim { key, uid, created: Timestamp::UNIX_EPOCH, ports, evident: false }
    }

    fn held(blocks: &Blocks, claim: &Claim) -> Option<HostPorts> {
        blocks.of(&claim.key, &claim.uid)
    }

    #[test]
    fn a_job_is_given_the_lowest_block_that_is_free_and_always_the_same() {
        let mut blocks = Blocks::new(RANGE);
        assert_eq!(blocks.allocate(&key("a", "1"), "u1", 20), Ok(block(100, 20)));
        assert_eq!(blocks.allocate(&key("b", "2"), "u2", 20), Ok(block(120, 20)));
        assert_eq!(blocks.allocate(&key("a", "1"), "u1", 20), Ok(block(100, 20)));
        blocks.release(&key("a", "1"), "u1");
        assert_eq!(blocks.of(&key("a", "1"), "u1"), None);
        assert_eq!(blocks.allocate(&key("b", "3"), "u3", 20), Ok(block(100, 20)));
        assert_eq!(blocks.allocate(&key("b", "2"), "u2", 40), Ok(block(120, 40)), "its smaller block is taken back");
    }

    #[test]
    fn a_namespace_has_a_quota_and_what_is_released_counts_no_more() {
        let mut blocks = Blocks::new(RANGE);
        for number in 0..3 {
            blocks.allocate(&key("a", "1"), &format!("u{number}"), 20).unwrap();
        }
        assert_eq!(blocks.allocate(&key("a", "2"), "v", 20), Err(NoPorts::Quota { used: 60, most: 60 }));
        assert_eq!(blocks.allocate(&key("b", "1"), "w", 20), Ok(block(160, 20)));
        assert_eq!(blocks.others(&key("a", "1"), Some("u1")), ["u0", "u2"]);
        blocks.release(&key("a", "1"), "u1");
        assert_eq!(blocks.allocate(&key("a", "2"), "v", 20), Ok(block(120, 20)));
        assert_eq!(blocks.allocate(&key("b", "2"), "x", 40), Err(NoPorts::NoneFree));
    }

    #[test]
    fn of_two_claims_that_of_running_pods_is_believed_and_else_the_older() {
        let young = Claim { created: Timestamp::from_second(9).unwrap(), ..claim("a", "young", block(100, 20)) };
        let old = claim("b", "old", block(110, 20));
        let mut blocks = Blocks::new(RANGE);
        blocks.accept(vec![young.clone(), old.clone()]);
        assert_eq!((held(&blocks, &young), held(&blocks, &old)), (None, Some(block(110, 20))));

        let young = Claim { evident: true, ..young };
        for together in [true, false] {
            let mut blocks = Blocks::new(RANGE);
            if together {
                blocks.accept(vec![old.clone(), young.clone()]);
            } else {
                blocks.accept(vec![old.clone()]);
                blocks.accept(vec![young.clone()]);
            }
            assert_eq!((held(&blocks, &young), held(&blocks, &old)), (Some(block(100, 20)), None));
            assert_eq!(blocks.allocate(&key("c", "1"), "u", 20), Ok(block(120, 20)));
        }
    }

    #[test]
    fn a_claim_on_the_ports_of_another_jobs_pods_takes_nothing_from_that_job() {
        // Each has a pod on one of the ports, and the liar is older.
        let liars = [block(100, 40), block(121, 20), block(125, 2)]
            .map(|ports| Claim { evident: true, ..claim("b", "liar", ports) });
        for liar in liars {
            let created = Timestamp::from_second(9).unwrap();
            let honest = Claim { evident: true, created, ..claim("a", "honest", block(120, 20)) };
            for batches in [vec![vec![liar.clone(), honest.clone()]], vec![vec![liar.clone()], vec![honest.clone()]]] {
                let mut blocks = Blocks::new(RANGE);
                batches.into_iter().for_each(|batch| blocks.accept(batch));
                assert_eq!((held(&blocks, &liar), held(&blocks, &honest)), (Some(liar.ports), Some(block(120, 20))));
                blocks.release(&liar.key, &liar.uid);
                assert_eq!(blocks.allocate(&key("c", "1"), "u", 30), Ok(block(140, 30)), "the honest job's stay taken");
                blocks.release(&key("c", "1"), "u");
                blocks.release(&honest.key, &honest.uid);
                assert_eq!(blocks.allocate(&key("c", "1"), "u", 60), Ok(block(100, 60)), "all are free again");
            }
        }
    }

    // A kind that is listed late, or whose user says that its pods run there.
    #[test]
    fn a_block_that_was_given_stays_with_a_job_whose_pods_run_there() {
        let late = Claim { evident: true, ..claim("b", "late", block(110, 20)) };
        for runs in [true, false] {
            let mut blocks = Blocks::new(RANGE);
            let given = blocks.allocate(&key("a", "1"), "u", 20).unwrap();
            blocks.see(|_, uid, ports| runs && uid == "u" && ports == given);
            blocks.accept(vec![late.clone()]);
            assert_eq!(
                (blocks.of(&key("a", "1"), "u"), held(&blocks, &late)),
                (runs.then_some(given), Some(late.ports))
            );
        }
    }

    #[test]
    fn a_pod_on_one_port_proves_no_more_ports_than_a_namespace_may_have() {
        let mut blocks = Blocks::new(RANGE);
        let greedy = [1, 2, 3].map(|n| Claim {
            evident: true,
            ..claim("a", &format!("{n}"), block(60 + 40 * n, if n == 1 { 61 } else { 30 }))
        });
        blocks.accept(greedy.to_vec());
        assert_eq!(greedy.map(|claim| held(&blocks, &claim).is_some()), [false, true, true]);
        assert_eq!(blocks.allocate(&key("b", "1"), "u", 20), Ok(block(100, 20)));
    }

    #[test]
    fn a_claim_without_pods_is_believed_within_the_range_and_the_quota_and_no_further() {
        let mut blocks = Blocks::new(RANGE);
        let wrong = [(0, 20), (90, 20), (190, 20), (120, 0), (u32::MAX, 2), (100, 80)].map(|(first, count)| {
            let claim = claim("a", &format!("{first}-{count}"), block(first, count));
            blocks.accept(vec![claim.clone()]);
            held(&blocks, &claim)
        });
        assert_eq!(wrong, [None; 6]);
        let fits = ["1", "2", "3", "4"].map(|name| claim("a", name, block(80 + 20 * name.parse::<u32>().unwrap(), 20)));
        blocks.accept(fits.to_vec());
        assert_eq!(fits.map(|claim| held(&blocks, &claim).is_some()), [true, true, true, false]);
    }

    // The cluster operator has changed the range while jobs run.
    #[test]
    fn pods_that_run_beyond_the_range_keep_their_ports_until_they_are_gone() {
        let mut blocks = Blocks::new(RANGE);
        let running = Claim { evident: true, ..claim("a", "1", block(90, 20)) };
        blocks.accept(vec![running.clone()]);
        assert_eq!(held(&blocks, &running), Some(block(90, 20)));
        assert_eq!(blocks.allocate(&key("b", "1"), "u", 20), Ok(block(110, 20)));
        blocks.release(&running.key, &running.uid);
        assert_eq!(blocks.allocate(&key("b", "2"), "v", 10), Ok(block(100, 10)));
    }
}
