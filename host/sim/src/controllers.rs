//! The task that runs the scheduler, the kubelets, the Job controller and the garbage collector, in a fixed order.

use std::sync::Arc;

use tokio::time::{Instant, sleep_until};

use crate::Sim;
use crate::store::{Change, Event, Location};
use crate::world::{Errand, World};

/// Runs until the task is aborted.
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
    /// Makes the controllers reconcile all objects, as after their restart.
    pub(crate) fn relist(&mut self) {
        self.changed.clear();
        for (name, table) in &self.store.tables {
            for (key, object) in &table.objects {
                let location = Location { table: name.clone(), key: key.clone() };
                let version = self.store.version;
                let event = Event { version, change: Change::Added, location, object: object.clone(), before: None };
                self.changed.push_back(Arc::new(event));
            }
        }
    }

    /// Reconciles everything that changed or is due; returns when the next item is due.
    fn step(&mut self) -> Option<Instant> {
        loop {
            if let Some(event) = self.changed.pop_front() {
                match event.location.table.as_str() {
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
                Some((_, _, Errand::Job(location))) => self.job_due(&location),
                Some((_, _, Errand::Collect(uid))) => self.collect_due(&uid),
                None => {}
            }
        }
    }
}
