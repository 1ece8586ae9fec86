//! Children that went before it was written down how they ended: the last that was seen of them.
//!
//! A Job with a time to live can be gone within milliseconds of its end, and what it did must not be done again. One that
//! was deleted before its end did not go by its time to live, and is made again.

use crate::{
    stores::JobKey,
    wire::{Held, Object},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// How it is known that an object is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Witness {
    /// A watch event, which carries the object's last state.
    Event,
    /// A list without it: it may have changed since it was seen last.
    List,
}

/// By job, until [`Departed::forget`].
#[derive(Debug, Default)]
pub(crate) struct Departed(BTreeMap<JobKey, Vec<Object>>);

impl Departed {
    /// Keeps a pod that had ended, and a Job that had ended or whose last state is known, as one that is on its way out.
    pub(crate) fn note(&mut self, concerned: &BTreeSet<JobKey>, object: &Object, witness: Witness) {
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
            self.0.entry(key.clone()).or_default().push(Object { held: held.clone(), ..object.clone() });
        }
    }

    /// Those of a job that this controller owns.
    pub(crate) fn owned_by(&self, key: &JobKey, uid: &str) -> impl Iterator<Item = &Held> {
        let all = self.0.get(key).into_iter().flatten();
        let owned = all.filter(move |object| object.owner.as_ref().is_some_and(|owner| owner.uid == uid));
        owned.map(|object| &object.held)
    }

    /// Forgets those of a job; says whether there were any.
    pub(crate) fn forget(&mut self, key: &JobKey) -> bool {
        self.0.remove(key).is_some()
    }
}
