//! Gives blocks to jobs and takes them back, by what the watches have shown.

use super::{Blocks, Claim, Limits};
use crate::{
    job_key::{GroupKind, JobKey},
    observe::{
        cache::Cache,
        stores::Stores,
        table::Controller,
        wire::{Held, Object},
    },
};
use decide::{
    Snapshot,
    ledger::{HostPorts, Ledger},
    ports::NoPorts,
};
use parking_lot::Mutex;
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

/// How long the ports of hidden jobs are remembered: to find them takes a look at every pod. No job is given others
/// meanwhile, since nobody plans it.
const HIDDEN_AGAIN: Duration = Duration::from_secs(10);

/// The one place of a host that gives host ports to jobs.
#[derive(Debug)]
pub(crate) struct PortAllocator {
    stores: Arc<Stores>,
    known: Mutex<Known>,
    /// While it is true, not every kind whose jobs may hold ports need be watched.
    is_starting: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Known {
    blocks: Blocks,
    /// Kinds whose ledgers have been read.
    claimed: BTreeSet<GroupKind>,
    /// When the ports of hidden jobs were looked for.
    looked: Option<Instant>,
}

impl PortAllocator {
    pub(crate) fn new(stores: Arc<Stores>, limits: Limits, is_starting: Arc<AtomicBool>) -> Self {
        let known = Known { blocks: Blocks::new(limits), claimed: BTreeSet::new(), looked: None };
        Self { stores, known: Mutex::new(known), is_starting }
    }

    /// Removes from the snapshot's ledger a block that the job does not hold. Releases the ports of earlier jobs of
    /// this name whose pods have ended.
    pub(crate) fn correct(&self, key: &JobKey, snapshot: &mut Snapshot) {
        let mut known = self.known.lock();
        self.stores.read(|cache| {
            known.release_former(cache, key, Some(&snapshot.job.uid));
            known.accept_claims(cache, &key.kind);
        });
        let held = known.blocks.of(key, &snapshot.job.uid);
        snapshot.ledger.host_ports = snapshot.ledger.host_ports.filter(|ports| held == Some(*ports));
    }

    /// Releases the ports of jobs of this name whose pods have ended: the job is gone.
    pub(crate) fn forget(&self, key: &JobKey) {
        let mut known = self.known.lock();
        self.stores.read(|cache| known.release_former(cache, key, None));
    }

    /// Returns a block for the job: the block that it holds, else a free one, which it holds from now on.
    ///
    /// # Errors
    /// Returns why there is none. No ports are free until all pods, and all jobs that the host may list, have been listed.
    pub(crate) fn allocate(&self, key: &JobKey, uid: &str, count: u32) -> Result<HostPorts, NoPorts> {
        let mut known = self.known.lock();
        self.stores.read(|cache| {
            if self.awaits_holders(cache) {
                return Err(NoPorts::NoneFree);
            }
            cache.layout().kinds().keys().for_each(|kind| known.accept_claims(cache, kind));
            known.avoid_hidden(cache);
            known.blocks.allocate(key, uid, count)
        })
    }

    /// Returns the block that [`PortAllocator::allocate`] would return, without taking it.
    ///
    /// # Errors
    /// As for [`PortAllocator::allocate`].
    pub(crate) fn preview(&self, key: &JobKey, uid: &str, count: u32) -> Result<HostPorts, NoPorts> {
        let mut known = self.known.lock();
        self.stores.read(|cache| {
            if self.awaits_holders(cache) {
                return Err(NoPorts::NoneFree);
            }
            known.avoid_hidden(cache);
            known.blocks.preview(key, uid, count)
        })
    }

    fn awaits_holders(&self, cache: &Cache) -> bool {
        self.is_starting.load(Ordering::Relaxed) || cache.awaits_jobs_or_pods()
    }

    /// Releases the ports of the job.
    pub(crate) fn release(&self, key: &JobKey, uid: &str) {
        self.known.lock().blocks.release(key, uid);
    }
}

impl Known {
    /// Reads the host ports in the ledgers of a kind, once its jobs have been listed.
    fn accept_claims(&mut self, cache: &Cache, kind: &GroupKind) {
        if cache.has_listed_jobs_of(kind) && self.claimed.insert(kind.clone()) {
            self.blocks.see(|key, uid, ports| runs_on(cache, Controller::job(key, uid), ports));
            self.blocks.accept(claims(cache, kind));
        }
    }

    /// Keeps ports from being given that jobs may hold which the host may not list.
    fn avoid_hidden(&mut self, cache: &Cache) {
        if self.looked.is_none_or(|at| at.elapsed() >= HIDDEN_AGAIN) {
            let most = usize::try_from(self.blocks.most_of_a_namespace()).unwrap_or(usize::MAX);
            self.blocks.avoid(cache.ports_of_hidden_jobs(most));
            self.looked = Some(Instant::now());
        }
    }

    fn release_former(&mut self, cache: &Cache, key: &JobKey, uid: Option<&str>) {
        for former in self.blocks.others(key, uid) {
            if !cache.runs_pods_of(Controller::job(key, &former)) {
                self.blocks.release(key, &former);
            }
        }
    }
}

fn claims(cache: &Cache, kind: &GroupKind) -> Vec<Claim> {
    let tables = cache.tables_of_jobs().filter(|(of, _)| *of == kind);
    let claim = |object: &Object| {
        let Held::Job(packed) = &object.held else { return None };
        let (job, status) = (packed.job(), packed.status());
        let ledger = status.pointer("/troupe/hostPorts").map(|_| Ledger::read(&status, &job.uid))?;
        let key = JobKey::new(kind, &job.namespace, &job.name);
        let owner = Controller::job(&key, &job.uid);
        let holds = |_: &HostPorts| ledger.finished.is_none() || cache.runs_pods_of(owner);
        let ports = ledger.host_ports.filter(holds)?;
        let evident = runs_on(cache, owner, ports);
        Some(Claim { key, uid: job.uid.clone(), created: job.created, ports, evident })
    };
    tables.flat_map(|(_, table)| table.objects.values()).filter_map(claim).collect()
}

/// Returns whether a live pod of this job is on a node and declares one of these ports.
fn runs_on(cache: &Cache, job: Controller<'_>, ports: HostPorts) -> bool {
    let mut there = cache.owned_by(job).filter(|object| object.is_live_pod_on_node());
    there.any(|pod| pod.host_ports.iter().any(|port| ports.contains(*port)))
}
