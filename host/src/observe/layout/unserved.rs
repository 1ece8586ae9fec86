//! Kinds that no plugin ever served, since the Plugin that would was refused: their jobs are watched to report that.

use super::{Layout, Planner, Purpose, Route, Served, WatchId, WatchSpec};
use crate::job_key::GroupKind;
use decide::{
    plan::{Descriptor, Fault, JobKind},
    snapshot::Job,
    status::of_framework,
};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Why a kind is watched that no plugin ever served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unserved {
    /// The Plugin that would serve it was refused, for this reason.
    Refused(&'static str),
    /// That Plugin is gone; its jobs are not.
    Deleted,
}

impl Layout {
    /// Has the jobs of the kinds that nobody serves report that the Plugin of this descriptor was refused, and for which
    /// reason. Returns whether that is new. Its children are not watched, and finalizers of its jobs stay.
    pub(crate) fn refuse(&mut self, descriptor: &Arc<Descriptor>, reason: &'static str) -> bool {
        let is_of_it = |served: &Served| served.framework.name == descriptor.name;
        let mut is_new = self.remove_unserved(|served| is_of_it(served) && !describes(descriptor, served));
        for kind in &descriptor.kinds {
            let key = GroupKind::from(kind);
            let bare = JobKind { retired_finalizers: vec![], ..kind.clone() };
            let stays = |served: &Served| match served.unserved {
                Some(Unserved::Refused(known)) if is_of_it(served) => known == reason && *served.kind == bare,
                Some(Unserved::Deleted) => false,
                Some(Unserved::Refused(_)) | None => true,
            };
            if self.kinds.get(&key).is_some_and(stays) {
                continue;
            }
            is_new = true;
            self.remove_unserved(|served| served.kind.is_same(kind));
            let (kind, framework) = (Arc::new(bare), Arc::clone(descriptor));
            let resource = (&*kind).into();
            let served = Served { kind, framework, route: Route::default(), unserved: Some(Unserved::Refused(reason)) };
            self.kinds.insert(key.clone(), served);
            self.watch(WatchSpec { resource, selector: None, purpose: Purpose::Jobs(key), optional: true });
        }
        is_new
    }

    /// Records that the refused Plugin of this framework is gone.
    pub(crate) fn forget_refusal(&mut self, framework: &str) {
        let of_it = self.kinds.values_mut().filter(|served| served.framework.name == framework);
        of_it.filter_map(|served| served.unserved.as_mut()).for_each(|unserved| *unserved = Unserved::Deleted);
    }

    /// Removes those of the kinds that no plugin ever served, with their watches. Returns whether there were any.
    pub(super) fn remove_unserved(&mut self, is_over: impl Fn(&Served) -> bool) -> bool {
        let before = self.kinds.len();
        self.kinds.retain(|_, served| served.unserved.is_none() || !is_over(served));
        let kinds = &self.kinds;
        self.watches.retain(|_, watch| !matches!(&watch.purpose, Purpose::Jobs(kind) if !kinds.contains_key(kind)));
        self.kinds.len() < before
    }

    /// Returns whether the watch is one that nothing waits for: of jobs that only report that no plugin serves them. The
    /// host need not have the right to it.
    pub(crate) fn is_of_unserved(&self, watch: WatchId) -> bool {
        let Some(Purpose::Jobs(kind)) = self.watches.get(&watch).map(|watch| &watch.purpose) else { return false };
        self.kinds.get(kind).is_some_and(|served| served.unserved.is_some())
    }
}

/// Returns whether the descriptor has the kind.
pub(super) fn describes(descriptor: &Descriptor, served: &Served) -> bool {
    descriptor.kinds.iter().any(|kind| kind.is_same(&served.kind))
}

/// Returns why no digest plans a new job of a kind without an active one.
pub(super) fn unplanned(served: &Served, job: &Job) -> Planner {
    let Some(Unserved::Refused(reason)) = served.unserved else { return Planner::lost(None, "") };
    let is_empty = |status: &Value| status.as_object().is_none_or(Map::is_empty);
    if job.status.get("troupe").is_none() && !is_empty(&of_framework(&job.status)) {
        return Planner::Another;
    }
    Planner::Held(None, Fault::Refused { plugin: served.framework.name.clone(), why: reason.to_owned() })
}
