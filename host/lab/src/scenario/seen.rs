//! What the host sees of the world: the snapshot, as its watches and stores would make it.

use super::{
    pods,
    world::{Key, World, controller, finalizers, owner_uid, text, uid_of},
};
use decide::{
    Snapshot,
    ledger::Ledger,
    snapshot::{Child, Job},
    status::Published,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

impl World {
    /// Everything that a decision may depend on; None without a job.
    pub(super) fn snapshot(&self) -> Option<Snapshot> {
        let (served, job) = (self.served.clone()?, self.job.as_ref()?);
        let uid = text(job, "/metadata/uid");
        let status = job.get("status").cloned().unwrap_or_else(|| json!({}));
        let jobs: Vec<String> =
            self.owned_by(&uid).filter(|(key, _)| key.0 == "Job").map(|(_, it)| uid_of(it)).collect();
        let of_us = |object: &Value| owner_uid(object).is_some_and(|owner| owner == uid || jobs.contains(&owner));
        let pods = self.watched("Pod").filter(|(_, pod)| of_us(pod));
        Some(Snapshot {
            set_aside: None,
            unreadable: None,
            no_ports: None,
            pruned: self.published.as_ref().is_some_and(Published::is_pruned),
            namespace_terminating: false,
            now: self.now,
            ledger: Ledger::read(&status, &uid),
            pods: pods.map(|(_, pod)| Arc::new(pods::read(pod))).collect(),
            children: self.children(&uid),
            taken: self.taken(&uid),
            job: Arc::new(read_job(job, status)),
            kind: served.kind,
            digest: served.digest,
        })
    }

    fn children(&self, uid: &str) -> Vec<Arc<Child>> {
        let kinds = self.served.iter().flat_map(|served| &served.framework.children).filter(|kind| kind.kind != "Pod");
        let mut children: Vec<_> = kinds
            .flat_map(|kind| {
                let ours = self.watched(&kind.kind).filter(|(_, child)| owner_uid(child).as_deref() == Some(uid));
                let ours = ours.filter(|(_, child)| child["apiVersion"] == kind.api_version.as_str());
                ours.map(|((_, name), child)| read_child(&kind.api_version, &kind.kind, name, child, &kind.keep))
            })
            .collect();
        children.sort_by(|a, b| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)));
        children.into_iter().map(Arc::new).collect()
    }

    /// Objects of a kind that the host's watch shows: those that carry the selector's label.
    fn watched(&self, kind: &str) -> impl Iterator<Item = (&Key, &Value)> {
        let children = self.served.iter().flat_map(|served| &served.framework.children);
        let selector = children.filter(|child| child.kind == kind).find_map(|child| child.selector.clone());
        let watched: Vec<_> = self
            .objects
            .iter()
            .filter(|(key, _)| key.0 == kind)
            .filter(|(_, object)| {
                let labels = object.pointer("/metadata/labels");
                selector.as_ref().is_none_or(|label| labels.is_some_and(|labels| labels.get(label).is_some()))
            })
            .collect();
        watched.into_iter()
    }

    /// Names that the job's would be and that objects of other jobs have, or a Job that is gone and whose pods are not; the
    /// host drops what no job controls.
    fn taken(&self, uid: &str) -> BTreeSet<Key> {
        let Some(served) = &self.served else { return BTreeSet::new() };
        let kinds = served.framework.children.iter().map(|child| child.kind.as_str());
        let of_a_job = |object: &Value| {
            let owner = controller(object).map(|owner| text(owner, "/kind"));
            owner.is_some_and(|kind| kind == served.kind.kind || kind == "Job")
        };
        let taken = kinds.flat_map(|kind| self.watched(kind));
        let others = taken.filter(|(_, it)| of_a_job(it) && owner_uid(it).as_deref() != Some(uid));
        let gone = self.watched("Pod").filter_map(|(_, pod)| self.job_that_is_gone(pod));
        let all = others.map(|(key, _)| key.clone()).chain(gone);
        all.filter(|(_, name)| name.starts_with(&self.job_name())).collect()
    }

    fn job_that_is_gone(&self, pod: &Value) -> Option<Key> {
        let owner = controller(pod).filter(|owner| owner["kind"] == "Job")?;
        let key = ("Job".to_owned(), text(owner, "/name"));
        let there = self.objects.get(&key).is_some_and(|job| uid_of(job) == text(owner, "/uid"));
        (!there).then_some(key)
    }
}

fn map(object: &Value, field: &str) -> BTreeMap<String, String> {
    let entries = object["metadata"].get(field).and_then(Value::as_object).into_iter().flatten();
    entries.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
}

fn read_job(job: &Value, status: Value) -> Job {
    Job {
        namespace: text(job, "/metadata/namespace"),
        name: text(job, "/metadata/name"),
        uid: uid_of(job),
        resource_version: text(job, "/metadata/resourceVersion"),
        generation: job["metadata"]["generation"].as_i64().unwrap_or(0),
        created: text(job, "/metadata/creationTimestamp").parse().unwrap_or_default(),
        deleting: job.pointer("/metadata/deletionTimestamp").is_some(),
        finalizers: finalizers(job),
        labels: map(job, "labels"),
        annotations: map(job, "annotations"),
        spec: job.get("spec").filter(|spec| spec.is_object()).cloned().unwrap_or_else(|| json!({})),
        status,
    }
}

fn read_child(api_version: &str, kind: &str, name: &str, child: &Value, keep: &[String]) -> Child {
    let kept = keep.iter().filter_map(|pointer| Some((pointer.clone(), child.pointer(pointer)?.clone())));
    Child {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        uid: uid_of(child),
        resource_version: text(child, "/metadata/resourceVersion"),
        terminating: child.pointer("/metadata/deletionTimestamp").is_some(),
        fields: kept.collect(),
    }
}
