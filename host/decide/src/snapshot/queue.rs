//! What a queue says of a job, and whether it holds the job back.

use super::{Child, Snapshot};
use crate::plan::Queueing;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeSet, sync::Arc};

/// The label of a job with the name of its queue, a LocalQueue of its namespace.
pub const QUEUE_LABEL: &str = "kueue.x-k8s.io/queue-name";

/// The label of a job whose Workload somebody else has made: Kueue's MultiKueue, for one.
const PREBUILT_LABEL: &str = "kueue.x-k8s.io/prebuilt-workload-name";

/// The label that Kueue gives the pod templates of a job that it admits by an integration of its own, and takes away when it
/// evicts the job (0.19.2, `jobframework`).
pub(crate) const ADMITTED_LABEL: &str = "kueue.x-k8s.io/podset";

/// What the watches have shown of a queue for one job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    /// The Workload that the host made for the job.
    pub workload: Option<Arc<Child>>,
    /// The cluster's flavors and priority classes.
    pub classes: Vec<Arc<Child>>,
}

/// Why a queue holds a job back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hold {
    /// The queue has said nothing of the Workload yet, or there is none.
    Unseen,
    /// The Workload is not admitted.
    NotAdmitted {
        /// The queue's words.
        why: String,
    },
    /// The Workload was admitted, and is not any more.
    Evicted {
        /// The queue's word for it: `Preempted`.
        reason: String,
        /// The queue's words.
        why: String,
    },
    /// The Workload is not active, and has no quota.
    Inactive {
        /// The queue's words; empty if it has said nothing.
        why: String,
    },
    /// What the Workload or the job refers to is not there, or the host may not read it.
    ClassMissing {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
}

impl Snapshot {
    /// Returns the name of the job's queue.
    #[must_use]
    pub fn queue_name(&self) -> Option<&str> {
        self.job.labels.get(QUEUE_LABEL).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// Returns whether the host makes the Workload of the job, or has made one. Of a kind that Kueue knows it does so where Kueue
    /// does not act: with its integration on, Kueue suspends a job at its creation, and resumes it as one that is marked. So one
    /// that its user has not suspended, and that is not marked, was admitted by nobody. One that runs already, as it was taken
    /// over, is not stopped for its queue.
    #[must_use]
    pub fn is_queued_by_host(&self, has_workload: bool) -> bool {
        let Some(_) = self.queue_name() else { return has_workload };
        match self.kind.queueing {
            Queueing::Host => true,
            // One that it has queued before the setting was made stays so to its end.
            Queueing::Kueue => has_workload,
            Queueing::Elsewhere => {
                let may_be_held = !self.suspended_by_user() && (self.ledger.queued || !self.has_begun());
                // The walk of the spec comes last: this is asked in each pass.
                let is_kueues =
                    || self.job.labels.contains_key(PREBUILT_LABEL) || any_object(&self.job.spec, is_admitted);
                has_workload || may_be_held && !is_kueues()
            }
        }
    }

    /// Returns whether anything of the job runs, has run, or has failed since it was submitted or resumed.
    fn has_begun(&self) -> bool {
        let ledger = &self.ledger;
        let is_noted = ledger.finished.is_some() || ledger.ending.is_some() || !ledger.succeeded.is_empty();
        let has_failed = !ledger.failures.is_empty() || !ledger.attempts.is_empty();
        is_noted || has_failed || !self.pods.is_empty() || self.children.iter().any(|child| child.kind == "Job")
    }

    /// Returns why the queue of the job holds it back; `None` for a job that may run, or that is in no queue.
    #[must_use]
    pub fn hold(&self) -> Option<Hold> {
        let queue = self.queue.as_ref()?;
        self.queue_name()?;
        queue.hold()
    }
}

impl Queue {
    /// Returns the Workload, unless it is being deleted.
    #[must_use]
    pub fn workload(&self) -> Option<&Child> {
        self.workload.as_deref().filter(|workload| !workload.terminating)
    }

    /// Returns the class of this kind and name, if it is known.
    #[must_use]
    pub fn class(&self, kind: &str, name: &str) -> Option<&Child> {
        self.classes.iter().map(AsRef::as_ref).find(|class| class.kind == kind && class.name == name)
    }

    /// Returns the conditions of the Workload.
    #[must_use]
    pub fn conditions(&self) -> &[Value] {
        self.list("/status/conditions")
    }

    /// Returns the condition of this type.
    #[must_use]
    pub fn condition(&self, kind: &str) -> Option<&Value> {
        self.conditions().iter().find(|condition| condition["type"] == kind)
    }

    /// Returns the condition of this type if its status is True.
    #[must_use]
    pub fn has(&self, kind: &str) -> Option<&Value> {
        self.condition(kind).filter(|condition| condition["status"] == "True")
    }

    /// Returns what is assigned to the pods of each role.
    pub fn assignments(&self) -> impl Iterator<Item = &Value> {
        self.field("/status/admission").and_then(|it| it["podSetAssignments"].as_array()).into_iter().flatten()
    }

    /// Returns what admission checks add to pods.
    pub fn updates(&self) -> impl Iterator<Item = &Value> {
        let checks = self.list("/status/admissionChecks").iter();
        checks.filter_map(|check| check["podSetUpdates"].as_array()).flatten()
    }

    fn field(&self, at: &str) -> Option<&Value> {
        self.workload.as_ref()?.fields.get(at)
    }

    fn list(&self, at: &str) -> &[Value] {
        self.field(at).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn hold(&self) -> Option<Hold> {
        if self.workload().is_none() {
            return Some(Hold::Unseen);
        }
        let is_inactive = self.field("/spec/active") == Some(&Value::Bool(false));
        let evicted = self.has("Evicted");
        // Its quota is given back once the pods have ended.
        if let Some(evicted) = evicted.filter(|_| self.has("QuotaReserved").is_some()) {
            return Some(Hold::Evicted { reason: word(evicted, "reason"), why: word(evicted, "message") });
        }
        if is_inactive {
            return Some(Hold::Inactive { why: evicted.map(|it| word(it, "message")).unwrap_or_default() });
        }
        if self.has("Admitted").is_some() && evicted.is_none() {
            let missing = self.flavors().into_iter().find(|name| self.class("ResourceFlavor", name).is_none());
            return missing.map(|name| Hold::ClassMissing { kind: "ResourceFlavor".to_owned(), name });
        }
        let said = ["QuotaReserved", "Admitted"].into_iter().filter_map(|kind| self.condition(kind));
        let refusal = said.into_iter().find(|condition| condition["status"] != "True");
        Some(refusal.map_or(Hold::Unseen, |refusal| Hold::NotAdmitted { why: word(refusal, "message") }))
    }

    fn flavors(&self) -> BTreeSet<String> {
        self.assignments().flat_map(flavors).collect()
    }
}

/// Returns whether this holds for the value or for an object in it, such as a template of pods in the spec of a job.
pub(crate) fn any_object(value: &Value, holds: fn(&Value) -> bool) -> bool {
    match value {
        Value::Object(fields) => holds(value) || fields.values().any(|inner| any_object(inner, holds)),
        Value::Array(items) => items.iter().any(|inner| any_object(inner, holds)),
        _ => false,
    }
}

/// Returns whether Kueue has marked this template of pods as admitted.
pub(crate) fn is_admitted(template: &Value) -> bool {
    template["spec"].is_object() && template["metadata"]["labels"][ADMITTED_LABEL].is_string()
}

/// Returns the names of the flavors of an assignment.
pub(crate) fn flavors(assignment: &Value) -> impl Iterator<Item = String> {
    let flavors = assignment["flavors"].as_object().into_iter().flatten();
    flavors.filter_map(|(_, name)| Some(name.as_str()?.to_owned()))
}

fn word(condition: &Value, field: &str) -> String {
    condition[field].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        snapshot::PodPhase,
        testkit::{job, pod, snapshot},
    };
    use serde_json::json;

    fn queued(queueing: Queueing, template: &Value) -> Snapshot {
        let mut snapshot = snapshot(job("hamlet", "u"));
        Arc::make_mut(&mut snapshot.kind).queueing = queueing;
        let job = Arc::make_mut(&mut snapshot.job);
        job.labels.insert(QUEUE_LABEL.into(), "ours".into());
        job.spec = json!({ "roles": [{ "template": template }] });
        snapshot
    }

    // AC-33
    #[test]
    fn a_job_that_its_queue_neither_holds_nor_has_admitted_is_queued_by_the_host() {
        let plain = json!({ "metadata": { "labels": {} }, "spec": {} });
        let marked = json!({ "metadata": { "labels": { ADMITTED_LABEL: "main" } }, "spec": {} });
        let is_hosts = |queueing, template: &Value| queued(queueing, template).is_queued_by_host(false);
        assert!(is_hosts(Queueing::Elsewhere, &plain) && !is_hosts(Queueing::Elsewhere, &marked));
        assert!(is_hosts(Queueing::Host, &marked) && !is_hosts(Queueing::Kueue, &plain));
        let mut prebuilt = queued(Queueing::Elsewhere, &plain);
        Arc::make_mut(&mut prebuilt.job).labels.insert(PREBUILT_LABEL.into(), "w".into());
        assert!(!prebuilt.is_queued_by_host(false));
    }

    #[test]
    fn a_job_that_has_begun_is_not_stopped_for_its_queue_unless_the_host_has_queued_it() {
        let mut running = queued(Queueing::Elsewhere, &json!({ "spec": {} }));
        running.pods = vec![pod("hamlet-0", "u", PodPhase::Running).into()];
        assert!(!running.is_queued_by_host(false) && running.is_queued_by_host(true));
        let mut ended = running.clone();
        ended.pods = vec![pod("hamlet-0", "u", PodPhase::Succeeded).into()];
        assert!(!ended.is_queued_by_host(false), "it would be run again");
        ended.pods.clear();
        ended.ledger.record_success("main", 0);
        assert!(!ended.is_queued_by_host(false));
        running.ledger.queued = true;
        assert!(running.is_queued_by_host(false), "its Workload is being made anew");
    }
}
