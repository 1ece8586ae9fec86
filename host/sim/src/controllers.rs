//! The task in which scheduler, kubelets, Job controller and garbage collector do their work, in one fixed order.

use std::sync::Arc;

use tokio::time::{Instant, sleep_until};

use crate::Sim;
use crate::store::{Change, Event, Place};
use crate::world::{Errand, World};

/// Runs until it is aborted.
pub(crate) async fn run(sim: Sim) {
    let wake = sim.world().wake.clone();
    loop {
        let due = sim.world().step();
        tokio::select! {
            biased;
            () = wake.notified() => {}
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
    }
}

impl World {
    /// Has the controllers look at everything there is, as after their own restart.
    pub(crate) fn relist(&mut self) {
        self.changed.clear();
        for (name, table) in &self.store.tables {
            for (key, object) in &table.objects {
                let place = Place { table: name.clone(), key: key.clone() };
                let version = self.store.version;
                let event = Event { version, change: Change::Added, place, object: object.clone(), before: None };
                self.changed.push_back(Arc::new(event));
            }
        }
    }

    /// Looks at all that changed and all that is due; returns when to look again.
    fn step(&mut self) -> Option<Instant> {
        loop {
            if let Some(event) = self.changed.pop_front() {
                match event.place.table.as_str() {
                    "/pods" => {
                        self.pod_changed(&event);
                        if self.life.life.jobs {
                            self.job_pod_changed(&event);
                        }
                    }
                    "batch/jobs" if self.life.life.jobs => self.job_changed(&event),
                    _ => {}
                }
                self.collect_changed(&event);
                continue;
            }
            let due = self.agenda.first().map(|(due, ..)| *due)?;
            if due > Instant::now() {
                return Some(due);
            }
            match self.agenda.pop_first() {
                Some((_, _, Errand::Pod(pod))) => self.pod_due(&pod),
                Some((_, _, Errand::Job(place))) => self.job_due(&place),
                Some((_, _, Errand::Collect(uid))) => self.collect_due(&uid),
                None => {}
            }
        }
    }
}
