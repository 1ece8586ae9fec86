//! How much is kept of the objects of each namespace: of children the fields and annotations that plugins and the host read, of
//! jobs spec, status and what is written into metadata.

use crate::observe::wire::{Held, Object};
use decide::{plan::FieldError, weight};
use sandbox::Limits;
use std::{collections::BTreeMap, sync::Arc};
use tracing::warn;

/// The fields of the children of a namespace take at most so many bytes, as estimated: as values, text in small pieces takes
/// twenty times its size. Whoever may make ConfigMaps decides how many there are.
const MOST: usize = 128 << 20;

/// The maximum bytes that the jobs of a namespace take, as estimated: ten thousand of twelve KiB.
const MOST_OF_JOBS: usize = 128 << 20;

/// Annotations that the host wrote to a pod have a few bytes; those with more than this are counted as fields are.
const ANNOTATIONS: usize = 64;

/// The bytes that are kept, by namespace.
#[derive(Debug)]
pub(super) struct Kept {
    by_namespace: BTreeMap<String, OfNamespace>,
    /// The maximum of children in a namespace.
    most: usize,
    /// The maximum of jobs in a namespace.
    most_of_jobs: usize,
    /// The maximum bytes of a spec as JSON.
    largest_spec: usize,
}

/// The bytes that are kept of the objects of one namespace.
#[derive(Debug, Default, PartialEq, Eq)]
struct OfNamespace {
    children: usize,
    jobs: usize,
}

impl Default for Kept {
    fn default() -> Self {
        let largest_spec = Limits::default().spec;
        Self { by_namespace: BTreeMap::new(), most: MOST, most_of_jobs: MOST_OF_JOBS, largest_spec }
    }
}

impl Kept {
    /// Keeps no spec that has more bytes as JSON.
    pub(super) fn limit_specs(&mut self, largest: usize) {
        self.largest_spec = largest;
    }

    /// Leaves the spec of a job out that is larger than any job may have, and makes that the error of the object. Of a job that
    /// has ended it stays: nothing is made from it, and what is left to do does not depend on it.
    pub(super) fn trim(&self, object: &mut Object) {
        let Held::Job(packed) = &mut object.held else { return };
        if packed.recorded().has_ended {
            return;
        }
        if let Some(bytes) = packed.large_spec(self.largest_spec) {
            packed.drop_spec();
            object.unreadable.get_or_insert_with(|| FieldError::large_spec(bytes, self.largest_spec));
        }
    }

    /// Counts what is kept of an object that is to be stored. If its namespace has too much, leaves it out and makes that
    /// the error of the object, until a watch shows it again.
    pub(super) fn admit(&mut self, object: &mut Object) {
        self.trim(object);
        match &mut object.held {
            Held::Job(packed) => {
                let of_namespace = self.by_namespace.entry(object.namespace.clone()).or_default();
                if of_namespace.jobs + packed.bytes() > self.most_of_jobs {
                    packed.drop_texts();
                    let (namespace, job) = (&object.namespace, &object.name);
                    warn!(namespace, job, "too little room for its spec and status: its namespace has too many jobs");
                    object.unreadable.get_or_insert_with(|| too_many_jobs(self.most_of_jobs));
                }
                of_namespace.jobs += packed.bytes();
            }
            Held::Pod(_) | Held::Child(_) => self.admit_child(object),
        }
    }

    fn admit_child(&mut self, object: &mut Object) {
        let bytes = bytes_of(&object.held);
        if bytes == 0 {
            return;
        }
        let of_namespace = self.by_namespace.entry(object.namespace.clone()).or_default();
        if of_namespace.children + bytes <= self.most {
            of_namespace.children += bytes;
            return;
        }
        let kind = match &mut object.held {
            Held::Pod(pod) => {
                let pod = Arc::make_mut(pod);
                // A pod that says nothing of its addresses and its template stays.
                (pod.addresses, pod.template_hash) = (None, None);
                pod.fields.clear();
                "Pod"
            }
            Held::Child(child) => {
                Arc::make_mut(child).fields.clear();
                &child.kind
            }
            Held::Job(_) => return,
        };
        let most = self.most >> 20;
        let message = format!(
            "the objects of this namespace have more than {most} MiB of data that plugins and the host read: delete some, \
             then annotate this one"
        );
        object.unreadable.get_or_insert(FieldError { path: format!("{kind} {}", object.name), message });
    }

    /// Counts what is kept of an object no longer.
    pub(super) fn release(&mut self, object: &Object) {
        let (children, jobs) = match &object.held {
            Held::Job(packed) => (0, packed.bytes()),
            held @ (Held::Pod(_) | Held::Child(_)) => (bytes_of(held), 0),
        };
        if let Some(of_namespace) = self.by_namespace.get_mut(&object.namespace) {
            of_namespace.children -= children;
            of_namespace.jobs -= jobs;
            if *of_namespace == OfNamespace::default() {
                self.by_namespace.remove(&object.namespace);
            }
        }
    }
}

fn too_many_jobs(most: usize) -> FieldError {
    let message = format!(
        "the jobs of this namespace have more than {} MiB of specs, statuses, labels and annotations: delete some, then \
         annotate this one",
        most >> 20
    );
    FieldError { path: "metadata.namespace".to_owned(), message }
}

/// Estimates the bytes of a child of which fields are kept, or annotations that the host has not written; 0 if there are
/// none.
fn bytes_of(held: &Held) -> usize {
    let has_fields = match held {
        Held::Pod(pod) => !pod.fields.is_empty() || weight::annotations(pod) > ANNOTATIONS,
        Held::Child(child) => !child.fields.is_empty(),
        Held::Job(_) => false,
    };
    if has_fields { held.bytes() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        api::resource::Resource,
        job_key::GroupKind,
        observe::{
            layout::{Purpose, WatchSpec},
            places::Places,
            wire,
        },
    };
    use decide::{addresses::ADDRESSES_ANNOTATION, outdated::TEMPLATE_HASH_ANNOTATION};
    use serde_json::json;

    fn config_map(namespace: &str, name: &str, bytes: usize) -> Object {
        let owner =
            json!({ "apiVersion": "example.com/v1", "kind": "Tale", "name": "a", "uid": "u", "controller": true });
        let mut metadata = json!({ "namespace": namespace, "name": name, "uid": name, "resourceVersion": "1" });
        metadata["ownerReferences"] = json!([owner]);
        let text = json!({ "metadata": metadata, "data": { "a": "x".repeat(bytes) } }).to_string();
        let resource = Resource::new("v1", "ConfigMap", "configmaps");
        let purpose = Purpose::Children(["/data"].into_iter().collect());
        wire::object(&text, &WatchSpec { resource, selector: None, purpose, optional: false }).unwrap()
    }

    fn job(namespace: &str, name: &str, spec: &str, status: &str) -> Object {
        let text = format!(
            r#"{{"metadata":{{"namespace":"{namespace}","name":"{name}","uid":"{name}","resourceVersion":"1"}},"spec":{spec},"status":{status}}}"#
        );
        let resource = Resource::new("example.com/v1", "Tale", "tales");
        let purpose = Purpose::Jobs(GroupKind::new("example.com", "Tale"));
        wire::object(&text, &WatchSpec { resource, selector: None, purpose, optional: false }).unwrap()
    }

    fn padded(bytes: usize) -> String {
        format!(r#"{{"pad":"{}"}}"#, "x".repeat(bytes))
    }

    fn bytes_in(kept: &Kept, namespace: &str) -> usize {
        kept.by_namespace.get(namespace).map_or(0, |of| of.jobs)
    }

    #[test]
    fn of_a_job_whose_spec_is_too_large_the_size_is_kept() {
        let mut kept = Kept::default();
        for number in 0..100 {
            let mut object = job("ns", &format!("large-{number}"), &padded(1_300_000), "{}");
            kept.admit(&mut object);
            let wrong = object.unreadable.unwrap();
            assert_eq!(wrong, FieldError::large_spec(1_300_010, Limits::default().spec));
        }
        assert!(bytes_in(&kept, "ns") < 100 << 10, "{} bytes", bytes_in(&kept, "ns"));
        let switches = r#"{"suspend":true,"runPolicy":{"managedBy":"another","of":{"a":1}},"list":[1]"#;
        let mut suspended = job("ns", "suspended", &format!(r#"{switches},"pad":"{}"}}"#, "x".repeat(300_000)), "{}");
        kept.admit(&mut suspended);
        let Held::Job(packed) = &suspended.held else { panic!() };
        let left = json!({ "suspend": true, "runPolicy": { "managedBy": "another" } });
        assert_eq!(packed.unpacked().spec, left, "it is suspended, or another's, all the same");
        // Written otherwise, its 256 KiB are six times as long.
        let mut escaped = job("ns", "escaped", &format!(r#"{{"pad":"{}"}}"#, "\\u003c".repeat(200_000)), "{}");
        kept.admit(&mut escaped);
        assert_eq!(escaped.unreadable, None);
        let ended = r#"{"troupe":{"uid":"ended","finished":{"at":"2026-01-01T00:00:00Z","outcome":"succeeded","clean":"all"}}}"#;
        let mut ended = job("ns", "ended", &padded(300_000), ended);
        kept.admit(&mut ended);
        assert_eq!(ended.unreadable, None, "what is left to do of it does not depend on its spec");
    }

    #[test]
    fn the_jobs_of_a_namespace_have_bounded_specs_and_statuses_and_those_of_another_as_much() {
        let mut kept = Kept { most_of_jobs: 5 << 20, ..Kept::default() };
        let status = format!(r#"{{"troupe":{{"uid":"x","headline":"Running"}},"pad":"{}"}}"#, "x".repeat(1_300_000));
        let mut admitted = |namespace: &str, name: &str| {
            let mut object = job(namespace, name, &padded(1_000), &status);
            kept.admit(&mut object);
            object
        };
        let all: Vec<_> = (0..100).map(|number| admitted("ns", &format!("job-{number}"))).collect();
        let last = |object: &Object| match &object.held {
            Held::Job(packed) => (packed.status(), packed.lacks_ledger()),
            Held::Pod(_) | Held::Child(_) => panic!("a job"),
        };
        let other = admitted("other", "job");
        assert_eq!(all.iter().filter(|object| object.unreadable.is_none()).count(), 4);
        let words = "the jobs of this namespace have more than 5 MiB of specs, statuses, labels and annotations";
        assert!(all[99].unreadable.as_ref().is_some_and(|wrong| wrong.message.starts_with(words)), "{:?}", all[99]);
        assert_eq!(last(&all[99]), (json!({ "troupe": { "uid": "x", "headline": "Running" } }), false));
        assert_eq!(other.unreadable, None);
        let mut forged = job("ns", "forged", "{}", &format!(r#"{{"troupe":{}}}"#, padded(1_300_000)));
        kept.admit(&mut forged);
        assert_eq!(last(&forged), (json!({}), true), "nothing is decided without its ledger");
        kept.release(&forged);
        assert!(bytes_in(&kept, "ns") <= 5 << 20, "{} bytes", bytes_in(&kept, "ns"));

        all.iter().chain([&other]).for_each(|object| kept.release(object));
        assert!(kept.by_namespace.is_empty());
    }

    fn is_whole(object: &Object) -> bool {
        matches!(&object.held, Held::Child(child) if !child.fields.is_empty())
    }

    #[test]
    fn what_a_namespace_has_no_room_for_is_an_error_of_the_object_and_no_other_namespace_has_less_room() {
        let mut kept = Kept { most: 5 << 20, ..Kept::default() };
        let mut admitted = |namespace: &str, name: &str| {
            let mut object = config_map(namespace, name, 2 << 19);
            kept.admit(&mut object);
            object
        };
        let first: Vec<_> = ["a", "b", "c", "d"].map(|name| admitted("ns", name)).into();
        assert!(first.iter().all(is_whole));
        let none = admitted("ns", "e");
        assert!(!is_whole(&none));
        let wrong = none.unreadable.clone().unwrap();
        assert_eq!(wrong.path, "ConfigMap e");
        assert!(wrong.message.starts_with("the objects of this namespace have more than 5 MiB of data"), "{wrong:?}");
        let other = admitted("other", "a");
        assert!(is_whole(&other));

        kept.release(&none);
        kept.release(&first[0]);
        let mut again = config_map("ns", "e", 2 << 19);
        kept.admit(&mut again);
        assert!(is_whole(&again), "there is room now");
        first[1..].iter().chain([&again, &other]).for_each(|object| kept.release(object));
        assert!(kept.by_namespace.is_empty());
    }
    fn pod(name: &str, annotation: &str, text: &str) -> Object {
        let metadata = json!({
            "namespace": "ns", "name": name, "uid": name, "resourceVersion": "1",
            "annotations": { annotation: text },
        });
        let spec = WatchSpec {
            resource: Resource::new("v1", "Pod", "pods"),
            selector: None,
            purpose: Purpose::Pods(Places::default()),
            optional: false,
        };
        wire::object(&json!({ "metadata": metadata }).to_string(), &spec).unwrap()
    }

    #[test]
    fn what_pods_keep_of_their_annotations_counts_and_what_the_host_writes_there_does_not() {
        for annotation in [ADDRESSES_ANNOTATION, TEMPLATE_HASH_ANNOTATION] {
            let mut kept = Kept { most: 1 << 20, ..Kept::default() };
            let mut ours = pod("ours", annotation, "0123abcd");
            kept.admit(&mut ours);
            assert!(kept.by_namespace.is_empty(), "{annotation}");
            let mut pods: Vec<_> =
                (0..8).map(|number| pod(&number.to_string(), annotation, &"x".repeat(200 << 10))).collect();
            pods.iter_mut().for_each(|pod| kept.admit(pod));
            assert!(kept.by_namespace["ns"].children > 800 << 10, "{annotation}");
            let held: usize = pods.iter().map(|pod| pod.held.bytes()).sum();
            assert!(held < 2 << 20, "{annotation}: {held} bytes are held");
            let refused = pods.iter().filter_map(|pod| pod.unreadable.as_ref()).map(|wrong| wrong.path.clone());
            assert_eq!(refused.collect::<Vec<_>>(), ["Pod 5", "Pod 6", "Pod 7"]);
            pods.iter().chain([&ours]).for_each(|pod| kept.release(pod));
            assert!(kept.by_namespace.is_empty(), "{annotation}");
        }
    }
}
