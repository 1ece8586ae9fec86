//! The batch/v1 Job controller: creates pods for Jobs, and counts them in the Job's status.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::Value;

use crate::delete::{DeleteOptions, Propagation};
use crate::job_sync::Sync;
use crate::store::{Change, Event, Location, controller, deleting, has_finalizer, key, name, namespace, text, uid};
use crate::verbs::Target;
use crate::world::{Errand, World, parse};

/// The finalizer on a Job's pods until they are counted.
pub(crate) const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
const ACTOR: &str = "job-controller";

impl World {
    pub(crate) fn job_changed(&mut self, event: &Event) {
        if event.change != Change::Deleted {
            self.look_at_job(&event.location);
            return;
        }
        for location in self.store.owned(uid(&event.object)) {
            self.release_orphan(&location);
        }
    }

    pub(crate) fn job_pod_changed(&mut self, event: &Event) {
        let pod = &*event.object;
        let Some(owner) = controller(pod).filter(|owner| owner["kind"] == "Job") else {
            return self.release_orphan(&event.location);
        };
        let location = Location { table: "batch/jobs".into(), key: key(namespace(pod), text(&owner["name"])) };
        match self.store.get(&location) {
            Some(job) if uid(job) == text(&owner["uid"]) && !deleting(job) && !finished(job) => {
                self.look_at_job(&location);
            }
            _ => self.release_orphan(&event.location),
        }
    }

    /// Schedules a sync of the Job; several changes share one sync.
    fn look_at_job(&mut self, location: &Location) {
        let errand = Errand::Job(location.clone());
        let soon = tokio::time::Instant::now() + self.life.life.control;
        let planned = self.agenda.iter().take_while(|(due, ..)| *due <= soon).any(|(_, _, have)| *have == errand);
        if !planned {
            self.later(self.life.life.control, errand);
        }
    }

    /// Removes the finalizer of a pod that no Job will count.
    fn release_orphan(&mut self, location: &Location) {
        if self.store.get(location).is_some_and(|pod| has_finalizer(pod, FINALIZER)) {
            self.release(location, FINALIZER);
        }
    }

    fn job_pods(&self, id: &str) -> Vec<(Location, Arc<Value>)> {
        self.store
            .owned(id)
            .into_iter()
            .filter(|location| location.table == "/pods")
            .filter_map(|location| self.store.get(&location).cloned().map(|pod| (location, pod)))
            .filter(|(_, pod)| controller(pod).is_some_and(|owner| text(&owner["uid"]) == id))
            .collect()
    }

    /// Syncs a Job and its pods.
    pub(crate) fn job_due(&mut self, location: &Location) {
        let Some(job) = self.store.get(location).cloned() else {
            return;
        };
        let managed_by = job["spec"]["managedBy"].as_str().unwrap_or("kubernetes.io/job-controller");
        if managed_by != "kubernetes.io/job-controller" {
            return;
        }
        if finished(&job) || deleting(&job) {
            for (location, _) in self.job_pods(uid(&job)) {
                self.release_orphan(&location);
            }
            return self.expire(location, &job);
        }
        let mut sync = Sync::new(&job, self.job_pods(uid(&job)), self.now());
        let (created, doomed) = sync.decide();
        for pod in doomed {
            if sync.spared {
                self.release(&Location { table: "/pods".into(), key: key(namespace(&pod), name(&pod)) }, FINALIZER);
            }
            self.delete_job_pod(&pod);
        }
        for pod in created {
            let kind = self.store.kind("/pods");
            let Some(kind) = kind else { continue };
            let target = Target::own(ACTOR, &kind, &pod);
            if self.create(&target, pod).is_err() {
                sync.active -= 1;
            }
        }
        let (status, counted, again) = (sync.status(), sync.counted, sync.again);
        self.alter(ACTOR, location, |job| job["status"] = status);
        for location in counted {
            self.release(&location, FINALIZER);
        }
        if let Some(delay) = again {
            self.later(delay, Errand::Job(location.clone()));
        }
    }

    fn delete_job_pod(&mut self, pod: &Value) {
        let Some(kind) = self.store.kind("/pods") else {
            return;
        };
        let options = DeleteOptions { uid: Some(uid(pod).to_owned()), ..DeleteOptions::background() };
        // The pod may be gone already.
        let _ = self.delete(&Target::own(ACTOR, &kind, pod), &options);
    }

    /// Deletes a finished Job after its time to live.
    fn expire(&mut self, location: &Location, job: &Value) {
        let (Some(ttl), false) = (job["spec"]["ttlSecondsAfterFinished"].as_i64(), deleting(job)) else {
            return;
        };
        let Some(end) = condition(job, "Complete").or(condition(job, "Failed")) else {
            return;
        };
        let Some(end) = parse(&end["lastTransitionTime"]) else {
            return;
        };
        let left = (end + SignedDuration::from_secs(ttl)).duration_since(self.now());
        if let Ok(left) = Duration::try_from(left)
            && !left.is_zero()
        {
            return self.later(left, Errand::Job(location.clone()));
        }
        let Some(kind) = self.store.kind(&location.table) else {
            return;
        };
        let options = DeleteOptions {
            uid: Some(uid(job).to_owned()),
            propagation: Some(Propagation::Foreground),
            ..DeleteOptions::default()
        };
        // The uid was just read, so the delete cannot be refused.
        let _ = self.delete(&Target::own("ttl-controller", &kind, job), &options);
    }
}

/// Returns the Job's condition of this type if it is true.
pub(crate) fn condition<'a>(job: &'a Value, kind: &str) -> Option<&'a Value> {
    let list = job["status"]["conditions"].as_array()?;
    list.iter().find(|condition| condition["type"] == kind && condition["status"] == "True")
}

fn finished(job: &Value) -> bool {
    condition(job, "Complete").is_some() || condition(job, "Failed").is_some()
}
