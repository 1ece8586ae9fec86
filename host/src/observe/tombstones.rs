//! Tombstones: the last known state of children that were deleted before the ledger recorded how they ended.
//!
//! A Job with a time to live may be deleted within milliseconds of its end, and its work must not be done again. A Job
//! that was deleted before its end was not deleted by its time to live, and is created again.

use crate::{
    job_key::JobKey,
    observe::{
        layout::WatchId,
        wire::{Held, Object},
    },
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// How the host learned that an object was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Witness {
    /// A watch event, which carries the object's last state.
    Event,
    /// A list without the object, which may have changed after it was last seen.
    List,
}

/// So many tombstones of a job are kept, and of all jobs of a namespace; no more are recorded. A job has at most 10,000 pods,
/// and those that went first are the pods that the host made: while a job is rejected, nothing is written down of it, and
/// its user could make and delete pods of it for ever.
const MOST: usize = 10_000;
const MOST_OF_A_NAMESPACE: usize = 5 * MOST;

/// What is kept of them takes at most so many bytes in a namespace, as estimated: 50,000 pods take more than
/// half of it.
const MOST_BYTES_OF_A_NAMESPACE: usize = 64 << 20;

/// The tombstones of each job, with the watch that showed the object, until [`Tombstones::forget`].
#[derive(Debug, Default)]
pub(crate) struct Tombstones {
    of_jobs: BTreeMap<JobKey, Vec<(WatchId, Object)>>,
    by_namespace: BTreeMap<String, Count>,
}

/// How many tombstones a namespace has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    number: usize,
    /// What they take, as estimated.
    bytes: usize,
}

/// The tombstones of one job, by the uid of their controllers.
pub(crate) type Buried<'a> = BTreeMap<&'a str, Vec<&'a Held>>;

impl Tombstones {
    /// Keeps a pod that had ended, and a Job that had ended or whose last state is known, as a terminating object.
    pub(crate) fn record(&mut self, watch: WatchId, concerned: &BTreeSet<JobKey>, object: &Object, witness: Witness) {
        let held = match &object.held {
            Held::Pod(pod) if pod.phase.is_terminal() => {
                let mut pod = pod.clone();
                Arc::make_mut(&mut pod).terminating = true;
                Held::Pod(pod)
            }
            Held::Child(child) if child.job_is_over() || (child.kind == "Job" && witness == Witness::Event) => {
                let mut child = child.clone();
                Arc::make_mut(&mut child).terminating = true;
                Held::Child(child)
            }
            Held::Job(_) | Held::Pod(_) | Held::Child(_) => return,
        };
        for key in concerned {
            let bytes = held.bytes();
            let of_namespace = self.by_namespace.entry(key.namespace.clone()).or_default();
            let of_job = self.of_jobs.entry(key.clone()).or_default();
            let has_room =
                of_namespace.number < MOST_OF_A_NAMESPACE && of_namespace.bytes + bytes <= MOST_BYTES_OF_A_NAMESPACE;
            if of_job.len() < MOST && has_room {
                of_job.push((watch, Object { held: held.clone(), ..object.clone() }));
                of_namespace.number += 1;
                of_namespace.bytes += bytes;
            }
        }
    }

    /// Returns the tombstones of a job by controller, each time those of these watches first, then the Jobs that another
    /// watch has seen end. That one may keep other fields of an object, but this one may have missed the end.
    pub(crate) fn of(&self, key: &JobKey, watches: &[WatchId]) -> Buried<'_> {
        let all = || self.of_jobs.get(key).into_iter().flatten();
        let here = all().filter(|(watch, _)| watches.contains(watch));
        let is_over = |object: &Object| matches!(&object.held, Held::Child(child) if child.job_is_over());
        let elsewhere = all().filter(|(watch, object)| !watches.contains(watch) && is_over(object));
        let mut by_controller = Buried::new();
        for (_, object) in here.chain(elsewhere) {
            if let Some(owner) = &object.owner {
                by_controller.entry(&owner.uid).or_default().push(&object.held);
            }
        }
        by_controller
    }

    /// Returns the number of tombstones of a job.
    pub(crate) fn count(&self, key: &JobKey) -> usize {
        self.of_jobs.get(key).map_or(0, Vec::len)
    }

    /// Returns the jobs that have tombstones.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = &JobKey> {
        self.of_jobs.keys()
    }

    /// Removes the first `count` tombstones of a job; returns whether there were any.
    pub(crate) fn forget_first(&mut self, key: &JobKey, count: usize) -> bool {
        let Some(kept) = self.of_jobs.get_mut(key) else { return false };
        let count = count.min(kept.len());
        let forgotten: Vec<_> = kept.drain(..count).collect();
        if kept.is_empty() {
            self.of_jobs.remove(key);
        }
        self.uncount(&key.namespace, &forgotten);
        count > 0
    }

    /// Removes all tombstones of a job.
    pub(crate) fn forget(&mut self, key: &JobKey) {
        let forgotten = self.of_jobs.remove(key).unwrap_or_default();
        self.uncount(&key.namespace, &forgotten);
    }

    fn uncount(&mut self, namespace: &str, forgotten: &[(WatchId, Object)]) {
        let Some(of_namespace) = self.by_namespace.get_mut(namespace) else { return };
        of_namespace.number -= forgotten.len();
        of_namespace.bytes -= forgotten.iter().map(|(_, object)| object.held.bytes()).sum::<usize>();
        if of_namespace.number == 0 {
            self.by_namespace.remove(namespace);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_key::GroupKind;
    use crate::{
        api::resource::Resource,
        observe::{
            layout::{Purpose, WatchSpec},
            places::Places,
        },
    };

    fn object(name: &str) -> Object {
        let text = serde_json::json!({
            "apiVersion": "v1", "kind": "Pod", "status": { "phase": "Succeeded" },
            "metadata": {
                "namespace": "ns", "name": name, "uid": name, "resourceVersion": "1",
                "ownerReferences": [{ "apiVersion": "example.com/v1", "kind": "X", "name": "job", "uid": "uid", "controller": true }],
            },
        });
        let resource = Resource::new("v1", "Pod", "pods");
        let spec = WatchSpec { resource, selector: None, purpose: Purpose::Pods(Places::default()), optional: false };
        crate::observe::wire::object(&text.to_string(), &spec).unwrap()
    }

    // Seed 51607 of the campaign: a launcher succeeded and was deleted while a pass waited for an answer; the end of
    // the pass dropped its tombstone.
    #[test]
    fn what_went_while_a_pass_was_under_way_is_still_known_after_it() {
        let key = JobKey::new(&GroupKind::new("example.com", "Tale"), "ns", "job");
        let mut tombstones = Tombstones::default();
        let note = |tombstones: &mut Tombstones, name: &str| {
            tombstones.record(WatchId(0), &BTreeSet::from([key.clone()]), &object(name), Witness::Event);
        };
        note(&mut tombstones, "seen");
        let count = tombstones.count(&key);
        note(&mut tombstones, "later");
        assert!(tombstones.forget_first(&key, count));
        let is_later = |held: &Held| matches!(held, Held::Pod(pod) if pod.name == "later");
        let left = tombstones.of(&key, &[WatchId(0)]);
        assert_eq!(left["uid"].iter().map(|held| is_later(held)).collect::<Vec<_>>(), [true]);
        assert!(!tombstones.forget_first(&key, 0) && tombstones.forget_first(&key, 1) && tombstones.count(&key) == 0);
    }

    #[test]
    fn a_job_of_which_nothing_is_written_down_keeps_no_more_than_it_can_have_pods() {
        let key = |name: &str| JobKey::new(&GroupKind::new("example.com", "Tale"), "ns", name);
        let mut tombstones = Tombstones::default();
        let ended = object("ended");
        let record = |tombstones: &mut Tombstones, name: &str, times| {
            for _ in 0..times {
                tombstones.record(WatchId(0), &BTreeSet::from([key(name)]), &ended, Witness::Event);
            }
        };
        record(&mut tombstones, "first", MOST + 1);
        assert_eq!(tombstones.count(&key("first")), MOST);
        for other in ["b", "c", "d", "e", "f"] {
            record(&mut tombstones, other, MOST);
        }
        assert_eq!((tombstones.count(&key("e")), tombstones.count(&key("f"))), (MOST, 0));
        tombstones.forget(&key("b"));
        assert!(tombstones.forget_first(&key("first"), 1));
        record(&mut tombstones, "f", MOST);
        assert_eq!((tombstones.count(&key("first")), tombstones.count(&key("f"))), (MOST - 1, MOST));
        for name in ["first", "c", "d", "e", "f"] {
            tombstones.forget(&key(name));
        }
        assert!(tombstones.of_jobs.is_empty() && tombstones.by_namespace.is_empty());
    }

    // A tombstone holds what is kept of the object, and its user decides how large that is.
    #[test]
    fn the_tombstones_of_a_namespace_take_no_more_than_so_many_bytes() {
        let key = |namespace: &str| JobKey::new(&GroupKind::new("example.com", "Tale"), namespace, "job");
        let mut tombstones = Tombstones::default();
        let large = job(&serde_json::json!([{ "type": "Complete", "status": "True", "message": "x".repeat(1 << 20) }]));
        for _ in 0..100 {
            tombstones.record(WatchId(0), &BTreeSet::from([key("ns")]), &large, Witness::Event);
        }
        assert_eq!(tombstones.count(&key("ns")), 63);
        tombstones.record(WatchId(0), &BTreeSet::from([key("other")]), &large, Witness::Event);
        assert_eq!(tombstones.count(&key("other")), 1);
        assert!(tombstones.forget_first(&key("ns"), 1));
        tombstones.record(WatchId(0), &BTreeSet::from([key("ns")]), &large, Witness::Event);
        assert_eq!(tombstones.count(&key("ns")), 63);
        [key("ns"), key("other")].iter().for_each(|key| tombstones.forget(key));
        assert!(tombstones.by_namespace.is_empty());
    }

    fn job(conditions: &serde_json::Value) -> Object {
        let text = serde_json::json!({
            "apiVersion": "batch/v1", "kind": "Job", "status": { "conditions": conditions },
            "metadata": {
                "namespace": "ns", "name": "launcher", "uid": "launcher", "resourceVersion": "1",
                "ownerReferences": [{ "apiVersion": "example.com/v1", "kind": "X", "name": "job", "uid": "uid", "controller": true }],
            },
        });
        let resource = Resource::new("batch/v1", "Job", "jobs");
        let purpose = Purpose::Children(["/status"].into_iter().collect());
        crate::observe::wire::object(
            &text.to_string(),
            &WatchSpec { resource, selector: None, purpose, optional: false },
        )
        .unwrap()
    }

    // Seed 779 of the campaign: the watch of the launchers was listed anew between the end of one and its deletion. A watch
    // of all Jobs, for the runs of schedules, had seen the end.
    #[test]
    fn an_end_that_one_watch_has_missed_is_known_from_another() {
        let key = JobKey::new(&GroupKind::new("example.com", "Tale"), "ns", "job");
        let seen = |watch, conditions| {
            let mut tombstones = Tombstones::default();
            tombstones.record(WatchId(watch), &BTreeSet::from([key.clone()]), &job(&conditions), Witness::Event);
            tombstones.of(&key, &[WatchId(0)]).get("uid").map_or(0, Vec::len)
        };
        let complete = serde_json::json!([{ "type": "Complete", "status": "True" }]);
        assert_eq!((seen(0, complete.clone()), seen(1, complete)), (1, 1));
        // A Job that was deleted before its end is created again: only its own watch can say so.
        assert_eq!((seen(0, serde_json::json!([])), seen(1, serde_json::json!([]))), (1, 0));
    }
}
